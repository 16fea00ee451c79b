//! Politeness state in a namespace of its own, separate from the pace of fetches.
//!
//! Webhooks go to hosts that may be fetched from, too. A receiver that fails must not close the site to
//! fetches, and fetches must not hold up deliveries.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Permit, SiteState, Spend};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};

use crate::ports::error::StoreError;
use crate::ports::politeness::{Politeness, RobotsRecord, SiteAsk, SiteReport, Turn};

/// The sites of `inner` in one namespace.
pub struct NamespacedPoliteness {
    inner: Arc<dyn Politeness>,
    realm: &'static str,
}

impl NamespacedPoliteness {
    /// Keeps the sites of `realm` separate from all others in `inner`.
    pub fn new(inner: Arc<dyn Politeness>, realm: &'static str) -> NamespacedPoliteness {
        NamespacedPoliteness { inner, realm }
    }

    fn site(&self, site: &Site) -> Site {
        Site::apart(self.realm, site.as_str())
    }
}

#[async_trait]
impl Politeness for NamespacedPoliteness {
    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreError> {
        let moved_reports: Vec<SiteReport> = reports
            .iter()
            .map(|report| SiteReport { site: self.site(&report.site), ..report.clone() })
            .collect();
        let moved_asks: Vec<SiteAsk> =
            asks.iter().map(|ask| SiteAsk { site: self.site(&ask.site), ..ask.clone() }).collect();
        let mut turn = self.inner.turn(&moved_reports, &moved_asks).await?;
        // The caller knows its sites by their original names.
        let named = || reports.iter().map(|r| &r.site).chain(asks.iter().map(|ask| &ask.site));
        for (site, _) in &mut turn.transitions {
            if let Some(own) = named().find(|own| self.site(own) == *site) {
                *site = own.clone();
            }
        }
        Ok(turn)
    }

    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreError> {
        self.inner.spend(&self.site(site), permit, rate).await
    }

    async fn robots(&self, origin: &Origin) -> Result<Option<RobotsRecord>, StoreError> {
        self.inner.robots(origin).await
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError> {
        self.inner.keep_robots(origin, record).await
    }

    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreError> {
        self.inner.look(&self.site(site)).await
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        self.inner.sweep().await
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::breaker::{BreakerRule, Transition};
    use fetchwell_policy::outcome::Mark;
    use fetchwell_policy::site::{Report, Verdict};

    use super::*;
    use crate::clock::Clock;
    use crate::memory::MemoryPoliteness;

    fn ask(site: &Site) -> [SiteAsk; 1] {
        let rate = Rate::per_second(1.0, 1);
        [SiteAsk { site: site.clone(), rate, follows_robots: false }]
    }

    #[tokio::test]
    async fn a_breaker_that_opens_there_is_told_by_its_own_name_and_closes_nothing_here() {
        let clock = Clock::new(|| Time::from_secs(1_000));
        let rule = BreakerRule { failure_threshold: 1, ..BreakerRule::default() };
        let web: Arc<dyn Politeness> = Arc::new(MemoryPoliteness::new(clock, rule, 1));
        let webhooks = NamespacedPoliteness::new(web.clone(), "webhook");
        let site = Site::parse("a.test").unwrap();
        let turn = webhooks.turn(&[], &ask(&site)).await.unwrap();
        let Verdict::Go(permit) = &turn.verdicts[0] else { panic!("{:?}", turn.verdicts) };
        let report =
            Report { mark: Mark::Failed, retry_after: None, generation: permit.generation };
        let failed = SiteReport { site: site.clone(), report };
        let turn = webhooks.turn(&[failed], &ask(&site)).await.unwrap();
        assert!(
            matches!(&turn.transitions[..], [(told, Transition::Opened { .. })] if *told == site)
        );
        assert!(!matches!(turn.verdicts[0], Verdict::Go(_)));
        let here = web.turn(&[], &ask(&site)).await.unwrap();
        assert!(matches!(here.verdicts[0], Verdict::Go(_)), "{:?}", here.verdicts);
    }
}
