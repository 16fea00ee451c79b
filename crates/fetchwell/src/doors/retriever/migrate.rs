//! `fetchwell migrate`: from a SQLite file to a PostgreSQL database, for more than one machine.

use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_settings::Settings;
use fetchwell_stores::migrate::{Moved, move_retriever};
use fetchwell_stores::sqlite;
use serde_json::json;

use crate::console::exit::Exit;
use crate::console::output::{Running, print};
use crate::plant::{open_queue_database, open_queue_db};

/// Moves all that `serve` keeps from the one store to the other.
pub(crate) fn run<'a>(from: &'a Settings, to: &'a Settings, as_json: bool) -> Running<'a> {
    Box::pin(run_inner(from, to, as_json))
}

async fn run_inner(from: &Settings, to: &Settings, as_json: bool) -> Result<Exit, Exit> {
    let (file, database) = (&from.values.store, &to.values.store);
    let (StoreUrl::Sqlite(path), StoreUrl::Postgres(url)) = (file, database) else {
        return Err(Exit::Usage(format!(
            "{file} can't be moved to {database}; `fetchwell migrate --store sqlite:PATH --to \
             postgres://…` moves a file to a database"
        )));
    };
    if !path.exists() {
        return Err(Exit::Usage(format!(
            "there is no file {}; name it with --store",
            path.display()
        )));
    }
    let db = open_queue_db(from).await?;
    let clock = sqlite::clock(&db).await?;
    let database = open_queue_database(to, url.reveal()).await?;
    let name = to.values.store.to_string();
    match move_retriever(&db, &clock, &database, &name).await? {
        Moved::All(counts) => tell(file, &name, &counts, as_json),
        Moved::Before if as_json => {
            print(format!("{}\n", json!({"to": name, "moved": {}})).as_bytes())
        }
        Moved::Before => print(format!("{file} was moved to {name} before\n").as_bytes()),
        Moved::Elsewhere(place) => Err(Exit::Usage(format!(
            "{file} was moved to {place} before; what it still has is a copy, so go on from there"
        ))),
        Moved::FileInUse => Err(Exit::Usage(format!(
            "a process is at work on {file}; stop it (SIGTERM) and try again"
        ))),
        Moved::FileUsedSince => Err(Exit::Usage(format!(
            "an earlier move put what was in {file} into {name} and was cut off before it could say so; \
             {file} was used since, so the two differ now. Empty the database and move again, or \
             go on with the database alone"
        ))),
        Moved::DatabaseNotEmpty => Err(Exit::Usage(format!(
            "{name} has callers or messages already; move to an empty database (`createdb` makes one)"
        ))),
    }
}

fn tell(
    file: &StoreUrl,
    to: &str,
    counts: &[(&'static str, u64)],
    as_json: bool,
) -> Result<Exit, Exit> {
    if as_json {
        let moved: serde_json::Map<String, serde_json::Value> =
            counts.iter().map(|(what, count)| (what.replace(' ', "_"), json!(count))).collect();
        return print(format!("{}\n", json!({"to": to, "moved": moved})).as_bytes());
    }
    let mut text = format!("moved from {file} to {to}:\n");
    for (what, count) in counts {
        text.push_str(&format!("{count:>12}  {what}\n"));
    }
    text.push_str(&format!(
        "\nNext: fetchwell serve --store {to}\n\
         {file} keeps a copy, which \"serve\" refuses from now on. What other commands keep in it (pages, \
         feeds, articles, batches) stays there, with a pace of its own.\n"
    ));
    print(text.as_bytes())
}
