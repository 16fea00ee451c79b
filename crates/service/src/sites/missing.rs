//! Sites whose host names do not exist. Their URLs wait until a person acts.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::sites::{Condition, KnownSite, SITES_PER_PAGE, SiteQuery, Sites};
use fetchwell_policy::outcome::{FetchOutcome, NameFault, NetworkFault};

/// The search stops at this many; nobody reads more.
const MOST_NAMED: usize = 1_000;

/// The sites that failed in the last hour and whose names did not exist when their robots.txt was last requested,
/// sorted by name.
pub async fn missing_hosts(sites: &dyn Sites) -> Result<Vec<String>, StoreError> {
    let reason = FetchOutcome::Network(NetworkFault::Dns(NameFault::NoSuchName)).to_string();
    let condition = Some(Condition::FailedLately);
    let mut query = SiteQuery { condition, most: SITES_PER_PAGE, ..SiteQuery::default() };
    let mut names = Vec::new();
    loop {
        let page = sites.sites(&query).await?;
        let missing = page.sites.iter().filter(|known| failed_for(known, &reason));
        names.extend(missing.map(|known| known.site.to_string()));
        query.after = page.next;
        if query.after.is_none() || names.len() >= MOST_NAMED {
            return Ok(names);
        }
    }
}

fn failed_for(known: &KnownSite, reason: &str) -> bool {
    let mut unreachable = known.robots.iter().filter_map(|(_, record)| record.unreachable.as_ref());
    unreachable.any(|unreachable| unreachable.reason == reason)
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::clock::Clock;
    use fetchwell_engine::memory::MemoryPoliteness;
    use fetchwell_engine::ports::politeness::{Politeness, RobotsRecord, SiteReport, Unreachable};
    use fetchwell_policy::breaker::BreakerRule;
    use fetchwell_policy::outcome::Mark;
    use fetchwell_policy::site::Report;
    use fetchwell_policy::time::Time;
    use fetchwell_policy::url::{Origin, Site};

    use super::*;

    #[tokio::test]
    async fn only_sites_without_a_name_are_missing() {
        let now = Time::from_secs(1_000_000);
        let sites = MemoryPoliteness::new(Clock::new(move || now), BreakerRule::default(), 1);
        let no_name = FetchOutcome::Network(NetworkFault::Dns(NameFault::NoSuchName));
        let refused = FetchOutcome::Network(NetworkFault::ConnectRefused);
        for (name, happened) in [("gone.test", &no_name), ("down.test", &refused)] {
            let report = Report { mark: Mark::Failed, retry_after: None, generation: 0 };
            let report = SiteReport { site: Site::parse(name).unwrap(), report };
            sites.turn(&[report], &[]).await.unwrap();
            let origin = Origin::parse(&format!("http://{name}")).unwrap();
            let unreachable = Some(Unreachable {
                since: now,
                tries: 1,
                retry_at: now,
                is_asked_for: false,
                reason: happened.to_string(),
                recoveries: 0,
            });
            let record = RobotsRecord {
                body: None,
                status: None,
                fetched_at: now,
                unreachable,
                robots_forgotten: None,
            };
            sites.keep_robots(&origin, &record).await.unwrap();
        }
        assert_eq!(missing_hosts(&sites).await.unwrap(), ["gone.test"]);
    }
}
