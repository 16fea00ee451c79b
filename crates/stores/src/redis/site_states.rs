//! Politeness state of sites in Redis: `rate_limit:{domain}`, `circuit:{domain}`, `robots:{domain}`.
//!
//! Other programs read those keys, so data that only this program uses is kept elsewhere: orders and counts in
//! `fetchwell:site:{domain}`, and the names of all sites in three sorted sets, by name (all sites, and the notable
//! ones) and by expiry.

use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::politeness::RobotsRecord;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Scheme, Site};
use redis::Cmd;

use super::link::RedisConnection;
use fetchwell_engine::shared_politeness::{Change, SiteStateStore, SiteStates, Texts};

/// The run of the server that has complete data, and since when.
const RUN_KEY: &str = "fetchwell:politeness";

/// The names of all sites.
const NAMES_KEY: &str = "fetchwell:sites";
/// The names of notable sites: those with more to report than their pace.
const NOTABLE_KEY: &str = "fetchwell:sites:notable";
/// When each name expires, together with the data of its site.
const FORGOTTEN_KEY: &str = "fetchwell:sites:forgotten_at";
/// When each site was last given an order, in microseconds; recent orders only.
const ORDERED_KEY: &str = "fetchwell:sites:ordered_at";
/// Names deleted per script call, which keeps each call short.
const NAMES_PER_STEP: usize = 1_000;

/// How long a state that never becomes forgettable is kept after its last change, unless it has orders: a site without
/// requests for so long is considered unused.
const LONGEST_KEPT: Duration = Duration::from_secs(30 * 86_400);

/// A copy of robots.txt replaces an unreachable one for 30 days, so it is kept a little longer.
const ROBOTS_KEPT_S: u64 = 31 * 86_400;

/// The store of site states on a Redis server.
pub struct RedisSiteStates {
    link: RedisConnection,
}

impl RedisSiteStates {
    /// Connects to the server and checks that it is suitable.
    pub async fn open(url: &str) -> Result<RedisSiteStates, StoreError> {
        let link = RedisConnection::open(url).await?;
        link.warn_of_forgetting().await?;
        Ok(RedisSiteStates { link })
    }

    /// Runs the script on these sites, with the values to set.
    async fn step<'a>(
        &self,
        sites: impl Iterator<Item = &'a Site>,
        values: Vec<String>,
    ) -> Result<Vec<String>, StoreError> {
        let mut standing = self.link.standing().await?;
        let mut call = plain_script!("step.lua").key(RUN_KEY);
        call.key(NAMES_KEY).key(NOTABLE_KEY).key(FORGOTTEN_KEY);
        for site in sites {
            call.key(format!("rate_limit:{site}")).key(format!("circuit:{site}"));
            call.key(format!("fetchwell:site:{site}"));
        }
        call.arg(&*standing.run_id);
        for value in values {
            call.arg(value);
        }
        let answer = call.invoke_async(&mut standing.connection).await;
        self.link.checked(answer).await
    }
}

#[async_trait]
impl SiteStateStore for RedisSiteStates {
    async fn read(&self, sites: &[Site]) -> Result<SiteStates, StoreError> {
        let answer = self.step(sites.iter(), Vec::new()).await?;
        let mut values = answer.into_iter();
        let now = time(values.next().as_deref())?;
        let lost_until = time(values.next().as_deref())?;
        let mut text = || values.next().filter(|text| !text.is_empty());
        let mut texts = || Texts { rate_limit: text(), circuit: text(), notes: text() };
        let sites = sites.iter().map(|_| texts()).collect();
        Ok(SiteStates { now, lost_until, sites })
    }

    async fn replace(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let values = changes.iter().flat_map(values_of).collect();
        let answer = self.step(changes.iter().map(|change| &change.site), values).await?;
        Ok(answer.into_iter().skip(2).map(|made| made == "1").collect())
    }

    async fn distrust_the_past(&self) -> Result<(), StoreError> {
        self.link.query::<i64>(&Cmd::del(RUN_KEY)).await.map(|_| ())
    }

    async fn names(
        &self,
        after: &str,
        notable: bool,
        most: usize,
    ) -> Result<Vec<String>, StoreError> {
        let mut range = redis::cmd("ZRANGE");
        range.arg(if notable { NOTABLE_KEY } else { NAMES_KEY });
        range.arg(format!("({after}")).arg("+").arg("BYLEX").arg("LIMIT").arg(0).arg(most);
        self.link.query(&range).await
    }

    async fn note_order(
        &self,
        site: &Site,
        at: Time,
        forget_before: Time,
    ) -> Result<(), StoreError> {
        let mut both = redis::pipe();
        both.zadd(ORDERED_KEY, site.as_str(), at.as_micros()).ignore();
        both.zrembyscore(ORDERED_KEY, "-inf", format!("({}", forget_before.as_micros())).ignore();
        self.link.query_all(&both).await
    }

    async fn ordered(&self, since: Time, most: usize) -> Result<Vec<(String, Time)>, StoreError> {
        let mut range = redis::cmd("ZRANGE");
        range.arg(ORDERED_KEY).arg(since.as_micros()).arg("+inf").arg("BYSCORE");
        range.arg("LIMIT").arg(0).arg(most).arg("WITHSCORES");
        let ordered: Vec<(String, f64)> = self.link.query(&range).await?;
        // A score holds microseconds since 1970 exactly until 2255.
        let given = |(name, micros)| (name, Time::from_micros(micros as i64));
        Ok(ordered.into_iter().map(given).collect())
    }

    async fn robots(&self, origins: &[Origin]) -> Result<Vec<Option<RobotsRecord>>, StoreError> {
        if origins.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<String> = origins.iter().map(robots_key).collect();
        let texts: Vec<Option<Vec<u8>>> = self.link.query(&Cmd::mget(keys)).await?;
        // An invalid record counts as missing: robots.txt is fetched again.
        let record = |text: Option<Vec<u8>>| serde_json::from_slice(&text?).ok();
        Ok(texts.into_iter().map(record).collect())
    }

    async fn forget_robots(&self, origins: &[Origin]) -> Result<(), StoreError> {
        let keys: Vec<String> = origins.iter().map(robots_key).collect();
        self.link.query::<i64>(&Cmd::del(keys)).await.map(|_| ())
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError> {
        let text = serde_json::to_string(record).map_err(|error| {
            StoreError::bug("cannot encode a robots.txt record").with_source(error)
        })?;
        self.link.query(&Cmd::set_ex(robots_key(origin), text, ROBOTS_KEPT_S)).await
    }

    /// Keys expire by themselves; this removes their names.
    async fn sweep(&self, _now: Time) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        loop {
            let mut call = plain_script!("forget_names.lua").key(NAMES_KEY);
            call.key(NOTABLE_KEY).key(FORGOTTEN_KEY).arg(NAMES_PER_STEP);
            let names: u64 = self.link.run(&call).await?;
            forgotten += names;
            if names < NAMES_PER_STEP as u64 {
                return Ok(forgotten);
            }
        }
    }
}

fn values_of(change: &Change) -> [String; 8] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let keep = change.forgettable_at.map_or(LONGEST_KEPT, |at| at.since(change.now));
    let keep_ms = match change.has_orders {
        true => 0,
        false => keep.max(Duration::from_secs(1)).as_millis(),
    };
    [
        text(&change.before.rate_limit),
        text(&change.before.circuit),
        text(&change.before.notes),
        text(&change.after.rate_limit),
        text(&change.after.circuit),
        text(&change.after.notes),
        keep_ms.to_string(),
        u8::from(change.is_notable).to_string(),
    ]
}

fn robots_key(origin: &Origin) -> String {
    let (scheme, default_port) = match origin.scheme() {
        Scheme::Https => ("", 443),
        Scheme::Http => ("http:", 80),
    };
    match origin.port() {
        port if port == default_port => format!("robots:{scheme}{}", origin.host()),
        port => format!("robots:{scheme}{}:{port}", origin.host()),
    }
}

fn time(text: Option<&str>) -> Result<Time, StoreError> {
    let micros = text.and_then(|text| text.parse().ok());
    micros.map(Time::from_micros).ok_or_else(|| {
        StoreError::corrupt(format!("Redis gave {text:?} where a time was expected"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_robots_txt_name_what_is_not_the_default() {
        for (origin, key) in [
            ("https://a.test", "robots:a.test"),
            ("http://a.test", "robots:http:a.test"),
            ("https://a.test:8443", "robots:a.test:8443"),
            ("http://a.test:443", "robots:http:a.test:443"),
        ] {
            assert_eq!(robots_key(&Origin::parse(origin).unwrap()), key);
        }
    }
}
