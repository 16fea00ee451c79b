//! Dead letters on Redis.

use async_trait::async_trait;
use serde::Serialize;

use super::job::url_of;
use super::{AtMost, RedisQueue};
use crate::dead_letters::{
    DeadGroup, DeadLetter, DeadLetters, LETTERS_PER_PAGE, LettersPage, Revision,
};
use crate::ports::{LeaseId, StoreFault};

#[derive(Serialize)]
struct Asked {
    ids: Vec<String>,
    retry: bool,
}

/// Place, id, URL, site, reason, details.
type Row = (Vec<u8>, LeaseId, Vec<u8>, String, String, Option<Vec<u8>>);

#[async_trait]
impl DeadLetters for RedisQueue {
    async fn dead_letters(
        &self,
        from: Option<&[u8]>,
        most: usize,
    ) -> Result<LettersPage, StoreFault> {
        let from = from.map_or_else(|| b"-".to_vec(), |place| [b"(", place].concat());
        self.letters_between(&from, b"+", most.min(LETTERS_PER_PAGE)).await
    }

    async fn dead_letters_of(&self, url: &str) -> Result<Vec<DeadLetter>, StoreFault> {
        let (mut letters, mut from) = (Vec::new(), Some([b"[", url.as_bytes(), b"\0"].concat()));
        let to = [b"(", url.as_bytes(), b"\0:"].concat();
        while let Some(place) = from {
            let page = self.letters_between(&place, &to, LETTERS_PER_PAGE).await?;
            letters.extend(page.letters.into_iter().filter(|letter| letter.url == url));
            from = page.next.map(|place| [b"(", place.as_slice()].concat());
        }
        Ok(letters)
    }

    async fn take_off(&self, letters: &[LeaseId], revision: Revision) -> Result<usize, StoreFault> {
        let ids = letters.iter().map(LeaseId::to_string).collect();
        let asked = Asked { ids, retry: revision == Revision::Retry };
        let revised = self.scripts.run(&self.scripts.revise, &asked).await?;
        self.news.notify_one();
        Ok(revised)
    }
}

impl RedisQueue {
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
            url: url_of(&url),
            group: DeadGroup { reason, site },
            details: details.map(|details| String::from_utf8_lossy(&details).into_owned()),
        });
        Ok(LettersPage { letters: letters.collect(), next })
    }
}
