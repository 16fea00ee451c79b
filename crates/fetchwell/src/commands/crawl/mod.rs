//! `fetchwell crawl`: follows the links of start pages; writes results to a file or standard output.

pub(crate) mod args;
mod printed;
mod progress;
mod summary;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fetchwell_doors::crawl::{self, CrawlRecord, CrawlRules};
use fetchwell_doors::fetch::{self, OutputFormat, renderer};
use fetchwell_engine::finish::Observed;
use fetchwell_engine::pipeline;
use fetchwell_engine::ports::finish::{Finish, Settled};
use fetchwell_engine::ports::frontier::{Frontier, STARTS_PER_BATCH};
use fetchwell_engine::ports::queue::Queue;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::seed::random_seed;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::robots::product_token;
use fetchwell_policy::time::Time;
use fetchwell_settings::Settings;
use fetchwell_stores::sqlite::{
    self, CrawlFinish, OutputFile, SqliteFrontier, SqliteInstance, SqliteQueue,
};
use fetchwell_telemetry::metrics::DoorName;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use crate::commands::args::requested_format;
use crate::commands::crawl::args::CrawlArgs;
use crate::commands::fetch::args::rules as fetch_rules;
use crate::commands::fetch::{
    FetchProgress, OutputRun, Stdout, check_format, gave_up, open_queue, queue_name,
    with_own_defaults,
};
use crate::console::exit::Exit;
use crate::console::output::{Running, cannot_use};
use crate::console::signals::{sleep_unless_stopped, stop_on_signal};
use crate::console::url_lists::read_pages;
use crate::wiring::{Parts, gate_rules, open_queue_db, user_agent};
use printed::Printed;
use progress::{CrawlBar, Estimate};

/// The prefix of queues whose crawls print to standard output and cannot be resumed.
const PASSING: &str = "crawl:passing:";

pub(crate) fn run(settings: &Settings, args: CrawlArgs, json: bool, quiet: u8) -> Running<'_> {
    Box::pin(async move {
        let starts = read_pages(&args.urls)?;
        if starts.is_empty() {
            warn!("the list is empty: there is nothing to crawl");
        }
        let output = args.output.clone();
        let requested = requested_format(args.format, json, output.as_deref())?;
        let format = requested.unwrap_or(OutputFormat::Json);
        check_format(format, output.as_deref(), args.resume)?;
        let signal = stop_on_signal();
        let stop = signal.child_token();
        let progress = Arc::default();
        let crawl = Crawl { settings, args, starts, format, quiet, signal, stop, progress };
        match output {
            Some(path) => crawl.to_file(&path).await,
            None => crawl.to_stdout().await,
        }
    })
}

struct Crawl<'a> {
    settings: &'a Settings,
    args: CrawlArgs,
    starts: Vec<String>,
    format: OutputFormat,
    quiet: u8,
    signal: CancellationToken,
    /// Cancelled by a signal, when the time is up, or when the reader of standard output is gone.
    stop: CancellationToken,
    progress: Arc<FetchProgress>,
}

/// The queue of a crawl, its frontier, and this process as an instance of it.
struct Place {
    queue: SqliteQueue,
    frontier: SqliteFrontier,
    instance: Arc<SqliteInstance>,
}

impl Crawl<'_> {
    /// Writes to standard output: printed results count as delivered.
    async fn to_stdout(&self) -> Result<Exit, Exit> {
        let db = open_queue_db(self.settings).await?;
        SqliteQueue::discard_abandoned(&db, PASSING, &sqlite::clock(&db).await?).await?;
        let name = format!("{PASSING}{:016x}", random_seed());
        let queue = open_queue(self.settings, db, &name).await?;
        let place = self.place(&queue);
        let stdout = Stdout { render: renderer(self.format, true), stop: self.stop.clone() };
        let settle = CrawlFinish::new(
            place.frontier.clone(),
            place.instance.clone(),
            None,
            |_: &CrawlRecord| Vec::new(),
        );
        let exit = self.flow(place, Printed { stdout, settle }, false).await?;
        queue.discard().await?;
        Ok(exit)
    }

    /// Writes to a file: each page ends with exactly one row, even after a crash.
    async fn to_file(&self, path: &Path) -> Result<Exit, Exit> {
        let db = open_queue_db(self.settings).await?;
        let queue = open_queue(self.settings, db.clone(), &queue_name("crawl", path)?).await?;
        let output = OutputRun { settings: self.settings, path, format: self.format };
        if self.args.resume {
            self.resume(&queue, &output).await?;
        } else {
            output.begin(&db, &queue).await?;
        }
        let file = OutputFile::open(path).map_err(|error| cannot_use(path, &error))?;
        let place = self.place(&queue);
        let render = renderer(self.format, true);
        let finish = CrawlFinish::new(
            place.frontier.clone(),
            place.instance.clone(),
            Some(file),
            move |record: &CrawlRecord| record.row.as_ref().map(render).unwrap_or_default(),
        );
        self.flow(place, finish, true).await
    }

    /// Resumes earlier crawls. The frontier knows which pages have a row, so it must belong to the file.
    async fn resume(&self, queue: &SqliteQueue, output: &OutputRun<'_>) -> Result<(), Exit> {
        let path = output.path;
        if output.lacks_rows(queue).await? {
            return Err(Exit::Usage(format!(
                "{} lacks rows of the crawl that it belongs to; restore the file, or crawl again \
                 without --resume",
                path.display()
            )));
        }
        // The queue knows the pages whose rows are removed here.
        output.resume(queue).await?;
        let mut rows = output.earlier()?;
        rows.read_to(u64::MAX).map_err(|error| cannot_use(path, &error))?;
        self.progress.count_earlier(&rows);
        let counts = self.place(queue).frontier.counts().await?;
        if counts.known == 0 && !rows.outcomes.is_empty() {
            return Err(Exit::Usage(format!(
                "this store does not know the crawl that wrote {}; use the --store of that crawl, \
                 or crawl again without --resume",
                path.display()
            )));
        }
        Ok(())
    }

    fn place(&self, queue: &SqliteQueue) -> Place {
        Place {
            queue: queue.clone(),
            frontier: SqliteFrontier::new(queue.clone(), self.args.budget()),
            instance: Arc::new(queue.instance()),
        }
    }

    async fn flow(
        &self,
        place: Place,
        finish: impl Finish<CrawlRecord> + 'static,
        to_file: bool,
    ) -> Result<Exit, Exit> {
        let Place { queue, frontier, instance } = place;
        let began = Instant::now();
        let parts = Parts::open_for_fetch(self.settings).await?;
        let clock = parts.clock.clone();
        let rules = self.rules(clock.now());
        for some in self.starts.chunks(STARTS_PER_BATCH) {
            frontier.add(crawl::starts(some, &rules)).await?;
        }
        let door = crawl::door(instance.clone(), self.observed(finish), rules, clock);
        let give_up_after = self.settings.values.fetch_give_up_after;
        let rules = gate_rules(&with_own_defaults(self.settings), Some(give_up_after));
        let gate = parts.gate_by(fetch::gate_rules(rules));
        let runtime = parts.runtime(self.settings, gate, DoorName::Crawl, Arc::new(|_| {}));
        let bar = CrawlBar::show(self.quiet == 0, frontier.clone(), self.estimate());
        let timer = self.stop_in_time();
        let ended = pipeline::run(door, runtime, self.stop.clone()).await;
        drop(timer);
        bar.end().await;
        let left = instance.leave().await;
        ended.map_err(|fault| gave_up(self.settings, fault, &parts.health, to_file))?;
        left?;
        let unfinished = queue.ledger().await?.unfinished();
        let counts = frontier.counts().await?;
        if self.quiet == 0 {
            info!("{}", self.progress.summary(unfinished, began.elapsed()));
            let has_room = counts.admitted < self.args.limit;
            summary::tell(&frontier, &counts, &self.args, has_room && !self.stop.is_cancelled())
                .await?;
        }
        if self.stop.is_cancelled() && unfinished > 0 {
            return Ok(self.stopped(began.elapsed(), to_file));
        }
        Ok(self.progress.exit())
    }

    fn rules(&self, since: Time) -> CrawlRules {
        let fetch = fetch_rules(&self.settings.values, self.format, false, since);
        let agent = user_agent(self.settings);
        self.args.rules(&self.starts, fetch, product_token(&agent))
    }

    /// Counts what `finish` has stored.
    fn observed(&self, finish: impl Finish<CrawlRecord> + 'static) -> Arc<dyn Finish<CrawlRecord>> {
        let progress = self.progress.clone();
        let format = self.format;
        Arc::new(Observed {
            inner: Arc::new(finish),
            on_settled: Box::new(move |finished, settled| {
                if settled != Settled::Confirmed {
                    return;
                }
                for CrawlRecord { row, failure, .. } in &finished.records {
                    row.iter().for_each(|row| progress.advance(row, format));
                    failure.iter().for_each(|failure| warn!("{failure}"));
                }
            }),
        })
    }

    fn estimate(&self) -> Estimate {
        let interval = Rate::per_second(self.settings.values.rate, 1).interval;
        Estimate { limit: self.args.limit, interval, progress: self.progress.clone() }
    }

    fn stop_in_time(&self) -> AbortOnDropHandle<()> {
        let stop = self.stop.clone();
        let max_time = self.args.max_time;
        AbortOnDropHandle::new(tokio::spawn(async move {
            sleep_unless_stopped(max_time, &stop).await;
            stop.cancel();
        }))
    }

    /// The exit of a crawl that was stopped before its end.
    fn stopped(&self, after: Duration, to_file: bool) -> Exit {
        let again = if to_file { "; use --resume to continue" } else { "" };
        if self.signal.is_cancelled() {
            info!("stopped before the end{again}");
            return Exit::Interrupted;
        }
        if after >= self.args.max_time {
            info!("stopped by --max-time before the end{again}");
        }
        // Otherwise, the reader of standard output has all that it wanted.
        Exit::Ok
    }
}
