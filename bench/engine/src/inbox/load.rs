//! Requests over and over on many connections, for a while.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use super::client::Connection;

/// What came of it.
pub(super) struct Answered {
    /// Answers, all of them 200.
    pub(super) count: usize,
    /// How long it took.
    pub(super) took: Duration,
    /// How long each answer took, the shortest first.
    pub(super) each: Vec<Duration>,
}

impl Answered {
    /// Answers a second.
    pub(super) fn per_second(&self) -> f64 {
        self.count as f64 / self.took.as_secs_f64()
    }

    /// The time that so many of a hundred answers took at the most.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let place = (self.each.len() * percent / 100).min(self.each.len().saturating_sub(1));
        self.each.get(place).copied().unwrap_or_default()
    }
}

/// Sends the requests in turn on each connection, until `time` is over.
pub(super) async fn for_a_while(
    address: SocketAddr,
    requests: Vec<Vec<u8>>,
    connections: usize,
    time: Duration,
) -> Result<Answered> {
    // One thread, so that the client has no more than its share of a small machine.
    let thread = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(all(address, requests, connections, time))
    });
    thread.await?
}

async fn all(
    address: SocketAddr,
    requests: Vec<Vec<u8>>,
    connections: usize,
    time: Duration,
) -> Result<Answered> {
    let requests = Arc::new(requests);
    let mut opened = Vec::new();
    for _ in 0..connections {
        opened.push(Connection::open(address).await?);
    }
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for (place, connection) in opened.into_iter().enumerate() {
        let first = place * requests.len() / connections;
        tasks.spawn(one(connection, requests.clone(), first, started + time));
    }
    let mut each = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        each.extend(ended??);
    }
    let took = started.elapsed();
    each.sort_unstable();
    Ok(Answered { count: each.len(), took, each })
}

async fn one(
    mut connection: Connection,
    requests: Arc<Vec<Vec<u8>>>,
    first: usize,
    until: Instant,
) -> Result<Vec<Duration>> {
    let mut each = Vec::new();
    for request in requests.iter().cycle().skip(first) {
        let sent = Instant::now();
        if sent >= until {
            break;
        }
        connection.ask(request).await?;
        each.push(sent.elapsed());
    }
    Ok(each)
}
