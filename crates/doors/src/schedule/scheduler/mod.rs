//! Finds what is due and queues it. Time is passed in.

use std::sync::Arc;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::rounds::{Put, Round, Rounds};
use fetchwell_policy::time::Time;
use fetchwell_policy::units::quantity;
use futures::{StreamExt, TryStreamExt, stream};
use tracing::{info, warn};

use super::entry::{EntryKind, ScheduleEntry};
use super::sitemaps::{Ended, Sitemaps};

/// Rounds stored concurrently, so that a store in a file syncs once for all of them.
const MAX_PUTS_AT_ONCE: usize = 64;

pub(super) struct RoundScheduler {
    places: Vec<Place>,
    rounds: Arc<dyn Rounds>,
    sitemaps: Arc<Sitemaps>,
    max_waiting: u64,
    /// The list was too long at the last pass, and the warning was logged.
    is_too_deep: bool,
}

/// An entry, and the time at which to check it next.
struct Place {
    entry: ScheduleEntry,
    id: String,
    look_at: Time,
}

/// A round that is due; `place` is the index of its entry.
struct Due {
    place: usize,
    round: Round,
}

impl RoundScheduler {
    pub(super) fn new(
        entries: Vec<ScheduleEntry>,
        rounds: Arc<dyn Rounds>,
        sitemaps: Arc<Sitemaps>,
        max_waiting: u64,
    ) -> RoundScheduler {
        let places = entries.into_iter().map(|entry| {
            let id = entry.id();
            Place { entry, id, look_at: Time::EPOCH }
        });
        let places = places.collect();
        RoundScheduler { places, rounds, sitemaps, max_waiting, is_too_deep: false }
    }

    pub(super) async fn due_entries(
        &mut self,
        now: Time,
    ) -> Result<Vec<(&ScheduleEntry, Time)>, StoreError> {
        let due = self.due(now).await?;
        let entries =
            due.iter().filter_map(|due| Some((&self.places.get(due.place)?.entry, due.round.due)));
        Ok(entries.collect())
    }

    /// Queues the URLs that are due, and starts the sitemaps that are.
    pub(super) async fn pass(&mut self, now: Time) -> Result<(), StoreError> {
        self.note_ended().await?;
        let due = self.due(now).await?;
        if due.is_empty() || self.wait_for_the_list(due.len()).await? {
            return Ok(());
        }
        let (urls, sitemaps): (Vec<Due>, Vec<Due>) = due.into_iter().partition(|due| {
            self.places.get(due.place).is_some_and(|place| place.entry.kind == EntryKind::Url)
        });
        self.put_urls(&urls, now).await?;
        for Due { place, round } in sitemaps {
            if let Some(place) = self.places.get(place) {
                self.sitemaps.begin(round, &place.entry.url);
            }
        }
        Ok(())
    }

    /// Records the rounds of entries whose sitemaps are all finished.
    pub(super) async fn note_ended(&self) -> Result<(), StoreError> {
        for Ended { round, is_all_put } in self.sitemaps.ended() {
            if is_all_put {
                self.rounds.put(&round, &[], 0).await?;
            }
            self.sitemaps.let_go(&round.entry);
        }
        Ok(())
    }

    async fn due(&mut self, now: Time) -> Result<Vec<Due>, StoreError> {
        let is_worth_it =
            |place: &Place| place.look_at <= now && !self.sitemaps.is_under_way(&place.id);
        let looked_at: Vec<usize> = (0..)
            .zip(&self.places)
            .filter(|(_, place)| is_worth_it(place))
            .map(|(index, _)| index)
            .collect();
        let ids: Vec<&str> = looked_at
            .iter()
            .filter_map(|index| Some(self.places.get(*index)?.id.as_str()))
            .collect();
        let last = self.rounds.last_rounds(&ids).await?;
        let mut due = Vec::new();
        for (index, last) in looked_at.into_iter().zip(last) {
            let Some(place) = self.places.get_mut(index) else { continue };
            match place.entry.round(now) {
                Some(round) if last.is_none_or(|last| last < round) => {
                    let round = Round { entry: place.id.clone(), due: round };
                    due.push(Due { place: index, round });
                }
                _ => place.look_at = place.entry.next_round(now),
            }
        }
        Ok(due)
    }

    /// Whether the list is too long; if so, the due entries stay due for the next pass.
    async fn wait_for_the_list(&mut self, due: usize) -> Result<bool, StoreError> {
        let waiting = self.rounds.waiting().await?;
        let is_too_deep = self.max_waiting > 0 && waiting >= self.max_waiting;
        if is_too_deep && !self.is_too_deep {
            warn!(
                "not adding {}: the list has {}, and schedule.max_queue is {}",
                quantity(due, "due entry", "due entries"),
                quantity(waiting, "URL", "URLs"),
                self.max_waiting
            );
        }
        self.is_too_deep = is_too_deep;
        Ok(is_too_deep)
    }

    async fn put_urls(&mut self, due: &[Due], now: Time) -> Result<(), StoreError> {
        let places = &self.places;
        let rounds = &self.rounds;
        let max_waiting = self.max_waiting;
        let puts = due.iter().map(|Due { place, round }| async move {
            let url = places.get(*place).map(|place| place.entry.url.clone());
            let put = rounds.put(round, url.as_slice(), max_waiting).await?;
            Ok((*place, put))
        });
        // Collected before the stream is made: otherwise the compiler cannot prove that the borrows live long enough.
        let puts: Vec<_> = puts.collect();
        let put: Vec<(usize, Put)> =
            stream::iter(puts).buffered(MAX_PUTS_AT_ONCE).try_collect().await?;
        let mut done = 0_usize;
        for (place, put) in put {
            let Some(place) = self.places.get_mut(place) else { continue };
            match put {
                Put::TooDeep { .. } => continue,
                Put::Done => done += 1,
                Put::Before => {}
            }
            place.look_at = place.entry.next_round(now);
        }
        if done > 0 {
            info!("put {} on the list", quantity(done, "URL", "URLs"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
