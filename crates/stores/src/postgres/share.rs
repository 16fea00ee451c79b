//! Divides what is handed out among lanes.

/// How many jobs each lane gives: they take turns, one job each, starting with the first lane, until `most` are given
/// or no lane has any left.
pub(super) fn share_out(available: &[usize], most: usize) -> Vec<usize> {
    let mut given = vec![0; available.len()];
    let mut left = most;
    let mut open: Vec<usize> = (0..available.len()).filter(|lane| available[*lane] > 0).collect();
    while left > 0 && !open.is_empty() {
        // Whole rounds are done at once; the last round may be partial.
        let least = open.iter().map(|lane| available[*lane] - given[*lane]).min().unwrap_or(0);
        let rounds = least.min(left / open.len());
        if rounds == 0 {
            open.truncate(left);
        }
        for lane in &open {
            given[*lane] += rounds.max(1);
        }
        left -= open.len() * rounds.max(1);
        open.retain(|lane| available[*lane] > given[*lane]);
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_share_alike_and_what_one_lacks_goes_to_the_others() {
        for (available, most, given) in [
            (&[9, 9, 9][..], 10, &[4, 3, 3][..]),
            (&[9, 1, 9], 10, &[5, 1, 4]),
            (&[2, 0, 3], 10, &[2, 0, 3]),
            (&[5, 5, 5], 2, &[1, 1, 0]),
            (&[0, 0], 2, &[0, 0]),
            (&[], 2, &[]),
            (&[1_000_000], 7, &[7]),
        ] {
            assert_eq!(share_out(available, most), given, "{available:?} for {most}");
        }
    }
}
