//! All that a retriever does with one store.

use std::sync::Arc;

use crate::ports::finish::Finish;
use crate::ports::inbox::{Bell, FetchResult, Inbox};
use crate::ports::oversight::Oversight;
use crate::ports::source::Source;

/// All that a retriever does with one store.
#[derive(Clone)]
pub struct RetrieverStore {
    /// For the API.
    pub inbox: Arc<dyn Inbox>,
    /// For those who look after the service.
    pub oversight: Arc<dyn Oversight>,
    /// For the flow that fetches messages.
    pub messages: Station<FetchResult>,
    /// For the flow that delivers webhooks: each job's payload is the [`MessageId`](crate::ports::inbox::MessageId) in text.
    pub deliveries: Station<std::convert::Infallible>,
    /// Rings when a caller has a new result, if it was stored by this process.
    pub results: Bell,
}

/// Where one flow takes its leases from, and where it ends them.
pub struct Station<R> {
    /// Where leases come from.
    pub source: Arc<dyn Source>,
    /// Where they end.
    pub finish: Arc<dyn Finish<R>>,
}

impl<R> Clone for Station<R> {
    fn clone(&self) -> Station<R> {
        Station { source: self.source.clone(), finish: self.finish.clone() }
    }
}
