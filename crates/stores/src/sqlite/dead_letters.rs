//! Dead letters on SQLite: jobs that are kept, with the details from their door.

use async_trait::async_trait;
use fetchwell_engine::ports::dead_letters::{
    DeadGroup, DeadLetter, DeadLetters, LETTERS_PER_PAGE, LeaseEnding, LettersPage, Revision,
    SettleWithDetails,
};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_sqlite::statements::Statements;
use rusqlite::Row;

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
        let most = most.min(LETTERS_PER_PAGE);
        let (url, id) = from.map_or_else(Default::default, read_place);
        let letters: Vec<DeadLetter> = self
            .transact(move |moves| {
                let select = sql!(concat!(
                    select_letter!(),
                    " AND (url, id) > (?2, ?3) ORDER BY url, id LIMIT ?4"
                ));
                moves.tx.list(select, (moves.queue, url, id, most), letter_of)
            })
            .await?;
        let next = letters.get(most.wrapping_sub(1)).map(place_of);
        Ok(LettersPage { letters, next })
    }

    async fn dead_letters_of(&self, url: &str) -> Result<Vec<DeadLetter>, StoreError> {
        let url = url.to_owned();
        let select = sql!(concat!(select_letter!(), " AND url = ?2 ORDER BY id"));
        self.transact(move |moves| moves.tx.list(select, (moves.queue, url), letter_of)).await
    }

    async fn take_off(&self, letters: &[LeaseId], revision: Revision) -> Result<usize, StoreError> {
        let letters = letters.to_vec();
        let revised = self
            .transact(move |moves| {
                letters.iter().map(|id| moves.take_off(*id, revision).map(usize::from)).sum()
            })
            .await?;
        self.news.notify_one();
        Ok(revised)
    }
}

#[async_trait]
impl SettleWithDetails for SqliteInstance {
    async fn settle_with(&self, batch: &[LeaseEnding<'_>]) -> Result<Vec<Settled>, StoreError> {
        let (ends, details): (Vec<(LeaseId, Settlement)>, Vec<_>) = batch
            .iter()
            .map(|(lease, settlement, known)| ((lease.id, (*settlement).clone()), known.clone()))
            .unzip();
        let epoch = self.epoch();
        self.queue
            .transact(move |moves| {
                let settled = settle_batch(moves, epoch, &ends)?;
                let mut keep = moves.tx.prepare_cached(sql!(
                    "UPDATE job SET details = ?2 WHERE id = ?1 AND state = {dead}"
                ))?;
                for (((id, _), details), settled) in ends.iter().zip(details).zip(&settled) {
                    if *settled == Settled::Confirmed && details.is_some() {
                        keep.execute((id, details))?;
                    }
                }
                Ok(settled)
            })
            .await
    }
}

fn letter_of(row: &Row<'_>) -> rusqlite::Result<DeadLetter> {
    let (id, url, reason, site, details) = <(_, _, _, _, _)>::try_from(row)?;
    Ok(DeadLetter { id, url, group: DeadGroup { reason, site }, details })
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
