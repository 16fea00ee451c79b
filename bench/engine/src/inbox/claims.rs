//! What a claim costs, by how many messages wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use fetchwell_engine::adapters::{postgres, sqlite};
use fetchwell_engine::clock::Clock;
use fetchwell_engine::inbox::{FetchResult, Inbox, NewMessage, RetrieverStore, Station, Submission};
use fetchwell_engine::ports::{Demand, Finished, Lease, Settlement, Taken};
use fetchwell_engine::web::Phases;
use fetchwell_policy::url::WebUrl;

use super::message::{CALLER, Names, Text};
use super::plans;
use super::store::{Kind, Store};
use crate::flow::LEASE_TTL;
use crate::meter::median;

/// Sites that the messages are of; each is in every lane.
pub const SITES: usize = 1_000;
/// Leases that are claimed at once.
pub const A_TAKE: usize = 256;
/// Claims that are timed; the figure is the one in the middle.
const TAKES: usize = 50;
/// Messages that go in at once.
const CHUNK: usize = 4_000;
const A_DAY: Duration = Duration::from_secs(86_400);
/// Nothing else puts anything in, so there is nothing to look for.
const POLL: Duration = Duration::from_secs(60);

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
        let (opened, postgres): (RetrieverStore, Option<String>) = match kind {
            Kind::Sqlite => {
                let file = store.file();
                (sqlite::open_retriever(&file, clock.clone(), LEASE_TTL, POLL).await?, None)
            }
            Kind::Postgres(_) => {
                let url = store.postgres_url()?;
                let db = postgres::Database::open(&url).await?;
                let by = postgres::StoreClock::Server(clock.clone());
                (postgres::open_retriever(db, by, LEASE_TTL, POLL).await?, Some(url))
            }
        };
        let RetrieverStore { inbox, messages, .. } = opened;
        messages.source.renew().await?;
        Ok(Filled { inbox, messages, names: Names::new(0), clock, queued: 0, postgres })
    }

    /// Puts in what is missing to so many, and times claims.
    pub async fn claim_at(&mut self, queued: usize) -> Result<Claim> {
        while self.queued < queued {
            let to = (self.queued + CHUNK).min(queued);
            self.put_in(self.queued..to).await?;
            self.queued = to;
        }
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
        let messages: Result<Vec<NewMessage>> =
            numbers.map(|number| self.new_message(number)).collect();
        let (caller, from) = (CALLER.to_owned(), "127.0.0.1".to_owned());
        let submission = Submission { caller, from, idempotency: None, messages: messages? };
        self.inbox.submit(submission).await?;
        Ok(())
    }

    fn new_message(&mut self, number: usize) -> Result<NewMessage> {
        let Text { url, retailer, correlation_id } = Text::of(number, SITES);
        let (id, _) = self.names.next();
        Ok(NewMessage {
            id,
            site: WebUrl::parse(&url)?.site(),
            url,
            retailer,
            correlation_id,
            deadline_in: A_DAY,
            callback_url: None,
            options: b"{}".to_vec(),
            kind: id.0,
            max_age: None,
        })
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
