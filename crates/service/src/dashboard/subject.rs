//! What a process has to show.

use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::articles::Articles;
use fetchwell_engine::ports::crawl_progress::CrawlProgress;
use fetchwell_engine::ports::dead_letters::DeadLetters;
use fetchwell_engine::ports::oversight::Oversight;
use fetchwell_telemetry::metrics::Measures;

use super::{Doorkeeper, History};
use crate::audit::{AuditLog, AuthFailures};
use crate::sites::SiteDesk;

/// Which door it is that shows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// `fetchwell serve`
    Serve,
    /// `fetchwell pages`
    Pages,
    /// `fetchwell demo`
    Demo,
}

impl Door {
    /// What was typed to open it.
    pub(super) fn command(self) -> &'static str {
        match self {
            Door::Serve => "serve",
            Door::Pages => "pages",
            Door::Demo => "demo",
        }
    }
}

/// What the process works on, and by which settings.
#[derive(Clone, Debug)]
pub struct SystemInfo {
    /// The store, without its secrets.
    pub store: String,
    /// Where the pace of sites is kept, the same way.
    pub politeness: String,
    pub settings: Vec<SettingRow>,
}

/// A setting as it holds.
#[derive(Clone, Debug)]
pub struct SettingRow {
    pub key: String,
    /// As it would be written; a secret is hidden.
    pub value: String,
    /// Where the value came from.
    pub origin: String,
    /// It is the built-in default.
    pub is_default: bool,
}

/// All that there is to show. What is `None` is not there in this process.
pub struct Subject {
    pub door: Door,
    pub system: SystemInfo,
    pub clock: Clock,
    /// Who may come in.
    pub doorkeeper: Doorkeeper,
    pub audit: AuditLog,
    /// Failed logins that are not kept yet.
    pub auth_failures: Arc<AuthFailures>,
    /// What this process counts, and what it counted lately.
    pub measures: Arc<Measures>,
    pub history: History,
    /// The politeness store's sites.
    pub sites: Arc<SiteDesk>,
    /// Everybody's messages.
    pub oversight: Option<Arc<dyn Oversight>>,
    /// The URLs of a list that were given up.
    pub dead_letters: Option<Arc<dyn DeadLetters>>,
    /// What feeds brought.
    pub articles: Option<Arc<dyn Articles>>,
    /// How far batchers and workers of Common Crawl have come.
    pub crawl_progress: Arc<dyn CrawlProgress>,
}

impl Subject {
    /// Whether there are callers, with tokens of their own.
    pub(super) fn has_callers(&self) -> bool {
        matches!(self.doorkeeper, Doorkeeper::Callers(_))
    }
}
