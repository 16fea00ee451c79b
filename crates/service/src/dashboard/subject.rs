//! The data of a process that the dashboard shows.

use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::articles::Articles;
use fetchwell_engine::ports::crawl_progress::CrawlProgress;
use fetchwell_engine::ports::dead_letters::DeadLetters;
use fetchwell_engine::ports::oversight::Oversight;
use fetchwell_engine::store_health::StoreHealth;
use fetchwell_telemetry::metrics::Metrics;

use super::{Authenticator, MetricsHistory};
use crate::audit::{AuditLog, AuthFailures};
use crate::callers::CallerService;
use crate::sites::SiteService;

/// The command that runs the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DashboardHost {
    /// `fetchwell serve`
    Serve,
    /// `fetchwell pages`
    Pages,
    /// `fetchwell demo`
    Demo,
}

impl DashboardHost {
    /// The name of the command.
    pub(super) fn command(self) -> &'static str {
        match self {
            DashboardHost::Serve => "serve",
            DashboardHost::Pages => "pages",
            DashboardHost::Demo => "demo",
        }
    }
}

/// The stores and the settings of the process.
#[derive(Clone, Debug)]
pub struct SystemInfo {
    /// The store, without its secrets.
    pub store: String,
    /// The politeness store, without its secrets.
    pub politeness: String,
    pub settings: Vec<SettingRow>,
}

/// The effective value of a setting.
#[derive(Clone, Debug)]
pub struct SettingRow {
    pub key: String,
    /// In TOML; a secret is hidden.
    pub value: String,
    /// Where the value came from.
    pub origin: String,
    /// Whether it is the built-in default.
    pub is_default: bool,
}

/// Everything that the dashboard shows. `None` if this process does not have it.
pub struct Subject {
    pub door: DashboardHost,
    pub system: SystemInfo,
    pub clock: Clock,
    /// Which store calls of this process fail.
    pub health: Arc<StoreHealth>,
    /// Decides who may log in.
    pub authenticator: Authenticator,
    pub audit: AuditLog,
    /// Failed logins that are not in the audit log yet.
    pub auth_failures: Arc<AuthFailures>,
    /// The metrics of this process.
    pub process_metrics: Arc<Metrics>,
    pub history: MetricsHistory,
    /// The politeness store's sites.
    pub sites: Arc<SiteService>,
    /// The callers of the API.
    pub callers: Option<Arc<CallerService>>,
    /// The messages of all callers.
    pub oversight: Option<Arc<dyn Oversight>>,
    /// The dead letters of `pages`.
    pub dead_letters: Option<Arc<dyn DeadLetters>>,
    /// The articles from feeds.
    pub articles: Option<Arc<dyn Articles>>,
    /// The progress of Common Crawl batchers and workers.
    pub crawl_progress: Arc<dyn CrawlProgress>,
}

impl Subject {
    /// Whether there are callers with their own tokens.
    pub(super) fn has_callers(&self) -> bool {
        matches!(self.authenticator, Authenticator::Callers(_))
    }
}
