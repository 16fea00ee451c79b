//! The port for managing dead letters, and for settling the leases that become one.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::ports::error::StoreError;
use crate::ports::finish::{Finish, Finished, Settled, Settlement, Sink};
use crate::ports::job::{Lease, LeaseId};

/// The maximum number of letters that one call reads or changes.
pub const LETTERS_PER_PAGE: usize = 200;

/// A URL that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its ID. Equal URLs that were given up separately are separate letters.
    pub id: LeaseId,
    /// The exact string that was queued.
    pub url: String,
    /// Its site, and why it was given up.
    pub group: DeadGroup,
    /// The door's details about it, as JSON. Equal URLs may share them; then those of the last one given up apply.
    pub details: Option<String>,
}

/// Groups dead letters by reason and site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadGroup {
    /// Why they were given up.
    pub reason: String,
    /// Their site; empty for invalid URLs.
    pub site: String,
}

/// The size of a group, with an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSize {
    /// The number of letters.
    pub letters: u64,
    /// The URL of the first letter.
    pub sample_url: String,
}

/// A page of dead letters, ordered by URL.
#[derive(Clone, Debug)]
pub struct LettersPage {
    /// The letters, at most as many as requested.
    pub letters: Vec<DeadLetter>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Vec<u8>>,
}

/// Selects dead letters.
#[derive(Clone, Debug)]
pub enum Letters {
    /// The letters of one URL.
    OfUrl(String),
    /// The first letters of a group, for example to retry a few before the rest.
    OfGroup {
        /// The group.
        group: DeadGroup,
        /// The maximum number of letters.
        most: usize,
    },
    /// All letters.
    All,
}

/// What to do with dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// Retries them with an empty history. They are queued for their sites in their original order.
    Retry,
    /// Deletes them. They count as skipped from then on.
    Drop,
}

/// The dead letters of a queue.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// A page of dead letters, from the start or from the `next` of another page; at most [`LETTERS_PER_PAGE`].
    async fn dead_letters(
        &self,
        from: Option<&[u8]>,
        most: usize,
    ) -> Result<LettersPage, StoreError>;

    /// The dead letters of one URL.
    async fn dead_letters_of(&self, url: &str) -> Result<Vec<DeadLetter>, StoreError>;

    /// Retries or drops these letters atomically. Letters that are no longer dead are ignored. Returns how many were
    /// changed.
    async fn take_off(&self, letters: &[LeaseId], revision: Revision) -> Result<usize, StoreError>;

    /// The size of each group of dead letters.
    async fn dead_groups(&self) -> Result<BTreeMap<DeadGroup, GroupSize>, StoreError> {
        let mut groups: BTreeMap<DeadGroup, GroupSize> = BTreeMap::new();
        let mut from = None;
        loop {
            let page = self.dead_letters(from.as_deref(), LETTERS_PER_PAGE).await?;
            for DeadLetter { url, group, .. } in page.letters {
                let first = || GroupSize { letters: 0, sample_url: url };
                groups.entry(group).or_insert_with(first).letters += 1;
            }
            from = page.next;
            if from.is_none() {
                return Ok(groups);
            }
        }
    }

    /// Retries or drops the selected dead letters. Returns how many were changed.
    async fn revise(&self, which: &Letters, revision: Revision) -> Result<usize, StoreError> {
        let (mut left, group) = match which {
            Letters::OfUrl(url) => {
                let letters = self.dead_letters_of(url).await?;
                return take_off_all(self, &letters, revision).await;
            }
            Letters::OfGroup { group, most } => (*most, Some(group)),
            Letters::All => (usize::MAX, None),
        };
        let mut revised = 0;
        let mut from = None;
        loop {
            let mut page = self.dead_letters(from.as_deref(), LETTERS_PER_PAGE).await?;
            page.letters.retain(|letter| group.is_none_or(|group| letter.group == *group));
            page.letters.truncate(left);
            let step = take_off_all(self, &page.letters, revision).await?;
            revised += step;
            left = left.saturating_sub(step);
            from = page.next;
            if from.is_none() || left == 0 {
                return Ok(revised);
            }
        }
    }
}

async fn take_off_all<D: DeadLetters + ?Sized>(
    queue: &D,
    letters: &[DeadLetter],
    revision: Revision,
) -> Result<usize, StoreError> {
    let mut revised = 0;
    for letters in letters.chunks(LETTERS_PER_PAGE) {
        let ids: Vec<LeaseId> = letters.iter().map(|letter| letter.id).collect();
        revised += queue.take_off(&ids, revision).await?;
    }
    Ok(revised)
}

/// A lease, how it ends, and for a dead letter the door's details as a JSON object.
pub type LeaseEnding<'a> = (&'a Lease, &'a Settlement, Option<String>);

/// Settles leases, and stores details with dead letters.
#[async_trait]
pub trait SettleWithDetails: Send + Sync {
    /// Settles the leases that this instance still holds.
    async fn settle_with(&self, batch: &[LeaseEnding<'_>]) -> Result<Vec<Settled>, StoreError>;
}

/// Writes records to a sink, then settles the leases. Records that are dead letters do not go to the sink: their
/// details are stored in the same transaction that settles the lease, so that no dead letter lacks them.
pub struct SinkThenBury<R, S, I: ?Sized> {
    /// Receives the other records first.
    pub sink: S,
    /// Settles the leases after that.
    pub instance: Arc<I>,
    /// Returns the details of a record that is a dead letter, as a JSON object.
    pub details: fn(&R) -> Option<String>,
}

#[async_trait]
impl<R, S, I> Finish<R> for SinkThenBury<R, S, I>
where
    R: Send + Sync,
    S: Sink<R>,
    I: SettleWithDetails + ?Sized,
{
    async fn finish(&self, batch: &[Finished<R>]) -> Result<Vec<Settled>, StoreError> {
        let mut records = Vec::new();
        let mut ends = Vec::with_capacity(batch.len());
        for finished in batch {
            let mut letter = None;
            for record in &finished.records {
                match (self.details)(record) {
                    None => records.push(record),
                    details => letter = details,
                }
            }
            ends.push((&finished.lease, &finished.settlement, letter));
        }
        if !records.is_empty() {
            self.sink.write(&records).await?;
        }
        self.instance.settle_with(&ends).await
    }
}

/// The number of letters of a group that `--canary` retries.
pub const CANARIES: usize = 10;
