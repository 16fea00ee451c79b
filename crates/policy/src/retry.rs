//! What follows from an outcome: the right half of the table in the contract, with one rule per door.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::outcome::{Blame, FetchOutcome};
use crate::time::Time;

/// Exponential back-off with full jitter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The maximum first delay.
    pub base: Duration,
    /// Each repetition multiplies the maximum by this.
    pub factor: f64,
    /// The upper bound of the maximum.
    pub cap: Duration,
}

impl Backoff {
    /// The delay before repetition number `repetition` (the first is 1); `chance` is in `0.0..1.0`.
    pub fn delay(&self, repetition: u32, chance: f64) -> Duration {
        self.ceiling(repetition).mul_f64(chance.clamp(0.0, 1.0))
    }

    /// The maximum of [`Backoff::delay`].
    pub fn ceiling(&self, repetition: u32) -> Duration {
        let growth = self.factor.max(1.0).powi(repetition.saturating_sub(1).min(1_000) as i32);
        let secs = (self.base.as_secs_f64() * growth).min(self.cap.as_secs_f64());
        Duration::try_from_secs_f64(secs).unwrap_or(self.cap)
    }
}

/// The failures of a URL so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// Failures blamed on the URL.
    pub url_failures: u32,
    /// Failures blamed on its site.
    pub site_failures: u32,
    /// Responses with status 429.
    pub paced: u32,
    /// When the first site failure happened.
    pub first_site_failure: Option<Time>,
}

impl History {
    /// The number of attempts that failed or got a 429.
    pub fn failures(&self) -> u32 {
        self.url_failures.saturating_add(self.site_failures).saturating_add(self.paced)
    }
}

/// How a door handles site failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteRule {
    /// The maximum number of attempts, including the first one.
    Attempts(u32),
    /// The URL waits until the site is back. It is given up if it fails `dead_after` times while its site serves other
    /// URLs.
    Requeue {
        /// The number of failures.
        dead_after: u32,
    },
}

/// How a door handles failures. Attempts include the first one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryRule {
    /// Attempts for a URL that answers 500 or another 5xx that is not blamed on the site.
    pub server_error_attempts: u32,
    /// Attempts for a URL that answers 403, 408 or 425.
    pub soft_refusal_attempts: u32,
    /// Attempts for a URL that answers 429; `None` for no limit.
    pub paced_attempts: Option<u32>,
    /// How site failures are handled.
    pub site: SiteRule,
    /// The delays between attempts for a URL.
    pub backoff: Backoff,
    /// The delays after site failures.
    pub site_backoff: Backoff,
}

const HOUR: Duration = Duration::from_secs(3_600);
const TWO_SECONDS_DOUBLING: Backoff =
    Backoff { base: Duration::from_secs(2), factor: 2.0, cap: HOUR };

impl RetryRule {
    /// `fetchwell pages`.
    pub const PAGES: RetryRule = RetryRule {
        server_error_attempts: 3,
        soft_refusal_attempts: 3,
        paced_attempts: None,
        site: SiteRule::Requeue { dead_after: 20 },
        backoff: TWO_SECONDS_DOUBLING,
        site_backoff: TWO_SECONDS_DOUBLING,
    };

    /// `fetchwell serve`.
    pub const RETRIEVER: RetryRule = RetryRule {
        server_error_attempts: 3,
        soft_refusal_attempts: 1,
        paced_attempts: Some(5),
        site: SiteRule::Attempts(3),
        backoff: TWO_SECONDS_DOUBLING,
        site_backoff: TWO_SECONDS_DOUBLING,
    };

    /// `fetchwell fetch`: like the retriever, but waits for a site that is down.
    pub const FETCH: RetryRule = RetryRule {
        site: SiteRule::Requeue { dead_after: 20 },
        site_backoff: Backoff { cap: Duration::from_secs(30), ..TWO_SECONDS_DOUBLING },
        ..RetryRule::RETRIEVER
    };

    /// `fetchwell articles`: few attempts, because the next run follows soon.
    pub const ARTICLES: RetryRule = RetryRule {
        server_error_attempts: 1,
        paced_attempts: Some(3),
        site: SiteRule::Attempts(1),
        ..RetryRule::RETRIEVER
    };

    /// `fetchwell feeds`: a few attempts per read. The result is stored with the feed, and a later read tries again.
    pub const FEEDS: RetryRule = RetryRule { paced_attempts: Some(3), ..RetryRule::RETRIEVER };

    /// `fetchwell commoncrawl`: other work waits for each range, so a range that always fails is given up within
    /// minutes, but an archive that is down is waited for, as in `fetch`.
    pub const ARCHIVE: RetryRule = RetryRule { paced_attempts: None, ..RetryRule::FETCH };

    /// Decides what to do after an attempt.
    pub fn next(&self, last: &Attempt<'_>, mut history: History, now: Time, chance: f64) -> Next {
        match last.happened.blame() {
            Blame::Nobody | Blame::Caller => Next::Finish,
            Blame::Us => Next::Again { at: now, history },
            Blame::Pace => {
                history.paced += 1;
                if self.paced_attempts.is_some_and(|most| history.paced >= most) {
                    return Next::Finish;
                }
                // A Retry-After takes precedence over our own delay, which is only a guess.
                let named = last.retry_after.filter(|wait| !wait.is_zero());
                let wait = named.unwrap_or_else(|| self.backoff.delay(history.paced, chance));
                Next::Again { at: now + wait, history }
            }
            Blame::Site => self.next_for_site(last, history, now, chance),
            Blame::Url => {
                history.url_failures += 1;
                if self.spent_by(&history) >= self.url_attempts(last.happened) {
                    return Next::Finish;
                }
                let own = self.backoff.delay(history.url_failures, chance);
                Next::Again { at: now + longer(own, last.retry_after), history }
            }
        }
    }

    fn next_for_site(
        &self,
        last: &Attempt<'_>,
        mut history: History,
        now: Time,
        chance: f64,
    ) -> Next {
        if matches!(
            last.happened,
            FetchOutcome::SiteStayedDown { .. }
                | FetchOutcome::ProbesFailed { .. }
                | FetchOutcome::WaitTooLong { .. }
        ) {
            return Next::Finish;
        }
        history.site_failures += 1;
        let first_failure = *history.first_site_failure.get_or_insert(now);
        let spent = match self.site {
            SiteRule::Attempts(most) => self.spent_by(&history) >= most,
            SiteRule::Requeue { dead_after } => {
                let serves_others = last.site_last_served.is_some_and(|at| at > first_failure);
                history.site_failures >= dead_after && serves_others
            }
        };
        if spent {
            return Next::Finish;
        }
        let own = self.site_backoff.delay(history.site_failures, chance);
        Next::Again { at: now + longer(own, last.retry_after), history }
    }

    /// The attempts that count. If site failures are limited, they count together with the URL's own, so that
    /// alternating failures do not get more attempts. A URL that waits for its site does not use up attempts.
    fn spent_by(&self, history: &History) -> u32 {
        match self.site {
            SiteRule::Attempts(_) => history.url_failures + history.site_failures,
            SiteRule::Requeue { .. } => history.url_failures,
        }
    }

    fn url_attempts(&self, happened: &FetchOutcome) -> u32 {
        match happened {
            FetchOutcome::Answered(500..=599) => self.server_error_attempts,
            FetchOutcome::Answered(403 | 408 | 425) => self.soft_refusal_attempts,
            _ => 1,
        }
    }
}

/// A finished attempt.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// What happened.
    pub happened: &'a FetchOutcome,
    /// The server's `Retry-After`. With a 429 it replaces our delay; otherwise it can lengthen our delay but not
    /// shorten it.
    pub retry_after: Option<Duration>,
    /// When the site last served a page, as far as we know.
    pub site_last_served: Option<Time>,
}

/// What to do after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Stop: this is the final result of the URL, good or bad.
    Finish,
    /// Another attempt, not before `at`.
    Again {
        /// The earliest time.
        at: Time,
        /// The history, including this attempt.
        history: History,
    },
}

fn longer(own: Duration, asked: Option<Duration>) -> Duration {
    own.max(asked.unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::outcome::{AnswerFault, NetworkFault, Phase, SiteFault, WaitAskedBy};

    const NOW: Time = Time::from_secs(1_000);

    /// How many attempts a URL gets that always ends like this; `None`: it is never given up.
    fn attempts(rule: &RetryRule, happened: &FetchOutcome, serves_others: bool) -> Option<u32> {
        let mut history = History::default();
        let served = serves_others.then_some(Time::FAR_FUTURE);
        let last = Attempt { happened, retry_after: None, site_last_served: served };
        for attempt in 1..1_000 {
            match rule.next(&last, history, NOW, 0.5) {
                Next::Finish => return Some(attempt),
                Next::Again { history: later, .. } => history = later,
            }
        }
        None
    }

    #[test]
    fn the_contracts_table_column_by_column() {
        let refused = FetchOutcome::Network(NetworkFault::ConnectRefused);
        let slow = FetchOutcome::TimedOut(Phase::Read);
        let large = FetchOutcome::BadAnswer(AnswerFault::TooLarge);
        let guard = FetchOutcome::Refused(String::new());
        let answered = FetchOutcome::Answered;
        let pages = &RetryRule::PAGES;
        let retriever = &RetryRule::RETRIEVER;
        let rows: &[(&RetryRule, FetchOutcome, Option<u32>)] = &[
            (pages, answered(200), Some(1)),
            (pages, FetchOutcome::RobotsDisallow, Some(1)),
            (pages, refused.clone(), None),
            (pages, slow.clone(), None),
            (pages, answered(503), None),
            (pages, answered(429), None),
            (pages, answered(500), Some(3)),
            (pages, answered(403), Some(3)),
            (pages, answered(408), Some(3)),
            (pages, answered(425), Some(3)),
            (pages, answered(404), Some(1)),
            (pages, large.clone(), Some(1)),
            (pages, guard.clone(), Some(1)),
            (retriever, refused.clone(), Some(3)),
            (retriever, slow.clone(), Some(3)),
            (retriever, answered(502), Some(3)),
            (retriever, answered(429), Some(5)),
            (retriever, answered(500), Some(3)),
            (retriever, answered(403), Some(1)),
            (retriever, answered(404), Some(1)),
            (retriever, FetchOutcome::DeadlinePassed, Some(1)),
            (&RetryRule::ARTICLES, answered(500), Some(1)),
            (&RetryRule::ARTICLES, refused.clone(), Some(1)),
            (&RetryRule::FEEDS, refused.clone(), Some(3)),
            (&RetryRule::FEEDS, slow.clone(), Some(3)),
            (&RetryRule::FEEDS, answered(503), Some(3)),
            (&RetryRule::FEEDS, answered(429), Some(3)),
            (&RetryRule::FEEDS, answered(500), Some(3)),
            (&RetryRule::FEEDS, answered(404), Some(1)),
            (&RetryRule::FETCH, refused.clone(), None),
            (
                &RetryRule::FETCH,
                FetchOutcome::SiteStayedDown { since: NOW, last_failure: None },
                Some(1),
            ),
            (retriever, FetchOutcome::ProbesFailed { count: 3, last: SiteFault::Network }, Some(1)),
            (&RetryRule::FETCH, FetchOutcome::NoSuchHost, Some(1)),
            (
                &RetryRule::FETCH,
                FetchOutcome::WaitTooLong {
                    asked_by: WaitAskedBy::RetryAfter,
                    wait: HOUR,
                    most: Duration::from_secs(600),
                },
                Some(1),
            ),
        ];
        for (rule, happened, expected) in rows {
            assert_eq!(attempts(rule, happened, false), *expected, "{happened:?}");
        }
        assert_eq!(attempts(pages, &answered(502), true), Some(20));
    }

    #[test]
    fn a_message_that_fails_now_this_way_and_now_that_way_has_no_more_attempts() {
        let failed = FetchOutcome::Answered(500);
        let away = FetchOutcome::Answered(503);
        for mixed in [[&failed, &away, &failed], [&away, &failed, &away], [&away, &away, &failed]] {
            let mut history = History::default();
            let ends = mixed.map(|happened| {
                let last = Attempt { happened, retry_after: None, site_last_served: None };
                let next = RetryRule::RETRIEVER.next(&last, history, NOW, 0.5);
                if let Next::Again { history: later, .. } = next {
                    history = later;
                }
                next == Next::Finish
            });
            assert_eq!(ends, [false, false, true], "{mixed:?}");
        }
    }

    #[test]
    fn a_url_that_waited_for_its_site_has_all_its_attempts() {
        let history = History { site_failures: 9, ..History::default() };
        let happened = FetchOutcome::Answered(500);
        let last = Attempt { happened: &happened, retry_after: None, site_last_served: None };
        let next = RetryRule::PAGES.next(&last, history, NOW, 0.5);
        assert!(matches!(next, Next::Again { .. }), "{next:?}");
    }

    #[test]
    fn a_range_that_always_breaks_off_is_given_up_soon_and_an_archive_that_is_away_is_waited_for() {
        let rule = &RetryRule::ARCHIVE;
        let reset = FetchOutcome::Network(NetworkFault::Reset);
        assert_eq!(attempts(rule, &reset, true), Some(20));
        assert_eq!(attempts(rule, &reset, false), None);
        let longest: Duration = (1..20).map(|failures| rule.site_backoff.ceiling(failures)).sum();
        assert!(longest <= Duration::from_secs(600), "{longest:?}");
        assert_eq!(rule.site_backoff.ceiling(500), Duration::from_secs(30));
    }

    #[test]
    fn our_own_faults_never_count() {
        let happened = FetchOutcome::OurFault("no descriptors left".into());
        assert_eq!(attempts(&RetryRule::RETRIEVER, &happened, true), None);
    }

    #[test]
    fn delays_double_up_to_the_cap() {
        let backoff = RetryRule::PAGES.backoff;
        let ceilings: Vec<u64> = (1..=4).map(|n| backoff.ceiling(n).as_secs()).collect();
        assert_eq!(ceilings, [2, 4, 8, 16]);
        assert_eq!(backoff.ceiling(500), HOUR);
    }

    #[test]
    fn a_429_that_names_a_time_is_tried_again_then_however_often_it_was_before() {
        let happened = FetchOutcome::Answered(429);
        let history = History { paced: 9, ..History::default() };
        let at = |retry_after_s: Option<u64>| {
            let retry_after = retry_after_s.map(Duration::from_secs);
            let last = Attempt { happened: &happened, retry_after, site_last_served: None };
            match RetryRule::PAGES.next(&last, history, NOW, 0.9) {
                Next::Again { at, .. } => at.since(NOW),
                Next::Finish => panic!("a 429 is retried"),
            }
        };
        assert_eq!(at(Some(1)), Duration::from_secs(1));
        assert!(at(None) > Duration::from_secs(600), "{:?}", at(None));
        assert_eq!(at(Some(0)), at(None), "no time is named");
    }

    proptest! {
        #[test]
        fn retry_after_lengthens_and_never_shortens(
            status in 100u16..600, asked_s in 0u64..100_000, chance in 0.0..1.0f64,
            url_failures in 0u32..50, site_failures in 0u32..50, paced in 0u32..50,
        ) {
            let history =
                History { url_failures, site_failures, paced, first_site_failure: None };
            let happened = FetchOutcome::Answered(status);
            for rule in [RetryRule::PAGES, RetryRule::RETRIEVER, RetryRule::FETCH] {
                let with = |retry_after| {
                    let last =
                        Attempt { happened: &happened, retry_after, site_last_served: None };
                    rule.next(&last, history, NOW, chance)
                };
                let asked = Duration::from_secs(asked_s);
                match (with(None), with(Some(asked))) {
                    (Next::Again { .. }, Next::Again { at, .. }) if status == 429 && asked_s > 0 => {
                        prop_assert_eq!(at, NOW + asked);
                    }
                    (Next::Again { at: own, .. }, Next::Again { at, .. }) => {
                        prop_assert_eq!(at, own.max(NOW + asked));
                    }
                    (one, other) => prop_assert_eq!(one, other),
                }
            }
        }
    }
}
