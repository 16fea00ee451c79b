//! An instance: one process that takes leases from a queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::dead_letters::{self, SettleWithDetails};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Settle, Settled, Settlement};
use fetchwell_engine::ports::job::{Lease, LeaseId};
use fetchwell_engine::ports::source::{Demand, Renewal, Source, Taken};
use fetchwell_engine::ports::url_queue::UrlQueue;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use serde::Serialize;
use serde_json::json;
use tokio::sync::{Mutex, Notify};
use tracing::warn;

use super::job::{Ending, Row, lease_of};
use super::{Filing, MOST_PER_SCRIPT, RedisQueue};
use crate::shared::held::Held;

/// The maximum number of leases per take; the engine asks again for more. A take cannot be split, since each part could
/// give up to the limit of a site.
const MOST_PER_TAKE: usize = 1_000;
/// When to check again if the list was not moved completely.
const SOON: Duration = Duration::from_millis(1);
/// Means no epoch yet: Redis counts them from 1.
const NO_EPOCH: i64 = 0;

/// One process that takes leases from a [`RedisQueue`].
pub struct RedisInstance {
    queue: RedisQueue,
    epoch: AtomicI64,
    held: Held,
    /// Allows one take at a time, so that leases of a concurrent take are not mistaken for unknown ones.
    taking: Mutex<()>,
    /// The number of leases of dead instances that this one has requeued.
    rescued: AtomicU64,
}

#[derive(Serialize)]
struct Wanted<'a> {
    epoch: i64,
    filings: Vec<Filing>,
    closed: Vec<(&'a str, i64)>,
    most: usize,
    most_per_site: usize,
}

/// What remains to be done after one renewal.
struct Left {
    /// Dead instances may hold more leases.
    has_more: bool,
    /// The list of dead letters is shorter than our index of it.
    is_behind: bool,
}

/// The time, whether the epoch is alive, when the next job is due, whether nothing is left, the leases.
type Answer = (i64, bool, Option<i64>, bool, Vec<Row>);

impl RedisInstance {
    pub(super) fn new(queue: RedisQueue) -> RedisInstance {
        let held = Held::default();
        let taking = Mutex::default();
        let rescued = AtomicU64::new(0);
        RedisInstance { queue, epoch: AtomicI64::new(NO_EPOCH), held, taking, rescued }
    }

    fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Returns leases from a take whose response was lost, so that the server and this instance agree on what it holds.
    async fn give_back_the_unknown(&self) -> Result<(), StoreError> {
        let Some(known) = self.held.if_unsure() else { return Ok(()) };
        self.give_back(&known, false).await?;
        self.held.is_sure_again();
        Ok(())
    }

    async fn give_back(&self, known: &[LeaseId], leaves: bool) -> Result<(), StoreError> {
        let scripts = &self.queue.scripts;
        let known: Vec<String> = known.iter().map(LeaseId::to_string).collect();
        let epoch = self.epoch();
        let most = MOST_PER_SCRIPT;
        let asked = json!({ "epoch": epoch, "known": known, "most": most, "leaves": leaves });
        while scripts.run::<usize>(script!("give_back.lua"), &asked).await? == MOST_PER_SCRIPT {}
        Ok(())
    }

    /// Renews once, and rescues as many leases as one script call allows.
    async fn renew_once(&self) -> Result<Left, StoreError> {
        let epoch = self.epoch();
        let scripts = &self.queue.scripts;
        let ttl = u64::try_from(self.queue.lease_ttl.as_micros()).unwrap_or(u64::MAX);
        let asked = json!({ "epoch": epoch, "ttl": ttl, "most": MOST_PER_SCRIPT });
        let (now_ours, has_more, held, rescued, is_behind): (i64, bool, usize, u64, bool) =
            scripts.run(script!("renew.lua"), &asked).await?;
        self.rescued.fetch_add(rescued, Ordering::Relaxed);
        if now_ours != epoch {
            self.held.let_all_go();
            self.epoch.store(now_ours, Ordering::Relaxed);
        }
        self.held.compare(held);
        Ok(Left { has_more, is_behind })
    }

    /// Handles the rest of what dead instances left: their leases, and the URLs that they moved but did not file. Then
    /// follows changes of others to the list of dead letters.
    async fn do_the_rest(&self, mut left: Left) -> Result<(), StoreError> {
        while left.has_more {
            left = self.renew_once().await?;
        }
        self.queue.file_the_unfiled().await?;
        match left.is_behind {
            true => self.queue.follow_dead_list().await,
            false => Ok(()),
        }
    }

    fn nothing_to_give(&self, answer: &Answer, list_has_more: bool) -> Taken {
        let (now, lives, next, is_over, _) = answer;
        let RedisQueue { scripts, lease_ttl, run_once, poll, .. } = &self.queue;
        let moment = scripts.clock.moment(*now);
        let until = match lives {
            false => moment.now + *lease_ttl / 4,
            true if *run_once && *is_over => return Taken::Exhausted,
            true if list_has_more => moment.now + SOON.min(*poll),
            true => {
                let poll = moment.now + *poll;
                next.map_or(poll, |next| Time::from_micros(next).max(moment.now).min(poll))
            }
        };
        Taken::Idle { until: moment.to_local(until) }
    }
}

#[async_trait]
impl Source for RedisInstance {
    async fn take(&self, demand: &Demand) -> Result<Taken, StoreError> {
        let _taking = self.taking.lock().await;
        self.give_back_the_unknown().await?;
        let scripts = &self.queue.scripts;
        let filings = match self.epoch() {
            NO_EPOCH => Vec::new(),
            _ => self.queue.move_heads().await?,
        };
        let list_has_more = filings.len() == MOST_PER_SCRIPT;
        let closed = demand.closed.iter();
        let wanted = Wanted {
            epoch: self.epoch(),
            filings,
            closed: closed
                .map(|(site, at)| (Site::as_str(site), scripts.clock.span_us(*at)))
                .collect(),
            most: demand.most.min(MOST_PER_TAKE),
            most_per_site: demand.most_per_site,
        };
        self.held.take_begins();
        let mut answer: Answer = scripts.run(script!("take.lua"), &wanted).await?;
        let moment = scripts.clock.moment(answer.0);
        let rows = std::mem::take(&mut answer.4);
        let leases: Vec<Lease> = rows.into_iter().map(|row| lease_of(row, moment)).collect();
        self.held.took(&leases);
        match leases.is_empty() {
            true => Ok(self.nothing_to_give(&answer, list_has_more)),
            false => Ok(Taken::Jobs(leases)),
        }
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError> {
        #[derive(Serialize)]
        struct Asked {
            epoch: i64,
            ids: Vec<String>,
        }
        let scripts = &self.queue.scripts;
        let ids = leases.iter().map(LeaseId::to_string).collect();
        scripts.run(script!("started.lua"), &Asked { epoch: self.epoch(), ids }).await
    }

    async fn renew(&self) -> Result<Renewal, StoreError> {
        let before = self.epoch();
        let left = self.renew_once().await?;
        let kept = before == NO_EPOCH || before == self.epoch();
        // Our own lease is valid even if rescuing others failed.
        if let Err(fault) = self.do_the_rest(left).await {
            warn!(%fault, "could not rescue the leases of dead instances; trying again at the next \
                           renewal");
        }
        Ok(if kept { Renewal::Held { ttl: self.queue.lease_ttl } } else { Renewal::Lost })
    }

    fn rescued(&self) -> u64 {
        self.rescued.load(Ordering::Relaxed)
    }

    async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        let (now, oldest) = self.queue.oldest().await?;
        let moment = self.queue.scripts.clock.moment(now.as_micros());
        Ok(oldest.map(|accepted_at| moment.to_local(accepted_at)))
    }

    /// Hands everything back. The last instance to leave also puts waiting URLs back on the list. If it is not yet
    /// known whether it is the last, [`RedisQueue::unparking`] finds out.
    async fn leave(&self) -> Result<(), StoreError> {
        self.give_back(&[], true).await?;
        self.epoch.store(NO_EPOCH, Ordering::Relaxed);
        self.held.let_all_go();
        self.queue.unparking(true).step().await?;
        Ok(())
    }

    fn news(&self) -> Option<Arc<Notify>> {
        Some(self.queue.news.clone())
    }
}

#[async_trait]
impl Settle for RedisInstance {
    async fn settle(&self, batch: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreError> {
        let batch: Vec<_> =
            batch.iter().map(|(lease, settlement)| (*lease, *settlement, None)).collect();
        self.settle_with(&batch).await
    }
}

#[async_trait]
impl SettleWithDetails for RedisInstance {
    async fn settle_with(
        &self,
        batch: &[dead_letters::LeaseEnding<'_>],
    ) -> Result<Vec<Settled>, StoreError> {
        #[derive(Serialize)]
        struct Asked<'a> {
            epoch: i64,
            ends: Vec<Ending<'a>>,
        }
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let scripts = &self.queue.scripts;
        let ends = batch.iter().map(|(lease, settlement, details)| {
            Ending::of(lease, settlement, details.as_deref(), &scripts.clock)
        });
        let asked = Asked { epoch: self.epoch(), ends: ends.collect() };
        let confirmed: Vec<bool> = scripts.run(script!("settle.lua"), &asked).await?;
        self.held.let_go(batch.iter().map(|(lease, ..)| lease.id));
        let settled = |confirmed| if confirmed { Settled::Confirmed } else { Settled::Stale };
        Ok(confirmed.into_iter().map(settled).collect())
    }
}
