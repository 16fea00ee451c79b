//! The ports of one store that a retriever uses.

use std::sync::Arc;

use crate::ports::crawls::Crawls;
use crate::ports::finish::Finish;
use crate::ports::frontier::CrawlRecord;
use crate::ports::inbox::{DeliveryRecord, FetchResult, Inbox, ResultNotifier};
use crate::ports::message_batches::MessageBatches;
use crate::ports::oversight::Oversight;
use crate::ports::source::Source;

/// The ports of one store that a retriever uses.
#[derive(Clone)]
pub struct RetrieverStore {
    /// Used by the API.
    pub inbox: Arc<dyn Inbox>,
    /// Used by the API, too, for messages that were submitted together.
    pub batches: Arc<dyn MessageBatches>,
    /// Used by viewers and operators.
    pub oversight: Arc<dyn Oversight>,
    /// Used by the pipeline that fetches messages.
    pub messages: Station<FetchResult>,
    /// Used by the pipeline that delivers webhooks. The payload of each job is the
    /// [`MessageId`](crate::ports::inbox::MessageId), the [`BatchId`](crate::ports::inbox::BatchId) or the
    /// [`CrawlId`](crate::ports::inbox::CrawlId) as text, which is also the `webhook-id` of its record.
    pub deliveries: Station<DeliveryRecord>,
    /// `None` if this store cannot hold crawls.
    pub crawls: Option<CrawlStore>,
    /// Notifies of new results that this process stored.
    pub results: ResultNotifier,
}

/// The ports for crawls.
#[derive(Clone)]
pub struct CrawlStore {
    /// Used by the API.
    pub crawls: Arc<dyn Crawls>,
    /// Used by the pipeline that fetches their pages. The party of a job's lane names its crawl: see
    /// [`crawl_of`](crate::ports::crawls::crawl_of).
    pub pages: Station<CrawlRecord<FetchResult>>,
}

/// The source and the finish of one pipeline.
pub struct Station<R> {
    /// Hands out leases.
    pub source: Arc<dyn Source>,
    /// Writes their records and settles them.
    pub finish: Arc<dyn Finish<R>>,
}

impl<R> Clone for Station<R> {
    fn clone(&self) -> Station<R> {
        Station { source: self.source.clone(), finish: self.finish.clone() }
    }
}
