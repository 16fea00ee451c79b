//! `fetchwell outbox tail`: prints the newest results of one caller or of all.

use std::collections::BTreeMap;

use fetchwell_engine::ports::inbox::{Inbox, OutboxMessage, OutboxMost, OutboxPage};
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_policy::time::Time;
use fetchwell_service::views::messages::OutboxView;
use fetchwell_settings::Settings;
use serde_json::{Value, json};

use super::print::line;
use crate::commands::messages::args::TailArgs;
use crate::console::exit::Exit;
use crate::console::output::{Running, print};
use crate::console::signals::stop_on_signal;
use crate::wiring::open_retriever;

/// How much is read at once.
const MOST: OutboxMost = OutboxMost { results: 1_000, bytes: 16 << 20 };

/// A printed result, with what it is sorted by.
struct Tailed {
    at: Time,
    cursor: i64,
    line: String,
}

pub(crate) fn run<'a>(settings: &'a Settings, args: &'a TailArgs, as_json: bool) -> Running<'a> {
    Box::pin(run_inner(settings, args, as_json))
}

async fn run_inner(settings: &Settings, args: &TailArgs, as_json: bool) -> Result<Exit, Exit> {
    let (store, _) = open_retriever(settings).await?;
    let mut cursors = BTreeMap::new();
    let mut newest = advance(&store, args, &mut cursors, as_json).await?;
    let left_out = newest.len().saturating_sub(args.lines as usize);
    newest.drain(..left_out);
    show(&newest)?;
    if !args.follow {
        return Ok(Exit::Ok);
    }
    let stop = stop_on_signal();
    let poll = settings.values.retriever_inbox_poll_interval;
    while tokio::time::timeout(poll, stop.cancelled()).await.is_err() {
        show(&advance(&store, args, &mut cursors, as_json).await?)?;
    }
    Ok(Exit::Ok)
}

/// Reads on in each outbox from the last cursor; in an outbox seen for the first time, from its last lines on.
async fn advance(
    store: &RetrieverStore,
    args: &TailArgs,
    cursors: &mut BTreeMap<String, i64>,
    as_json: bool,
) -> Result<Vec<Tailed>, Exit> {
    let is_first_look = cursors.is_empty();
    let mut results = Vec::new();
    for outbox in store.oversight.outboxes().await? {
        if args.caller.as_ref().is_some_and(|name| *name != outbox.caller) {
            continue;
        }
        let begin = match is_first_look {
            true => outbox.pruned.max(outbox.newest - i64::from(args.lines)),
            // A new caller: all of its results are new.
            false => outbox.pruned,
        };
        let cursor = cursors.entry(outbox.caller.clone()).or_insert(begin);
        while *cursor < outbox.newest {
            let page = read(&*store.inbox, &outbox.caller, cursor, as_json).await?;
            if page.is_empty() {
                break;
            }
            results.extend(page);
        }
    }
    if let (Some(name), true) = (&args.caller, cursors.is_empty()) {
        return Err(Exit::Usage(format!(
            "there is no caller {name}; run `fetchwell callers list` to see all"
        )));
    }
    results.sort_by_key(|result| (result.at, result.cursor));
    Ok(results)
}

async fn read(
    inbox: &dyn Inbox,
    caller: &str,
    cursor: &mut i64,
    as_json: bool,
) -> Result<Vec<Tailed>, Exit> {
    match inbox.outbox(caller, Some(*cursor), MOST).await? {
        OutboxPage::Results { results, next } => {
            *cursor = next;
            Ok(results.into_iter().map(|result| tailed(caller, result, as_json)).collect())
        }
        // Retention has deleted results after the cursor; continue with the oldest that is left.
        OutboxPage::Gone { oldest } => {
            *cursor = oldest;
            Ok(Vec::new())
        }
    }
}

fn tailed(caller: &str, result: OutboxMessage, as_json: bool) -> Tailed {
    let at = result.created_at;
    let cursor = result.cursor;
    let view = OutboxView::from(result);
    let line = if as_json { as_line(caller, &view) } else { as_text(caller, &view) };
    Tailed { at, cursor, line }
}

fn as_line(caller: &str, view: &OutboxView) -> String {
    let mut value = json!(view);
    if let Value::Object(members) = &mut value {
        members.insert("caller_id".to_owned(), caller.into());
    }
    line(&value)
}

fn as_text(caller: &str, view: &OutboxView) -> String {
    let status = match view.http_status {
        Some(http_status) => format!("{} {http_status}", view.status),
        None => view.status.clone(),
    };
    format!(
        "{}  {caller}  {}  {status}  {}  {}\n",
        view.created_at,
        view.cursor,
        view.inbox_message_id,
        view.url.escape_debug()
    )
}

fn show(results: &[Tailed]) -> Result<Exit, Exit> {
    let text: String = results.iter().map(|result| result.line.as_str()).collect();
    print(text.as_bytes())
}
