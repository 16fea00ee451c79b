//! The pace of groups, as far as this process knows it.
//!
//! The politeness store decides; it is asked when a head is about to be written. This module tracks what this process
//! has used and what the store answered, so that a group that must wait occupies no connection and does not delay other
//! groups of its sites.

use std::collections::BTreeMap;

use fetchwell_policy::pace::{Pace, Rate};
use fetchwell_policy::site::HORIZON;
use fetchwell_policy::time::Time;

use crate::gate::Gate;
use crate::ports::job::Lane;

/// All groups with leases in memory, or with a pace to remember.
#[derive(Default)]
pub(super) struct Groups {
    known: BTreeMap<String, Standing>,
}

#[derive(Default)]
struct Standing {
    /// The turns that this process has used.
    pace: Pace,
    /// The store's answer: nothing may be sent before this.
    not_before: Time,
    /// The number of leases in memory.
    leases: usize,
}

impl Standing {
    fn has_enough(&self, rate: Option<Rate>) -> bool {
        rate.is_some_and(|rate| self.leases >= enough_for(rate))
    }
}

impl Groups {
    /// Whether a lane may send now. The group `turn_of` has already taken its turn.
    pub(super) fn may_go(
        &self,
        gate: &Gate,
        turn_of: Option<String>,
        now: Time,
    ) -> impl Fn(&Lane) -> bool {
        move |lane| match &lane.group {
            None => true,
            Some(group) => {
                turn_of.as_ref() == Some(group) || self.opens_at(group, gate, now) <= now
            }
        }
    }

    /// When the next request of a group may be sent.
    pub(super) fn opens_at(&self, group: &str, gate: &Gate, now: Time) -> Time {
        match (self.known.get(group), gate.group_rate(group)) {
            (Some(known), Some(rate)) => known.pace.earliest(known.not_before.max(now), rate),
            _ => now,
        }
    }

    /// Uses a turn of a group, if the request belongs to one.
    pub(super) fn take_turn(&mut self, group: Option<&str>, gate: &Gate, now: Time) {
        let Some(group) = group else { return };
        if let (Some(known), Some(rate)) = (self.known.get_mut(group), gate.group_rate(group)) {
            known.pace.reserve(known.not_before.max(now), now, rate);
        }
    }

    /// The store answered that nothing of a group may be sent before `not_before`.
    pub(super) fn heard(&mut self, group: &str, not_before: Time) {
        if let Some(known) = self.known.get_mut(group) {
            known.not_before = known.not_before.max(not_before);
        }
    }

    /// A lease of this lane entered the window.
    pub(super) fn came(&mut self, lane: &Lane) {
        let Some(group) = &lane.group else { return };
        match self.known.get_mut(group) {
            Some(known) => known.leases += 1,
            None => {
                self.known.insert(group.clone(), Standing { leases: 1, ..Standing::default() });
            }
        }
    }

    /// A lease of this lane left the window.
    pub(super) fn went(&mut self, lane: &Lane) {
        if let Some(known) = lane.group.as_ref().and_then(|group| self.known.get_mut(group)) {
            known.leases = known.leases.saturating_sub(1);
        }
    }

    /// All leases left the window.
    pub(super) fn all_went(&mut self) {
        for known in self.known.values_mut() {
            known.leases = 0;
        }
    }

    /// Whether as many leases of a lane's group are in memory as its pace allows within the horizon.
    pub(super) fn has_enough(&self, lane: &Lane, gate: &Gate) -> bool {
        let Some(group) = &lane.group else { return false };
        self.known.get(group).is_some_and(|known| known.has_enough(gate.group_rate(group)))
    }

    /// The groups with enough leases in memory.
    pub(super) fn resting(&self, gate: &Gate) -> Vec<String> {
        let has_enough =
            |(group, known): &(&String, &Standing)| known.has_enough(gate.group_rate(group));
        self.known.iter().filter(has_enough).map(|(group, _)| group.clone()).collect()
    }

    /// Forgets groups without leases whose pace has nothing to remember.
    pub(super) fn sweep(&mut self, now: Time) {
        self.known.retain(|_, known| {
            known.leases > 0 || known.pace.used_until().max(known.not_before) > now
        });
    }
}

/// How many requests of a group can be sent within the horizon.
pub(super) fn enough_for(rate: Rate) -> usize {
    let within = HORIZON.as_micros() / rate.interval.as_micros().max(1);
    usize::try_from(within).unwrap_or(usize::MAX).saturating_add(rate.burst as usize)
}
