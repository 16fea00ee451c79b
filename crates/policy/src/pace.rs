//! Pace: decides when the next request may be sent, with a generic cell rate algorithm (GCRA).
//!
//! A slot is reserved before the wait for it, so that two requests never get the same one, and it is spent immediately
//! before the request head is written. Reserving keeps the order; spending keeps the distance. A request that is late
//! for its slot delays the others but does not lose the slot, so that even machines with late timers reach the
//! permitted rate.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// The maximum delay of a request head after an immediate slot that need not be spent.
const MAX_GRACE: Duration = Duration::from_millis(5);

/// The longest [lead](crate::site::Permit::lead): how long after its slot was spent a head may be written.
pub const MAX_LEAD: Duration = Duration::from_secs(2);

/// A rate limit: an interval and a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// The average time between two requests. Zero means no pacing.
    pub interval: Duration,
    /// How many requests may be sent at once after a pause. It is more than 1 only if it is configured for a group.
    pub burst: u32,
    /// The minimum interval, which the site requests by its Crawl-delay. No order can shorten it.
    pub least_interval: Duration,
}

impl Rate {
    /// One request per interval.
    pub const fn every(interval: Duration) -> Rate {
        Rate { interval, burst: 1, least_interval: Duration::ZERO }
    }

    /// One request per interval, which no order can shorten.
    pub const fn at_most_every(interval: Duration) -> Rate {
        Rate { interval, burst: 1, least_interval: interval }
    }

    /// `per_second` requests per second, with a burst. Zero or less means no pacing.
    pub fn per_second(per_second: f64, burst: u32) -> Rate {
        let interval = Duration::try_from_secs_f64(1.0 / per_second).unwrap_or(Duration::ZERO);
        Rate { burst: burst.max(1), ..Rate::every(interval) }
    }

    /// How long an immediate slot is valid without being spent.
    ///
    /// The grace is part of what such a slot occupies, so that even a head at its very end is a whole interval before
    /// the next one. One hundredth of the interval limits the loss of rate to 1 %.
    pub fn grace(self) -> Duration {
        if self.burst > 1 { Duration::ZERO } else { (self.interval / 100).min(MAX_GRACE) }
    }
}

/// A reserved time for a request head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// The earliest time.
    pub at: Time,
    /// Until then the head may be written without spending the slot. If this is before `at`, the slot must be spent.
    pub use_by: Time,
    /// The time of the previous head, for a slot that is spent late.
    after: Time,
}

/// The pace of one site or group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// When all reserved slots are used up (the theoretical arrival time of GCRA).
    used_until: Time,
    /// The interval that `used_until` was computed with.
    interval: Duration,
    /// No head was written after this.
    last_head: Time,
    /// The minimum interval that was known when the last slot was taken. The next process may not have read robots.txt
    /// yet.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    least_interval: Duration,
}

impl Pace {
    /// Reserves the earliest slot that is not before `not_before`.
    pub fn reserve(&mut self, not_before: Time, now: Time, rate: Rate) -> Slot {
        let at = self.earliest(not_before.max(now), rate);
        let slot = self.slot(at, now, rate);
        let used_from = self.used_until_at(rate).max(slot.use_by).max(at);
        self.occupy(used_from + rate.interval, slot, rate)
    }

    /// The time of the slot that [`Pace::reserve`] would take.
    pub fn earliest(&self, not_before: Time, rate: Rate) -> Time {
        let headroom = rate.interval.saturating_mul(self.burst_at(rate).saturating_sub(1));
        not_before.max(self.used_until_at(rate) - headroom)
    }

    /// Takes `at` together with the previous slot, as if they were one: for the page for which robots.txt was read. The
    /// next slot is an interval after `at`.
    pub fn follow(&mut self, at: Time, now: Time, rate: Rate) -> Slot {
        let slot = Slot { after: Time::EPOCH, ..self.slot(at, now, rate) };
        let used_until = self.used_until_at(rate).max(slot.use_by.max(at) + rate.interval);
        self.occupy(used_until, slot, rate)
    }

    /// Spends a slot; called immediately before the head is written. An `Err` has the new slot to wait for.
    pub fn spend(&mut self, slot: &Slot, now: Time, rate: Rate) -> Result<(), Slot> {
        if slot.at <= now && now <= slot.use_by {
            return Ok(()); // Counted when it was reserved.
        }
        let counted = slot.use_by >= slot.at && self.last_head == slot.use_by;
        let last_head = if counted { slot.after } else { self.last_head };
        let at = slot.at.max(last_head + self.distance_at(rate));
        if now < at {
            return Err(Slot { at, use_by: Time::EPOCH, after: last_head });
        }
        self.last_head = now;
        self.used_until = self.used_until_at(rate).max(now + rate.interval);
        self.note(rate);
        Ok(())
    }

    /// Records that the head spent last may be written as late as `latest`. The next one keeps its distance from that.
    pub fn head_leaves_by(&mut self, latest: Time) {
        self.last_head = self.last_head.max(latest);
        self.used_until = self.used_until.max(latest + self.interval);
    }

    /// Assumes that a head was written at `at`, if the records of it may have been lost.
    pub fn assume_head(&mut self, at: Time, rate: Rate) {
        // A whole burst may have been used up.
        let used_until = at + rate.interval.saturating_mul(rate.burst);
        self.used_until = self.used_until_at(rate).max(used_until);
        self.note(rate);
        self.last_head = self.last_head.max(at);
    }

    /// No head was written after this.
    pub fn last_head(&self) -> Time {
        self.last_head
    }

    /// When all reserved slots are used up. The state must not be forgotten before that.
    pub fn used_until(&self) -> Time {
        self.used_until
    }

    /// Converts its times to another clock; see [`Time::by_clock_ahead_by_us`].
    pub fn by_clock_ahead_by_us(self, ahead_us: i64) -> Pace {
        let moved = |time: Time| time.by_clock_ahead_by_us(ahead_us);
        Pace { used_until: moved(self.used_until), last_head: moved(self.last_head), ..self }
    }

    /// Limits its times, so that a clock that jumped back does not block a site. The last reserved slot is at `bound` at
    /// the latest; `used_until` is one interval after it, and that may be longer than the interval of today. The last
    /// head may still be on its way, with a lead that is longer than any grace.
    pub fn clamp(&mut self, now: Time, bound: Time) {
        self.used_until = self.used_until.min(bound + self.interval);
        self.last_head = self.last_head.min(now + MAX_LEAD);
    }

    /// An immediate slot need not be spent; one in the future must be.
    fn slot(&self, at: Time, now: Time, rate: Rate) -> Slot {
        let use_by = if at <= now { at + rate.grace() } else { Time::EPOCH };
        Slot { at, use_by, after: self.last_head }
    }

    fn occupy(&mut self, used_until: Time, slot: Slot, rate: Rate) -> Slot {
        self.used_until = used_until;
        self.last_head = self.last_head.max(slot.use_by);
        self.note(rate);
        slot
    }

    /// A changed interval applies from the last slot on, not only from the next request on. A shorter one still
    /// respects the known minimum interval of the site.
    fn used_until_at(&self, rate: Rate) -> Time {
        (self.used_until - self.interval) + rate.interval.max(self.least_interval)
    }

    /// How many requests may be sent at once. A site with a minimum interval allows no burst.
    fn burst_at(&self, rate: Rate) -> u32 {
        if self.least_interval.max(rate.least_interval).is_zero() { rate.burst } else { 1 }
    }

    /// The distance that a head keeps from the last one: none within a burst, which was counted when it was reserved.
    /// If the last slot was taken with a shorter interval, that interval is the distance. A longer distance might never
    /// be reached next to a steady flow of requests, and it was already kept when the slot was reserved.
    ///
    /// Rates differ only if a retailer's limit is configured for a site without its own rate. So only our default may
    /// be undercut, never the rate or the Crawl-delay of the site.
    fn distance_at(&self, rate: Rate) -> Duration {
        if self.burst_at(rate) > 1 {
            return Duration::ZERO;
        }
        let last = if self.interval.is_zero() { rate.interval } else { self.interval };
        rate.interval.min(last).max(self.least_interval).max(rate.least_interval)
    }

    /// Records the rate with which the last slot was taken.
    fn note(&mut self, rate: Rate) {
        (self.interval, self.least_interval) = (rate.interval, rate.least_interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    const SECOND: Rate = Rate::every(Duration::from_secs(1));

    fn at_ms(ms: i64) -> Time {
        Time::from_micros(1_000_000_000 + ms * 1_000)
    }

    fn reserve(pace: &mut Pace, now_ms: i64, rate: Rate) -> Slot {
        pace.reserve(at_ms(now_ms), at_ms(now_ms), rate)
    }

    #[test]
    fn the_first_request_goes_at_once_and_the_next_after_the_interval() {
        let mut pace = Pace::default();
        assert_eq!(reserve(&mut pace, 0, SECOND).at, at_ms(0));
        assert_eq!(reserve(&mut pace, 1, SECOND).at, at_ms(1_005));
        assert_eq!(reserve(&mut pace, 1, SECOND).at, at_ms(2_005));
        assert_eq!(reserve(&mut pace, 9_000, SECOND).at, at_ms(9_000));
    }

    /// Another process that has not read robots.txt yet asks for it by the rate that it knows.
    #[test]
    fn whoever_does_not_know_of_a_crawl_delay_keeps_it_all_the_same() {
        let crawl_delay = Rate::at_most_every(Duration::from_secs(10));
        let mut pace = Pace::default();
        reserve(&mut pace, 0, SECOND); // robots.txt
        pace.follow(at_ms(20), at_ms(20), crawl_delay);
        let slot = reserve(&mut pace, 30, SECOND);
        assert!(slot.at >= at_ms(10_020), "{slot:?}");
        assert_eq!(pace.spend(&slot, slot.at, SECOND), Ok(()));
        assert!(reserve(&mut pace, 30, crawl_delay).at >= slot.at + crawl_delay.interval);
    }

    /// The slot was taken when nobody knew, and its time comes when somebody does.
    #[test]
    fn a_slot_from_before_a_crawl_delay_was_known_is_spent_after_it() {
        let crawl_delay = Rate::at_most_every(Duration::from_secs(10));
        let mut pace = Pace::default();
        reserve(&mut pace, 0, SECOND); // robots.txt
        let slot = reserve(&mut pace, 10, SECOND);
        let page = pace.follow(at_ms(20), at_ms(20), crawl_delay);
        let later = pace.spend(&slot, slot.at, SECOND).unwrap_err();
        assert!(later.at >= page.at + crawl_delay.interval, "{later:?}");
        assert_eq!(pace.spend(&later, later.at, SECOND), Ok(()));
    }

    #[test]
    fn an_order_for_a_shorter_interval_counts_at_once() {
        let mut pace = Pace::default();
        reserve(&mut pace, 0, Rate::every(Duration::from_secs(100)));
        assert!(reserve(&mut pace, 10, SECOND).at <= at_ms(1_010));
    }

    #[test]
    fn a_longer_crawl_delay_counts_from_the_last_slot() {
        let mut pace = Pace::default();
        let first = reserve(&mut pace, 0, SECOND);
        let five = Rate::every(Duration::from_secs(5));
        assert_eq!(reserve(&mut pace, 1, five).at, first.use_by + five.interval);
    }

    #[test]
    fn a_page_that_follows_its_robots_txt_takes_one_slot_with_it() {
        let five = Rate::every(Duration::from_secs(5));
        let mut pace = Pace::default();
        reserve(&mut pace, 0, SECOND);
        assert_eq!(pace.follow(at_ms(10), at_ms(10), five).at, at_ms(10));
        assert_eq!(reserve(&mut pace, 20, five).at, at_ms(5_015));
    }

    #[test]
    fn a_slot_that_came_at_once_and_is_late_goes_now() {
        let mut pace = Pace::default();
        let late = reserve(&mut pace, 0, SECOND);
        assert_eq!(pace.spend(&late, at_ms(300), SECOND), Ok(()));
        assert_eq!(reserve(&mut pace, 300, SECOND).at, at_ms(1_300));
    }

    #[test]
    fn who_is_late_goes_at_once_and_the_next_waits_for_the_whole_interval() {
        let mut pace = Pace::default();
        reserve(&mut pace, 0, SECOND);
        let one = reserve(&mut pace, 1, SECOND);
        let other = reserve(&mut pace, 2, SECOND);
        assert_eq!(pace.spend(&one, at_ms(1_300), SECOND), Ok(()));
        let later = pace.spend(&other, at_ms(2_010), SECOND).unwrap_err();
        assert_eq!(later.at, at_ms(2_300));
        assert_eq!(pace.spend(&later, at_ms(2_300), SECOND), Ok(()));
    }

    #[test]
    fn after_an_assumed_head_a_whole_interval_passes_for_old_slots_and_new_ones() {
        let mut pace = Pace::default();
        let held = reserve(&mut pace, 0, SECOND);
        pace.assume_head(at_ms(400), SECOND);
        assert_eq!(pace.spend(&held, at_ms(500), SECOND).unwrap_err().at, at_ms(1_400));
        assert_eq!(reserve(&mut pace, 500, SECOND).at, at_ms(1_400));
        pace.assume_head(at_ms(100), SECOND);
        assert_eq!(reserve(&mut pace, 500, SECOND).at, at_ms(2_400));
    }

    #[test]
    fn the_next_head_keeps_its_distance_from_one_that_left_late() {
        let mut pace = Pace::default();
        let one = reserve(&mut pace, 0, SECOND);
        let other = reserve(&mut pace, 1, SECOND);
        assert_eq!(pace.spend(&one, at_ms(100), SECOND), Ok(()));
        pace.head_leaves_by(at_ms(130));
        assert_eq!(pace.spend(&other, at_ms(1_110), SECOND).unwrap_err().at, at_ms(1_130));
        assert_eq!(reserve(&mut pace, 1_120, SECOND).at, at_ms(2_005));
    }

    #[test]
    fn a_burst_is_spent_and_refills() {
        let rate = Rate::per_second(10.0, 20);
        let mut pace = Pace::default();
        let at_once = (0..40).take_while(|_| reserve(&mut pace, 0, rate).at == at_ms(0)).count();
        assert_eq!(at_once, 20);
        assert_eq!(reserve(&mut pace, 60_000, rate).at, at_ms(60_000));
    }

    /// Reserves and spends at once, as often as it may until then; returns when the heads were written.
    fn heads_until(pace: &mut Pace, from_ms: i64, until_ms: i64, rate: Rate) -> Vec<i64> {
        let mut heads = Vec::new();
        let mut now_ms = from_ms;
        loop {
            let slot = reserve(pace, now_ms, rate);
            now_ms = slot.at.since(at_ms(0)).as_millis() as i64;
            if now_ms > until_ms {
                return heads;
            }
            assert_eq!(pace.spend(&slot, slot.at, rate), Ok(()));
            heads.push(now_ms);
        }
    }

    #[test]
    fn the_slots_of_a_burst_can_be_spent_at_once_and_the_rest_keep_the_rate() {
        let rate = Rate::per_second(10.0, 20);
        let mut pace = Pace::default();
        let heads = heads_until(&mut pace, 0, 5_000, rate);
        assert_eq!(heads.iter().filter(|at| **at == 0).count(), 20);
        assert_eq!(heads.len(), 20 + 50);
        // After a rest of a second as much of the burst is there again.
        let heads = heads_until(&mut pace, 7_000, 7_000, rate);
        assert!((19..=20).contains(&heads.len()), "{}", heads.len());
    }

    #[test]
    fn a_crawl_delay_leaves_nothing_of_a_burst() {
        let crawl_delay = Duration::from_millis(50);
        let known = Rate { least_interval: crawl_delay, ..Rate::per_second(10.0, 20) };
        let heads = heads_until(&mut Pace::default(), 0, 1_000, known);
        assert!(heads.windows(2).all(|pair| pair[1] - pair[0] >= 100), "{heads:?}");
        // An asker that has not read robots.txt yet goes by what another one knew.
        let mut pace = Pace::default();
        pace.follow(at_ms(0), at_ms(0), Rate::at_most_every(Duration::from_secs(2)));
        assert!(reserve(&mut pace, 10, Rate::per_second(10.0, 20)).at >= at_ms(2_000));
    }

    #[test]
    fn a_longer_interval_gets_its_turn_beside_a_shorter_one() {
        let quick = Rate::per_second(10.0, 1);
        let mut pace = Pace::default();
        heads_until(&mut pace, 0, 1_000, quick);
        let slow = reserve(&mut pace, 1_050, SECOND);
        assert!(slow.at >= at_ms(2_000) && slow.at <= at_ms(2_200), "{slow:?}");
        let after = reserve(&mut pace, 1_060, quick);
        assert!(after.at > slow.at, "{after:?}");
        assert_eq!(pace.spend(&slow, slow.at + Duration::from_millis(3), SECOND), Ok(()));
    }

    /// When instances with these rates write their heads in a minute, each late by up to `late_ms` every time.
    fn shared_by(rates: &[Rate], seed: u64, late_ms: u64) -> Vec<(Time, usize)> {
        let mut chance = Chance::seeded(seed);
        let mut pace = Pace::default();
        let mut heads = Vec::new();
        let mut held: Vec<(Time, usize, Option<Slot>)> =
            (0..rates.len()).map(|who| (at_ms(0), who, None)).collect();
        loop {
            held.sort_by_key(|(wakes_at, who, _)| (*wakes_at, *who));
            let (now, who, slot) = held.remove(0);
            if now > at_ms(60_000) {
                return heads;
            }
            let next = match slot {
                None => Some(pace.reserve(now, now, rates[who])),
                Some(slot) => pace.spend(&slot, now, rates[who]).err(),
            };
            if next.is_none() {
                heads.push((now, who));
            }
            let late = Duration::from_micros(chance.next_u64() % (late_ms * 1_000));
            held.push((next.map_or(now, |slot| slot.at.max(now)) + late, who, next));
        }
    }

    /// Three processes have a retailer's pages, and the fourth has others'.
    #[test]
    fn where_rates_differ_the_shorter_interval_and_the_crawl_delay_are_kept_and_all_have_their_turns()
     {
        let half = Duration::from_millis(500);
        for crawl_delay in [Duration::ZERO, half] {
            let quick = match crawl_delay.is_zero() {
                true => Rate::per_second(10.0, 1),
                false => Rate::at_most_every(crawl_delay),
            };
            let others = Rate { least_interval: crawl_delay, ..SECOND };
            let rates = [quick, quick, quick, others];
            for seed in 0..300 {
                let heads = shared_by(&rates, seed, 1 + seed * 5);
                let closest = heads.windows(2).map(|pair| pair[1].0.since(pair[0].0)).min();
                assert!(closest >= Some(quick.interval), "seed {seed}: {closest:?} apart");
                let turns = |who: usize| heads.iter().filter(|(_, by)| *by == who).count();
                let turns: Vec<usize> = (0..4).map(turns).collect();
                assert!(turns.iter().all(|had| *had >= 10), "seed {seed}: {turns:?}");
            }
        }
    }

    #[test]
    fn no_pacing_never_waits() {
        let rate = Rate::per_second(0.0, 1);
        let mut pace = Pace::default();
        assert!((0..100).all(|_| reserve(&mut pace, 0, rate).at == at_ms(0)));
    }

    /// The simple model: every head that was written, and the rule that two are an interval apart.
    #[derive(Default)]
    struct Model {
        written: Vec<Time>,
    }

    impl Model {
        fn write(&mut self, at: Time, rate: Rate) -> Result<(), String> {
            let early = self
                .written
                .iter()
                .find(|&&before| at < before + rate.interval && before < at + rate.interval)
                .copied();
            self.written.push(at);
            match early {
                Some(before) => Err(format!("{at} is too close to {before}")),
                None => Ok(()),
            }
        }
    }

    /// Several instances reserve, come in time or late, spend and write, in random order.
    #[test]
    fn a_hundred_thousand_histories_keep_to_the_model() {
        for seed in 0..100_000u64 {
            run_history(seed).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
        }
    }

    fn run_history(seed: u64) -> Result<(), String> {
        let mut chance = Chance::seeded(seed);
        let interval_ms = 1 + chance.next_u64() % 2_000;
        let rate = Rate::every(Duration::from_millis(interval_ms));
        let mut pace = Pace::default();
        let mut model = Model::default();
        let mut held: [Option<Slot>; 3] = [None; 3];
        let mut now = at_ms(0);
        for _ in 0..24 {
            now = now + Duration::from_micros(chance.next_u64() % (interval_ms * 700));
            let who = (chance.next_u64() % 3) as usize;
            let Some(slot) = held[who] else {
                held[who] = Some(pace.reserve(now, now, rate));
                continue;
            };
            if now < slot.at {
                continue;
            }
            held[who] = pace.spend(&slot, now, rate).err();
            if held[who].is_none() {
                model.write(now, rate)?;
            }
        }
        Ok(())
    }

    /// Each of three askers is late by some milliseconds at every slot, and yet none is wasted.
    #[test]
    fn late_timers_cost_no_slots() {
        let rate = Rate::every(Duration::from_millis(50));
        let mut chance = Chance::seeded(3);
        let mut pace = Pace::default();
        let mut written = Vec::new();
        let mut held: Vec<(Time, Slot)> = (0..3)
            .map(|_| {
                let slot = reserve(&mut pace, 0, rate);
                (slot.at, slot)
            })
            .collect();
        while written.len() < 1_000 {
            held.sort_by_key(|(wakes_at, _)| *wakes_at);
            let (now, slot) = held.remove(0);
            let next = match pace.spend(&slot, now, rate) {
                Err(later) => later,
                Ok(()) => {
                    written.push(now);
                    pace.reserve(now, now, rate)
                }
            };
            let late = Duration::from_micros(chance.next_u64() % 4_000);
            held.push((next.at.max(now) + late, next));
        }
        let took_ms = written[999].since(written[0]).as_millis();
        assert!(took_ms < 999 * 55, "{took_ms} ms for 999 intervals of 50 ms");
    }
}
