//! What is stored about a feed after a reading, and when it is due again.

use std::collections::BTreeSet;
use std::time::Duration;

use fetchwell_engine::ports::feeds::FeedMemory;
use fetchwell_policy::retry::Backoff;
use fetchwell_policy::time::Time;

use super::plan::{FeedReading, Validators};

/// The shortest back-off of a feed that failed, even if its interval is shorter…
const MIN_BACKOFF: Duration = Duration::from_secs(60);
/// …and the longest, unless its interval is longer.
const MAX_BACKOFF: Duration = Duration::from_secs(24 * 3_600);

/// Whether to read a feed now. `all` includes feeds that are paused or not due yet.
pub(super) fn is_due(
    memory: Option<&FeedMemory>,
    categories: &BTreeSet<String>,
    now: Time,
    all: bool,
) -> bool {
    let Some(memory) = memory else { return true };
    let is_new_to_some = memory.problem.is_none() && !categories.is_subset(&memory.read_for);
    all || (memory.paused.is_none() && (memory.due <= now || is_new_to_some))
}

/// The validators for a conditional request. If a category is new since the last reading, the whole feed is needed.
pub(super) fn validators(memory: &FeedMemory, categories: &BTreeSet<String>) -> Validators {
    if !categories.is_subset(&memory.read_for) {
        return Validators::default();
    }
    Validators { etag: memory.etag.clone(), last_modified: memory.last_modified.clone() }
}

/// What to store after a reading; `None` if the feed was not reached.
pub(super) fn after(
    before: FeedMemory,
    reading: &FeedReading,
    categories: &BTreeSet<String>,
    interval: Duration,
    now: Time,
) -> Option<FeedMemory> {
    let read = FeedMemory {
        read_at: Some(now),
        due: now + interval,
        failures: 0,
        problem: None,
        paused: None,
        moved_to: None,
        ..before.clone()
    };
    Some(match reading {
        FeedReading::Read { validators, moved_to, .. } => FeedMemory {
            etag: validators.etag.clone(),
            last_modified: validators.last_modified.clone(),
            moved_to: moved_to.as_ref().map(ToString::to_string),
            read_for: categories.clone(),
            ..read
        },
        FeedReading::Unchanged => FeedMemory { moved_to: before.moved_to, ..read },
        FeedReading::Disallowed => FeedMemory {
            problem: Some("robots.txt disallows it".to_owned()),
            due: now + interval,
            ..before
        },
        FeedReading::Gone => FeedMemory {
            paused: Some("the server answered 410 (Gone)".to_owned()),
            problem: None,
            ..before
        },
        FeedReading::Failed { problem, retry_after } => {
            let failures = before.failures.saturating_add(1);
            let base = interval.max(MIN_BACKOFF);
            let backoff = Backoff { base, factor: 2.0, cap: MAX_BACKOFF.max(interval) };
            let wait = backoff.ceiling(failures).max(retry_after.unwrap_or_default());
            FeedMemory { problem: Some(problem.clone()), failures, due: now + wait, ..before }
        }
        FeedReading::NotReached { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1_700_000_000);
    const HOUR: Duration = Duration::from_secs(3_600);

    fn named(categories: &[&str]) -> BTreeSet<String> {
        categories.iter().map(|category| (*category).to_owned()).collect()
    }

    fn read_before() -> FeedMemory {
        FeedMemory {
            etag: Some("\"v1\"".into()),
            last_modified: Some("then".into()),
            read_for: named(&["news"]),
            read_at: Some(NOW - HOUR),
            due: NOW,
            failures: 2,
            problem: Some("broken".into()),
            ..FeedMemory::default()
        }
    }

    fn failed(retry_after: Option<Duration>) -> FeedReading {
        FeedReading::Failed { problem: "broken".into(), retry_after }
    }

    fn remembered(before: FeedMemory, reading: &FeedReading) -> FeedMemory {
        after(before, reading, &named(&["news"]), HOUR, NOW).unwrap()
    }

    #[test]
    fn an_unchanged_feed_comes_again_at_its_interval_and_its_failures_are_over() {
        let memory = remembered(read_before(), &FeedReading::Unchanged);
        assert_eq!((memory.due, memory.failures, memory.problem), (NOW + HOUR, 0, None));
        assert_eq!((memory.etag.as_deref(), memory.read_at), (Some("\"v1\""), Some(NOW)));
    }

    #[test]
    fn a_failing_feed_comes_ever_more_rarely_but_never_ends() {
        for (failures, hours) in [(0, 1), (1, 2), (3, 8), (30, 24)] {
            let memory = remembered(FeedMemory { failures, ..read_before() }, &failed(None));
            assert_eq!((memory.due, memory.failures), (NOW + HOUR * hours, failures + 1));
            assert_eq!(memory.etag, read_before().etag, "what was read is still known");
        }
    }

    #[test]
    fn a_server_may_ask_for_more_time_and_never_for_less() {
        for (asked, hours) in [(Duration::ZERO, 4), (HOUR * 9, 9), (HOUR, 4)] {
            let memory = remembered(read_before(), &failed(Some(asked)));
            assert_eq!(memory.due, NOW + HOUR * hours, "asked for {asked:?}");
        }
    }

    #[test]
    fn what_is_gone_is_paused_and_only_read_when_all_are() {
        let memory = remembered(read_before(), &FeedReading::Gone);
        let later = NOW + HOUR * 10_000;
        assert!(memory.paused.is_some());
        assert!(!is_due(Some(&memory), &named(&["news", "new"]), later, false));
        assert!(is_due(Some(&memory), &named(&["news"]), later, true));
        let again = remembered(memory, &FeedReading::Unchanged);
        assert_eq!(again.paused, None, "it is there again");
    }

    #[test]
    fn a_feed_that_robots_txt_keeps_us_from_is_asked_about_at_its_interval() {
        let memory = remembered(FeedMemory::default(), &FeedReading::Disallowed);
        assert_eq!((memory.due, memory.failures), (NOW + HOUR, 0));
        assert!(!is_due(Some(&memory), &named(&["news"]), NOW, false));
        assert!(is_due(Some(&memory), &named(&["news"]), NOW + HOUR, false));
    }

    #[test]
    fn what_was_not_reached_is_as_it_was() {
        let reading = FeedReading::NotReached { why: "stopped".into() };
        assert_eq!(after(read_before(), &reading, &named(&[]), HOUR, NOW), None);
    }

    #[test]
    fn a_feed_is_due_when_its_time_has_come_or_a_category_has_not_had_it() {
        let memory = FeedMemory { problem: None, ..read_before() };
        let due = |categories: &[&str], now| is_due(Some(&memory), &named(categories), now, false);
        let before = NOW - Duration::from_micros(1);
        assert!(is_due(None, &named(&["news"]), before, false), "one that was never read");
        assert_eq!((due(&["news"], before), due(&["news"], NOW)), (false, true));
        assert!(due(&["news", "world"], before));
        assert!(!is_due(Some(&read_before()), &named(&["world"]), before, false), "it fails");
    }

    #[test]
    fn only_a_category_that_had_the_feed_can_do_with_its_news() {
        let asked = |categories: &[&str]| validators(&read_before(), &named(categories));
        let FeedMemory { etag, last_modified, .. } = read_before();
        assert_eq!(asked(&["news"]), Validators { etag, last_modified });
        assert_eq!(asked(&["news", "world"]), Validators::default());
    }
}
