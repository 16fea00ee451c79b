//! `fetchwell crawl`: follows the links of start pages; writes results to a file or standard output.

pub(crate) mod args;
mod plan;
mod printed;
mod progress;
mod summary;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fetchwell_doors::crawl::{self, CrawlRecord, CrawlRules, Sitemaps};
use fetchwell_doors::fetch::{self, OutputFormat, renderer};
use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::Observed;
use fetchwell_engine::pipeline;
use fetchwell_engine::ports::finish::{Finish, Settled};
use fetchwell_engine::ports::frontier::{CrawlBudget, Frontier, STARTS_PER_BATCH};
use fetchwell_engine::ports::queue::Queue;
use fetchwell_engine::ports::source::Source;
use fetchwell_engine::seed::random_seed;
use fetchwell_policy::crawl::ScopeKind;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::robots::product_token;
use fetchwell_policy::time::Time;
use fetchwell_policy::units::quantity;
use fetchwell_policy::url::WebUrl;
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
use crate::console::output::{Running, cannot_use, print_either};
use crate::console::signals::{sleep_unless_stopped, stop_on_signal};
use crate::console::url_lists::read_pages;
use crate::wiring::{Parts, gate_rules, open_queue_db, user_agent};
use plan::{CrawlForecast, ForecastLimits, MAX_SITES, Paces};
use printed::Printed;
use progress::{CrawlBar, Estimate};

/// The prefix of the queues of crawls that cannot be resumed: those that print to standard output, and plans.
const PASSING: &str = "crawl:passing:";

/// How often to check whether the crawl has reached a limit.
const LIMIT_CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn run(settings: &Settings, args: CrawlArgs, json: bool, quiet: u8) -> Running<'_> {
    Box::pin(async move {
        if args.since.is_some() && (args.sitemaps == Sitemaps::Off || args.scope == ScopeKind::Page)
        {
            let error = "--since needs sitemaps; leave out --sitemaps off and --scope page";
            return Err(Exit::Usage(error.to_owned()));
        }
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
        let reached = Arc::default();
        let progress = Arc::default();
        let crawl =
            Crawl { settings, args, starts, format, quiet, signal, stop, reached, progress };
        if crawl.args.plan {
            return crawl.plan(json).await;
        }
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
    /// Cancelled by a signal, at a limit, or when the reader of standard output is gone.
    stop: CancellationToken,
    /// The limit that ended the crawl.
    reached: Arc<OnceLock<Reached>>,
    progress: Arc<FetchProgress>,
}

/// A limit at which a crawl ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    /// `--limit`: every page has ended. Sitemaps that are left could only name pages that the limit excludes.
    Pages,
    /// `--max-time`.
    Time,
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
        let queue = self.passing_queue().await?;
        let place = self.place(&queue, self.args.budget());
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

    /// A queue that is discarded at the end.
    async fn passing_queue(&self) -> Result<SqliteQueue, Exit> {
        let db = open_queue_db(self.settings).await?;
        SqliteQueue::discard_abandoned(&db, PASSING, &sqlite::clock(&db).await?).await?;
        let name = format!("{PASSING}{:016x}", random_seed());
        Ok(open_queue(self.settings, db, &name).await?)
    }

    /// Reads robots.txt and sitemaps, but no page, and shows what they name.
    async fn plan(&self, json: bool) -> Result<Exit, Exit> {
        let queue = self.passing_queue().await?;
        let budget = CrawlBudget { pages: 0, pages_per_site: None, known: None, sitemaps: None };
        let place = self.place(&queue, budget);
        let frontier = place.frontier.clone();
        let settle =
            CrawlFinish::new(frontier.clone(), place.instance.clone(), None, |_: &CrawlRecord| {
                Vec::new()
            });
        let parts = Parts::open_for_fetch(self.settings).await?;
        let rules = self.rules(parts.clock.now());
        let may_grow = rules.follows_links();
        self.fetch_all(&place, &parts, rules, settle, false).await?;
        for start in &self.starts {
            if let Err(fault) = WebUrl::parse(start) {
                warn!("a crawl does not fetch {start}: {fault}");
            }
        }
        let known = frontier.waiting_sites(MAX_SITES).await?;
        let sites = frontier.counts().await?.sites;
        let mut paces = Paces::new(self.settings, &parts).of(&known, &self.starts).await?;
        let limits = ForecastLimits {
            pages: self.args.limit,
            pages_per_site: self.args.limit_per_site,
            may_grow,
            incomplete: self.stop.is_cancelled() || sites > MAX_SITES as u64,
        };
        let forecast = CrawlForecast::new(&known, &mut paces, limits);
        if self.quiet == 0 {
            summary::tell_cut_off(&frontier).await?;
        }
        queue.discard().await?;
        print_either(json, &forecast, forecast.text())?;
        Ok(if self.signal.is_cancelled() { Exit::Interrupted } else { Exit::Ok })
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
        let place = self.place(&queue, self.args.budget());
        let render = renderer(self.format, true);
        let finish = CrawlFinish::new(
            place.frontier.clone(),
            place.instance.clone(),
            Some(file),
            move |record: &CrawlRecord| record.row().map(render).unwrap_or_default(),
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
        let mut rows = output.rows()?;
        let mut next_row = || rows.next(u64::MAX).map_err(|error| cannot_use(path, &error));
        let mut has_rows = false;
        while let Some(row) = next_row()? {
            self.progress.count(row.outcome);
            has_rows = true;
        }
        let counts = self.place(queue, self.args.budget()).frontier.counts().await?;
        if counts.known == 0 && has_rows {
            return Err(Exit::Usage(format!(
                "this store does not know the crawl that wrote {}; use the --store of that crawl, \
                 or crawl again without --resume",
                path.display()
            )));
        }
        Ok(())
    }

    fn place(&self, queue: &SqliteQueue, budget: CrawlBudget) -> Place {
        Place {
            queue: queue.clone(),
            frontier: SqliteFrontier::new(queue.clone(), budget),
            instance: Arc::new(queue.instance()),
        }
    }

    async fn flow(
        &self,
        place: Place,
        finish: impl Finish<CrawlRecord> + 'static,
        to_file: bool,
    ) -> Result<Exit, Exit> {
        let began = Instant::now();
        let parts = Parts::open_for_fetch(self.settings).await?;
        let rules = self.rules(parts.clock.now());
        self.fetch_all(&place, &parts, rules, finish, to_file).await?;
        let Place { queue, frontier, .. } = place;
        let unfinished = queue.ledger().await?.unfinished();
        let counts = frontier.counts().await?;
        let is_at_limit = self.reached.get() == Some(&Reached::Pages);
        if self.quiet == 0 {
            let pages = if is_at_limit { 0 } else { unfinished };
            info!("{}", self.progress.summary(pages, began.elapsed()));
            let has_room = counts.admitted < self.args.limit;
            summary::tell(&frontier, &counts, &self.args, has_room && !self.stop.is_cancelled())
                .await?;
            if is_at_limit && unfinished > 0 {
                let sitemaps = quantity(unfinished, "sitemap was", "sitemaps were");
                info!(
                    "{sitemaps} not read, because the crawl reached --limit ({})",
                    self.args.limit
                );
            }
        }
        if self.stop.is_cancelled() && unfinished > 0 && !is_at_limit {
            return Ok(self.stopped(to_file));
        }
        Ok(self.progress.exit())
    }

    /// Runs until nothing is left, or a limit is reached.
    async fn fetch_all(
        &self,
        place: &Place,
        parts: &Parts,
        rules: CrawlRules,
        finish: impl Finish<CrawlRecord> + 'static,
        to_file: bool,
    ) -> Result<(), Exit> {
        let Place { frontier, instance, .. } = place;
        // A plan needs robots.txt even without sitemaps, for the Crawl-delay.
        let reads_robots = self.args.plan || rules.reads_sitemaps();
        for some in self.starts.chunks(STARTS_PER_BATCH) {
            frontier.add(crawl::starts(some, reads_robots)).await?;
        }
        let clock = parts.clock.clone();
        let finish = self.observed(finish);
        let known = Arc::new(frontier.clone());
        let door = crawl::door(instance.clone(), finish, known, rules, clock);
        let give_up_after = self.settings.values.fetch_give_up_after;
        let rules = gate_rules(&with_own_defaults(self.settings), Some(give_up_after));
        let gate = parts.gate_by(fetch::gate_rules(rules));
        let runtime = parts.runtime(self.settings, gate, DoorName::Crawl, Arc::new(|_| {}));
        let is_shown = self.quiet == 0 && !self.args.plan;
        let bar = CrawlBar::show(is_shown, frontier.clone(), self.estimate());
        let watch = self.stop_at_limits(frontier.clone());
        let ended = pipeline::run(door, runtime, self.stop.clone()).await;
        drop(watch);
        bar.end().await;
        let left = instance.leave().await;
        ended.map_err(|fault| gave_up(self.settings, fault, &parts.health, to_file))?;
        Ok(left?)
    }

    fn rules(&self, since: Time) -> CrawlRules {
        let fetch = fetch_rules(&self.settings.values, self.format, false, since);
        let agent = user_agent(self.settings);
        let now = Clock::system().wall();
        self.args.rules(&self.starts, fetch, product_token(&agent), now)
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
                for record in &finished.records {
                    record.row().into_iter().for_each(|row| progress.advance(row, format));
                    record.failure.iter().for_each(|failure| warn!("{failure}"));
                }
            }),
        })
    }

    fn estimate(&self) -> Estimate {
        let interval = Rate::per_second(self.settings.values.rate, 1).interval;
        Estimate { limit: self.args.limit, interval, progress: self.progress.clone() }
    }

    fn stop_at_limits(&self, frontier: SqliteFrontier) -> AbortOnDropHandle<()> {
        let stop = self.stop.clone();
        let reached = self.reached.clone();
        let max_time = self.args.max_time;
        let fetches_pages = !self.args.plan;
        let began = Instant::now();
        AbortOnDropHandle::new(tokio::spawn(async move {
            let first = loop {
                // A store that fails stops the crawl itself.
                if fetches_pages && frontier.is_budget_finished().await.unwrap_or(false) {
                    break Reached::Pages;
                }
                let left = max_time.saturating_sub(began.elapsed());
                if left.is_zero() {
                    break Reached::Time;
                }
                sleep_unless_stopped(left.min(LIMIT_CHECK_INTERVAL), &stop).await;
                if stop.is_cancelled() {
                    return;
                }
            };
            reached.get_or_init(|| first);
            stop.cancel();
        }))
    }

    /// The exit of a crawl that was stopped before its end.
    fn stopped(&self, to_file: bool) -> Exit {
        let again = if to_file { "; use --resume to continue" } else { "" };
        if self.signal.is_cancelled() {
            info!("stopped before the end{again}");
            return Exit::Interrupted;
        }
        if self.reached.get() == Some(&Reached::Time) {
            info!("stopped by --max-time before the end{again}");
        }
        // Otherwise, the reader of standard output has all that it wanted.
        Exit::Ok
    }
}
