//! The second door of the demo: a retriever on the same store, which fetches what callers send.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_doors::retriever;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{MessageId, OutboxMost, OutboxPage};
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_service::audit::AuditLog;
use fetchwell_settings::Settings;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::account::{Account, Outcome};
use super::callers::{self, CALLERS};
use super::counters::Counters;
use crate::commands::serve;
use crate::console::exit::Exit;
use crate::wiring::{Parts, open_retriever};

/// The name of the message queue in the store.
const QUEUE: &str = "messages";
/// How often the ledger is checked for remaining messages.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How much of an outbox is read at once.
const OUTBOX_MOST: OutboxMost = OutboxMost { results: 1_000, bytes: 16 << 20 };

/// A retriever with its callers.
#[derive(Clone)]
pub(super) struct Service {
    pub(super) store: RetrieverStore,
    clock: Clock,
}

impl Service {
    pub(super) async fn open(settings: &Settings) -> Result<Service, Exit> {
        let (store, clock) = open_retriever(settings).await?;
        let audit = AuditLog::of_store(store.inbox.clone(), clock.clone());
        callers::introduce(&*store.inbox, &audit).await?;
        Ok(Service { store, clock })
    }

    /// Sends messages for these URLs and fetches them until each has a result or `stop`. Returns the accepted messages.
    pub(super) async fn run(
        &self,
        settings: &Settings,
        urls: &[String],
        counters: &Counters,
        stop: &CancellationToken,
    ) -> Result<Vec<MessageId>, Exit> {
        let parts = Parts::open(settings).await?.counted_by(&counters.process_metrics);
        let metrics = counters.metrics.clone();
        let on_result = Arc::new(move |status: &str| metrics.result(status));
        let event_sink = counters.event_sink_of_messages();
        let (door, mut runtime) =
            serve::messages(settings, &parts, &self.store, on_result, event_sink);
        runtime.web = counters.gauged(runtime.web);
        let all_ended = stop.child_token();
        let flow =
            async { Ok::<_, Exit>(retriever::flow(door, runtime, all_ended.clone()).await?) };
        let work = async {
            let inbox = &*self.store.inbox;
            let deadline = settings.values.retriever_deadline;
            let accepted = callers::send(inbox, &self.clock, urls, deadline, stop).await?;
            self.wait_for_all(stop).await?;
            all_ended.cancel();
            Ok::<_, Exit>(accepted)
        };
        let ((), accepted) = tokio::try_join!(flow, work)?;
        Ok(accepted)
    }

    async fn wait_for_all(&self, stop: &CancellationToken) -> Result<(), StoreError> {
        loop {
            let ledger = self.store.inbox.ledger().await?;
            let is_over = ledger.unfinished() == 0;
            if is_over || stop.run_until_cancelled(sleep(LOOK_EVERY)).await.is_none() {
                return Ok(());
            }
        }
    }

    /// The results in the outboxes of all callers.
    pub(super) async fn outcomes(&self) -> Result<Vec<Outcome>, StoreError> {
        let mut outcomes = Vec::new();
        for caller in CALLERS {
            let mut after = None;
            // Nothing is deleted from an outbox here; if it were, it would be reported as missing.
            while let OutboxPage::Results { results, next } =
                self.store.inbox.outbox(caller, after, OUTBOX_MOST).await?
                && !results.is_empty()
            {
                after = Some(next);
                outcomes.extend(results.into_iter().map(|found| Outcome {
                    key: found.message.to_string(),
                    url: found.url,
                    word: found.result.status,
                }));
            }
        }
        Ok(outcomes)
    }

    /// The account of the accepted messages.
    pub(super) async fn account(
        &self,
        accepted: &[MessageId],
        outcomes: &[Outcome],
    ) -> Result<Account, StoreError> {
        let recounts = self.store.oversight.recount().await?;
        let audit = recounts.into_iter().find(|found| found.told.queue == QUEUE).map_or_else(
            || (Default::default(), Some("there is no ledger".to_owned())),
            |found| (found.told.ledger, found.difference),
        );
        let accepted: Vec<String> = accepted.iter().map(MessageId::to_string).collect();
        Ok(Account::of(&accepted, outcomes, audit))
    }
}
