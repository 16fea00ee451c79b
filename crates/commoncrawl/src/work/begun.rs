//! Detects batches that make workers crash.
//!
//! A batch is identified by its content, since not every batcher assigns IDs. A mark is set when a batch starts and
//! removed when it ends, however it ends; the marks that remain belong to processes that died. There are few of them,
//! so checking is cheap. They need not survive a crash of the machine.
//!
//! Most workers are killed from outside, by a deployment or for lack of memory, and no batch is to blame. So a crash
//! counts against a batch only if no other batch was in progress. If there were others, the batch becomes a suspect at
//! most, and runs alone from then on.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Settle, Settled, Settlement};
use fetchwell_engine::ports::job::{Lease, LeaseId};
use fetchwell_engine::seed::random_seed;
use fetchwell_engine::wrapped_source::LeaseHooks;
use fetchwell_policy::digest::sha256_hex;
use fetchwell_sqlite::db::{Db, Durability};
use parking_lot::Mutex;
use rusqlite::Connection;

/// The file name, in the folder of the manifest.
const FILE: &str = "begun.db";

/// Crashes while other batches were in progress count up to this number: from there the flow runs a batch alone, and
/// one more would quarantine it.
const MOST_SHARED_DEATHS: u32 = 3;

/// What is known of the workers that died over batches.
pub(super) struct Begun {
    ends: Arc<dyn Settle>,
    db: Db,
    /// This process, as the owner of marks.
    worker: String,
    /// The content hashes of the batches leased by this process.
    held: Mutex<HashMap<LeaseId, String>>,
}

impl Begun {
    /// Opens the database that all workers on this folder share.
    pub(super) fn open(folder: &Path, ends: Arc<dyn Settle>) -> Result<Begun, StoreError> {
        let db = Db::open(&folder.join(FILE), Durability::Process, 0, prepare)?;
        let worker = format!("{:016x}", random_seed());
        let held = Mutex::default();
        Ok(Begun { ends, db, worker, held })
    }

    fn batches_of(&self, leases: &[LeaseId]) -> Vec<String> {
        let held = self.held.lock();
        leases.iter().filter_map(|id| held.get(id).cloned()).collect()
    }

    /// The content hashes of batches that are settled, and whether each is handed back untouched.
    fn let_go(&self, batch: &[(&Lease, &Settlement)]) -> Vec<(String, bool)> {
        let mut held = self.held.lock();
        let ended = |(lease, settlement): &(&Lease, &Settlement)| {
            let is_untouched = matches!(settlement, Settlement::HandBack { .. });
            Some((held.remove(&lease.id)?, is_untouched))
        };
        batch.iter().filter_map(ended).collect()
    }
}

#[async_trait]
impl LeaseHooks for Begun {
    async fn prepare(&self, leases: &mut Vec<Lease>) -> Result<(), StoreError> {
        let contents: Vec<String> =
            leases.iter().map(|lease| sha256_hex(&lease.job.payload)).collect();
        let ids = leases.iter().map(|lease| lease.id);
        self.held.lock().extend(ids.zip(contents.iter().cloned()));
        let counted = self
            .db
            .write(move |tx| contents.iter().map(|batch| interruptions(tx, batch)).collect());
        let counts: Vec<u32> = counted.await?;
        for (lease, interruptions) in leases.iter_mut().zip(counts) {
            lease.interruptions = interruptions;
        }
        Ok(())
    }

    async fn started(&self, leases: &[LeaseId]) -> Result<(), StoreError> {
        let batches = self.batches_of(leases);
        let worker = self.worker.clone();
        let mark = move |tx: &Connection| {
            for batch in &batches {
                tx.prepare_cached("INSERT OR IGNORE INTO begun VALUES (?1, ?2)")?
                    .execute([batch, &worker])?;
            }
            Ok(())
        };
        self.db.write(mark).await
    }

    /// After a lost connection, a broker delivers everything again; no worker has crashed.
    async fn released(&self) -> Result<(), StoreError> {
        self.held.lock().clear();
        let worker = self.worker.clone();
        self.db
            .write(move |tx| {
                tx.execute("DELETE FROM begun WHERE worker = ?1", [worker]).map(|_| ())
            })
            .await
    }
}

#[async_trait]
impl Settle for Begun {
    async fn settle(&self, batch: &[(&Lease, &Settlement)]) -> Result<Vec<Settled>, StoreError> {
        let settled = self.ends.settle(batch).await?;
        let ended = self.let_go(batch);
        let worker = self.worker.clone();
        let end = move |tx: &Connection| {
            for (batch, is_untouched) in &ended {
                unmark(tx, batch, &worker, *is_untouched)?;
            }
            Ok(())
        };
        self.db.write(end).await?;
        Ok(settled)
    }
}

fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS begun (
             batch TEXT NOT NULL,
             worker TEXT NOT NULL,
             PRIMARY KEY (batch, worker)
         ) STRICT, WITHOUT ROWID;
         CREATE INDEX IF NOT EXISTS begun_by ON begun (worker);
         -- Workers with marks that also had other batches in progress, which have ended since.
         CREATE TABLE IF NOT EXISTS had_others (worker TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;",
    )
}

/// Removes our mark of a batch. If the batch has ended, the marks of all other workers go, too: a dead one among them
/// was not alone with the other batches that it had in progress, which `had_others` records.
fn unmark(tx: &Connection, batch: &str, us: &str, is_untouched: bool) -> rusqlite::Result<()> {
    if !is_untouched {
        tx.prepare_cached(
            "INSERT OR IGNORE INTO had_others
             SELECT worker FROM begun WHERE batch = ?1 AND worker <> ?2",
        )?
        .execute([batch, us])?;
    }
    tx.prepare_cached("DELETE FROM begun WHERE batch = ?1 AND (worker = ?2 OR NOT ?3)")?
        .execute((batch, us, is_untouched))?;
    tx.prepare_cached(
        "DELETE FROM had_others
         WHERE NOT EXISTS (SELECT 1 FROM begun WHERE begun.worker = had_others.worker)",
    )?
    .execute([])
    .map(|_| ())
}

/// How many crashes count against a batch.
fn interruptions(tx: &Connection, batch: &str) -> rusqlite::Result<u32> {
    let (deaths, alone): (u32, u32) = tx
        .prepare_cached(
            "SELECT count(*), count(*) FILTER (WHERE
                 NOT EXISTS (SELECT 1 FROM begun AS other
                             WHERE other.worker = begun.worker AND other.batch <> begun.batch)
                 AND NOT EXISTS (SELECT 1 FROM had_others WHERE worker = begun.worker))
             FROM begun WHERE batch = ?1",
        )?
        .query_row([batch], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(deaths.min(MOST_SHARED_DEATHS).max(alone))
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::clock::Clock;
    use fetchwell_engine::memory::MemoryQueue;
    use fetchwell_engine::ports::job::NewJob;
    use fetchwell_engine::ports::source::{Demand, Source, Taken};
    use fetchwell_engine::wrapped_source::WrappedSource;
    use fetchwell_policy::time::Time;
    use fetchwell_testkit::samples::lease;
    use std::time::Duration;

    use super::*;

    const DEMAND: Demand = Demand {
        most: 1,
        most_per_site: 1,
        most_per_group: 0,
        closed: Vec::new(),
        resting: Vec::new(),
    };

    struct Rig {
        source: WrappedSource,
        begun: Arc<Begun>,
    }

    /// A worker on a queue of its own with one batch, which a broker would have delivered to it.
    async fn worker(folder: &Path) -> (Rig, Lease) {
        let rig = idle_worker(folder).await;
        let Ok(Taken::Jobs(mut leases)) = rig.source.take(&DEMAND).await else {
            panic!("no batch")
        };
        (rig, leases.remove(0))
    }

    async fn idle_worker(folder: &Path) -> Rig {
        idle_worker_on(folder, &["[]"]).await
    }

    async fn idle_worker_on(folder: &Path, batches: &[&str]) -> Rig {
        let queue = MemoryQueue::new(Clock::system(), Duration::from_secs(3_600), true);
        let job = |batch: &&str| NewJob::now(lease("http://archive.test/", batch).job);
        queue.enqueue(batches.iter().map(job).collect());
        let instance = Arc::new(queue.instance());
        let begun = Arc::new(Begun::open(folder, instance.clone()).unwrap());
        let source = WrappedSource::new(instance, begun.clone());
        source.renew().await.unwrap();
        Rig { source, begun }
    }

    /// Takes and begins the batch, and is gone.
    async fn die(folder: &Path) -> u32 {
        let (rig, lease) = worker(folder).await;
        rig.source.started(&[lease.id]).await.unwrap();
        lease.interruptions
    }

    #[tokio::test]
    async fn each_worker_that_dies_over_a_batch_counts_and_an_end_ends_the_count() {
        let folder = tempfile::tempdir().unwrap();
        for died in 0..3 {
            assert_eq!(die(folder.path()).await, died);
        }
        let (rig, last) = worker(folder.path()).await;
        assert_eq!(last.interruptions, 3);
        rig.source.started(&[last.id]).await.unwrap();
        rig.begun.settle(&[(&last, &Settlement::Done)]).await.unwrap();
        assert_eq!(die(folder.path()).await, 0);
    }

    /// A worker that has begun all of these batches.
    async fn at_work_on(folder: &Path, batches: &[&str]) -> (Rig, Vec<Lease>) {
        let rig = idle_worker_on(folder, batches).await;
        let most = batches.len();
        let demand = Demand { most, most_per_site: most, ..DEMAND };
        let Ok(Taken::Jobs(leases)) = rig.source.take(&demand).await else { panic!("no batch") };
        assert_eq!(leases.len(), most);
        let ids: Vec<LeaseId> = leases.iter().map(|lease| lease.id).collect();
        rig.source.started(&ids).await.unwrap();
        (rig, leases)
    }

    fn counts(leases: &[Lease]) -> Vec<u32> {
        leases.iter().map(|lease| lease.interruptions).collect()
    }

    /// Four is quarantine: however often workers are killed that do several batches, none comes to it.
    #[tokio::test]
    async fn a_death_with_others_under_way_makes_a_suspect_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..6 {
            at_work_on(folder.path(), &["[1]", "[2]"]).await;
        }
        let (rig, leases) = at_work_on(folder.path(), &["[1]", "[2]"]).await;
        assert_eq!(counts(&leases), [3, 3]);
        let one = leases.iter().find(|lease| lease.job.payload == b"[1]").unwrap();
        rig.begun.settle(&[(one, &Settlement::Done)]).await.unwrap();
        drop(rig); // It dies while only the other batch is under way.
        let (_, leases) = at_work_on(folder.path(), &["[2]"]).await;
        assert_eq!(
            counts(&leases),
            [3],
            "those before were not alone, though the other batch is done"
        );
        for died_alone in 2..=4 {
            let (_, leases) = at_work_on(folder.path(), &["[2]"]).await;
            assert_eq!(counts(&leases), [died_alone.max(3)]);
        }
    }

    #[tokio::test]
    async fn what_is_handed_back_or_left_was_no_death() {
        let folder = tempfile::tempdir().unwrap();
        die(folder.path()).await;
        let (rig, one) = worker(folder.path()).await;
        rig.source.started(&[one.id]).await.unwrap();
        let back = Settlement::HandBack { at: Time::FAR_FUTURE };
        rig.begun.settle(&[(&one, &back)]).await.unwrap();
        let (rig, one) = worker(folder.path()).await;
        assert_eq!(one.interruptions, 1, "the death before still counts");
        rig.source.started(&[one.id]).await.unwrap();
        rig.source.leave().await.unwrap();
        assert_eq!(worker(folder.path()).await.1.interruptions, 1);
    }

    #[tokio::test]
    async fn the_age_of_the_oldest_waiting_batch_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let rig = idle_worker(folder.path()).await;
        assert!(rig.source.oldest_waiting().await.unwrap().is_some());
    }

    #[tokio::test]
    async fn what_was_taken_while_the_folder_can_not_be_asked_is_not_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        die(folder.path()).await;
        let rig = idle_worker(folder.path()).await;
        let rename = |from: &str, to: &str| {
            let sql = format!("ALTER TABLE {from} RENAME TO {to}");
            rig.begun.db.write(move |tx| tx.execute_batch(&sql))
        };
        rename("begun", "away").await.unwrap();
        assert!(rig.source.take(&DEMAND).await.is_err());
        rename("away", "begun").await.unwrap();
        let Ok(Taken::Jobs(leases)) = rig.source.take(&DEMAND).await else { panic!("no batch") };
        assert_eq!(leases.iter().map(|lease| lease.interruptions).collect::<Vec<_>>(), [1]);
    }
}
