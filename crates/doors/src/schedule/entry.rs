//! An entry of a plan, and the time grid of its rounds.
//!
//! A round is a point on the grid, by the wall clock. So a late round does not delay later ones, several missed rounds
//! count as one, and all instances agree on them.

use std::time::Duration;

use fetchwell_policy::digest::hex;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use sha2::{Digest, Sha256};

/// This much of a hash is enough to tell entries apart.
const ID_BYTES: usize = 16;

/// Something that is due at an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleEntry {
    pub kind: EntryKind,
    /// As written in the plan: this exact string is queued.
    pub url: String,
    pub every: Duration,
    /// Each entry is shifted against the grid by a fixed amount, up to this much.
    pub jitter: Duration,
    /// The first round. Without one, the grid extends over all time.
    pub start: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Url,
    /// A list of pages.
    Sitemap,
}

impl EntryKind {
    /// The key in a plan file.
    pub const fn as_str(self) -> &'static str {
        match self {
            EntryKind::Url => "url",
            EntryKind::Sitemap => "sitemap",
        }
    }
}

impl ScheduleEntry {
    /// The ID of the entry. It does not depend on the interval, so changing that repeats no round.
    pub(crate) fn id(&self) -> String {
        let digest = self.digest();
        hex(digest.get(..ID_BYTES).unwrap_or(&digest))
    }

    /// The latest round up to now; `None` before the first.
    pub(crate) fn round(&self, now: Time) -> Option<Time> {
        let first = self.first_round();
        let passed_us =
            now.as_micros().checked_sub(first.as_micros()).filter(|passed| *passed >= 0)?;
        Some(Time::from_micros(now.as_micros() - passed_us % self.every_us()))
    }

    pub(crate) fn next_round(&self, now: Time) -> Time {
        self.round(now).map_or_else(|| self.first_round(), |round| round + self.every)
    }

    fn first_round(&self) -> Time {
        self.start.unwrap_or(Time::EPOCH) + self.own_jitter()
    }

    fn every_us(&self) -> i64 {
        i64::try_from(self.every.as_micros()).unwrap_or(i64::MAX).max(1)
    }

    /// Derived from the entry's hash, so that instances agree.
    fn own_jitter(&self) -> Duration {
        let [.., a, b, c, d] = self.digest();
        let share = f64::from(u32::from_be_bytes([a, b, c, d])) / f64::from(u32::MAX);
        self.jitter.mul_f64(share)
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::new()
            .chain_update(self.kind.as_str())
            .chain_update("\0")
            .chain_update(&self.url)
            .finalize()
            .into()
    }
}

/// The ID of a sitemap of an entry: an index lists many, and each is queued by itself.
pub(crate) fn part_id(entry: &str, sitemap: &WebUrl) -> String {
    let digest: [u8; 32] = Sha256::digest(sitemap.as_str()).into();
    format!("{entry}/{}", hex(digest.get(..ID_BYTES).unwrap_or(&digest)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Time = Time::from_secs(1_700_000_000);
    const MINUTE: Duration = Duration::from_secs(60);

    fn entry(every_s: u64, jitter_s: u64, start: Option<Time>) -> ScheduleEntry {
        ScheduleEntry {
            kind: EntryKind::Url,
            url: "http://a.test/".to_owned(),
            every: Duration::from_secs(every_s),
            jitter: Duration::from_secs(jitter_s),
            start,
        }
    }

    #[test]
    fn a_late_round_does_not_move_the_next_and_missed_ones_are_one() {
        for (late_s, next_in_s) in [(0, 60), (1, 59), (59, 1), (60, 60), (601, 59)] {
            let late = entry(60, 0, Some(NOW - Duration::from_secs(late_s)));
            assert_eq!(
                late.next_round(NOW),
                NOW + Duration::from_secs(next_in_s),
                "{late_s} s late"
            );
            assert_eq!(late.round(NOW).map(|round| round + MINUTE), Some(late.next_round(NOW)));
        }
    }

    #[test]
    fn nothing_is_due_before_the_start() {
        let later = entry(60, 0, Some(NOW + MINUTE));
        assert_eq!((later.round(NOW), later.next_round(NOW)), (None, NOW + MINUTE));
        assert_eq!(later.round(NOW + MINUTE), Some(NOW + MINUTE));
    }

    #[test]
    fn jitter_spreads_entries_and_each_keeps_its_place() {
        let at = |n: usize| {
            let url = format!("http://a.test/{n}");
            let some = ScheduleEntry { url, ..entry(3_600, 600, Some(NOW)) };
            assert_eq!(some.next_round(NOW - MINUTE), some.clone().next_round(NOW - MINUTE));
            some.next_round(NOW - MINUTE).since(NOW).as_secs()
        };
        let places: Vec<u64> = (0..200).map(at).collect();
        assert!(places.iter().all(|place| *place <= 600));
        let early = places.iter().filter(|place| **place < 300).count();
        assert!((60..140).contains(&early), "{early} of 200 in the first half");
    }

    #[test]
    fn an_entry_is_the_same_whatever_its_interval_and_another_with_another_kind() {
        assert_eq!(entry(60, 0, None).id(), entry(600, 5, Some(NOW)).id());
        let sitemap = ScheduleEntry { kind: EntryKind::Sitemap, ..entry(60, 0, None) };
        assert_ne!(entry(60, 0, None).id(), sitemap.id());
    }

    proptest! {
        #[test]
        fn the_round_is_on_the_grid_and_the_last_one_that_was_due(
            every_s in 1_u64..10_000_000, jitter_s in 0_u64..10_000_000, now_s in 1_000_000_000_i64..4_000_000_000,
        ) {
            let some = entry(every_s, jitter_s, None);
            let now = Time::from_secs(now_s);
            if let Some(round) = some.round(now) {
                prop_assert!(round <= now && now < round + some.every);
                prop_assert_eq!(some.round(round), Some(round));
                prop_assert_eq!(some.next_round(now), round + some.every);
                prop_assert_eq!(some.round(some.next_round(now)), Some(round + some.every));
            }
        }
    }
}
