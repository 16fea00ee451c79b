//! `fetchwell migrate`: moves from an SQLite file to a PostgreSQL database, to run on several machines.

use fetchwell_engine::ports::store_url::StoreUrl;
use fetchwell_settings::Settings;
use fetchwell_stores::migrate::Moved;
use serde_json::json;

use crate::console::exit::Exit;
use crate::console::output::{Running, json_line, print, print_either};
use crate::wiring::store;

/// Moves all data of `serve` from one store to the other.
pub(crate) fn run<'a>(from: &'a Settings, to: &'a Settings, as_json: bool) -> Running<'a> {
    Box::pin(async move {
        let file = &from.values.store;
        let name = to.values.store.to_string();
        match store(from)?.migrate_to(&store(to)?).await? {
            Moved::All(counts) => tell(file, &name, &counts, as_json),
            Moved::Impossible => Err(Exit::Usage(format!(
                "cannot move {file} to {name}; use `fetchwell migrate --store sqlite:PATH --to \
                 postgres://…`"
            ))),
            Moved::NoFile(path) => Err(Exit::Usage(format!(
                "there is no file {}; set it with --store",
                path.display()
            ))),
            Moved::Before => print_either(
                as_json,
                json!({"to": name, "moved": {}}),
                format!("{file} was already moved to {name}\n"),
            ),
            Moved::Elsewhere(place) => Err(Exit::Usage(format!(
                "{file} was already moved to {place} and is now only a copy; continue with the database"
            ))),
            Moved::FileInUse => Err(Exit::Usage(format!(
                "a process is using {file}; stop it (SIGTERM) and try again"
            ))),
            Moved::HasOpenCrawls => Err(Exit::Usage(format!(
                "{file} has crawls that have not ended or whose webhook has not been delivered, and PostgreSQL \
                 cannot store crawls; start `fetchwell serve` and wait for them, or cancel them with DELETE \
                 /crawl/{{id}}"
            ))),
            Moved::FileUsedSince => Err(Exit::Usage(format!(
                "an earlier move copied {file} to {name}, but was interrupted before it could record \
                 that; {file} has been used since, so the two differ. Empty the database and move \
                 again, or continue with the database alone"
            ))),
            Moved::DatabaseNotEmpty => Err(Exit::Usage(format!(
                "{name} already has callers or messages; move to an empty database (create one with \
                 `createdb`)"
            ))),
        }
    })
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
        return print(json_line(json!({"to": to, "moved": moved})));
    }
    let mut text = format!("moved from {file} to {to}:\n");
    for (what, count) in counts {
        text.push_str(&format!("{count:>12}  {what}\n"));
    }
    text.push_str(&format!(
        "\nNext: fetchwell serve --store {to}\n\
         {file} keeps a copy, which \"serve\" now refuses. The data of other commands in it (pages, \
         feeds, articles, batches) stays there, with its own pace. Crawls stay there, too; only their \
         messages and results were moved.\n"
    ));
    print(text)
}
