//! Counts of what the flow does while it does it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use fetchwell_engine::pipeline::News;
use fetchwell_engine::ports::Settlement;
use fetchwell_engine::web::{Exchange, Leave, Phases, Request, Web};

use crate::doors::fetch::{Onlooker, Progress};

/// Counts what the flow does. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Counters {
    pub(super) done: Arc<AtomicU64>,
    pub(super) skipped: Arc<AtomicU64>,
    pub(super) under_way: Arc<AtomicU64>,
    pub(super) progress: Arc<Progress>,
}

impl Counters {
    /// Looks on while URLs are fetched.
    pub(super) fn onlooker(&self) -> Onlooker {
        let (news, under_way) = (self.clone(), self.under_way.clone());
        Onlooker {
            watcher: Arc::new(move |heard| news.hear(&heard)),
            web: Box::new(move |web| Arc::new(Gauged { web, under_way: under_way.clone() })),
            progress: self.progress.clone(),
        }
    }

    fn hear(&self, news: &News) {
        let News::Settled(settled) = news else { return };
        match settled.settlement {
            Settlement::Done | Settlement::Dead { .. } => {
                self.done.fetch_add(1, Ordering::Relaxed);
            }
            Settlement::Skipped => {
                self.skipped.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

/// The web, with a count of the requests that are under way.
struct Gauged {
    web: Arc<dyn Web>,
    under_way: Arc<AtomicU64>,
}

#[async_trait]
impl Web for Gauged {
    async fn exchange(
        &self,
        request: &Request,
        leave: &mut dyn Leave,
        phases: &mut Phases,
    ) -> Exchange {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let _landed = Landed(&self.under_way);
        self.web.exchange(request, leave, phases).await
    }
}

/// Also where a request is given up half-way.
struct Landed<'a>(&'a AtomicU64);

impl Drop for Landed<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
