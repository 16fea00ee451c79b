//! `fetchwell fetch`: reads URLs from the command line, a file or a pipe; writes results to a file or standard output.

pub(crate) mod args;
mod estimate;
mod onlooker;
mod output;
mod output_run;
mod progress;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fetchwell_doors::fetch::{self, Earlier, FetchRow, OutputFormat, jobs, renderer};
use fetchwell_engine::finish::{Observed, SinkThenSettle};
use fetchwell_engine::pipeline;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finish, Settled};
use fetchwell_engine::ports::queue::Queue;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::seed::random_seed;
use fetchwell_engine::store_health::StoreHealth;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::units::quantity;
use fetchwell_settings::Settings;
use fetchwell_sqlite::db::Db;
use fetchwell_stores::sqlite::{self, FileFinish, SqliteInstance, SqliteQueue};
use fetchwell_telemetry::metrics::DoorName;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::commands::args::{links_need_json, requested_format};
use crate::commands::fetch::args::FetchArgs;
use crate::console::exit::Exit;
use crate::console::output::{Running, cannot_use};
use crate::console::signals::stop_on_signal;
use crate::console::url_lists::read_pages;
use crate::wiring::{Parts, gate_rules, open_queue_db};
use estimate::Estimate;

pub(crate) use onlooker::{Onlooker, audit, run_to_file};
pub(crate) use output::{Stdout, queue_name};
pub(crate) use output_run::OutputRun;
pub(crate) use progress::FetchProgress;

/// The longest Crawl-delay that `fetch` and `crawl` accept, unless robots.max_crawl_delay is set.
const MAX_CRAWL_DELAY: Duration = Duration::from_mins(5);

/// URLs enqueued per transaction.
const CHUNK: usize = 10_000;

/// The prefix of queues whose runs print to standard output and cannot be resumed.
const PASSING: &str = "fetch:passing:";

pub(crate) fn run(settings: &Settings, args: FetchArgs, json: bool, quiet: u8) -> Running<'_> {
    Box::pin(async move {
        let urls = read_pages(&args.urls)?;
        if urls.is_empty() {
            warn!("the list is empty: there is nothing to fetch");
        }
        let format = format(&args, json, urls.len())?;
        let signal = stop_on_signal();
        let stop = signal.child_token();
        let onlooker = Onlooker::default();
        let run = Run {
            settings,
            format,
            links: args.links,
            several: urls.len() > 1,
            quiet,
            signal,
            stop,
            onlooker,
        };
        match &args.output {
            Some(path) => run.to_file(path, urls, args.resume).await,
            None => run.to_stdout(urls).await,
        }
    })
}

/// The requested format, or else the one that the output's name implies, or else a default by the number of URLs.
fn format(args: &FetchArgs, json: bool, urls: usize) -> Result<OutputFormat, Exit> {
    let is_one_page = urls == 1 && !args.resume;
    let default = if is_one_page { OutputFormat::Markdown } else { OutputFormat::Json };
    let requested = requested_format(args.format, json, args.output.as_deref())?;
    let format = requested.unwrap_or(default);
    if args.links && format != OutputFormat::Json {
        return Err(links_need_json());
    }
    check_format(format, args.output.as_deref(), args.resume)?;
    Ok(format)
}

/// Refuses a format that cannot be resumed, or that needs a file.
pub(crate) fn check_format(
    format: OutputFormat,
    output: Option<&Path>,
    resume: bool,
) -> Result<(), Exit> {
    if resume && !format.has_rows() {
        let with_rows = OutputFormat::ALL.into_iter().filter(|format| format.has_rows());
        let names: Vec<&str> = with_rows.map(OutputFormat::name).collect();
        return Err(Exit::Usage(format!(
            "--resume needs --format {}: other formats do not record which URLs are done",
            names.join(" or ")
        )));
    }
    if format.needs_file() && output.is_none() {
        let ending = format.endings().first().copied().unwrap_or_default();
        return Err(Exit::Usage(format!("--format {} needs --output FILE{ending}", format.name())));
    }
    Ok(())
}

struct Run<'a> {
    settings: &'a Settings,
    format: OutputFormat,
    links: bool,
    several: bool,
    quiet: u8,
    signal: CancellationToken,
    /// Cancelled by a signal, or when the reader of standard output has gone.
    stop: CancellationToken,
    onlooker: Onlooker,
}

impl Run<'_> {
    /// Writes to standard output: printed results count as delivered.
    async fn to_stdout(&self, urls: Vec<String>) -> Result<Exit, Exit> {
        let db = open_queue_db(self.settings).await?;
        SqliteQueue::discard_abandoned(&db, PASSING, &sqlite::clock(&db).await?).await?;
        let queue =
            open_queue(self.settings, db, &format!("{PASSING}{:016x}", random_seed())).await?;
        let instance = Arc::new(queue.instance());
        let render = renderer(self.format, self.several);
        let sink = Stdout { render, stop: self.stop.clone() };
        let finish = SinkThenSettle { sink, source: instance.clone() };
        queue.enqueue(jobs(&urls)).await?;
        let estimate = || self.estimate(urls.iter());
        let exit = self.flow(&queue, instance, finish, estimate, false).await?;
        queue.discard().await?;
        Ok(exit)
    }

    /// Writes to a file: each URL ends with exactly one row, even after a crash.
    async fn to_file(
        &self,
        path: &Path,
        mut urls: Vec<String>,
        resume: bool,
    ) -> Result<Exit, Exit> {
        let db = open_queue_db(self.settings).await?;
        let name = queue_name("fetch", path)?;
        let queue = open_queue(self.settings, db.clone(), &name).await?;
        let output = OutputRun { settings: self.settings, path, format: self.format };
        if resume {
            let given_up = output.resume_list(&queue).await?;
            let given_up: Vec<String> =
                given_up.into_iter().filter(|url| !urls.contains(url)).collect();
            urls.extend(given_up);
        } else {
            output.begin(&db, &queue).await?;
        }
        let rows = Arc::new(Mutex::new(Earlier::new(output.rows()?)));
        for some in urls.chunks(CHUNK).map(<[String]>::to_vec) {
            let rows = rows.clone();
            let missing = move |confirmed| {
                let mut rows = rows.lock();
                rows.read_to(confirmed)?;
                Ok(jobs(some.iter().filter(|url| !rows.has(url))))
            };
            queue.enqueue_beside(path, missing).await?;
        }
        let rows = || rows.lock();
        self.onlooker.progress.count_earlier(&rows());
        let instance = Arc::new(queue.instance());
        let finish = FileFinish::open(instance.clone(), path, renderer(self.format, self.several))
            .map_err(|error| cannot_use(path, &error))?;
        let estimate = || {
            let rows = rows();
            self.estimate(urls.iter().filter(|url| !rows.has(url)))
        };
        self.flow(&queue, instance, finish, estimate, true).await
    }

    /// The estimate for these URLs, at the default pace.
    fn estimate<'a>(&self, urls: impl Iterator<Item = &'a String>) -> Estimate {
        Estimate::of(urls, Rate::per_second(self.settings.values.rate, 1).interval)
    }

    async fn flow(
        &self,
        queue: &SqliteQueue,
        instance: Arc<SqliteInstance>,
        finish: impl Finish<FetchRow> + 'static,
        estimate: impl FnOnce() -> Estimate,
        to_file: bool,
    ) -> Result<Exit, Exit> {
        let began = Instant::now();
        let parts = Parts::open_for_fetch(self.settings).await?;
        let parts = parts.counted_by(&self.onlooker.process_metrics);
        let values = &self.settings.values;
        let progress = &self.onlooker.progress;
        let format = self.format;
        let clock = parts.clock.clone();
        let rules = args::rules(values, format, self.links, clock.now());
        progress.show(queue.ledger().await?, self.quiet == 0, estimate);
        let counts = progress.clone();
        let finish = Arc::new(Observed {
            inner: Arc::new(finish),
            on_settled: Box::new(move |finished, settled| {
                if settled == Settled::Confirmed {
                    finished.records.iter().for_each(|row| counts.advance(row, format));
                }
            }),
        });
        let door = fetch::door(instance.clone(), finish, rules, clock);
        let health = parts.health.clone();
        let rules = gate_rules(&with_own_defaults(self.settings), Some(values.fetch_give_up_after));
        let gate = parts.gate_by(fetch::gate_rules(rules));
        let mut runtime =
            parts.runtime(self.settings, gate, DoorName::Fetch, self.onlooker.event_sink.clone());
        runtime.web = (self.onlooker.web)(runtime.web);
        let ended = pipeline::run(door, runtime, self.stop.clone()).await;
        progress.end(queue.ledger().await.ok());
        let left = instance.leave().await;
        ended.map_err(|fault| gave_up(self.settings, fault, &health, to_file))?;
        left?;
        let left = queue.ledger().await?.unfinished();
        if self.quiet == 0 {
            info!("{}", progress.summary(left, began.elapsed()));
        }
        if self.stop.is_cancelled() && left > 0 {
            info!(
                "stopped with {} left{}",
                quantity(left, "URL", "URLs"),
                if to_file { "; use --resume to continue" } else { "" }
            );
            // A closed pipe means that the reader has what it wants. After a signal, the exit code says
            // that URLs are left.
            let was_signalled = self.signal.is_cancelled();
            return Ok(if was_signalled { Exit::Interrupted } else { Exit::Ok });
        }
        Ok(progress.exit())
    }
}

/// The exit of a run that was ended by a store error or an output error.
pub(crate) fn gave_up(
    settings: &Settings,
    fault: StoreError,
    health: &StoreHealth,
    to_file: bool,
) -> Exit {
    if !fault.is_transient() {
        return fault.into();
    }
    let values = &settings.values;
    let failing = health.failing_anywhere(|_| true);
    let again = if to_file { " with --resume" } else { "" };
    let text = match &failing {
        Some(failing) => format!(
            "gave up after {} s (--give-up-after): {fault}; run the same command again{again} when that is \
             fixed",
            failing.lasts.as_secs()
        ),
        None => fault.to_string(),
    };
    let on_a_server = values.politeness.as_ref().is_some_and(|place| place.file().is_none());
    match failing {
        Some(failing) if on_a_server && failing.call.is_politeness() => Exit::Unreachable(text),
        _ => Exit::Internal(anyhow::Error::msg(text)),
    }
}

pub(crate) async fn open_queue(
    settings: &Settings,
    db: Db,
    name: &str,
) -> Result<SqliteQueue, StoreError> {
    let clock = sqlite::clock(&db).await?;
    SqliteQueue::open(db, name, clock, settings.values.lease_ttl, true).await
}

/// The defaults of this command, which differ because a person is waiting.
pub(crate) fn with_own_defaults(settings: &Settings) -> Settings {
    let mut own = settings.clone();
    if settings.is_default("robots.max_crawl_delay") {
        own.values.robots_max_crawl_delay = Some(MAX_CRAWL_DELAY);
    }
    own
}
