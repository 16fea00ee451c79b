//! Reads articles from Redis.

use std::collections::{BTreeMap, HashSet};

use fetchwell_engine::ports::articles::{
    ARTICLE_TTL, ARTICLES_EXAMINED, Articles, Counts, Fields, Status, Wanted,
};
use fetchwell_engine::ports::error::StoreError;

use super::{LINKS_AT_ONCE, RedisArticles, names};
use crate::redis::link::{members_of, sets_with_prefix};

/// Two fields of an article, as Redis has them.
type TitleAndText = (Option<Vec<u8>>, Option<Vec<u8>>);

/// The field with the time of the fetch.
const FETCHED: &str = "fetched_ts";

/// An entry of an index. The article may have been deleted or replaced meanwhile.
struct Place {
    at: i64,
    uid: String,
    status: Status,
}

impl RedisArticles {
    pub(super) async fn read_newest(&self, wanted: &Wanted) -> Result<Vec<Fields>, StoreError> {
        let mut places = Vec::new();
        if wanted.status != Some(Status::Failure) {
            places.extend(self.places_of_articles(wanted.category.as_deref()).await?);
        }
        if wanted.status != Some(Status::Success) {
            places.extend(self.places_of_failures().await?);
        }
        places.sort_unstable_by(|a, b| b.at.cmp(&a.at).then_with(|| a.uid.cmp(&b.uid)));
        if wanted.text.is_some() {
            places = self.with_text(places, wanted).await?;
        }
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        for place in places {
            if found.len() == wanted.most {
                break;
            }
            if let Some(fields) = self.find(&place.uid).await?
                && place.holds(&fields, wanted.category.as_deref())
                && seen.insert(place.uid)
            {
                found.push(fields);
            }
        }
        Ok(found)
    }

    /// Those of the newest whose title or URL has the text. Reads only these two fields of each.
    async fn with_text(
        &self,
        mut places: Vec<Place>,
        wanted: &Wanted,
    ) -> Result<Vec<Place>, StoreError> {
        places.truncate(ARTICLES_EXAMINED);
        let mut texts: Vec<TitleAndText> = Vec::new();
        for places in places.chunks(LINKS_AT_ONCE) {
            let mut fields = redis::pipe();
            for place in places {
                fields.cmd("HMGET").arg(names::article(&place.uid)).arg("title").arg("url");
            }
            let read: Vec<TitleAndText> = self.link.query_all(&fields).await?;
            texts.extend(read);
        }
        let has_text = |(title, url): &(Option<Vec<u8>>, Option<Vec<u8>>)| {
            let text = |field: &Option<Vec<u8>>| {
                String::from_utf8_lossy(field.as_deref().unwrap_or_default()).into_owned()
            };
            wanted.wants_text(&text(title), &text(url))
        };
        let found = places.into_iter().zip(&texts).filter(|(_, texts)| has_text(texts));
        Ok(found.map(|(place, _)| place).collect())
    }

    pub(super) async fn count_all(&self) -> Result<Counts, StoreError> {
        let mut by_category = BTreeMap::new();
        for key in self.category_keys().await? {
            let articles: u64 = self.link.query(redis::cmd("SCARD").arg(&key)).await?;
            by_category.insert(key.trim_start_matches(names::BY_CATEGORY).to_owned(), articles);
        }
        Ok(Counts {
            articles: self.link.query(redis::cmd("ZCARD").arg(names::INDEX)).await?,
            attempted: self.link.query(redis::cmd("SCARD").arg(names::ATTEMPTED)).await?,
            by_category,
            failures: self.count_failures().await?,
        })
    }

    /// The keys of all categories that have articles. Some may occur twice.
    pub(super) async fn category_keys(&self) -> Result<Vec<String>, StoreError> {
        self.link.scan(sets_with_prefix(names::BY_CATEGORY, LINKS_AT_ONCE)).await
    }

    /// The members of a set. Some may occur twice.
    pub(super) async fn members(&self, key: &str) -> Result<Vec<String>, StoreError> {
        self.link.scan(members_of(key, LINKS_AT_ONCE)).await
    }

    async fn places_of_articles(&self, category: Option<&str>) -> Result<Vec<Place>, StoreError> {
        let mut all = redis::cmd("ZRANGE");
        all.arg(names::INDEX).arg(0).arg(-1).arg("WITHSCORES");
        let all: Vec<(String, f64)> = self.link.query(&all).await?;
        let of_category: Option<HashSet<String>> = match category {
            Some(name) => Some(self.members(&names::category(name)).await?.into_iter().collect()),
            None => None,
        };
        let is_of_category = |uid: &String| of_category.as_ref().is_none_or(|of| of.contains(uid));
        let places = all.into_iter().filter(|(uid, _)| is_of_category(uid));
        let place = |(uid, score)| Place { at: seconds(score), uid, status: Status::Success };
        Ok(places.map(place).collect())
    }

    /// Failures are kept as long as articles; older entries stay in the ZSET forever, so they are filtered here.
    async fn places_of_failures(&self) -> Result<Vec<Place>, StoreError> {
        let since = (self.now().await? - ARTICLE_TTL).as_micros() / 1_000_000;
        let mut recent = redis::cmd("ZRANGEBYSCORE");
        recent.arg(names::FAILURES).arg(since).arg("+inf").arg("WITHSCORES");
        let recent: Vec<(String, f64)> = self.link.query(&recent).await?;
        let place = |(name, score): (String, f64)| {
            Some(Place { at: seconds(score), uid: split(&name)?.0, status: Status::Failure })
        };
        Ok(recent.into_iter().filter_map(place).collect())
    }

    async fn count_failures(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let mut failures: BTreeMap<String, u64> = BTreeMap::new();
        let mut cursor: u64 = 0;
        loop {
            let mut page = redis::cmd("ZRANGE");
            page.arg(names::FAILURES).arg(cursor).arg(cursor + LINKS_AT_ONCE as u64 - 1);
            let page: Vec<String> = self.link.query(&page).await?;
            cursor += page.len() as u64;
            for (_, code) in page.iter().filter_map(|name| split(name)) {
                *failures.entry(code).or_default() += 1;
            }
            if page.len() < LINKS_AT_ONCE {
                return Ok(failures);
            }
        }
    }
}

/// The seconds of a score. Other programs write fractions, too.
fn seconds(score: f64) -> i64 {
    score.floor() as i64
}

/// The fields of an article as this program would have written them: other programs may write fractional seconds and
/// invalid UTF-8.
pub(super) fn readable(fields: BTreeMap<Vec<u8>, Vec<u8>>) -> Fields {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let mut fields: Fields =
        fields.into_iter().map(|(name, value)| (text(name), text(value))).collect();
    if let Some(fetched) = fields.get_mut(FETCHED)
        && let Ok(time) = fetched.parse::<f64>().map(seconds)
    {
        *fetched = time.to_string();
    }
    fields
}

/// The link and the code of a failure.
fn split(name: &str) -> Option<(String, String)> {
    name.split_once(':').map(|(uid, code)| (uid.to_owned(), code.to_owned()))
}

impl Place {
    /// The sets say which categories an article belongs to; for a failure, only the first category is known.
    fn holds(&self, fields: &Fields, category: Option<&str>) -> bool {
        let field = |name: &str| fields.get(name).map(String::as_str);
        let of_category = self.status == Status::Success || category.is_none();
        field("status") == Some(self.status.as_str())
            && (of_category || field("category") == category)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_read_as_if_we_had() {
        for (written, read) in [
            ("1700000000", "1700000000"),
            ("1700000000.9", "1700000000"),
            ("1.7e9", "1700000000"),
            ("yesterday", "yesterday"),
            ("", ""),
        ] {
            let fields = [(FETCHED, written.as_bytes()), ("title", &b"caf\xe9"[..])];
            let fields = fields.map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec()));
            let found = readable(fields.into());
            assert_eq!((found[FETCHED].as_str(), found["title"].as_str()), (read, "caf\u{fffd}"));
        }
    }
}
