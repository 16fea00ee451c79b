//! A source that processes the leases of another source before it hands them out.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use tokio::sync::{Mutex, Notify};
use tracing::warn;

use crate::ports::error::StoreError;
use crate::ports::job::{Lease, LeaseId};
use crate::ports::source::{Demand, Renewal, Source, Taken};

/// How a [`WrappedSource`] processes leases.
#[async_trait]
pub trait LeaseHooks: Send + Sync {
    /// Changes leases before they are handed out, or removes some. After an error, it is called again with the same
    /// leases.
    async fn prepare(&self, leases: &mut Vec<Lease>) -> Result<(), StoreError>;

    /// These leases are about to be fetched, and the source has recorded that.
    async fn started(&self, _leases: &[LeaseId]) -> Result<(), StoreError> {
        Ok(())
    }

    /// The source lost its leases, or is about to hand them back.
    async fn released(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The leases of a source, with hooks.
pub struct WrappedSource {
    inner: Arc<dyn Source>,
    hooks: Arc<dyn LeaseHooks>,
    behind: Mutex<Behind>,
}

/// What a take leaves for the next one.
#[derive(Default)]
struct Behind {
    /// Leases that were taken but could not be prepared yet.
    unprepared: Vec<Lease>,
    /// The closed sites of a take that needed no leases from the inner source. Those of one demand at most: the next
    /// take passes them on, and the caller repeats those of a take that failed.
    closed: HashMap<Site, Time>,
}

impl WrappedSource {
    pub fn new(inner: Arc<dyn Source>, hooks: Arc<dyn LeaseHooks>) -> WrappedSource {
        WrappedSource { inner, hooks, behind: Mutex::default() }
    }
}

#[async_trait]
impl Source for WrappedSource {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        let mut behind = self.behind.lock().await;
        let Behind { unprepared, closed } = &mut *behind;
        let mut demand = demand.clone();
        let mut unsent = closed.clone();
        unsent.extend(std::mem::take(&mut demand.closed));
        loop {
            if unprepared.is_empty() {
                demand.closed = unsent.drain().collect();
                let taken = self.inner.take(&demand).await?;
                closed.clear();
                match taken {
                    Taken::Jobs(leases) => *unprepared = leases,
                    nothing => return Ok(nothing),
                }
            }
            self.hooks.prepare(unprepared).await?;
            if !unprepared.is_empty() {
                closed.extend(unsent);
                return Ok(Taken::Jobs(std::mem::take(unprepared)));
            }
        }
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError> {
        self.inner.started(leases).await?;
        self.hooks.started(leases).await
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        let renewal = self.inner.renew().await?;
        if renewal == Renewal::Lost {
            self.behind.lock().await.unprepared.clear();
            // The leases are lost either way, and the engine must drop them.
            if let Err(error) = self.hooks.released().await {
                warn!(%error, "could not clean up after the lost leases");
            }
        }
        Ok(renewal)
    }

    async fn leave(&self) -> Result<(), StoreError> {
        let released = self.hooks.released().await;
        let left = self.inner.leave().await;
        released.and(left)
    }

    fn rescued(&self) -> u64 {
        self.inner.rescued()
    }

    async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        self.inner.oldest_waiting().await
    }

    fn news(&self) -> Option<Arc<Notify>> {
        self.inner.news()
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::retry::History;

    use super::*;
    use crate::ports::job::{Job, Lane};

    /// Hands out one lease per take, and loses them with each renewal. Records the sites that each take closes, and
    /// whether the instance left.
    #[derive(Default)]
    struct Inner {
        is_away: parking_lot::Mutex<bool>,
        closed: parking_lot::Mutex<Vec<Vec<(Site, Time)>>>,
        has_left: parking_lot::Mutex<bool>,
    }

    #[async_trait]
    impl Source for Inner {
        async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
            if *self.is_away.lock() {
                return Err(StoreError::transient("the inner source is away"));
            }
            self.closed.lock().push(demand.closed.clone());
            Ok(Taken::Jobs(vec![lease()]))
        }

        async fn started(&self, _: &[LeaseId]) -> Result<(), StoreError> {
            Ok(())
        }

        async fn renew(&self) -> Result<Renewal, StoreError> {
            Ok(Renewal::Lost)
        }

        async fn leave(&self) -> Result<(), StoreError> {
            *self.has_left.lock() = true;
            Ok(())
        }
    }

    /// Hooks that fail while `fail` is set.
    #[derive(Default)]
    struct Hooks {
        fail: parking_lot::Mutex<bool>,
    }

    impl Hooks {
        fn result(&self) -> Result<(), StoreError> {
            match *self.fail.lock() {
                true => Err(StoreError::transient("the hook failed")),
                false => Ok(()),
            }
        }
    }

    #[async_trait]
    impl LeaseHooks for Hooks {
        async fn prepare(&self, _: &mut Vec<Lease>) -> Result<(), StoreError> {
            self.result()
        }

        async fn released(&self) -> Result<(), StoreError> {
            self.result()
        }
    }

    fn lease() -> Lease {
        let job = Job {
            url: "http://a.test/".to_owned(),
            site: None,
            lane: Lane::default(),
            deadline: None,
            payload: Vec::new(),
        };
        let history = History::default();
        Lease { id: 1, job, history, interruptions: 0, accepted_at: Time::EPOCH }
    }

    fn rig() -> (Arc<Inner>, Arc<Hooks>, WrappedSource) {
        let inner = Arc::new(Inner::default());
        let hooks = Arc::new(Hooks::default());
        let source = WrappedSource::new(inner.clone(), hooks.clone());
        (inner, hooks, source)
    }

    #[tokio::test]
    async fn sites_closed_while_leases_wait_for_their_hook_are_closed_by_the_next_take() {
        let (inner, hooks, source) = rig();
        let site = |name: &str| Site::parse(name).unwrap();
        let soon = Time::from_secs(1);
        let later = Time::from_secs(60);
        let demand = |closed: &[(Site, Time)]| Demand {
            most: 1,
            closed: closed.to_vec(),
            ..Demand::default()
        };
        *hooks.fail.lock() = true;
        assert!(source.take(&demand(&[])).await.is_err());
        *hooks.fail.lock() = false;
        let closed = [(site("a.test"), soon), (site("b.test"), soon)];
        source.take(&demand(&closed)).await.unwrap();
        source.take(&demand(&[(site("a.test"), later)])).await.unwrap();
        source.take(&demand(&[])).await.unwrap();
        let mut takes = inner.closed.lock().clone();
        for closed in &mut takes {
            closed.sort();
        }
        let closed = vec![(site("a.test"), later), (site("b.test"), soon)];
        assert_eq!(takes, [vec![], closed, vec![]]);
    }

    /// The caller repeats them, in demands of a bounded size.
    #[tokio::test]
    async fn closed_sites_of_failed_takes_are_not_kept() {
        let (inner, _, source) = rig();
        let closing = |number: usize| {
            let site = Site::parse(&format!("s{number}.test")).unwrap();
            Demand { most: 1, closed: vec![(site, Time::from_secs(1))], ..Demand::default() }
        };
        *inner.is_away.lock() = true;
        for number in 0..9 {
            assert!(source.take(&closing(number)).await.is_err());
        }
        *inner.is_away.lock() = false;
        source.take(&closing(9)).await.unwrap();
        assert_eq!(*inner.closed.lock(), [closing(9).closed]);
    }

    #[tokio::test]
    async fn lost_leases_are_reported_even_if_the_hook_fails() {
        let (_, hooks, source) = rig();
        *hooks.fail.lock() = true;
        assert_eq!(source.renew().await.unwrap(), Renewal::Lost);
    }

    #[tokio::test]
    async fn an_instance_leaves_even_if_the_hook_fails() {
        let (inner, hooks, source) = rig();
        *hooks.fail.lock() = true;
        assert!(source.leave().await.is_err());
        assert!(*inner.has_left.lock());
    }
}
