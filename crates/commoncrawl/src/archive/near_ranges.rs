//! Joins ranges of one file that are close together into one request.
//!
//! A request costs more than the bytes of a small gap. If most of a file is wanted, the result is a series of long
//! ranges, so reading a whole file needs no separate code path. Such ranges can be read concurrently, a failed one is
//! requested again by itself, and each needs a bounded amount of memory.

use super::byte_range::ByteRange;

/// Which ranges of a file are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinRule {
    /// The largest gap between two ranges that is read and discarded.
    pub max_gap_bytes: u64,
    /// The longest range that results from joining.
    pub max_range_bytes: u64,
}

/// A range to request, and the given ranges in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) range: ByteRange,
    /// The indexes of the given ranges in it.
    pub(crate) parts: Vec<usize>,
}

/// Joins ranges of one file, given in any order. Each lies in exactly one of the results; a range longer than the
/// maximum stays alone.
pub(crate) fn join(stretches: &[ByteRange], rule: JoinRule) -> Vec<Joined> {
    let mut places: Vec<usize> = (0..stretches.len()).collect();
    places.sort_by_key(|place| (stretches[*place].offset, stretches[*place].end()));
    let mut ranges: Vec<Joined> = Vec::new();
    for place in places {
        let stretch = stretches[place];
        match ranges.last_mut() {
            Some(last) if may_join(last.range, stretch, rule) => {
                last.range = hull(last.range, stretch);
                last.parts.push(place);
            }
            _ => ranges.push(Joined { range: stretch, parts: vec![place] }),
        }
    }
    ranges
}

fn may_join(range: ByteRange, next: ByteRange, rule: JoinRule) -> bool {
    let gap_bytes = next.offset.saturating_sub(range.end());
    let is_within = hull(range, next).length <= rule.max_range_bytes;
    gap_bytes <= rule.max_gap_bytes && (is_within || next.end() <= range.end())
}

/// From the start of `range`, which begins first, to the end of both.
fn hull(range: ByteRange, next: ByteRange) -> ByteRange {
    let end = range.end().max(next.end());
    ByteRange { offset: range.offset, length: end.saturating_sub(range.offset) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stretch(offset: u64, length: u64) -> ByteRange {
        ByteRange { offset, length }
    }

    const RULE: JoinRule = JoinRule { max_gap_bytes: 10, max_range_bytes: 100 };

    #[test]
    fn near_ones_are_joined_and_far_ones_are_not() {
        for (stretches, want) in [
            (vec![], vec![]),
            (vec![(0, 5), (5, 5)], vec![(0, 10)]),
            (vec![(0, 5), (15, 5)], vec![(0, 20)]),
            (vec![(0, 5), (16, 5)], vec![(0, 5), (16, 5)]),
            (vec![(16, 5), (0, 5)], vec![(0, 5), (16, 5)]),
            (vec![(0, 60), (60, 40)], vec![(0, 100)]),
            (vec![(0, 60), (60, 41)], vec![(0, 60), (60, 41)]),
            (vec![(0, 500), (10, 5), (500, 1)], vec![(0, 500), (500, 1)]),
            (vec![(u64::MAX - 5, 5), (0, 1)], vec![(0, 1), (u64::MAX - 5, 5)]),
        ] {
            let stretches: Vec<_> = stretches.into_iter().map(|(o, l)| stretch(o, l)).collect();
            let ranges: Vec<_> = join(&stretches, RULE).into_iter().map(|one| one.range).collect();
            let want: Vec<_> = want.into_iter().map(|(o, l)| stretch(o, l)).collect();
            assert_eq!(ranges, want, "{stretches:?}");
        }
    }

    proptest! {
        #[test]
        fn every_stretch_lies_in_one_range_and_no_bound_is_passed(
            stretches in prop::collection::vec((0u64..5_000, 1u64..300), 0..60),
            max_gap_bytes in 0u64..200,
            max_range_bytes in 1u64..1_000,
        ) {
            let stretches: Vec<_> = stretches.into_iter().map(|(o, l)| stretch(o, l)).collect();
            let rule = JoinRule { max_gap_bytes, max_range_bytes };
            let ranges = join(&stretches, rule);
            let mut parts: Vec<usize> = ranges.iter().flat_map(|one| one.parts.clone()).collect();
            parts.sort_unstable();
            prop_assert_eq!(parts, (0..stretches.len()).collect::<Vec<_>>());
            for Joined { range, parts } in &ranges {
                let mut lying: Vec<ByteRange> = parts.iter().map(|part| stretches[*part]).collect();
                lying.sort_by_key(|one| one.offset);
                prop_assert_eq!(lying[0].offset, range.offset);
                prop_assert_eq!(lying.iter().map(|one| one.end()).max(), Some(range.end()));
                let longest = lying.iter().map(|one| one.length).max().unwrap();
                prop_assert!(range.length <= max_range_bytes.max(longest));
                let mut end = range.offset;
                for one in lying {
                    prop_assert!(one.offset.saturating_sub(end) <= max_gap_bytes);
                    end = end.max(one.end());
                }
            }
            let in_order = ranges.windows(2).all(|two| two[0].range.offset <= two[1].range.offset);
            prop_assert!(in_order);
        }
    }
}
