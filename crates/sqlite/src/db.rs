//! A connection in its own thread, with group commits.
//!
//! A transaction is a closure that runs to completion in that thread: it cannot be cancelled half-way, and contains no
//! await. Closures that arrive during a commit share the next one.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::version::refuse_newer_store;
use parking_lot::{Condvar, Mutex};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::errors::store_error;

/// A store holds what users fetch and the hashes of their tokens, so only its owner may read it. SQLite gives the files
/// that belong to it the same mode.
pub const FILE_MODE: u32 = 0o600;

/// The number of open connections of this process.
static OPEN: Mutex<usize> = Mutex::new(0);
static CLOSED: Condvar = Condvar::new();
static CLOSING: Mutex<()> = Mutex::new(());

/// How long a writer waits for another's transaction to end, and how often it retries. A process that is suspended or
/// gets no CPU time can hold the lock for seconds. The timeout is shorter than the default `shutdown_grace`.
const BUSY_TIMEOUT: Duration = Duration::from_secs(20);
const BUSY_STEP: Duration = Duration::from_micros(100);
/// The page cache of a connection. The keys of a queue are random, so inserting many at once touches many pages.
const CACHE_KIB: i64 = 32 << 10;
/// The WAL is checkpointed at this number of pages (16 MiB), so that a page that changes often is written back once for
/// many changes.
const CHECKPOINT_PAGES: i64 = 4_096;
/// The number of closures waiting for the thread; more than that wait in their callers.
const MAX_WAITING: usize = 1_024;
/// The maximum number of closures per commit.
const MAX_GROUP: usize = 128;

/// The capacity of the statement cache: more than there are statements.
const MAX_STATEMENTS: usize = 256;

/// How durable a commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// On the disk: survives a power failure.
    Disk,
    /// In the operating system's cache: survives a killed process.
    Process,
}

type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
/// Takes the transaction, or the error that kept it from starting. Returns whether it succeeded, and how to report the
/// commit.
type Run = Box<dyn FnOnce(Result<&Connection, StoreError>) -> (bool, Reply) + Send>;

/// A closure for the thread.
struct Work {
    /// Whether it only reads, so that it needs no lock.
    reads_only: bool,
    run: Run,
}

/// A handle to the connection. Cheap to clone; the thread ends with the last handle.
#[derive(Clone)]
pub struct Db {
    work: mpsc::Sender<Work>,
    path: PathBuf,
}

impl Db {
    /// Opens or creates the file, and prepares it. A file whose `user_version` is above `newest_known` is refused and
    /// not changed.
    pub fn open(
        path: &Path,
        durability: Durability,
        newest_known: i64,
        prepare: impl Fn(&mut Connection) -> rusqlite::Result<()>,
    ) -> Result<Db, StoreError> {
        let fault = |error| store_error(path, error);
        make_private(path);
        let mut connection = Connection::open(path).map_err(fault)?;
        connection.busy_handler(Some(wait_for_another_writer)).map_err(fault)?;
        let version = patiently(|| user_version(&connection)).map_err(fault)?;
        refuse_newer_store(&format!("SQLite file {}", path.display()), version, newest_known)?;
        patiently(|| connection.pragma_update(None, "journal_mode", "wal")).map_err(fault)?;
        let (synchronous, checkpoint_pages) = match durability {
            Durability::Disk => ("full", CHECKPOINT_PAGES),
            // Slots must not wait for a checkpoint: the queue's connection does it, if there is one.
            Durability::Process => ("normal", 4 * CHECKPOINT_PAGES),
        };
        connection.pragma_update(None, "synchronous", synchronous).map_err(fault)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(fault)?;
        connection.pragma_update(None, "wal_autocheckpoint", checkpoint_pages).map_err(fault)?;
        // Keeps the data for undoing part of a transaction in memory; otherwise a file would be created at each commit.
        connection.pragma_update(None, "temp_store", "memory").map_err(fault)?;
        // The tables declare only one foreign key, from a job to its queue. Enforcing it costs a check of each inserted
        // row, and a copy of each page in order to undo the statement alone. The ledger is updated once per
        // transaction, which also detects that the queue is gone.
        connection.pragma_update(None, "foreign_keys", false).map_err(fault)?;
        patiently(|| prepare(&mut connection)).map_err(fault)?;
        // Immediate: a transaction that reads first and then writes cannot wait for another writer.
        Db::on(connection, path, TransactionBehavior::Immediate)
    }

    /// Opens an existing, prepared file for reading only: readers do not wait for writers, nor writers for readers.
    pub fn open_for_reading(path: &Path) -> Result<Db, StoreError> {
        let fault = |error| store_error(path, error);
        let mut connection = Connection::open(path).map_err(fault)?;
        connection.busy_handler(Some(wait_for_another_writer)).map_err(fault)?;
        connection.pragma_update(None, "query_only", true).map_err(fault)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(fault)?;
        Db::on(connection, path, TransactionBehavior::Deferred)
    }

    fn on(
        connection: Connection,
        path: &Path,
        behaviour: TransactionBehavior,
    ) -> Result<Db, StoreError> {
        connection.set_prepared_statement_cache_capacity(MAX_STATEMENTS);
        // Otherwise SQLite considers the value of a bound LIMIT when planning, and so plans such a statement again at
        // each use.
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
            .map_err(|error| store_error(path, error))?;
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let thread_path = path.to_owned();
        let open = OpenConnection::count();
        std::thread::Builder::new()
            .name("sqlite".into())
            .spawn(move || {
                let mut connection = connection;
                serve(&mut connection, behaviour, receiver, &thread_path);
                // Close one at a time. If two closed at once, each would leave merging the WAL to the other.
                let _turn = CLOSING.lock();
                drop(connection);
                drop(open);
            })
            .map_err(|error| {
                StoreError::transient("cannot start a thread for SQLite").with_source(error)
            })?;
        Ok(Db { work: sender, path: path.to_owned() })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` in a transaction, and returns once it is committed.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(false, work).await
    }

    /// Runs `work`, which must not write, in a transaction. It does not wait for other processes that write, and they
    /// do not wait for it.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(true, work).await
    }

    async fn run<T: Send + 'static>(
        &self,
        reads_only: bool,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = oneshot::channel();
        let path = self.path.clone();
        let run: Run = Box::new(move |transaction| {
            let result = transaction.and_then(|transaction| {
                work(transaction).map_err(|error| store_error(&path, error))
            });
            let worked = result.is_ok();
            let reply: Reply = Box::new(move |committed| {
                // The error of the closure is more specific than that of the commit, which may only be a consequence.
                // The caller may be gone.
                drop(sender.send(result.and_then(|value| committed.map(|()| value))));
            });
            (worked, reply)
        });
        // While a handle exists, only a panic ends the thread.
        let gone = || StoreError::bug("the SQLite thread has ended");
        self.work.send(Work { reads_only, run }).await.map_err(|_| gone())?;
        receiver.await.map_err(|_| gone())?
    }
}

/// Counts a connection until it is closed.
struct OpenConnection;

impl OpenConnection {
    fn count() -> OpenConnection {
        *OPEN.lock() += 1;
        OpenConnection
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        *OPEN.lock() -= 1;
        CLOSED.notify_all();
    }
}

/// Waits until the connections of this process are closed, which their threads do once the last [`Db`] is dropped. The
/// last process to close a file merges its WAL; one that ends without waiting would leave the WAL behind. Returns
/// `false` if some are still open.
pub fn wait_until_closed(within: Duration) -> bool {
    let mut open = OPEN.lock();
    CLOSED.wait_while_for(&mut open, |open| *open > 0, within);
    *open == 0
}

/// Creates the file, if it does not exist, so that only its owner can read it. If that fails, opening it fails as well
/// and reports why.
fn make_private(path: &Path) {
    // Closing a file releases the locks of all connections of the process on it. The file created here has none: no
    // other connection can open it before it is closed.
    static MAKING: Mutex<()> = Mutex::new(());
    let _guard = MAKING.lock();
    drop(OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path));
}

pub fn user_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Retries where SQLite does not call its busy handler: while the first process switches a file to WAL mode, a second
/// one that opens it gets a "locked" error at once.
fn patiently<T>(mut step: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let began = Instant::now();
    loop {
        match step() {
            Err(error) if is_busy(&error) && began.elapsed() < BUSY_TIMEOUT => wait_a_step(),
            done => return done,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

thread_local! {
    /// When the connection of this thread began to wait for the lock.
    static WAITING_SINCE: Cell<Instant> = Cell::new(Instant::now());
}

/// SQLite's own handler waits in steps of many milliseconds; transactions here take a fraction of one, and waiting for
/// them must not miss a slot.
fn wait_for_another_writer(times_waited: i32) -> bool {
    if times_waited == 0 {
        WAITING_SINCE.set(Instant::now());
    }
    wait_a_step();
    WAITING_SINCE.get().elapsed() < BUSY_TIMEOUT
}

#[expect(clippy::disallowed_methods, reason = "its own thread, which has nothing else to do")]
fn wait_a_step() {
    std::thread::sleep(BUSY_STEP);
}

fn serve(
    connection: &mut Connection,
    behaviour: TransactionBehavior,
    mut receiver: mpsc::Receiver<Work>,
    path: &Path,
) {
    while let Some(first) = receiver.blocking_recv() {
        let mut group = VecDeque::from([first]);
        while let Some(next) = (group.len() < MAX_GROUP).then(|| receiver.try_recv().ok()).flatten()
        {
            group.push_back(next);
        }
        let mut replies = Vec::with_capacity(group.len());
        let behaviour = match group.iter().all(|work| work.reads_only) {
            true => TransactionBehavior::Deferred,
            false => behaviour,
        };
        let committed = commit(connection, behaviour, &mut group, &mut replies)
            .map_err(|error| store_error(path, error));
        if let Err(error) = &committed {
            // Closures that were not reached.
            replies.extend(group.into_iter().map(|work| (work.run)(Err(error.clone())).1));
        }
        for reply in replies {
            reply(committed.clone());
        }
    }
}

/// Runs a group in one transaction; a closure that fails is rolled back alone.
fn commit(
    connection: &mut Connection,
    behaviour: TransactionBehavior,
    group: &mut VecDeque<Work>,
    replies: &mut Vec<Reply>,
) -> rusqlite::Result<()> {
    let mut transaction = connection.transaction_with_behavior(behaviour)?;
    if group.len() == 1
        && let Some(work) = group.pop_front()
    {
        let (worked, reply) = (work.run)(Ok(&transaction));
        replies.push(reply);
        return if worked { transaction.commit() } else { transaction.rollback() };
    }
    while let Some(work) = group.pop_front() {
        let savepoint = transaction.savepoint()?;
        let (worked, reply) = (work.run)(Ok(&savepoint));
        replies.push(reply);
        if worked {
            savepoint.commit()?;
        } else {
            savepoint.finish()?;
        }
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::error::StoreErrorKind;

    use super::*;

    fn open(path: &Path) -> Db {
        Db::open(path, Durability::Process, 0, |connection| {
            connection.execute_batch("CREATE TABLE IF NOT EXISTS t (n INTEGER UNIQUE)")
        })
        .unwrap()
    }

    #[tokio::test]
    async fn one_that_fails_in_a_group_is_undone_alone() {
        let folder = tempfile::tempdir().unwrap();
        let db = open(&folder.path().join("x.db"));
        let inserts = (0..50).map(|n| {
            let db = db.clone();
            async move {
                db.write(move |tx| {
                    tx.execute("INSERT INTO t VALUES (?1)", [n + 1_000])?;
                    tx.execute("INSERT INTO t VALUES (?1)", [n / 2])
                })
                .await
            }
        });
        let results = futures::future::join_all(inserts).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 25);
        let count: i64 = db
            .write(|tx| tx.query_row("SELECT count(*) FROM t", [], |row| row.get(0)))
            .await
            .unwrap();
        assert_eq!(count, 50);
    }

    #[test]
    fn many_that_make_one_file_at_once_all_get_it() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x.db");
            std::thread::scope(|scope| {
                let openers: Vec<_> = (0..8).map(|_| scope.spawn(|| drop(open(&path)))).collect();
                assert!(openers.into_iter().all(|opener| opener.join().is_ok()));
            });
        }
    }

    #[tokio::test]
    async fn an_error_names_the_file_and_the_mend() {
        let fault = Db::open(Path::new("/no/such/folder/x.db"), Durability::Disk, 0, |_| Ok(()));
        let text = fault.err().unwrap().to_string();
        assert!(text.contains("/no/such/folder/x.db") && text.contains("--store"), "{text}");
    }

    #[tokio::test]
    async fn a_lock_is_waited_for_and_then_the_error_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let db = open(&path);
        let holder = Connection::open(&path).unwrap();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        let insert = || db.write(|tx| tx.execute("INSERT INTO t VALUES (1)", []));
        let began = Instant::now();
        let fault = insert().await.unwrap_err().to_string();
        assert!(began.elapsed() >= BUSY_TIMEOUT, "{:?}", began.elapsed());
        assert!(fault.contains("x.db") && fault.contains("another process"), "{fault}");
        // The next wait starts from zero.
        let (inserted, released) = tokio::join!(insert(), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            holder.execute_batch("COMMIT")
        });
        inserted.unwrap();
        released.unwrap();
    }

    #[tokio::test]
    async fn a_read_does_not_wait_for_another_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let db = open(&path);
        db.write(|tx| tx.execute("INSERT INTO t VALUES (1)", [])).await.unwrap();
        let holder = Connection::open(&path).unwrap();
        holder.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (2)").unwrap();
        let count = |tx: &Connection| tx.query_row("SELECT count(*) FROM t", [], |row| row.get(0));
        let counted: i64 = db.read(count).await.unwrap();
        assert_eq!(counted, 1);
        holder.execute_batch("COMMIT").unwrap();
        let counted: i64 = db.read(count).await.unwrap();
        assert_eq!(counted, 2);
    }

    #[test]
    fn only_its_owner_can_read_a_new_file_and_what_belongs_to_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let db = open(&path);
        for name in ["x.db", "x.db-wal", "x.db-shm"] {
            let mode = folder.path().join(name).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        drop(db);
        let shared = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(&path, shared).unwrap();
        drop(open(&path));
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(
            mode & 0o777,
            0o640,
            "the mode of a file that was there is its owner's to choose"
        );
    }

    #[test]
    fn the_last_to_close_a_file_merges_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let first = open(&path);
        let last = open(&path);
        drop(first);
        assert!(path.with_extension("db-wal").exists());
        drop(last);
        // Other tests of this process may have connections of their own.
        let is_merged = || !path.with_extension("db-wal").exists();
        assert!((0..100).any(|_| wait_until_closed(Duration::from_millis(100)) || is_merged()));
        assert!(is_merged());
    }

    #[test]
    fn connections_that_close_at_once_leave_no_log() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..50 {
            let path = folder.path().join(format!("{round}.db"));
            let connections: Vec<Db> = (0..6).map(|_| open(&path)).collect();
            drop(connections);
            let is_merged = || !path.with_extension("db-wal").exists();
            assert!((0..100).any(|_| wait_until_closed(Duration::from_millis(20)) || is_merged()));
            assert!(is_merged(), "round {round}");
        }
    }

    #[test]
    fn a_file_of_a_newer_program_is_refused_and_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let newer = Connection::open(&path).unwrap();
        newer.pragma_update(None, "user_version", 8).unwrap();
        drop(newer);
        let before = std::fs::read(&path).unwrap();
        let opened = Db::open(&path, Durability::Disk, 7, |_| panic!("it is not prepared"));
        let Err(refusal) = opened else { panic!("it was opened") };
        assert_eq!(refusal.kind(), StoreErrorKind::Incompatible);
        let text = refusal.to_string();
        assert!(text.contains("version 8") && text.contains("up to 7"), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
