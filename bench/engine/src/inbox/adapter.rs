//! The store's own interface, without the program around it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::inbox::{NewMessage, Submission};
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_policy::url::WebUrl;
use fetchwell_stores::{StoreClock, postgres, sqlite};
use tokio::task::JoinSet;

use super::message::{CALLER, Names, Text};
use super::store::{Kind, Store};
use crate::flow::LEASE_TTL;

const A_DAY: Duration = Duration::from_secs(86_400);
/// Nobody else puts anything in, so there is nothing to look for.
const POLL: Duration = Duration::from_secs(60);

/// Opens a store as the program does.
pub(super) async fn open(kind: &Kind, store: &Store, clock: &Clock) -> Result<RetrieverStore> {
    Ok(match kind {
        Kind::Sqlite => {
            sqlite::open_retriever(&store.file(), clock.clone(), LEASE_TTL, POLL).await?
        }
        Kind::Postgres(_) => {
            let db = postgres::Database::open(&store.postgres_url()?).await?;
            let by = StoreClock::Server(clock.clone());
            postgres::open_retriever(db, by, LEASE_TTL, POLL).await?
        }
    })
}

/// A submission of these messages, as the API makes it.
pub(super) fn submission<'a>(
    texts: impl Iterator<Item = &'a Text>,
    names: &mut Names,
) -> Result<Submission> {
    let messages: Result<Vec<NewMessage>> = texts.map(|text| new_message(text, names)).collect();
    let caller = CALLER.to_owned();
    let from = "127.0.0.1".to_owned();
    Ok(Submission { caller, from, idempotency: None, messages: messages?, batch: None })
}

fn new_message(text: &Text, names: &mut Names) -> Result<NewMessage> {
    let (id, _) = names.next();
    let site = WebUrl::parse(&text.url)?.site();
    Ok(NewMessage {
        retailer: text.retailer.clone(),
        correlation_id: text.correlation_id.clone(),
        options: b"{}".to_vec().into(),
        ..NewMessage::new(id, text.url.clone(), site, A_DAY)
    })
}

/// Messages a second that the store accepts from so many tasks, each submitting so many at once: the
/// difference to the program's figure is what HTTP, JSON and their checks cost.
pub(super) async fn messages_per_second(
    kind: &Kind,
    store: &Store,
    texts: Arc<Vec<Text>>,
    tasks: usize,
    at_once: usize,
    time: Duration,
) -> Result<f64> {
    let inbox = open(kind, store, &Clock::system()).await?.inbox;
    let started = Instant::now();
    let mut running = JoinSet::new();
    for place in 0..tasks {
        let inbox = inbox.clone();
        let texts = texts.clone();
        running.spawn(async move {
            let mut names = Names::new(place);
            let mut messages = 0;
            let mut texts = texts.iter().cycle().skip(place * texts.len() / tasks);
            while started.elapsed() < time {
                inbox.submit(submission(texts.by_ref().take(at_once), &mut names)?).await?;
                messages += at_once;
            }
            anyhow::Ok(messages)
        });
    }
    let mut messages = 0;
    while let Some(ended) = running.join_next().await {
        messages += ended??;
    }
    Ok(messages as f64 / started.elapsed().as_secs_f64())
}
