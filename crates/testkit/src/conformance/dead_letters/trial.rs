//! A queue with a manual clock, whose ledger is checked after every operation.

use std::sync::Arc;

use fetchwell_engine::ports::dead_letters::{DeadGroup, DeadLetter, Letters, Revision};
use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::{Job, Lane, Lease, NewJob};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::source::{Demand, Taken};
use fetchwell_engine::ports::url_queue::{DeadLetterWorker, UrlQueue};
use fetchwell_policy::url::WebUrl;

use super::LettersStore;
use crate::conformance::HandClock;
use crate::conformance::queue::audited;

pub(super) const GONE: &str = "the server answered 404";

/// A queue under test, and one instance that works on it.
pub(super) struct Trial {
    pub(super) clock: HandClock,
    pub(super) queue: Box<dyn UrlQueue>,
    pub(super) worker: Arc<dyn DeadLetterWorker>,
}

impl Trial {
    pub(super) async fn new(store: &dyn LettersStore) -> Trial {
        Trial::on(store, &HandClock::new()).await
    }

    /// The queue, as seen by another process.
    pub(super) async fn beside(&self, store: &dyn LettersStore) -> Trial {
        Trial::on(store, &self.clock).await
    }

    async fn on(store: &dyn LettersStore, clock: &HandClock) -> Trial {
        let queue = store.open_letters(clock.clock()).await;
        let worker = queue.dead_letter_worker();
        worker.renew().await.expect("an instance joins");
        Trial { clock: clock.clone(), queue, worker }
    }

    pub(super) async fn add(&self, urls: &[&str]) {
        let added = self.queue.enqueue(urls.iter().map(|url| job(url)).collect()).await;
        assert_eq!(added.expect("jobs go in"), urls.len());
    }

    /// Takes everything that is available now.
    pub(super) async fn take(&self) -> Vec<Lease> {
        let mut all = Vec::new();
        let demand = Demand { most: 1_000, most_per_site: 1_000, ..Demand::default() };
        while let Taken::Jobs(leases) = self.worker.take(&demand).await.expect("a take is answered")
        {
            all.extend(leases);
        }
        all
    }

    pub(super) async fn settle(
        &self,
        lease: &Lease,
        settlement: Settlement,
        details: Option<&str>,
    ) -> Settled {
        let end = (lease, &settlement, details.map(str::to_owned));
        let settled = self.worker.settle_with(&[end]).await.expect("a settlement is answered");
        self.ledger().await;
        settled[0]
    }

    /// Adds URLs and gives them up, each for its reason, in this order.
    pub(super) async fn kill(&self, urls: &[(&str, &str)]) {
        for (url, reason) in urls {
            self.add(&[url]).await;
            let lease = self.take().await.remove(0);
            assert_eq!(self.settle(&lease, dead(reason), None).await, Settled::Confirmed);
        }
    }

    pub(super) async fn revise(&self, which: &Letters, revision: Revision) -> usize {
        let revised = self.queue.revise(which, revision).await.expect("letters are revised");
        self.ledger().await;
        revised
    }

    /// All letters, read in pages of this size.
    pub(super) async fn letters(&self, page_size: usize) -> Vec<DeadLetter> {
        let mut letters = Vec::new();
        let mut from = None;
        loop {
            let page = self.queue.dead_letters(from.as_deref(), page_size).await;
            let page = page.expect("letters can be read");
            assert!(page.letters.len() <= page_size);
            letters.extend(page.letters);
            from = page.next;
            if from.is_none() {
                return letters;
            }
        }
    }

    pub(super) async fn ledger(&self) -> Ledger {
        let ledger = audited(&*self.queue).await;
        assert!(ledger.balances(), "{ledger:?}");
        ledger
    }
}

pub(super) fn job(url: &str) -> NewJob {
    let site = WebUrl::parse(url).ok().map(|url| url.site());
    NewJob::now(Job {
        url: url.to_owned(),
        site,
        lane: Lane::default(),
        payload: Vec::new(),
        deadline: None,
    })
}

pub(super) fn dead(reason: &str) -> Settlement {
    Settlement::Dead { reason: reason.to_owned() }
}

pub(super) fn group(reason: &str, site: &str) -> DeadGroup {
    DeadGroup { reason: reason.to_owned(), site: site.to_owned() }
}

pub(super) fn of_url(url: &str) -> Letters {
    Letters::OfUrl(url.to_owned())
}

pub(super) fn urls_of(letters: &[DeadLetter]) -> Vec<&str> {
    letters.iter().map(|letter| letter.url.as_str()).collect()
}

pub(super) fn urls(leases: &[Lease]) -> Vec<&str> {
    leases.iter().map(|lease| lease.job.url.as_str()).collect()
}
