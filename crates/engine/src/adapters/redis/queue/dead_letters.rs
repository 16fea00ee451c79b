//! Dead letters, for those who look after them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{AtMost, RedisQueue};
use crate::ports::{LeaseId, StoreFault};

/// Letters that one script reads or revises.
const LETTERS_PER_PAGE: usize = 200;

/// A URL that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its name: equal URLs that died apart are letters apart.
    pub id: LeaseId,
    /// The exact string that was queued.
    pub url: String,
    /// Where it would have gone, and why it did not.
    pub group: DeadGroup,
    /// What the door knows about it, as JSON. Equal URLs share it: the last to die has the word.
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

#[derive(Serialize)]
struct Revision {
    ids: Vec<String>,
    retry: bool,
}

/// Place, id, URL, site, reason, details.
type Row = (Vec<u8>, LeaseId, Vec<u8>, String, String, Option<Vec<u8>>);

impl RedisQueue {
    /// A page of dead letters, from the start or from where another page ended: 200 of them at most.
    pub async fn dead_letters(
        &self,
        from: Option<&[u8]>,
        most: usize,
    ) -> Result<LettersPage, StoreFault> {
        let from = from.map_or_else(|| b"-".to_vec(), |place| [b"(", place].concat());
        self.letters_between(&from, b"+", most.min(LETTERS_PER_PAGE)).await
    }

    /// The dead letters of one URL.
    pub async fn dead_letters_of(&self, url: &str) -> Result<Vec<DeadLetter>, StoreFault> {
        let (mut letters, mut from) = (Vec::new(), Some([b"[", url.as_bytes(), b"\0"].concat()));
        let to = [b"(", url.as_bytes(), b"\0:"].concat();
        while let Some(place) = from {
            let page = self.letters_between(&place, &to, LETTERS_PER_PAGE).await?;
            letters.extend(page.letters.into_iter().filter(|letter| letter.url == url));
            from = page.next.map(|place| [b"(", place.as_slice()].concat());
        }
        Ok(letters)
    }

    /// How many dead letters there are of each kind.
    pub async fn dead_groups(&self) -> Result<BTreeMap<DeadGroup, u64>, StoreFault> {
        let mut groups = BTreeMap::new();
        let mut page = self.dead_letters(None, LETTERS_PER_PAGE).await?;
        loop {
            for letter in page.letters {
                *groups.entry(letter.group).or_default() += 1;
            }
            let Some(next) = page.next else { return Ok(groups) };
            page = self.dead_letters(Some(&next), LETTERS_PER_PAGE).await?;
        }
    }

    /// Tries dead letters anew, with a clean record: they wait under their sites. Returns how many.
    pub async fn retry_dead(&self, which: &Letters) -> Result<usize, StoreFault> {
        let revised = self.revise(which, true).await?;
        self.news.notify_one();
        Ok(revised)
    }

    /// Takes dead letters away for good: they count as skipped from then on. Returns how many.
    pub async fn drop_dead(&self, which: &Letters) -> Result<usize, StoreFault> {
        self.revise(which, false).await
    }

    async fn revise(&self, which: &Letters, retry: bool) -> Result<usize, StoreFault> {
        if let Letters::OfUrl(url) = which {
            return self.revise_page(&self.dead_letters_of(url).await?, retry).await;
        }
        let (mut left, group) = match which {
            Letters::OfGroup { group, most } => (*most, Some(group)),
            Letters::OfUrl(_) | Letters::All => (usize::MAX, None),
        };
        let (mut revised, mut from) = (0, None);
        loop {
            let mut page = self.dead_letters(from.as_deref(), LETTERS_PER_PAGE).await?;
            page.letters.retain(|letter| group.is_none_or(|group| letter.group == *group));
            page.letters.truncate(left);
            let step = self.revise_page(&page.letters, retry).await?;
            revised += step;
            left = left.saturating_sub(step);
            from = page.next;
            if from.is_none() || left == 0 {
                return Ok(revised);
            }
        }
    }

    async fn revise_page(&self, letters: &[DeadLetter], retry: bool) -> Result<usize, StoreFault> {
        let mut revised = 0;
        for letters in letters.chunks(LETTERS_PER_PAGE) {
            let ids = letters.iter().map(|letter| letter.id.to_string()).collect();
            let asked = Revision { ids, retry };
            revised += self.scripts.run::<usize>(&self.scripts.revise, &asked).await?;
        }
        Ok(revised)
    }

    async fn letters_between(
        &self,
        from: &[u8],
        to: &[u8],
        most: usize,
    ) -> Result<LettersPage, StoreFault> {
        let scripts = &self.scripts;
        let rows: Vec<Row> =
            scripts.run_with(&scripts.letters, &AtMost { most }, &[from, to]).await?;
        let next = rows.get(most.wrapping_sub(1)).map(|last| last.0.clone());
        let letters = rows.into_iter().map(|(_, id, url, site, reason, details)| DeadLetter {
            id,
            url: text(&url),
            group: DeadGroup { reason, site },
            details: details.as_deref().map(text),
        });
        Ok(LettersPage { letters: letters.collect(), next })
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
