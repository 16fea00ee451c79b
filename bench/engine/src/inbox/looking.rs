//! What an operator's question costs, where a million messages are.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Finished, Settlement};
use fetchwell_engine::ports::inbox::{AttemptRecord, FetchResult};
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::oversight::{MessageFilter, MessageState};
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_engine::ports::source::{Demand, Taken};
use fetchwell_engine::web::Phases;

use super::message::{Names, Text};
use super::store::{Kind, Store};
use super::{adapter, plans};
use crate::meter::median;

/// Sites that the messages are of.
pub const SITES: usize = 10_000;
/// Messages that go in, or end, at once.
const CHUNK: usize = 4_000;
/// How often each question is asked.
const TIMES: usize = 11;
/// The messages of a page.
const PAGE: u32 = 50;

/// A question, and how long its answer took.
pub struct Answered {
    /// What was asked.
    pub question: String,
    /// Milliseconds: the one in the middle.
    pub middle: f64,
    /// Milliseconds: the longest.
    pub longest: f64,
}

/// Fills a store with so many messages, of which a tenth failed, as many wait, and the others have pages;
/// then asks.
pub async fn measure(kind: &Kind, store: &Store, messages: usize) -> Result<Vec<Answered>> {
    let clock = Clock::system();
    let retriever = adapter::open(kind, store, &clock).await?;
    fill(&retriever, &clock, messages).await?;
    if let Kind::Postgres(_) = kind {
        plans::analyze(&store.postgres_url()?).await?;
    }
    let oversight = &*retriever.oversight;
    let mut answers = Vec::new();
    for (name, filter) in filters() {
        let page = time(async || oversight.list(&filter, None, PAGE).await.map(drop)).await?;
        answers.push(page.to(format!("list: {name}")));
        let count = time(async || oversight.count(&filter).await.map(drop)).await?;
        answers.push(count.to(format!("count: {name}")));
    }
    let failures = time(async || oversight.failures().await.map(drop)).await?;
    answers.push(failures.to("failures by reason and site".to_owned()));
    let newest = oversight.list(&MessageFilter::default(), None, 1).await?;
    let Some(newest) = newest.messages.first() else { bail!("nothing is there") };
    let detail = time(async || oversight.detail(newest.id).await.map(drop)).await?;
    answers.push(detail.to("one message".to_owned()));
    let instances = time(async || oversight.instances().await.map(drop)).await?;
    answers.push(instances.to("instances".to_owned()));
    let ledgers = time(async || oversight.ledgers().await.map(drop)).await?;
    answers.push(ledgers.to("ledger".to_owned()));
    Ok(answers)
}

/// What is common, what is rare, and what is not there at all.
fn filters() -> Vec<(&'static str, MessageFilter)> {
    let all = MessageFilter::default;
    let text = |text: &str| Some(text.to_owned());
    let state = |state| MessageFilter { state: Some(state), ..MessageFilter::default() };
    vec![
        ("all", all()),
        ("queued", state(MessageState::Queued)),
        ("processing", state(MessageState::Processing)),
        ("delayed", state(MessageState::Delayed)),
        ("completed", state(MessageState::Completed)),
        ("failed", state(MessageState::Failed)),
        ("one site of 10,000", MessageFilter { site: text("site-77.test"), ..all() }),
        ("one retailer of 4", MessageFilter { retailer: text("retailer-1"), ..all() }),
        ("one caller", MessageFilter { caller: text("local"), ..all() }),
        ("a caller without messages", MessageFilter { caller: text("nobody"), ..all() }),
        (
            "a reason at a site",
            MessageFilter { reason: text("timeout"), site: text("site-77.test"), ..all() },
        ),
        ("a reason that nothing has", MessageFilter { reason: text("refused"), ..all() }),
        ("text in the URL", MessageFilter { url_contains: text("title-77"), ..all() }),
        ("text in no URL", MessageFilter { url_contains: text("nowhere"), ..all() }),
        ("an unknown correlation id", MessageFilter { correlation_id: text("none"), ..all() }),
    ]
}

struct Took {
    middle: f64,
    longest: f64,
}

impl Took {
    fn to(self, question: String) -> Answered {
        Answered { question, middle: self.middle, longest: self.longest }
    }
}

async fn time<F: Future<Output = Result<(), StoreError>>>(ask: impl Fn() -> F) -> Result<Took> {
    let mut took = Vec::new();
    for _ in 0..TIMES {
        let started = Instant::now();
        ask().await?;
        took.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let longest = took.iter().copied().fold(0.0, f64::max);
    Ok(Took { middle: median(took), longest })
}

async fn fill(store: &RetrieverStore, clock: &Clock, messages: usize) -> Result<()> {
    let mut names = Names::new(0);
    for from in (0..messages).step_by(CHUNK) {
        let numbers = from..(from + CHUNK).min(messages);
        let texts: Vec<Text> = numbers.map(|number| Text::of(number, SITES)).collect();
        store.inbox.submit(adapter::submission(texts.iter(), &mut names)?).await?;
    }
    let mut left = messages - messages / 10;
    while left > 0 {
        store.messages.source.renew().await?;
        let most = left.min(CHUNK);
        let demand = Demand { most, most_per_site: most, ..Demand::default() };
        let Taken::Jobs(leases) = store.messages.source.take(&demand).await? else {
            bail!("nothing was given, and {left} should be there")
        };
        left -= leases.len();
        let ends: Vec<_> = leases.into_iter().map(|lease| end(lease, clock)).collect();
        store.messages.finish.finish(&ends).await?;
    }
    // Some wait for another attempt, and some are in flight.
    for settlement in
        [Some(Settlement::HandBack { at: clock.now() + Duration::from_secs(3_600) }), None]
    {
        let demand = Demand { most: CHUNK, most_per_site: CHUNK, ..Demand::default() };
        let Taken::Jobs(leases) = store.messages.source.take(&demand).await? else { continue };
        let Some(settlement) = settlement else { continue };
        let ends: Vec<_> =
            leases.into_iter().map(|lease| finished(lease, None, settlement.clone())).collect();
        store.messages.finish.finish(&ends).await?;
    }
    Ok(())
}

/// Every ninth fails.
fn end(lease: Lease, clock: &Clock) -> Finished<FetchResult> {
    let (status, http_status) = match lease.id % 27 {
        0 => ("timeout", None),
        9 => ("http_error", Some(404)),
        18 => ("network_error", None),
        _ => (FetchResult::SUCCESS, Some(200)),
    };
    let is_success = status == FetchResult::SUCCESS;
    let attempt = AttemptRecord {
        at: clock.wall(),
        sent: true,
        told: status.to_owned(),
        http_status,
        robots: Some("line 3: Allow: /".to_owned()),
        queued_us: 100_000,
        robots_us: 1_000,
        slot_us: 1_000_000,
        connect_us: 20_000,
        first_byte_us: 50_000,
        body_us: 2_000,
    };
    let result = FetchResult {
        status: status.to_owned(),
        content: is_success.then(|| "x".repeat(200)),
        content_type: Some("text/html".to_owned()),
        http_status,
        error: (!is_success).then(|| "it did not work".to_owned()),
        attempts: 1,
        attempt: Some(attempt),
        ..FetchResult::default()
    };
    finished(lease, Some(result), Settlement::Done)
}

fn finished(
    lease: Lease,
    result: Option<FetchResult>,
    settlement: Settlement,
) -> Finished<FetchResult> {
    Finished {
        lease,
        records: result.into_iter().collect(),
        settlement,
        phases: Phases::default(),
        share: Default::default(),
    }
}
