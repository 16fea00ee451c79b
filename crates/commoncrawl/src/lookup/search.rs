//! Finds where keys begin in `cluster.idx`: by binary search over ranges of the file, then line by line. Pure.

use std::mem::take;

use fetchwell_archive::cluster_idx::{self, ClusterEntry};

use super::pattern::Keys;
use crate::archive::byte_range::ByteRange;

/// Bytes read to find one line in the middle of the file.
const PROBE_BYTES: u64 = 8 << 10;
/// Bytes read at once when scanning line by line.
const SCAN_BYTES: u64 = 128 << 10;
/// No line is this long; anything longer is skipped.
const MAX_REST_BYTES: usize = 256 << 10;

/// A search in progress. Request [`Search::wanted`], then pass the bytes to [`Search::take`].
#[derive(Clone)]
pub(super) struct Search {
    keys: Keys,
    stage: Stage,
    /// The start of the file, or of a line that sorts before all matches.
    low: u64,
    /// The binary search does not look beyond this offset.
    high: u64,
    /// The beginning of a line whose end has not been read yet.
    rest: Vec<u8>,
    /// The last block that begins before the first match: the match may lie at its end.
    before: Option<ClusterEntry>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The file's length is unknown.
    Length,
    Halves {
        middle: u64,
    },
    Lines {
        at: u64,
    },
    Over,
}

impl Search {
    pub(super) fn new(keys: Keys) -> Search {
        let rest = Vec::new();
        let before = None;
        Search { keys, stage: Stage::Length, low: 0, high: 0, rest, before }
    }

    /// The range to read next, up to the end of the file; `None` when done.
    pub(super) fn wanted(&self) -> Option<ByteRange> {
        let (offset, length) = match self.stage {
            Stage::Length => (0, PROBE_BYTES),
            Stage::Halves { middle } => (middle, PROBE_BYTES),
            Stage::Lines { at } => (at, SCAN_BYTES),
            Stage::Over => return None,
        };
        Some(ByteRange { offset, length })
    }

    /// Takes the requested bytes, and returns the blocks that may contain matches, in order.
    pub(super) fn take(&mut self, bytes: &[u8], file_bytes: u64) -> Vec<ClusterEntry> {
        match self.stage {
            Stage::Length => {
                self.high = file_bytes;
                self.narrow();
                Vec::new()
            }
            Stage::Halves { middle } => {
                self.halve(middle, bytes);
                Vec::new()
            }
            Stage::Lines { at } => {
                let end = at + bytes.len() as u64;
                self.stage = Stage::Lines { at: end };
                let found = self.scan(bytes, end >= file_bytes);
                if end >= file_bytes {
                    self.stage = Stage::Over;
                }
                found
            }
            Stage::Over => Vec::new(),
        }
    }

    fn narrow(&mut self) {
        let width = self.high.saturating_sub(self.low);
        self.stage = if width <= SCAN_BYTES {
            Stage::Lines { at: self.low }
        } else {
            Stage::Halves { middle: self.low + width / 2 }
        };
    }

    /// The first line found in the middle decides which half to continue with. If there is none, it is the first half:
    /// what follows is read line by line in the end anyway.
    fn halve(&mut self, middle: u64, bytes: &[u8]) {
        match first_line(bytes) {
            Some((at, entry)) if entry.surt < self.keys.lower && middle + at < self.high => {
                self.low = middle + at;
            }
            _ => self.high = middle,
        }
        self.narrow();
    }

    fn scan(&mut self, bytes: &[u8], is_end: bool) -> Vec<ClusterEntry> {
        let mut text = take(&mut self.rest);
        text.extend_from_slice(bytes);
        let whole = match text.iter().rposition(|byte| *byte == b'\n') {
            _ if is_end => text.len(),
            Some(last) => last + 1,
            None => 0,
        };
        self.rest = text.split_off(whole);
        if self.rest.len() > MAX_REST_BYTES {
            self.rest.clear();
        }
        let mut found = Vec::new();
        for entry in text.split(|byte| *byte == b'\n').filter_map(entry) {
            if entry.surt < self.keys.lower {
                self.before = Some(entry);
                continue;
            }
            found.extend(self.before.take());
            if entry.surt >= self.keys.upper {
                self.stage = Stage::Over;
                return found;
            }
            found.push(entry);
        }
        if is_end {
            found.extend(self.before.take());
        }
        found
    }
}

fn entry(line: &[u8]) -> Option<ClusterEntry> {
    cluster_idx::parse_line(str::from_utf8(line).ok()?).ok()
}

/// The first complete, valid line, and its offset.
fn first_line(bytes: &[u8]) -> Option<(u64, ClusterEntry)> {
    let mut at = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    loop {
        let line = bytes.get(at..)?;
        let end = line.iter().position(|byte| *byte == b'\n')?;
        if let Some(entry) = entry(&line[..end]) {
            return Some((at as u64, entry));
        }
        at += end + 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Searches a file, and counts what was read.
    fn search(file: &[u8], pattern: &str) -> (Vec<ClusterEntry>, usize) {
        let mut search = Search::new(Keys::of(pattern).unwrap());
        let mut found = Vec::new();
        let mut requests = 0;
        while let Some(ByteRange { offset, length }) = search.wanted() {
            requests += 1;
            assert!(requests < 10_000, "it never ends");
            let Some(from) = file.get(usize::try_from(offset).unwrap()..) else { break };
            let part = &from[..from.len().min(usize::try_from(length).unwrap())];
            found.extend(search.take(part, file.len() as u64));
        }
        (found, requests)
    }

    fn index(hosts: impl Iterator<Item = u32>, noise: &str) -> Vec<u8> {
        let mut file = String::new();
        for (number, host) in (1..).zip(hosts) {
            let line =
                format!("com,h{host:07})/ 20240712000102\tcdx-00000.gz\t{number}\t9\t{number}\n");
            file.push_str(&line);
            if number % 7 == 0 {
                file.push_str(noise);
            }
        }
        file.into_bytes()
    }

    #[test]
    fn a_large_index_is_searched_with_few_requests() {
        let file = index((0..200_000).map(|host| host * 2), "");
        for host in [0_u32, 1, 77_777, 200_000, 399_998, 399_999, 5_000_000] {
            let (found, requests) = search(&file, &format!("h{host:07}.com"));
            assert!(requests < 20, "{requests} requests for {host}");
            let numbers: Vec<u64> = found.iter().map(|entry| entry.line).collect();
            // The block that begins with it or, where it is in the middle of one, the one before; the
            // one before may hold captures of it in any case.
            let first = u64::from(host / 2 + host % 2).clamp(1, 200_000);
            assert_eq!(numbers.first(), Some(&first), "{host}");
            assert!(numbers.len() <= 2, "{numbers:?}");
        }
    }

    proptest! {
        #[test]
        fn all_blocks_that_may_hold_it_are_found(
            mut hosts in prop::collection::vec(0u32..4_000, 1..6_000),
            host in 0u32..4_000,
            noise in prop::sample::select(vec!["", "garbage\n", "\n\n", "x\ty\n"]),
        ) {
            hosts.sort_unstable();
            let file = index(hosts.iter().copied(), noise);
            let (found, _) = search(&file, &format!("h{host:07}.com/*"));
            let numbers: Vec<u64> = found.iter().map(|entry| entry.line).collect();
            let begin = hosts.partition_point(|other| *other < host);
            let end = hosts.partition_point(|other| *other <= host);
            let want: Vec<u64> = (begin.max(1)..=end).map(|number| number as u64).collect();
            prop_assert_eq!(numbers, want);
        }
    }

    proptest! {
        // Each is hundreds of kilobytes of bytes by chance.
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_file_comes_to_an_end(file in prop::collection::vec(any::<u8>(), 0..400_000)) {
            search(&file, "*.com");
        }
    }
}
