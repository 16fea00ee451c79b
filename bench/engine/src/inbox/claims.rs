//! What a claim costs, by how many messages wait.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::finish::{Finished, Settlement};
use fetchwell_engine::ports::inbox::{FetchResult, Inbox};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::retriever_store::{RetrieverStore, Station};
use fetchwell_engine::ports::source::{Demand, Taken};
use fetchwell_engine::web::Phases;

use super::message::{Names, Text};
use super::store::{Kind, Store};
use super::{adapter, plans};
use crate::meter::median;

/// Sites that the messages are of; each is in every lane.
pub const SITES: usize = 1_000;
/// Leases that are claimed at once.
pub const A_TAKE: usize = 256;
/// Claims that are timed; the figure is the one in the middle.
const TAKES: usize = 50;
/// Messages that go in at once.
const CHUNK: usize = 4_000;

/// How long a claim took.
pub struct Claim {
    /// Messages that waited.
    pub queued: usize,
    /// Milliseconds, when each site gives as many as the flow takes of one.
    pub many_of_a_site: f64,
    /// Milliseconds, when each site gives one: the most sites that a claim can touch.
    pub one_of_a_site: f64,
}

/// A store that is filled step by step.
pub struct Filled {
    inbox: Arc<dyn Inbox>,
    messages: Station<FetchResult>,
    names: Names,
    clock: Clock,
    queued: usize,
    /// To ask for plans.
    postgres: Option<String>,
}

impl Filled {
    /// Opens a store, with nothing in it yet.
    pub async fn open(kind: &Kind, store: &Store) -> Result<Filled> {
        let clock = Clock::system();
        let RetrieverStore { inbox, messages, .. } = adapter::open(kind, store, &clock).await?;
        let postgres = match kind {
            Kind::Sqlite => None,
            Kind::Postgres(_) => Some(store.postgres_url()?),
        };
        Ok(Filled { inbox, messages, names: Names::new(0), clock, queued: 0, postgres })
    }

    /// Puts in what is missing to so many, and times claims.
    pub async fn claim_at(&mut self, queued: usize) -> Result<Claim> {
        while self.queued < queued {
            let to = (self.queued + CHUNK).min(queued);
            self.put_in(self.queued..to).await?;
            self.queued = to;
        }
        // Putting in ten million takes longer than a lease lasts.
        self.messages.source.renew().await?;
        // As the server does by itself in time; else the plans would be those of an empty table.
        if let Some(url) = &self.postgres {
            plans::analyze(url).await?;
        }
        let many_of_a_site = self.time(64).await?;
        let one_of_a_site = self.time(1).await?;
        Ok(Claim { queued, many_of_a_site, one_of_a_site })
    }

    /// How PostgreSQL claims: the plans of its two statements.
    pub async fn plans(&self) -> Result<Option<String>> {
        match &self.postgres {
            Some(url) => Ok(Some(plans::of_a_claim(url, A_TAKE).await?)),
            None => Ok(None),
        }
    }

    async fn put_in(&mut self, numbers: std::ops::Range<usize>) -> Result<()> {
        let texts: Vec<Text> = numbers.map(|number| Text::of(number, SITES)).collect();
        self.inbox.submit(adapter::submission(texts.iter(), &mut self.names)?).await?;
        Ok(())
    }

    /// Milliseconds that a claim takes.
    async fn time(&self, most_per_site: usize) -> Result<f64> {
        let mut took = Vec::new();
        for _ in 0..TAKES {
            let demand = Demand { most: A_TAKE, most_per_site, ..Demand::default() };
            let started = Instant::now();
            let taken = self.messages.source.take(&demand).await?;
            took.push(started.elapsed().as_secs_f64() * 1e3);
            let Taken::Jobs(leases) = taken else { bail!("nothing was given: {taken:?}") };
            ensure!(leases.len() == A_TAKE, "only {} were given", leases.len());
            self.hand_back(leases).await?;
        }
        Ok(median(took))
    }

    async fn hand_back(&self, leases: Vec<Lease>) -> Result<()> {
        let at = self.clock.now();
        let finished: Vec<Finished<FetchResult>> = leases
            .into_iter()
            .map(|lease| Finished {
                lease,
                records: Vec::new(),
                settlement: Settlement::HandBack { at },
                phases: Phases::default(),
                share: Default::default(),
            })
            .collect();
        self.messages.finish.finish(&finished).await?;
        Ok(())
    }
}
