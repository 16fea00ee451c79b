//! Dead letters on SQLite: jobs that are kept, with the details from their door.

use async_trait::async_trait;
use fetchwell_engine::ports::dead_letters::{
    DeadGroup, DeadLetter, DeadLetters, LETTERS_PER_PAGE, LeaseEnding, LettersPage, Revision,
    SettleWithDetails,
};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::LeaseId;
use rusqlite::{Connection, Row};

use super::moves::Moves;
use super::queue::settle_batch;
use super::{SqliteInstance, SqliteQueue};
use crate::shared::job_state::sql;

macro_rules! select_letter {
    () => {
        "SELECT id, url, coalesce(reason, ''), site, details FROM job
         WHERE queue = ?1 AND state = {dead}"
    };
}

#[async_trait]
impl DeadLetters for SqliteQueue {
    async fn dead_letters(
        &self,
        from: Option<&[u8]>,
        most: usize,
    ) -> Result<LettersPage, StoreError> {
        let queue = self.queue;
        let most = most.min(LETTERS_PER_PAGE);
        let (url, id) = from.map_or_else(Default::default, read_place);
        let letters: Vec<DeadLetter> = self
            .db
            .write(move |tx| {
                tx.prepare_cached(sql!(concat!(
                    select_letter!(),
                    " AND (url, id) > (?2, ?3) ORDER BY url, id LIMIT ?4"
                )))?
                .query_map((queue, url, id, most), letter_of)?
                .collect()
            })
            .await?;
        let next = letters.get(most.wrapping_sub(1)).map(place_of);
        Ok(LettersPage { letters, next })
    }

    async fn dead_letters_of(&self, url: &str) -> Result<Vec<DeadLetter>, StoreError> {
        let queue = self.queue;
        let url = url.to_owned();
        self.db
            .write(move |tx| {
                tx.prepare_cached(sql!(concat!(select_letter!(), " AND url = ?2 ORDER BY id")))?
                    .query_map((queue, url), letter_of)?
                    .collect()
            })
            .await
    }

    async fn take_off(&self, letters: &[LeaseId], revision: Revision) -> Result<usize, StoreError> {
        let queue = self.queue;
        let clock = self.clock.clone();
        let letters = letters.to_vec();
        let revised = self
            .db
            .write(move |tx| {
                let mut moves = Moves::new(tx, queue, clock.now());
                let mut revised = 0;
                for id in letters {
                    revised += usize::from(moves.take_off(id, revision)?);
                }
                moves.enter()?;
                Ok(revised)
            })
            .await?;
        self.news.notify_one();
        Ok(revised)
    }
}

#[async_trait]
impl SettleWithDetails for SqliteInstance {
    async fn settle_with(&self, batch: &[LeaseEnding<'_>]) -> Result<Vec<Settled>, StoreError> {
        let mut ends: Vec<(LeaseId, Settlement)> = Vec::with_capacity(batch.len());
        let mut details = Vec::with_capacity(batch.len());
        for (lease, settlement, known) in batch {
            ends.push((lease.id, (*settlement).clone()));
            details.push(known.clone());
        }
        let queue = self.queue.queue;
        let epoch = self.epoch();
        let clock = self.queue.clock.clone();
        let work = move |tx: &Connection| {
            let settled = settle_batch(tx, queue, epoch, &ends, clock.now())?;
            let mut keep = tx.prepare_cached(sql!(
                "UPDATE job SET details = ?2 WHERE id = ?1 AND state = {dead}"
            ))?;
            for (((id, _), details), settled) in ends.iter().zip(details).zip(&settled) {
                if *settled == Settled::Confirmed && details.is_some() {
                    keep.execute((id, details))?;
                }
            }
            Ok(settled)
        };
        self.queue.db.write(work).await
    }
}

fn letter_of(row: &Row<'_>) -> rusqlite::Result<DeadLetter> {
    Ok(DeadLetter {
        id: row.get(0)?,
        url: row.get(1)?,
        group: DeadGroup { reason: row.get(2)?, site: row.get(3)? },
        details: row.get(4)?,
    })
}

/// The cursor after this letter.
fn place_of(letter: &DeadLetter) -> Vec<u8> {
    [letter.id.to_be_bytes().as_slice(), letter.url.as_bytes()].concat()
}

fn read_place(place: &[u8]) -> (String, LeaseId) {
    match place.split_first_chunk() {
        Some((id, url)) => (String::from_utf8_lossy(url).into_owned(), LeaseId::from_be_bytes(*id)),
        None => Default::default(),
    }
}
