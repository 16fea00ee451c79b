//! `fetchwell serve`: runs the API, the dashboard and the two flows on one store.

use std::sync::Arc;

use fetchwell_doors::retriever::{deliver, delivery_gate, flow, prune};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::Message;
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_policy::pace::Rate;
use fetchwell_service::api::{Api, ApiMetrics, Foundation};
use fetchwell_service::audit::{AuditLog, AuthFailures};
use fetchwell_service::dashboard::{self, Authenticator, Dashboard, MetricsHistory, Subject};
use fetchwell_service::server::{self, ConnectionLimits};
use fetchwell_service::sites::SiteService;
use fetchwell_service::views::messages::MessageView;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::args::api_rules;
use super::fetching::messages;
use super::first_start;
use crate::console::exit::Exit;
use crate::console::output::Running;
use crate::console::signals::stop_on_signal;
use crate::wiring::{
    Parts, address_guard, connection_rules, crawl_progress, gate_rules, listen,
    open_articles_if_any, open_retriever, open_sites, system_info,
};

/// Serves until it is stopped.
pub(crate) fn run(settings: &Settings) -> Running<'_> {
    Box::pin(run_inner(settings))
}

async fn run_inner(settings: &Settings) -> Result<Exit, Exit> {
    let fix = "use another address with --listen";
    let listener = listen(settings.retriever_address(), fix).await?;
    let address = listener.local_addr()?;
    let stop = stop_on_signal();
    let (store, clock) = open_retriever(settings).await?;
    let parts = Parts::open(settings).await?;
    parts.own_listeners.register(address);
    let audit = AuditLog::of_store(store.inbox.clone(), clock.clone());
    first_start::welcome(&*store.inbox, &audit, address).await?;

    let sites = parts.politeness.clone();
    let sites = open_sites(settings, sites, Some(audit.clone()), parts.clock.clone()).await?;
    let sites = Arc::new(sites);
    let metrics = Arc::new(ApiMetrics::default());
    let auth_failures = Arc::new(AuthFailures::new(clock.clone()));
    let foundation = Foundation {
        inbox: store.inbox.clone(),
        oversight: store.oversight.clone(),
        sites: sites.clone(),
        results: store.results.clone(),
        clock,
        guard: address_guard(settings),
        metrics: metrics.clone(),
        process_metrics: parts.process_metrics.clone(),
        audit: audit.clone(),
        auth_failures: auth_failures.clone(),
        health: parts.health.clone(),
        stop: stop.clone(),
    };
    let values = &settings.values;
    let api = Api::new(foundation, api_rules(values));
    let most = values.retriever_max_connections;
    let bounds = ConnectionLimits::new(connection_rules(values), most, values.shutdown_grace);
    let shown = subject(settings, &store, &parts, sites, audit, auth_failures).await?;
    let dashboard = Dashboard::new(shown, stop.clone());
    info!("listening on http://{address}; the documentation is at http://{address}/docs");
    let api_ended = CancellationToken::new();
    let serving = async {
        let router = fetchwell_service::router(&api, &dashboard, address);
        server::serve(listener, router, bounds, stop.clone()).await;
        api_ended.cancel();
    };
    let on_result = Arc::new(move |status: &str| metrics.result(status));
    let (door, runtime) = messages(settings, &parts, &store, on_result, Arc::new(|_| {}));
    let (messages, deliveries, (), (), (), ()) = tokio::join!(
        ending_all(&stop, flow(door, runtime, stop.clone())),
        ending_all(&stop, deliveries(settings, &parts, &store, stop.clone())),
        serving,
        dashboard.keep_audit(&api_ended),
        prune(&store, settings.values.retriever_retention, &parts.health, &stop),
        dashboard.keep_history(),
    );
    messages.and(deliveries)?;
    Ok(Exit::Ok)
}

async fn subject(
    settings: &Settings,
    store: &RetrieverStore,
    parts: &Parts,
    sites: Arc<SiteService>,
    audit: AuditLog,
    auth_failures: Arc<AuthFailures>,
) -> Result<Subject, Exit> {
    Ok(Subject {
        door: dashboard::DashboardHost::Serve,
        system: system_info(settings),
        clock: parts.clock.clone(),
        authenticator: Authenticator::Callers(store.inbox.clone()),
        audit,
        auth_failures,
        process_metrics: parts.process_metrics.clone(),
        history: MetricsHistory::default(),
        sites,
        oversight: Some(store.oversight.clone()),
        dead_letters: None,
        articles: open_articles_if_any(settings).await?,
        crawl_progress: crawl_progress(settings),
    })
}

/// Stops everything if a flow ends: a server that accepts messages but never fetches them is of no use.
async fn ending_all(
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
    let encode = Arc::new(|message: Message| json!(MessageView::from(message)));
    let interval = Rate::per_second(settings.values.webhooks_rate, 1).interval;
    let rules = gate_rules(settings, None);
    let gate = delivery_gate(parts.politeness.clone(), rules, interval, parts.clock.clone());
    let runtime = parts.runtime(settings, gate, DoorName::Webhooks, Arc::new(|_| {}));
    deliver(store, encode, runtime, stop).await
}
