//! What a process has to show.

use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::articles::Articles;
use fetchwell_engine::ports::crawl_progress::CrawlProgress;
use fetchwell_engine::ports::dead_letters::DeadLetters;
use fetchwell_engine::ports::oversight::Oversight;
use fetchwell_telemetry::metrics::Measures;

use super::{Doorkeeper, History};
use crate::audit::{AuthFailures, Trail};
use crate::sites::SiteDesk;

/// Which door it is that shows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
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
pub(crate) struct SystemInfo {
    /// The store, without its secrets.
    pub(crate) store: String,
    /// Where the pace of sites is kept, the same way.
    pub(crate) politeness: String,
    pub(crate) settings: Vec<SettingRow>,
}

/// A setting as it holds.
#[derive(Clone, Debug)]
pub(crate) struct SettingRow {
    pub(crate) key: String,
    /// As it would be written; a secret is hidden.
    pub(crate) value: String,
    /// Where the value came from.
    pub(crate) origin: String,
    /// It is the built-in default.
    pub(crate) is_default: bool,
}

/// All that there is to show. What is `None` is not there in this process.
pub(crate) struct Subject {
    pub(crate) door: Door,
    pub(crate) system: SystemInfo,
    pub(crate) clock: Clock,
    /// Who may come in.
    pub(crate) doorkeeper: Doorkeeper,
    /// Where it is kept who did what.
    pub(crate) trail: Trail,
    /// Failed logins that are not kept yet.
    pub(crate) auth_failures: Arc<AuthFailures>,
    /// What this process counts, and what it counted lately.
    pub(crate) measures: Arc<Measures>,
    pub(crate) history: History,
    /// The politeness store's sites.
    pub(crate) sites: Arc<SiteDesk>,
    /// Everybody's messages.
    pub(crate) oversight: Option<Arc<dyn Oversight>>,
    /// The URLs of a list that were given up.
    pub(crate) dead_letters: Option<Arc<dyn DeadLetters>>,
    /// What feeds brought.
    pub(crate) articles: Option<Arc<dyn Articles>>,
    /// How far batchers and workers of Common Crawl have come.
    pub(crate) crawl_progress: Arc<dyn CrawlProgress>,
}

impl Subject {
    /// Whether there are callers, with tokens of their own.
    pub(super) fn has_callers(&self) -> bool {
        matches!(self.doorkeeper, Doorkeeper::Callers(_))
    }
}
