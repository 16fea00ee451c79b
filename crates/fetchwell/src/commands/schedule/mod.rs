//! `fetchwell schedule`: queues the due entries of a plan for `pages`.

pub(crate) mod args;

use std::sync::Arc;

use fetchwell_doors::schedule::{Schedule, ScheduleEntry, read_plan};
use fetchwell_engine::ports::rounds::Rounds;
use fetchwell_feed::sitemap::MAX_SITEMAP_BYTES;
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_policy::time::Time;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use serde_json::json;

use crate::commands::schedule::args::ScheduleArgs;
use crate::console::exit::Exit;
use crate::console::output::{Running, json_line, print};
use crate::console::signals::stop_on_signal;
use crate::console::terminal::printable;
use crate::wiring::{Parts, open_list};

pub(crate) fn run(settings: &Settings, args: ScheduleArgs, as_json: bool) -> Running<'_> {
    Box::pin(async move {
        let entries = read_plan(&args.plan)?;
        let values = &settings.values;
        // A file is bound to the politeness store of the first command that opens it; a server, to that of the first
        // that fetches.
        let is_file = values.store.file().is_some();
        let rounds: Arc<dyn Rounds> = open_list(settings, is_file).await?;
        let parts = Parts::open(settings).await?;
        let parts = parts.with_room_for_bodies(settings, MAX_SITEMAP_BYTES as u64);
        let rules = args.rules(values);
        let ends = rules.ends;
        let schedule = Schedule::new(entries, rounds, parts.clock.clone(), rules);
        if args.dry_run {
            return dry_run(schedule, as_json).await;
        }
        let patience = ends.then_some(values.fetch_give_up_after);
        let gate = parts.gate(settings, patience);
        let runtime = parts.runtime(settings, gate, DoorName::Sitemaps, Arc::new(|_| {}));
        if ends {
            let failed = schedule.once(runtime, stop_on_signal()).await?;
            return Ok(if failed == 0 { Exit::Ok } else { Exit::SomeFailed });
        }
        schedule.watch(runtime, values.schedule_interval, stop_on_signal()).await?;
        Ok(Exit::Ok)
    })
}

async fn dry_run(mut schedule: Schedule, as_json: bool) -> Result<Exit, Exit> {
    let due = schedule.due().await?;
    let line = |(entry, round): &(&ScheduleEntry, Time)| {
        let kind = entry.kind.as_str();
        let url = &entry.url;
        let round = rfc3339(*round);
        if as_json {
            json_line(json!({"kind": kind, "url": url, "due": round}))
        } else {
            format!("{round}  {kind:<7}  {}\n", printable(url))
        }
    };
    let text: String = due.iter().map(line).collect();
    print(text)
}
