//! The port of those who look after dead letters, and how leases end that leave one.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::ports::error::StoreError;
use crate::ports::finish::{Finish, Finished, Settled, Settlement, Sink};
use crate::ports::job::{Lease, LeaseId};

/// Letters that are read or revised at once.
pub const LETTERS_PER_PAGE: usize = 200;

/// A URL that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its name: equal URLs that died apart are letters apart.
    pub id: LeaseId,
    /// The exact string that was queued.
    pub url: String,
    /// Where it would have gone, and why it did not.
    pub group: DeadGroup,
    /// What the door knows about it, as JSON. Equal URLs may share it: then the last to die has the word.
    pub details: Option<String>,
}

/// What dead letters have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadGroup {
    /// Why.
    pub reason: String,
    /// Their site; '' for URLs that make no sense.
    pub site: String,
}

/// How large a group is, and who is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSize {
    /// How many letters.
    pub letters: u64,
    /// The first of their URLs.
    pub sample_url: String,
}

/// Some dead letters, in the order of their URLs.
#[derive(Clone, Debug)]
pub struct LettersPage {
    /// At most as many as were asked for.
    pub letters: Vec<DeadLetter>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Vec<u8>>,
}

/// Which dead letters are meant.
#[derive(Clone, Debug)]
pub enum Letters {
    /// Those of one URL.
    OfUrl(String),
    /// Those of a group: all, or the first so many, to see how they fare.
    OfGroup {
        /// The group.
        group: DeadGroup,
        /// At most so many.
        most: usize,
    },
    /// Every one.
    All,
}

/// What is to become of dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// Tried anew, with a clean record: they wait under their sites, in the order in which they came in.
    Retry,
    /// Taken away for good: they count as skipped from then on.
    Drop,
}

/// The dead letters of a queue.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// A page of dead letters, from the start or from where another page ended: [`LETTERS_PER_PAGE`] at
    /// most.
    async fn dead_letters(
        &self,
        from: Option<&[u8]>,
        most: usize,
    ) -> Result<LettersPage, StoreError>;

    /// The dead letters of one URL.
    async fn dead_letters_of(&self, url: &str) -> Result<Vec<DeadLetter>, StoreError>;

    /// Takes these off, as one move. One that is dead no more is left alone. Returns how many were.
    async fn take_off(&self, letters: &[LeaseId], revision: Revision) -> Result<usize, StoreError>;

    /// How many dead letters there are of each kind.
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

    /// Tries dead letters anew, or takes them away. Returns how many.
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

/// A lease, how it ends, and what the door knows about it if it is dead: a JSON object.
pub type Ending<'a> = (&'a Lease, &'a Settlement, Option<String>);

/// Ends leases; the dead leave details for those who look after them.
#[async_trait]
pub trait SettleWithDetails: Send + Sync {
    /// Ends the leases that are still ours.
    async fn settle_with(&self, batch: &[Ending<'_>]) -> Result<Vec<Settled>, StoreError>;
}

/// Writes records to a sink, then ends the leases. Records that are dead letters don't go to the sink: what
/// they tell goes in by the move that settles, so that no URL is dead without it.
pub struct SinkThenBury<R, S, I: ?Sized> {
    /// Where the other records go first.
    pub sink: S,
    /// Where the leases end after that.
    pub instance: Arc<I>,
    /// The details of a record that is a dead letter, as a JSON object.
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

/// So many of a group are tried by `--canary`.
pub const CANARIES: usize = 10;
