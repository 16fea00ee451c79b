//! How many messages a second are accepted, beside a bare loop of inserts in the same run.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::bare_postgres::Way;
use super::bare_sqlite::Rows;
use super::message::{Text, batch};
use super::program::{Fetching, Program};
use super::store::{Kind, Store};
use super::{adapter, bare_postgres, bare_sqlite, client, load};
use crate::meter::ProcessorTicks;
use crate::origin::Origin;

/// Connections that post single messages.
pub const SINGLES_AT_ONCE: usize = 64;
/// Connections that post batches.
pub const BATCHES_AT_ONCE: usize = 16;
/// Messages of a batch.
pub const A_BATCH: usize = 1_000;
/// Different messages and batches; after those it begins anew.
const DIFFERENT: usize = 4_096;
const DIFFERENT_BATCHES: usize = 16;
/// All messages are for one site: it has its one request, and then nothing is fetched any more.
const SITES: usize = 1;

/// How the messages come.
#[derive(Clone, Copy)]
pub enum Load {
    /// One by one.
    Singles,
    /// A thousand at once.
    Batches,
}

/// What the program did.
pub struct Accepted {
    /// Messages a second.
    pub per_second: f64,
    /// How long half of the answers took at the most.
    pub p50: Duration,
    /// How long 99 of 100 answers took at the most.
    pub p99: Duration,
    /// Processor time of the program for each message.
    pub micros_each: f64,
    /// Requests a second that need nothing of the store, on as many connections: no request that does can
    /// be faster.
    pub http_alone: f64,
}

/// One round: the bare loops, and the program.
pub struct Round {
    /// Rows a second of each of [`bare_loops`].
    pub bare: Vec<f64>,
    /// Messages a second that the store accepts when nothing but the load is around it.
    pub store_alone: f64,
    /// The program.
    pub accepted: Accepted,
    /// How many of a hundred ticks of the processors others on the same host took meanwhile.
    pub percent_stolen: f64,
}

/// A loop that the program is compared with.
pub struct BareLoop {
    /// What it does.
    pub name: String,
    /// Whether the goal is a share of this one's figure.
    pub counts: bool,
    sqlite_rows: Rows,
    sqlite_a_commit: usize,
    postgres: Way,
}

/// The loops for a store.
pub fn bare_loops(kind: &Kind, load: Load) -> Vec<BareLoop> {
    let bare = |name: String, counts, sqlite_a_commit, postgres| BareLoop {
        name,
        counts,
        sqlite_rows: Rows::Plain,
        sqlite_a_commit,
        postgres,
    };
    let row_by_row = Way::RowByRow(A_BATCH);
    match (kind, load) {
        (Kind::Sqlite, Load::Singles) => vec![
            bare("1 insert a commit".to_owned(), true, 1, Way::OneByOne),
            bare(format!("{SINGLES_AT_ONCE} a commit"), false, SINGLES_AT_ONCE, Way::OneByOne),
        ],
        (Kind::Sqlite, Load::Batches) => {
            let own = format!("{A_BATCH} a commit, the program's own rows");
            let own = bare(own, true, A_BATCH, row_by_row);
            vec![
                bare(format!("{A_BATCH} a commit, a plain row"), false, A_BATCH, row_by_row),
                BareLoop { sqlite_rows: Rows::Own, ..own },
            ]
        }
        (Kind::Postgres(_), Load::Singles) => {
            vec![bare(format!("{SINGLES_AT_ONCE} connections"), true, 1, Way::OneByOne)]
        }
        (Kind::Postgres(_), Load::Batches) => vec![
            bare(format!("{BATCHES_AT_ONCE} connections, row by row"), true, 1, row_by_row),
            bare("the same by UNNEST".to_owned(), false, 1, Way::Unnest(A_BATCH)),
        ],
    }
}

/// Runs the bare loops and the program, one after the other, each on a store of its own.
pub async fn round(
    kind: &Kind,
    load: Load,
    folder: &Path,
    origin: &Origin,
    time: Duration,
) -> Result<Round> {
    let before = ProcessorTicks::now()?;
    let texts: Arc<Vec<Text>> = Arc::new(texts());
    let mut bare = Vec::new();
    for bare_loop in bare_loops(kind, load) {
        let store = Store::fresh(kind, folder).await?;
        bare.push(run_bare(kind, load, &bare_loop, &store, texts.clone(), time).await?);
        store.remove().await?;
    }
    let store = Store::fresh(kind, folder).await?;
    let tasks = connections(load);
    let at_once = messages(load);
    let store_alone =
        adapter::messages_per_second(kind, &store, texts.clone(), tasks, at_once, time).await?;
    store.remove().await?;
    let store = Store::fresh(kind, folder).await?;
    let accepted = run_program(load, &store, origin, &texts, time).await?;
    store.remove().await?;
    let percent_stolen = ProcessorTicks::percent_stolen_since(before)?;
    Ok(Round { bare, store_alone, accepted, percent_stolen })
}

async fn run_bare(
    kind: &Kind,
    load: Load,
    bare_loop: &BareLoop,
    store: &Store,
    texts: Arc<Vec<Text>>,
    time: Duration,
) -> Result<f64> {
    match kind {
        Kind::Sqlite => {
            let file = store.file();
            let rows = bare_loop.sqlite_rows;
            let a_commit = bare_loop.sqlite_a_commit;
            let rows = move || bare_sqlite::rows_per_second(&file, &texts, rows, a_commit, time);
            tokio::task::spawn_blocking(rows).await?
        }
        Kind::Postgres(_) => {
            let url = store.postgres_url()?;
            let way = bare_loop.postgres;
            bare_postgres::rows_per_second(&url, texts, connections(load), way, time).await
        }
    }
}

async fn run_program(
    load: Load,
    store: &Store,
    origin: &Origin,
    texts: &[Text],
    time: Duration,
) -> Result<Accepted> {
    let program = Program::start(store, origin, &Fetching::Hardly)?;
    let requests = requests(load, &program.token, texts);
    // What begins is begun before the clock runs: connections to the store, the first page.
    let first = requests.clone();
    load::for_a_while(program.address, first, connections(load), time / 10).await?;
    let before = program.processor_micros()?;
    let answered = load::for_a_while(program.address, requests, connections(load), time).await?;
    let micros = program.processor_micros()? - before;
    let nothing = vec![client::get("/livez", &program.token)];
    let http_alone =
        load::for_a_while(program.address, nothing, connections(load), time).await?.per_second();
    let messages = messages(load);
    Ok(Accepted {
        http_alone,
        per_second: answered.per_second() * messages as f64,
        p50: answered.percentile(50),
        p99: answered.percentile(99),
        micros_each: micros / (answered.count * messages).max(1) as f64,
    })
}

/// The texts of all messages.
pub(super) fn texts() -> Vec<Text> {
    (0..DIFFERENT).map(|n| Text::of(n, SITES)).collect()
}

/// The requests that post them.
pub(super) fn requests(load: Load, token: &str, texts: &[Text]) -> Vec<Vec<u8>> {
    match load {
        Load::Singles => {
            texts.iter().map(|text| client::post("/fetch", token, &text.json())).collect()
        }
        Load::Batches => (0..DIFFERENT_BATCHES)
            .map(|place| batch(place * A_BATCH..(place + 1) * A_BATCH, SITES))
            .map(|body| client::post("/fetch/batch", token, &body))
            .collect(),
    }
}

pub(super) fn connections(load: Load) -> usize {
    match load {
        Load::Singles => SINGLES_AT_ONCE,
        Load::Batches => BATCHES_AT_ONCE,
    }
}

/// Messages of a request.
pub(super) fn messages(load: Load) -> usize {
    match load {
        Load::Singles => 1,
        Load::Batches => A_BATCH,
    }
}
