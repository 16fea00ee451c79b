//! Compares a program with an earlier one. They run in turns, so that both have the same machine.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::accepting::{self, Load, SINGLES_AT_ONCE};
use super::client::Connection;
use super::program::{Fetching, Program};
use super::store::{Kind, Store};
use super::{client, load};
use crate::origin::Origin;

/// The page that is read over and over. The program has it in its store from the first time on.
const PAGE: &str = "/r/http://site-0.test/some/page.html";

/// The work that is measured.
#[derive(Clone, Copy)]
pub enum Task {
    /// `POST /fetch` or `POST /fetch/batch`.
    Accept(Load),
    /// `GET /r/` of a stored page.
    Read,
}

/// The figures of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Made {
    /// Messages or pages a second.
    pub per_second: f64,
    /// The 99th percentile of the response times.
    pub p99: Duration,
    /// Processor time of the program for each message or page, in microseconds.
    pub micros_each: f64,
}

/// Runs one program on a store of its own.
pub async fn run(
    program: &Path,
    kind: &Kind,
    task: Task,
    folder: &Path,
    origin: &Origin,
    time: Duration,
) -> Result<Made> {
    let store = Store::fresh(kind, folder).await?;
    let made = run_on(program, &store, task, origin, time).await?;
    store.remove().await?;
    Ok(made)
}

async fn run_on(
    program: &Path,
    store: &Store,
    task: Task,
    origin: &Origin,
    time: Duration,
) -> Result<Made> {
    let fetching = match task {
        Task::Accept(_) => Fetching::Hardly,
        Task::Read => Fetching::Unpaced,
    };
    let program = Program::start_this(program, store, origin, &fetching)?;
    let (requests, connections, each) = match task {
        Task::Accept(load) => (
            accepting::requests(load, &program.token, &accepting::texts()),
            accepting::connections(load),
            accepting::messages(load),
        ),
        Task::Read => {
            let read = client::get(PAGE, &program.token);
            // Otherwise each connection would wait for a page of its own.
            Connection::open(program.address).await?.ask(&read).await?;
            (vec![read], SINGLES_AT_ONCE, 1)
        }
    };
    // Warm up first: connections to the store, the first page.
    load::for_a_while(program.address, requests.clone(), connections, time / 10).await?;
    let before = program.processor_micros()?;
    let answered = load::for_a_while(program.address, requests, connections, time).await?;
    let micros = program.processor_micros()? - before;
    Ok(Made {
        per_second: answered.per_second() * each as f64,
        p99: answered.percentile(99),
        micros_each: micros / (answered.count * each).max(1) as f64,
    })
}
