//! `fetchwell commoncrawl dead`: lists and retries the batches that workers gave up.

use std::collections::BTreeSet;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::batches::{DeadBatch, RetriedBatches};
use fetchwell_settings::Settings;
use serde_json::json;
use tracing::error;

use super::args::DeadCommand;
use crate::console::exit::Exit;
use crate::console::output::{json_line, print, print_either};
use crate::console::table::{plain, table};
use crate::wiring::open_batches;

pub(super) async fn run(
    settings: &Settings,
    command: DeadCommand,
    as_json: bool,
) -> Result<Exit, Exit> {
    let batches = open_batches(settings, &Clock::system()).await?;
    match command {
        DeadCommand::List(_) => print(listed(&batches.dead_batches().await?, as_json)),
        DeadCommand::Retry(args) => {
            let names = Vec::from_iter(BTreeSet::from_iter(args.batches));
            let named = (!args.all).then_some(names.as_slice());
            let retried = batches.retry_dead(named).await?;
            say_retried(&retried, as_json)
        }
    }
}

/// Unknown names do not stop the others from being retried, but they are reported.
fn say_retried(retried: &RetriedBatches, as_json: bool) -> Result<Exit, Exit> {
    let RetriedBatches { count, unknown } = retried;
    if *count > 0 || unknown.is_empty() {
        print_either(as_json, json!({ "retried": count }), format!("retried {count}\n"))?;
    }
    if unknown.is_empty() {
        return Ok(Exit::Ok);
    }
    let names: Vec<String> = unknown.iter().map(|id| id.escape_debug().to_string()).collect();
    error!(
        "no such dead batch: {}; run `fetchwell commoncrawl dead list` to see all dead batches",
        names.join(", ")
    );
    Ok(Exit::SomeFailed)
}

fn listed(batches: &[DeadBatch], as_json: bool) -> String {
    if as_json {
        let line = |batch: &DeadBatch| {
            let DeadBatch { id, reason } = batch;
            json_line(json!({ "id": id, "reason": reason }))
        };
        return batches.iter().map(line).collect();
    }
    if batches.is_empty() {
        return "there are no dead batches\n".to_owned();
    }
    // Names are never truncated: they are typed again to retry a batch.
    let row = |batch: &DeadBatch| [batch.id.escape_debug().to_string(), plain(&batch.reason)];
    table(["batch", "reason"], &batches.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_and_reasons_harmless() {
        let id = "0123456789abcdef".repeat(4);
        let reason = format!("\u{1b}[2J{}", "x".repeat(100));
        let text = listed(&[DeadBatch { id: id.clone(), reason }], false);
        assert!(text.contains(&format!("{id}  \\u{{1b}}[2Jxxx")), "{text}");
        assert_eq!(listed(&[], false), "there are no dead batches\n");
        let line = listed(&[DeadBatch { id: "b".into(), reason: "r".into() }], true);
        assert_eq!(line, "{\"id\":\"b\",\"reason\":\"r\"}\n");
    }
}
