//! Queues that take turns: one a group, so that no group holds up another.

use std::collections::VecDeque;

/// What waits, group by group. Most have one group, and many one entry, so neither takes more room
/// than it needs.
#[derive(Debug)]
pub(super) struct Turns<T> {
    /// The next one's turn first. None is empty.
    groups: Vec<(Option<Box<str>>, VecDeque<T>)>,
}

impl<T> Default for Turns<T> {
    fn default() -> Turns<T> {
        Turns { groups: Vec::new() }
    }
}

impl<T> Turns<T> {
    /// The next to go.
    pub(super) fn front(&self) -> Option<&T> {
        self.groups.first()?.1.front()
    }

    /// Takes the next one out; then it is the next group's turn.
    pub(super) fn pop(&mut self) -> Option<T> {
        let (_, queue) = self.groups.first_mut()?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.groups.remove(0);
        } else if self.groups.len() > 1 {
            self.groups.rotate_left(1);
        }
        next
    }

    /// Puts one in, last of its group.
    pub(super) fn push(&mut self, group: Option<&str>, entry: T) {
        self.queue_of(group).push_back(entry);
    }

    /// Puts one in, first of its group.
    pub(super) fn push_first(&mut self, group: Option<&str>, entry: T) {
        self.queue_of(group).push_front(entry);
    }

    /// Takes out all beyond `keep`, always the last of the longest group.
    pub(super) fn take_beyond(&mut self, keep: usize) -> Vec<T> {
        let mut taken = Vec::new();
        for _ in keep..self.len() {
            let longest = self.groups.iter_mut().max_by_key(|(_, queue)| queue.len());
            taken.extend(longest.and_then(|(_, queue)| queue.pop_back()));
            self.groups.retain(|(_, queue)| !queue.is_empty());
        }
        taken
    }

    /// Keeps those for which `wanted` is true.
    pub(super) fn retain(&mut self, wanted: impl Fn(&T) -> bool) {
        self.groups.retain_mut(|(_, queue)| {
            queue.retain(&wanted);
            !queue.is_empty()
        });
    }

    pub(super) fn len(&self) -> usize {
        self.groups.iter().map(|(_, queue)| queue.len()).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    fn queue_of(&mut self, group: Option<&str>) -> &mut VecDeque<T> {
        let found = self.groups.iter().position(|(name, _)| name.as_deref() == group);
        let place = found.unwrap_or_else(|| {
            self.groups.reserve_exact(1);
            self.groups.push((group.map(Into::into), VecDeque::with_capacity(1)));
            self.groups.len() - 1
        });
        &mut self.groups[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four() -> Turns<u32> {
        let mut turns = Turns::default();
        for (entry, group) in [(1, "x"), (2, "x"), (3, "x"), (4, "y")] {
            turns.push(Some(group), entry);
        }
        turns
    }

    #[test]
    fn groups_take_turns() {
        let mut turns = four();
        turns.push_first(Some("x"), 0);
        assert_eq!(turns.front(), Some(&0));
        let order: Vec<u32> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(order, [0, 4, 1, 2, 3]);
        assert!(turns.is_empty());
    }

    #[test]
    fn what_is_too_much_comes_from_the_end_of_the_longest_group() {
        let mut turns = four();
        assert_eq!((turns.take_beyond(2), turns.len()), (vec![3, 2], 2));
        assert_eq!((turns.take_beyond(2), turns.len()), (vec![], 2));
        turns.retain(|entry| *entry != 1);
        assert_eq!((turns.take_beyond(0), turns.is_empty()), (vec![4], true));
    }
}
