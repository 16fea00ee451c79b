//! Stretches of one file that lie near each other, asked for as one.
//!
//! A request costs more than the bytes of a small gap. Where most of a file is wanted this comes to a row
//! of long ranges, one after the other: there is no second way to read a whole file. A row can be read by
//! several at once, one that fails is asked for alone, and each has a bound in memory.

use super::byte_range::ByteRange;

/// Which stretches of a file may be asked for as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinRule {
    /// The most bytes between two stretches that are read for nothing.
    pub max_gap_bytes: u64,
    /// The longest range that is made by joining.
    pub max_range_bytes: u64,
}

/// A range to ask for, and what lies in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) range: ByteRange,
    /// Which of the stretches lie in it, by their places in what was given.
    pub(crate) parts: Vec<usize>,
}

/// Joins stretches of one file, in whatever order they come. Each lies in exactly one of the ranges, and
/// one that is longer than the bound stands alone.
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

/// From the first byte of the one, which begins first, to the last of both.
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
