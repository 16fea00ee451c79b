//! What the API is built on, for the commands that serve it: the opened store and the engine.

use std::sync::Arc;

use fetchwell_doors::crawl;
use fetchwell_doors::retriever::OnResult;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_service::api::{Api, ApiMetrics, CrawlApi, Foundation};
use fetchwell_service::audit::{AuditLog, AuthFailures};
use fetchwell_service::callers::CallerService;
use fetchwell_service::sites::SiteService;
use fetchwell_settings::Settings;
use tokio_util::sync::CancellationToken;

use super::args::{api_rules, message_rules};
use super::callers::caller_service;
use crate::commands::mcp::ProgramLookups;
use crate::console::exit::Exit;
use crate::wiring::{Parts, address_guard, gate_rules, open_retriever};

/// A store that messages are sent to, and the parts of the engine that fetch them.
pub(crate) struct ApiStore {
    pub(crate) store: RetrieverStore,
    pub(crate) parts: Arc<Parts>,
    pub(crate) audit: AuditLog,
    pub(crate) callers: Arc<CallerService>,
    clock: Clock,
    metrics: Arc<ApiMetrics>,
}

impl ApiStore {
    pub(crate) async fn open(settings: &Settings) -> Result<ApiStore, Exit> {
        let (store, clock) = open_retriever(settings).await?;
        let parts = Arc::new(Parts::open(settings).await?);
        let audit = AuditLog::of_store(store.inbox.clone(), clock.clone());
        let callers = Arc::new(caller_service(&store, audit.clone()));
        Ok(ApiStore { store, parts, audit, callers, clock, metrics: Arc::default() })
    }

    pub(crate) fn api(
        &self,
        settings: &Settings,
        sites: &Arc<SiteService>,
        auth_failures: &Arc<AuthFailures>,
        stop: &CancellationToken,
    ) -> Arc<Api> {
        let rules = message_rules(settings).gate_rules(gate_rules(settings, None));
        let gate = self.parts.gate_by(rules.clone());
        let lookups = ProgramLookups::new(settings, &self.parts, gate, stop);
        let foundation = Foundation {
            inbox: self.store.inbox.clone(),
            batches: self.store.batches.clone(),
            crawls: self.store.crawls.as_ref().map(|store| CrawlApi {
                store: store.crawls.clone(),
                starts: Arc::new(|urls, reads_robots| crawl::starts(urls, reads_robots)),
            }),
            oversight: self.store.oversight.clone(),
            sites: sites.clone(),
            callers: self.callers.clone(),
            results: self.store.results.clone(),
            clock: self.clock.clone(),
            guard: address_guard(settings),
            gate_rules: rules,
            metrics: self.metrics.clone(),
            process_metrics: self.parts.process_metrics.clone(),
            audit: self.audit.clone(),
            auth_failures: auth_failures.clone(),
            health: self.parts.health.clone(),
            lookups: Arc::new(lookups),
            stop: stop.clone(),
        };
        Api::new(foundation, api_rules(&settings.values))
    }

    /// Counts the results that this process stores.
    pub(crate) fn on_result(&self) -> OnResult {
        let metrics = self.metrics.clone();
        Arc::new(move |status: &str| metrics.result(status))
    }
}
