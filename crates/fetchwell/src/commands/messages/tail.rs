//! `fetchwell outbox tail`: prints the newest results of one caller or of all.

use std::collections::BTreeMap;

use fetchwell_engine::ports::inbox::{OutboxMost, OutboxPage};
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_service::views::messages::OutboxView;
use fetchwell_settings::Settings;
use serde_json::json;

use crate::commands::messages::args::TailArgs;
use crate::console::exit::Exit;
use crate::console::output::{Running, json_line, print};
use crate::console::signals::stop_on_signal;
use crate::wiring::open_retriever;

/// How much is read at once.
const MOST: OutboxMost = OutboxMost { results: 1_000, bytes: 16 << 20 };

pub(crate) fn run<'a>(settings: &'a Settings, args: &'a TailArgs, as_json: bool) -> Running<'a> {
    Box::pin(async move {
        let (store, _) = open_retriever(settings).await?;
        let mut cursors = BTreeMap::new();
        let newest = advance(&store, args, &mut cursors, as_json).await?;
        let left_out = newest.len().saturating_sub(args.lines as usize);
        print(newest[left_out..].concat())?;
        if !args.follow {
            return Ok(Exit::Ok);
        }
        let stop = stop_on_signal();
        let poll = settings.values.retriever_inbox_poll_interval;
        while tokio::time::timeout(poll, stop.cancelled()).await.is_err() {
            print(advance(&store, args, &mut cursors, as_json).await?.concat())?;
        }
        Ok(Exit::Ok)
    })
}

/// Reads on in each outbox from the last cursor; in an outbox seen for the first time, from its last lines on. Returns
/// the results as lines, oldest first.
async fn advance(
    store: &RetrieverStore,
    args: &TailArgs,
    cursors: &mut BTreeMap<String, i64>,
    as_json: bool,
) -> Result<Vec<String>, Exit> {
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
            let page = store.inbox.outbox(&outbox.caller, Some(*cursor), MOST).await?;
            let (read, next) = match page {
                OutboxPage::Results { results, next } => (results, next),
                // Retention has deleted results after the cursor; continue with the oldest that is left.
                OutboxPage::Gone { oldest } => (Vec::new(), oldest),
            };
            *cursor = next;
            if read.is_empty() {
                break;
            }
            results.extend(read.into_iter().map(|result| {
                let order = (result.created_at, result.cursor);
                let view = OutboxView::from(result);
                let show = if as_json { as_line } else { as_text };
                (order, show(&outbox.caller, &view))
            }));
        }
    }
    if let (Some(name), true) = (&args.caller, cursors.is_empty()) {
        return Err(Exit::Usage(format!(
            "there is no caller {name}; run `fetchwell callers list` to see all"
        )));
    }
    results.sort_by_key(|(order, _)| *order);
    Ok(results.into_iter().map(|(_, line)| line).collect())
}

fn as_line(caller: &str, view: &OutboxView) -> String {
    let mut value = json!(view);
    value["caller_id"] = caller.into();
    json_line(value)
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
