//! Queues that take turns, one per lane, so that no lane delays another.

use std::collections::VecDeque;

use crate::ports::job::Lane;

/// Entries by lane. Most instances have one lane, and many have one entry, so neither reserves more memory than it
/// needs.
#[derive(Debug)]
pub(super) struct Turns<T> {
    /// In the order of their turns. No queue is empty.
    lanes: Vec<(Name, VecDeque<T>)>,
}

/// `None` for the default lane, which most jobs have.
type Name = Option<Box<Lane>>;

impl<T> Default for Turns<T> {
    fn default() -> Turns<T> {
        Turns { lanes: Vec::new() }
    }
}

impl<T> Turns<T> {
    /// The next entry of the lanes that may send.
    pub(super) fn front(&self, may_go: impl Fn(&Lane) -> bool) -> Option<&T> {
        self.lanes[self.place_of_next(may_go)?].1.front()
    }

    /// Takes out the next entry of the lanes that may send; then it is another lane's turn.
    pub(super) fn pop(&mut self, may_go: impl Fn(&Lane) -> bool) -> Option<T> {
        let place = self.place_of_next(may_go)?;
        let queue = &mut self.lanes[place].1;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.lanes.remove(place);
        } else if self.lanes.len() > 1 {
            let lane = self.lanes.remove(place);
            self.lanes.push(lane);
        }
        next
    }

    /// Adds an entry at the end of its lane.
    pub(super) fn push(&mut self, lane: &Lane, entry: T) {
        self.queue_of(lane).push_back(entry);
    }

    /// Adds an entry at the front of its lane.
    pub(super) fn push_first(&mut self, lane: &Lane, entry: T) {
        self.queue_of(lane).push_front(entry);
    }

    /// Takes out all but `keep` entries, always the last one of the longest lane.
    pub(super) fn take_beyond(&mut self, keep: usize) -> Vec<T> {
        let mut taken = Vec::new();
        for _ in keep..self.len() {
            let longest = self.lanes.iter_mut().max_by_key(|(_, queue)| queue.len());
            taken.extend(longest.and_then(|(_, queue)| queue.pop_back()));
            self.lanes.retain(|(_, queue)| !queue.is_empty());
        }
        taken
    }

    /// Takes out the first entry for which `wanted` is true, whichever lane's turn it is.
    pub(super) fn take_first(&mut self, wanted: impl Fn(&T) -> bool) -> Option<T> {
        let taken = self.lanes.iter_mut().find_map(|(_, queue)| {
            let place = queue.iter().position(&wanted)?;
            queue.remove(place)
        });
        self.lanes.retain(|(_, queue)| !queue.is_empty());
        taken
    }

    /// The lanes with entries, except the default lane.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter().filter_map(|(name, _)| name.as_deref())
    }

    pub(super) fn len(&self) -> usize {
        self.lanes.iter().map(|(_, queue)| queue.len()).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    fn place_of_next(&self, may_go: impl Fn(&Lane) -> bool) -> Option<usize> {
        self.lanes.iter().position(|(name, _)| name.as_deref().is_none_or(&may_go))
    }

    fn queue_of(&mut self, lane: &Lane) -> &mut VecDeque<T> {
        let is_it = |name: &Name| match name {
            Some(name) => **name == *lane,
            None => *lane == Lane::default(),
        };
        let found = self.lanes.iter().position(|(name, _)| is_it(name));
        let place = found.unwrap_or_else(|| {
            self.lanes.reserve_exact(1);
            let name = (*lane != Lane::default()).then(|| Box::new(lane.clone()));
            self.lanes.push((name, VecDeque::with_capacity(1)));
            self.lanes.len() - 1
        });
        &mut self.lanes[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(group: &str) -> Lane {
        Lane { group: Some(group.to_owned()), party: None }
    }

    fn four() -> Turns<u32> {
        let mut turns = Turns::default();
        for (entry, group) in [(1, "x"), (2, "x"), (3, "x"), (4, "y")] {
            turns.push(&lane(group), entry);
        }
        turns
    }

    #[test]
    fn lanes_take_turns() {
        let mut turns = four();
        turns.push_first(&lane("x"), 0);
        turns.push(&Lane::default(), 9);
        assert_eq!(turns.front(|_| true), Some(&0));
        let order: Vec<u32> = std::iter::from_fn(|| turns.pop(|_| true)).collect();
        assert_eq!(order, [0, 4, 9, 1, 2, 3]);
        assert!(turns.is_empty());
    }

    #[test]
    fn a_lane_that_may_not_go_holds_up_no_other() {
        let mut turns = four();
        let not_x = |lane: &Lane| lane.group.as_deref() != Some("x");
        assert_eq!(turns.front(not_x), Some(&4));
        assert_eq!((turns.pop(not_x), turns.pop(not_x), turns.len()), (Some(4), None, 3));
        assert_eq!(turns.pop(|_| true), Some(1));
    }

    #[test]
    fn what_is_too_much_comes_from_the_end_of_the_longest_lane() {
        let mut turns = four();
        assert_eq!((turns.take_beyond(2), turns.len()), (vec![3, 2], 2));
        assert_eq!((turns.take_beyond(2), turns.len()), (vec![], 2));
        assert_eq!(
            (turns.take_first(|entry| *entry == 1), turns.take_first(|_| false)),
            (Some(1), None)
        );
        assert_eq!((turns.take_beyond(0), turns.is_empty()), (vec![4], true));
    }
}
