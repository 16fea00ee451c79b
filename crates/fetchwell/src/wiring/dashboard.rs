//! What a dashboard shows in every command that has one, and how it is served.

use std::path::PathBuf;
use std::sync::Arc;

use fetchwell_commoncrawl::CrawlFiles;
use fetchwell_service::audit::{AuditLog, AuthFailures};
use fetchwell_service::dashboard::{
    self, Authenticator, Dashboard, DashboardHost, MetricsHistory, SettingRow, Subject, SystemInfo,
};
use fetchwell_service::server::{self, ConnectionLimits};
use fetchwell_settings::{Effective, Settings, ValueOrigin};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::console::exit::Exit;
use crate::wiring::{Parts, open_sites};

/// What every dashboard shows. The caller adds what only its command has.
pub(crate) async fn dashboard_subject(
    settings: &Settings,
    parts: &Parts,
    door: DashboardHost,
    authenticator: Authenticator,
    audit: AuditLog,
) -> Result<Subject, Exit> {
    let clock = parts.clock.clone();
    let politeness = parts.politeness.clone();
    let sites = open_sites(settings, politeness, Some(audit.clone()), clock.clone()).await?;
    // The progress of batchers in the current folder, and of workers in the output folder of the settings.
    let output = settings.values.commoncrawl_output.clone();
    let crawl_progress = Arc::new(CrawlFiles { checkpoints: PathBuf::from("."), output });
    Ok(Subject {
        door,
        system: system_info(settings),
        authenticator,
        audit,
        auth_failures: Arc::new(AuthFailures::new(clock.clone())),
        clock,
        health: parts.health.clone(),
        process_metrics: parts.process_metrics.clone(),
        history: MetricsHistory::default(),
        sites: Arc::new(sites),
        callers: None,
        oversight: None,
        dead_letters: None,
        articles: None,
        crawl_progress,
    })
}

/// Serves a dashboard on its own listener until `stop`.
pub(crate) async fn serve_dashboard(
    subject: Subject,
    listener: TcpListener,
    bounds: ConnectionLimits,
    stop: CancellationToken,
) {
    let dashboard = Dashboard::new(subject, stop.clone());
    let serving = server::serve(listener, dashboard::alone(&dashboard), bounds, stop.clone());
    tokio::join!(serving, dashboard.keep_history(), dashboard.keep_audit(&stop));
}

/// The stores and all settings.
fn system_info(settings: &Settings) -> SystemInfo {
    let values = &settings.values;
    let politeness = values.politeness.as_ref();
    SystemInfo {
        store: values.store.to_string(),
        politeness: politeness.map_or("the store itself".to_owned(), ToString::to_string),
        settings: settings.effective.iter().map(setting_row).collect(),
    }
}

fn setting_row(setting: &Effective) -> SettingRow {
    SettingRow {
        key: setting.key.clone(),
        value: setting.value.to_string(),
        origin: setting.origin.to_string(),
        is_default: setting.origin == ValueOrigin::Default,
    }
}
