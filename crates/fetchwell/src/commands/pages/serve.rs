//! Runs the door with its metrics and its dashboard.

use fetchwell_doors::pages::PageDoor;
use fetchwell_policy::robots::WhenUnreachable;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use tracing::{info, warn};

use super::args;
use super::dashboard_server;
use super::exposition::{Exposition, LastBacklog};
use crate::console::exit::Exit;
use crate::console::signals::stop_on_signal;
use crate::wiring::{Parts, connection_rules, listen_for_metrics, open_pages};

/// The user agent that the design specifies.
const USER_AGENT: &str = "OttoBot/1.0";

/// Fetches until it is stopped.
pub(super) async fn serve(settings: &Settings) -> Result<Exit, Exit> {
    let settings = &with_own_defaults(settings);
    let values = &settings.values;
    let listener = listen_for_metrics(values.pages_metrics_listen).await?;
    let shown_at = dashboard_server::listen(values.pages_dashboard_listen).await?;
    let stop = stop_on_signal();
    let ports = open_pages(settings).await?;
    warn_of_half_a_place(settings);
    let parts = Parts::open(settings).await?;
    if let Some(listener) = &listener {
        let address = listener.local_addr()?;
        parts.own_listeners.register(address);
        info!("listening on http://{address}; metrics are at http://{address}/metrics");
    }
    info!("taking URLs from {} in {}", values.pages_input_queue, values.store);
    let door = PageDoor::new(ports);
    let gate = parts.gate(settings, None);
    let runtime = parts.runtime(settings, gate, DoorName::Pages, door.metrics.event_sink());
    let told = Exposition {
        queue: door.ports.queue.clone(),
        metrics: door.metrics.clone(),
        process_metrics: parts.process_metrics.clone(),
        health: parts.health.clone(),
        events_elsewhere: values.pages_kafka_bootstrap_servers.is_some(),
        log: door.log.clone(),
        unready_after: values.pages_unready_after,
        last: LastBacklog::default(),
    };
    let (ended, (), shown) = tokio::join!(
        door.run(args::rules(values), runtime, &parts.health, &stop),
        told.serve(listener, connection_rules(values), stop.clone()),
        dashboard_server::serve(settings, &door.ports, &parts, shown_at, &stop),
    );
    ended?;
    shown?;
    Ok(Exit::Ok)
}

/// Setting only one of the design's two servers is rarely intended.
fn warn_of_half_a_place(settings: &Settings) {
    let values = &settings.values;
    let path = values.store.file().unwrap_or(&values.pages_embedded).display();
    match (values.store.file(), &values.pages_kafka_bootstrap_servers) {
        (None, None) => warn!(
            "no Kafka server is set, so events are stored in {path} on this machine; read them \
             with `fetchwell pages events`, or set pages.kafka_bootstrap_servers"
        ),
        (Some(_), Some(_)) => warn!(
            "no Redis server is set, so URLs and pages are stored in {path} on this machine; add \
             URLs with `fetchwell pages add`, or use --store redis://…"
        ),
        _ => {}
    }
}

/// The defaults of this door, as its design specifies.
fn with_own_defaults(settings: &Settings) -> Settings {
    let mut own = settings.clone();
    own.values.user_agent.get_or_insert_with(|| USER_AGENT.to_owned());
    if settings.is_default("robots.unreachable") {
        own.values.robots_unreachable = WhenUnreachable::Allow;
    }
    own
}
