//! Dead letters on Redis.
//!
//! The list of dead letters is authoritative, and other clients change it. So reading letters from the start compares
//! our index with the list first, and taking a letter off removes it from the list or finds that it is gone.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use async_trait::async_trait;
use fetchwell_engine::ports::dead_letters::{
    DeadGroup, DeadLetter, DeadLetters, LETTERS_PER_PAGE, LettersPage, Revision,
};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::LeaseId;
use serde_json::json;

use super::job::{site_of, url_of};
use super::{MOST_PER_SCRIPT, RedisQueue};

/// Entries of the index and of the list that are read at once.
const STRETCH: usize = 1_000;
/// The length of what follows the URL in an index entry: a zero byte and the digits of an id.
const AFTER_URL: usize = 17;
/// The reason of letters that another program put on the list.
const FOREIGN: &str = "put on the list by another program";

/// Index entry, id, URL, site, reason, details.
type Row = (Vec<u8>, LeaseId, Vec<u8>, String, String, Option<Vec<u8>>);

#[async_trait]
impl DeadLetters for RedisQueue {
    async fn dead_letters(
        &self,
        from: Option<&[u8]>,
        most: usize,
    ) -> Result<LettersPage, StoreError> {
        if from.is_none() {
            self.compare_with_dead_list(true).await?;
        }
        let from = from.map_or_else(|| b"-".to_vec(), |place| [b"(", place].concat());
        self.letters_between(&from, b"+", most.min(LETTERS_PER_PAGE)).await
    }

    async fn dead_letters_of(&self, url: &str) -> Result<Vec<DeadLetter>, StoreError> {
        self.follow_list(&[url.as_bytes().to_vec()], true).await?;
        let mut letters = Vec::new();
        let mut from = Some([b"[", url.as_bytes(), b"\0"].concat());
        let to = [b"(", url.as_bytes(), b"\0:"].concat();
        while let Some(place) = from {
            let page = self.letters_between(&place, &to, LETTERS_PER_PAGE).await?;
            letters.extend(page.letters.into_iter().filter(|letter| letter.url == url));
            from = page.next.map(|place| [b"(", place.as_slice()].concat());
        }
        Ok(letters)
    }

    async fn take_off(&self, letters: &[LeaseId], revision: Revision) -> Result<usize, StoreError> {
        let ids: Vec<String> = letters.iter().map(LeaseId::to_string).collect();
        let asked = json!({ "ids": ids, "retry": revision == Revision::Retry });
        let revised = self.scripts.run(script!("revise.lua"), &asked).await?;
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
    ) -> Result<LettersPage, StoreError> {
        let scripts = &self.scripts;
        let rows: Vec<Row> =
            scripts.run_with(script!("letters.lua"), &json!({ "most": most }), &[from, to]).await?;
        let next = rows.get(most.wrapping_sub(1)).map(|last| last.0.clone());
        let letters = rows.into_iter().map(|(_, id, url, site, reason, details)| DeadLetter {
            id,
            url: url_of(&url),
            group: DeadGroup { reason, site },
            details: details.map(|details| String::from_utf8_lossy(&details).into_owned()),
        });
        Ok(LettersPage { letters: letters.collect(), next })
    }

    /// Compares our index with the list, in parts. The script that changes the index checks the differences again, so
    /// concurrent changes by others do no harm.
    pub(super) async fn compare_with_dead_list(&self, adopts: bool) -> Result<(), StoreError> {
        let hasher = RandomState::new();
        // Uses hashes, so that a million letters take only some megabytes.
        let mut surplus: HashMap<u64, i64> = HashMap::new();
        let mut stretch = Stretch::default();
        while self.read_stretch(&mut stretch).await? {
            for url in stretch.indexed() {
                *surplus.entry(hasher.hash_one(url)).or_default() += 1;
            }
            for url in &stretch.urls {
                *surplus.entry(hasher.hash_one(url.as_slice())).or_default() -= 1;
            }
        }
        surplus.retain(|_, surplus| *surplus > 0 || (adopts && *surplus < 0));
        if surplus.is_empty() {
            return Ok(());
        }
        let differs = |url: &[u8]| surplus.contains_key(&hasher.hash_one(url));
        let mut differing: HashSet<Vec<u8>> = HashSet::new();
        let mut stretch = Stretch::default();
        while self.read_stretch(&mut stretch).await? {
            let urls = stretch.indexed().chain(stretch.urls.iter().map(Vec::as_slice));
            differing.extend(urls.filter(|url| differs(url)).map(<[u8]>::to_vec));
        }
        let differing: Vec<Vec<u8>> = differing.into_iter().collect();
        for urls in differing.chunks(MOST_PER_SCRIPT) {
            self.follow_list(urls, adopts).await?;
        }
        Ok(())
    }

    /// Makes the index agree with the list for these URLs.
    async fn follow_list(&self, urls: &[Vec<u8>], adopts: bool) -> Result<(), StoreError> {
        let sites: Vec<String> = urls.iter().map(|url| site_of(url)).collect();
        let asked = json!({ "sites": sites, "adopts": adopts, "reason": FOREIGN });
        self.scripts.run_with(script!("follow_list.lua"), &asked, urls).await
    }

    /// Reads the next part; `false` at the end.
    async fn read_stretch(&self, stretch: &mut Stretch) -> Result<bool, StoreError> {
        let from = match stretch.places.last() {
            Some(last) => [b"(", last.as_slice()].concat(),
            None if stretch.at == 0 => b"-".to_vec(),
            // The index has been read to its end, the list has not.
            None => b"+".to_vec(),
        };
        let asked = json!({ "at": stretch.at, "most": STRETCH });
        let scripts = &self.scripts;
        let read: (Vec<Vec<u8>>, Vec<Vec<u8>>) =
            scripts.run_with(script!("dead_stretch.lua"), &asked, &from).await?;
        stretch.places = read.0;
        stretch.urls = read.1;
        stretch.at += STRETCH;
        Ok(!stretch.places.is_empty() || !stretch.urls.is_empty())
    }
}

/// One part of our index and of the list.
#[derive(Default)]
struct Stretch {
    /// Where the next part of the list begins.
    at: usize,
    places: Vec<Vec<u8>>,
    urls: Vec<Vec<u8>>,
}

impl Stretch {
    /// The URLs of the index entries.
    fn indexed(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().filter_map(|place| place.get(..place.len().checked_sub(AFTER_URL)?))
    }
}
