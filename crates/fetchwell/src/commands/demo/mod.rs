//! `fetchwell demo`: runs the whole system on a simulated web. It needs no network.
//!
//! It runs `fetch` to a file and a retriever with callers, on one store in a temporary folder, against sites that
//! record every request. The verdict at the end is based on the output: the rows in the file, the results in the
//! outbox, the ledgers of the store, and the records of the sites.

mod account;
pub(crate) mod args;
mod board;
mod callers;
mod counters;
mod dashboard_server;
mod events;
mod frame;
mod origin;
mod report;
mod rows;
mod scenario;
mod service;
mod show;

use std::path::Path;
use std::time::Duration;

use fetchwell_engine::ports::inbox::MessageId;
use fetchwell_engine::seed::random_seed;
use fetchwell_settings::{Flag, Settings, Sources};
use tempfile::TempDir;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::commands::demo::args::DemoArgs;
use crate::commands::fetch;
use crate::console::exit::Exit;
use crate::console::logs::LogOptions;
use crate::console::output::{Running, print_either};
use crate::wiring::Parts;
use board::Board;
use counters::Counters;
use origin::Origin;
use report::{Report, troubles};
use scenario::{Scenario, Size};
use service::Service;
use show::Show;

/// Settings that shorten the demo from ten minutes to one. Everything else has its default.
const QUICKER: [(&str, &str); 7] = [
    ("rate", "2"),
    ("breaker.initial_backoff", "2s"),
    ("breaker.max_backoff", "4s"),
    ("fetch.give_up_after", "25s"),
    ("http.request_timeout", "10s"),
    ("shutdown_grace", "2s"),
    ("retriever.default_rate_limit", "50"),
];

/// How long messages may wait for sites that are down, in addition to the time that the largest site takes…
const MESSAGES_WAIT: Duration = Duration::from_secs(15);
/// …but at most as long as by default.
const MESSAGES_WAIT_AT_MOST: Duration = Duration::from_secs(3_600);

/// The settings that the demo sets itself.
const OWN: [&str; 5] = ["store", "politeness", "resolve", "allow_private", "i_own_these_sites"];

pub(crate) fn run<'a>(
    args: &'a DemoArgs,
    typed: &'a Sources<'a>,
    as_json: bool,
    log_options: LogOptions,
) -> Running<'a> {
    Box::pin(async move {
        let folder = tempfile::Builder::new().prefix("fetchwell-demo-").tempdir()?;
        let settings = settings(typed, folder.path(), &[])?;
        let size = Size {
            sites: args.sites,
            pages: args.pages,
            interval: Duration::from_secs_f64(1.0 / settings.values.rate),
            seed: args.seed.unwrap_or_else(|| random_seed() % 1_000_000),
        };
        let scenario = Scenario::new(&size);
        let origin = Origin::start(&scenario, size.interval)?;
        let deadline = (scenario.takes(size.interval) + MESSAGES_WAIT).min(MESSAGES_WAIT_AT_MOST);
        let own = [
            ("resolve", format!("*.test={}", origin.server.addr())),
            ("allow_private", "127.0.0.0/8".to_owned()),
            ("retriever.deadline", format!("{}s", deadline.as_secs())),
        ];
        let settings = self::settings(typed, folder.path(), &own)?;
        let show = Show::new(log_options, as_json, &settings, &folder);
        let demo = Demo { size, scenario, origin, settings, folder };
        let report = demo.run(&show).await?;
        drop(show);
        drop(demo);
        print_either(as_json, &report, report.text())?;
        let faults = report.faults();
        if faults.is_empty() {
            return Ok(Exit::Ok);
        }
        let seed = report.seed;
        let why =
            format!("the demo found an error: {}; repeat it with --seed {seed}", faults.join("; "));
        Err(Exit::Internal(anyhow::anyhow!(why)))
    })
}

struct Demo {
    size: Size,
    scenario: Scenario,
    origin: Origin,
    settings: Settings,
    folder: TempDir,
}

impl Demo {
    async fn run(&self, show: &Show) -> Result<Report, Exit> {
        let counters = Counters::default();
        let parts = Parts::open(&self.settings).await?.counted_by(&counters.process_metrics);
        let service = Service::open(&self.settings).await?;
        let (address, _dashboard) =
            dashboard_server::begin(&self.settings, &parts, &service.store).await?;
        info!("the dashboard is at {address}");
        let mut board = Board::new(&self.scenario, &self.origin, parts, counters.clone(), &address);
        let rows = self.folder.path().join("rows.jsonl");
        // In its own task, so that drawing does not delay it.
        let mut flows = tokio::spawn(self.flows(&rows, &service, &counters, &show.stop));
        let mut tick = interval(show.every());
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ended = loop {
            tokio::select! {
                ended = &mut flows => break ended,
                _ = tick.tick() => show.show(board.look(show.stop.is_cancelled()).await)?,
            }
        };
        let accepted = ended.map_err(|error| Exit::Internal(error.into()))??;
        let last = board.last_look(show.stop.is_cancelled()).await;
        let elapsed = last.elapsed;
        // If it was stopped, exit; otherwise give the user time to look around.
        let stopped_early = show.stop.is_cancelled();
        if !stopped_early {
            show.stay(last).await?;
        }
        let hits = self.origin.hits();
        let results = service.outcomes().await?;
        let (fetch, rows) = rows::account(&self.settings, &rows, &self.scenario.urls).await?;
        Ok(Report {
            seed: self.size.seed,
            sites: self.scenario.sites.len(),
            pages: self.scenario.pages(),
            elapsed_seconds: (elapsed.as_secs_f64() * 10.0).round() / 10.0,
            stopped_early,
            fetch,
            messages: service.account(&accepted, &results).await?,
            origin: self.origin.judge(&hits),
            troubles: troubles(&self.scenario, &hits, &rows, &results),
        })
    }

    /// Runs both doors until nothing is left or `stop`. Returns the accepted messages.
    fn flows(
        &self,
        rows: &Path,
        service: &Service,
        counters: &Counters,
        stop: &CancellationToken,
    ) -> impl Future<Output = Result<Vec<MessageId>, Exit>> + Send + use<> {
        let Scenario { urls, messages, .. } = &self.scenario;
        let urls = urls.clone();
        let messages = messages.clone();
        let settings = self.settings.clone();
        let rows = rows.to_owned();
        let stop = stop.clone();
        let service = service.clone();
        let counters = counters.clone();
        async move {
            let onlooker = counters.onlooker();
            let ((), accepted) = tokio::try_join!(
                fetch::run_to_file(&settings, urls, &rows, stop.clone(), onlooker),
                service.run(&settings, &messages, &counters, &stop),
            )?;
            Ok(accepted)
        }
    }
}

/// Shortened defaults and the flags given. Neither a file nor the environment is read, so that a demo is the same
/// everywhere.
fn settings(
    typed: &Sources<'_>,
    folder: &Path,
    more: &[(&'static str, String)],
) -> Result<Settings, Exit> {
    let mut given = typed.flags.to_vec();
    let own = given.iter().find(|flag| OWN.contains(&flag.key)).map(|flag| flag.name);
    if let Some(name) = own.or(typed.config_file.map(|_| "--config")) {
        let why = "the demo has its own simulated web, store and settings";
        return Err(Exit::Usage(format!("{why}: remove {name}")));
    }
    let mut own = QUICKER.map(|(key, value)| (key, value.to_owned())).to_vec();
    own.retain(|(key, _)| given.iter().all(|flag| flag.key != *key));
    own.push(("store", format!("sqlite:{}", folder.join("demo.db").display())));
    own.extend_from_slice(more);
    given.extend(own.into_iter().map(|(key, value)| Flag { key, name: "demo", value }));
    let sources = Sources {
        flags: &given,
        config_file: None,
        environment: &Default::default(),
        working_directory: folder,
        own_names_of: &[],
    };
    let settings = Settings::load(&sources)?;
    if settings.values.rate == 0.0 {
        return Err(Exit::Usage("the demo needs pacing: use a --rate above 0".into()));
    }
    Ok(settings)
}
