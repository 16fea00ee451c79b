//! From the first message that is posted to the last result that is read.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use memchr::memmem;

use super::client::{self, Connection};
use super::message::batch;
use super::program::{Fetching, Program};
use super::store::{Kind, Store};
use crate::origin::Origin;

/// Sites that the messages are of.
pub const SITES: usize = 10_000;
/// Messages.
pub const MESSAGES: usize = 20_000;
const A_BATCH: usize = 1_000;

/// What it took.
pub struct Took {
    /// All of it.
    pub time: Duration,
    /// From the first message to the last one that was accepted.
    pub accepting: Duration,
    /// Processor time of the program for each message.
    pub micros_each: f64,
}

/// Posts so many messages, and reads their results meanwhile.
pub async fn measure(kind: &Kind, folder: &Path, messages: usize, sites: usize) -> Result<Took> {
    let store = Store::fresh(kind, folder).await?;
    let origin = Origin::start()?;
    let program = Program::start(&store, &origin, &Fetching::Unpaced)?;
    let batches: Vec<Vec<u8>> = (0..messages)
        .step_by(A_BATCH)
        .map(|from| batch(from..(from + A_BATCH).min(messages), sites))
        .map(|body| client::post("/fetch/batch", &program.token, &body))
        .collect();
    let mut connection = Connection::open(program.address).await?;
    let before = program.processor_micros()?;
    let started = Instant::now();
    let posting = async {
        for batch in &batches {
            connection.ask(batch).await?;
        }
        anyhow::Ok(started.elapsed())
    };
    let (accepting, read) = tokio::join!(posting, read_all(&program, messages));
    read?;
    let time = started.elapsed();
    let micros_each = (program.processor_micros()? - before) / messages.max(1) as f64;
    drop(program);
    store.remove().await?;
    Ok(Took { time, accepting: accepting?, micros_each })
}

/// Reads results until there are so many, and looks that each has a page.
async fn read_all(program: &Program, messages: usize) -> Result<()> {
    const NEXT: &[u8] = b"\"next\":\"";
    let mut connection = Connection::open(program.address).await?;
    let success = memmem::Finder::new(b"\"status\":\"success\"");
    let mut after = 0;
    let mut read = 0;
    while read < messages {
        let path = format!("/outbox?after={after}&limit=1000&wait=60");
        let page = connection.ask(&client::get(&path, &program.token)).await?;
        read += success.find_iter(page).count();
        // A caller's cursors count its results from 1 on, and `next` is the last field.
        let next = memmem::rfind(page, NEXT).context("an outbox without `next`")?;
        let digits = page[next + NEXT.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        after = digits.fold(0, |next, digit| 10 * next + usize::from(digit - b'0'));
        ensure!(after == read, "{after} results, and only {read} of them have a page");
    }
    Ok(())
}
