//! `fetchwell serve`: runs the API, the dashboard and the two flows on one store.

use std::sync::Arc;

use fetchwell_doors::retriever::{self, Encode, OnResult, deliver, delivery_gate, flow, prune};
use fetchwell_doors::{crawl, fetch};
use fetchwell_engine::pipeline::{Door, EventSink, RunLimits, Runtime};
use fetchwell_engine::ports::crawls::MessageCrawl;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{FetchResult, Message};
use fetchwell_engine::ports::message_batches::MessageBatch;
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_policy::pace::Rate;
use fetchwell_service::dashboard::{Authenticator, Dashboard, DashboardHost, Subject};
use fetchwell_service::server::{self, ConnectionLimits};
use fetchwell_service::views::batches::BatchView;
use fetchwell_service::views::crawls::CrawlView;
use fetchwell_service::views::messages::MessageView;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::args::{crawls_rules, message_rules, retention};
use super::first_start;
use super::foundation::ApiStore;
use crate::commands::fetch::with_own_defaults;
use crate::console::exit::Exit;
use crate::console::output::Running;
use crate::console::signals::stop_on_signal;
use crate::wiring::{
    Parts, connection_rules, dashboard_subject, fitting_in_flight, gate_rules, listen,
    open_articles_if_any,
};

/// Crawls leave room for single messages, which have a pipeline of their own.
const CRAWLS_IN_FLIGHT: usize = 64;
const CRAWLS_WINDOW: usize = 2_048;
/// One in flight, and one that is next. Leased pages are fetched even if their crawl was cancelled or its time is over.
const CRAWLS_PER_SITE: usize = 2;

/// Serves until it is stopped.
pub(crate) fn run(settings: &Settings) -> Running<'_> {
    Box::pin(async move {
        let fix = "use another address with --listen";
        let listener = listen(settings.retriever_address(), fix).await?;
        let address = listener.local_addr()?;
        let stop = stop_on_signal();
        let opened = ApiStore::open(settings).await?;
        let ApiStore { store, parts, audit, callers, .. } = &opened;
        parts.own_listeners.register(address);
        first_start::welcome(&*store.inbox, audit, address).await?;

        let authenticator = Authenticator::Callers(store.inbox.clone());
        let door = DashboardHost::Serve;
        let shown = Subject {
            oversight: Some(store.oversight.clone()),
            callers: Some(callers.clone()),
            articles: open_articles_if_any(settings).await?,
            ..dashboard_subject(settings, parts, door, authenticator, audit.clone()).await?
        };
        let values = &settings.values;
        let api = opened.api(settings, &shown.sites, &shown.auth_failures, &stop);
        let most = values.retriever_max_connections;
        let bounds = ConnectionLimits::new(connection_rules(values), most, values.shutdown_grace);
        let dashboard = Dashboard::new(shown, stop.clone());
        info!("listening on http://{address}; the documentation is at http://{address}/docs");
        let api_ended = CancellationToken::new();
        let serving = async {
            let router = fetchwell_service::router(&api, &dashboard, address);
            server::serve(listener, router, bounds, stop.clone()).await;
            api_ended.cancel();
        };
        let (door, runtime) =
            messages(settings, parts, store, opened.on_result(), Arc::new(|_| {}));
        let (messages, deliveries, crawls, (), (), (), (), (), ()) = tokio::join!(
            ending_all(&stop, flow(door, runtime, stop.clone())),
            ending_all(&stop, deliveries(settings, parts, store, stop.clone())),
            ending_all(&stop, crawls(settings, parts, store, opened.on_result(), stop.clone())),
            serving,
            dashboard.keep_audit(&api_ended),
            api.keep_audit(&api_ended),
            prune(store, retention(&settings.values), &parts.health, &stop),
            dashboard.keep_history(),
            api.keep_token_uses(&api_ended),
        );
        messages.and(deliveries).and(crawls)?;
        Ok(Exit::Ok)
    })
}

/// The door and the runtime for fetching the messages of a store.
pub(crate) fn messages(
    settings: &Settings,
    parts: &Parts,
    store: &RetrieverStore,
    on_result: OnResult,
    event_sink: EventSink,
) -> (Door<FetchResult>, Runtime) {
    let values = &settings.values;
    let rules = message_rules(settings);
    let gate = parts.gate_by(rules.gate_rules(gate_rules(settings, None)));
    let mut runtime = parts.runtime(settings, gate, DoorName::Serve, event_sink);
    let workers = values.retriever_worker_count.unwrap_or(values.max_in_flight);
    runtime.limits.max_in_flight = fitting_in_flight(workers);
    (retriever::messages(&store.messages, rules, on_result), runtime)
}

/// Fetches the pages of crawls until `stop`, if the store can hold crawls.
async fn crawls(
    settings: &Settings,
    parts: &Parts,
    store: &RetrieverStore,
    on_result: OnResult,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let Some(store) = &store.crawls else {
        stop.cancelled().await;
        return Ok(());
    };
    let values = &settings.values;
    let rules = gate_rules(&with_own_defaults(settings), Some(values.fetch_give_up_after));
    let mut rules = fetch::gate_rules(rules);
    // The limits of retailers hold for crawls, too.
    rules.pace.groups = message_rules(settings).pace;
    let gate = parts.gate_by(rules);
    let mut runtime = parts.runtime(settings, gate, DoorName::Crawl, Arc::new(|_| {}));
    let max_in_flight = runtime.limits.max_in_flight.min(CRAWLS_IN_FLIGHT);
    let limits = runtime.limits;
    let max_per_site = CRAWLS_PER_SITE;
    runtime.limits = RunLimits { max_in_flight, window: CRAWLS_WINDOW, max_per_site, ..limits };
    let door = crawl::crawls(store, crawls_rules(settings), on_result, parts.clock.clone());
    let (ended, ()) = tokio::join!(
        flow(door, runtime, stop.clone()),
        crawl::look_after(&*store.crawls, &parts.health, &stop),
    );
    ended
}

/// Stops everything if a flow ends: a server that accepts messages but never fetches them is of no use.
pub(crate) async fn ending_all(
    stop: &CancellationToken,
    flow: impl Future<Output = Result<(), StoreError>>,
) -> Result<(), StoreError> {
    let ended = flow.await;
    stop.cancel();
    ended
}

/// Delivers results to webhooks, at their own pace.
async fn deliveries(
    settings: &Settings,
    parts: &Parts,
    store: &RetrieverStore,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let clock = parts.clock.clone();
    let encode = Encode {
        message: Arc::new(|message: Message| json!(MessageView::from(message))),
        batch: Arc::new(move |batch: &MessageBatch| json!(BatchView::of(batch, clock.wall()))),
        crawl: Arc::new(|crawl: &MessageCrawl| json!(CrawlView::of(crawl))),
    };
    let interval = Rate::per_second(settings.values.webhooks_rate, 1).interval;
    let rules = gate_rules(settings, None);
    let gate = delivery_gate(parts.politeness.clone(), rules, interval, parts.clock.clone());
    let runtime = parts.runtime(settings, gate, DoorName::Webhooks, Arc::new(|_| {}));
    deliver(store, encode, runtime, stop).await
}
