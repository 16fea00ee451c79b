//! `fetchwell schedule`: what a plan has due goes on the list of `pages`, once, whoever puts it there.
//!
//! `plan_file` reads the plan, `entry` says when something is due, `scheduler` puts it on the list, and
//! `sitemaps` fetches those by the one flow. What was done stands in the store and nowhere else, so
//! instances need not know of each other.

mod entry;
mod plan_file;
mod scheduler;
mod sitemaps;

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::pipeline::{self, Plant};
use fetchwell_engine::ports::rounds::Rounds;
use fetchwell_feed::sitemap::MAX_SITEMAP_BYTES;
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_policy::time::Time;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use serde_json::json;
use tracing::{info, warn};

use crate::commands::schedule::args::ScheduleArgs;
use crate::console::exit::Exit;
use crate::console::output::{Running, print};
use crate::console::signals::{sleep_unless_stopped, stop_on_signal};
use crate::console::terminal::printable;
use crate::wiring::{Parts, open_list};
use entry::Entry;
use scheduler::Scheduler;
use sitemaps::Sitemaps;

/// Does what was typed.
pub(crate) fn run(settings: &Settings, args: ScheduleArgs, as_json: bool) -> Running<'_> {
    Box::pin(run_inner(settings, args, as_json))
}

async fn run_inner(settings: &Settings, args: ScheduleArgs, as_json: bool) -> Result<Exit, Exit> {
    let entries = plan_file::read(&args.plan).map_err(Exit::Usage)?;
    let settings = &with_room_for_sitemaps(settings);
    // A file is bound to the politeness store of the first who opens it; a server, to that of the first who fetches.
    let is_file = settings.values.store.file().is_some();
    let rounds: Arc<dyn Rounds> = open_list(settings, is_file).await?;
    let parts = Parts::open(settings).await?;
    let ends = args.once || args.dry_run;
    let max_waiting = settings.values.schedule_max_queue;
    let sitemaps = Sitemaps::new(rounds.clone(), parts.clock.clone(), ends, max_waiting);
    let scheduler = Scheduler::new(entries, rounds, sitemaps.clone(), max_waiting);
    if args.dry_run {
        return dry_run(scheduler, parts.clock.wall(), as_json).await;
    }
    let patience = ends.then_some(settings.values.fetch_give_up_after);
    let gate = parts.gate(settings, patience);
    let plant = parts.plant(settings, gate, DoorName::Sitemaps, Arc::new(|_| {}));
    if ends {
        return once(scheduler, &sitemaps, plant).await;
    }
    let interval = settings.values.schedule_interval;
    watch(scheduler, &sitemaps, plant, interval, parts.clock.clone()).await
}

/// A sitemap may be larger than a page, as far as there is memory for it.
fn with_room_for_sitemaps(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    let values = &mut settings.values;
    let wanted = values.http_max_body.max(MAX_SITEMAP_BYTES as u64);
    values.http_max_body = wanted.min(values.http_body_budget);
    settings
}

async fn once(
    mut scheduler: Scheduler,
    sitemaps: &Arc<Sitemaps>,
    plant: Plant,
) -> Result<Exit, Exit> {
    scheduler.pass(plant.clock.wall()).await?;
    pipeline::run(sitemaps.door(), plant, stop_on_signal()).await?;
    scheduler.note_ended().await?;
    Ok(if sitemaps.failed() == 0 { Exit::Ok } else { Exit::SomeFailed })
}

async fn watch(
    mut scheduler: Scheduler,
    sitemaps: &Arc<Sitemaps>,
    plant: Plant,
    interval: Duration,
    clock: Clock,
) -> Result<Exit, Exit> {
    let stop = stop_on_signal();
    let looking = async {
        while !stop.is_cancelled() {
            match scheduler.pass(clock.wall()).await {
                Ok(()) => {}
                Err(fault) if fault.is_transient() => warn!("due entries wait: {fault}"),
                Err(fault) => {
                    stop.cancel();
                    return Err(fault);
                }
            }
            sleep_unless_stopped(interval, &stop).await;
        }
        // What ended meanwhile need not be fetched again.
        scheduler.note_ended().await
    };
    let fetching = async {
        let ended = pipeline::run(sitemaps.door(), plant, stop.clone()).await;
        stop.cancel();
        ended
    };
    let (noted, ended) = tokio::join!(looking, fetching);
    ended?;
    noted?;
    info!("stopped; entries that are not on the list yet are due at the next start");
    Ok(Exit::Ok)
}

async fn dry_run(mut scheduler: Scheduler, now: Time, as_json: bool) -> Result<Exit, Exit> {
    let due = scheduler.due_entries(now).await?;
    let line = |(entry, round): &(&Entry, Time)| {
        let kind = entry.kind.as_str();
        let url = &entry.url;
        let round = rfc3339(*round);
        if as_json {
            format!("{}\n", json!({"kind": kind, "url": url, "due": round}))
        } else {
            format!("{round}  {kind:<7}  {}\n", printable(url))
        }
    };
    let text: String = due.iter().map(line).collect();
    print(text.as_bytes())
}
