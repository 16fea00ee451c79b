//! Selects the wanted lines of a block.

use memchr::memchr;

use super::filter::{Criterion, IndexFilter};
use super::line::CdxLine;
use crate::line::{LineFault, MAX_LINE_BYTES};

/// How many malformed lines of a block are kept; all are counted.
const MALFORMED_KEPT: usize = 16;

/// The maximum length of a line, including CR and LF.
const MAX_LINE_WITH_END_BYTES: usize = MAX_LINE_BYTES + 2;

/// The result for the lines of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sifted {
    /// The number of all lines.
    pub lines: u64,
    /// The number of wanted lines.
    pub wanted: u64,
    /// The number of unwanted lines by the criterion that they fail, in the order of [`Criterion::ALL`].
    pub rejected: [u64; Criterion::ALL.len()],
    /// The number of malformed lines. A line that is rejected without parsing is never counted here.
    pub malformed: u64,
    /// The first of those: a block may consist of a million malformed lines.
    pub first_malformed: Vec<MalformedLine>,
}

/// A malformed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedLine {
    /// The number of the line in the block, from 1.
    pub number: u64,
    pub fault: LineFault,
}

/// Passes the wanted lines of a block to `take`.
pub fn sift(block: &[u8], filter: &IndexFilter, mut take: impl FnMut(&CdxLine<'_>)) -> Sifted {
    let mut sieve = Sieve::new(filter);
    sieve.pour(block, &mut take);
    sieve.end(take)
}

/// The same for a block that arrives in pieces.
pub struct Sieve<'f> {
    filter: &'f IndexFilter,
    /// An incomplete line, up to the maximum length…
    begun: Vec<u8>,
    /// …and its length so far.
    begun_bytes: usize,
    sifted: Sifted,
}

impl<'f> Sieve<'f> {
    #[must_use]
    pub fn new(filter: &'f IndexFilter) -> Sieve<'f> {
        Sieve { filter, begun: Vec::new(), begun_bytes: 0, sifted: Sifted::default() }
    }

    /// Passes the wanted lines that end in the next piece to `take`.
    pub fn pour(&mut self, piece: &[u8], mut take: impl FnMut(&CdxLine<'_>)) {
        let mut rest = piece;
        while let Some(end) = memchr(b'\n', rest) {
            let (line, behind) = rest.split_at(end + 1);
            rest = behind;
            if self.begun_bytes == 0 {
                self.line(line, line.len(), &mut take);
            } else {
                self.begin(line);
                self.end_line(&mut take);
            }
        }
        self.begin(rest);
    }

    /// Ends the block, and with it the incomplete line.
    pub fn end(mut self, take: impl FnMut(&CdxLine<'_>)) -> Sifted {
        if self.begun_bytes > 0 {
            self.end_line(take);
        }
        self.sifted
    }

    fn begin(&mut self, part: &[u8]) {
        self.begun_bytes += part.len();
        let room = (MAX_LINE_WITH_END_BYTES + 1).saturating_sub(self.begun.len());
        self.begun.extend_from_slice(part.get(..room).unwrap_or(part));
    }

    fn end_line(&mut self, take: impl FnMut(&CdxLine<'_>)) {
        let mut line = std::mem::take(&mut self.begun);
        let bytes = std::mem::take(&mut self.begun_bytes);
        self.line(&line, bytes, take);
        line.clear();
        self.begun = line;
    }

    fn line(&mut self, line: &[u8], bytes: usize, mut take: impl FnMut(&CdxLine<'_>)) {
        self.sifted.lines += 1;
        if bytes > MAX_LINE_WITH_END_BYTES {
            return self.sifted.note_malformed(LineFault::TooLong { bytes });
        }
        if let Some(criterion) = self.filter.rejection_unread(line) {
            return self.sifted.reject(criterion);
        }
        match CdxLine::parse(line) {
            Ok(line) => match self.filter.rejection(&line) {
                Some(criterion) => self.sifted.reject(criterion),
                None => {
                    self.sifted.wanted += 1;
                    take(&line);
                }
            },
            Err(fault) => self.sifted.note_malformed(fault),
        }
    }
}

impl Sifted {
    fn reject(&mut self, criterion: Criterion) {
        self.rejected[criterion as usize] += 1;
    }

    fn note_malformed(&mut self, fault: LineFault) {
        self.malformed += 1;
        if self.first_malformed.len() < MALFORMED_KEPT {
            self.first_malformed.push(MalformedLine { number: self.lines, fault });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_even_look_like_a_line_is_malformed_and_not_filtered() {
        let good = r#"com,x)/ 20240712000102 {"url": "http://x.test/", "status": "200"}"#;
        let unwanted = r#"com,x)/ 20240712000102 {"url": "http://x.test/", "status": "404"}"#;
        let broken = [
            "com,x)/ 20240712000102 {not json",
            r#"com,x)/ 20240712000102 {"url": "http://x.t"#,
            r#"com,x)/ 2024 {"status": "404"}"#,
            r#"com,x)/ {"status": "404"}"#,
            r#" 20240712000102 {"status": "404"}"#,
        ];
        let block = [&[good, unwanted][..], &broken, &[good]].concat().join("\n");
        let filter = IndexFilter { status: Some(200), ..IndexFilter::default() };
        let sifted = sift(block.as_bytes(), &filter, |_| ());
        assert_eq!((sifted.lines, sifted.wanted, sifted.malformed), (8, 2, 5));
        assert_eq!(sifted.rejected, [1, 0, 0, 0, 0]);
        let numbers: Vec<u64> = sifted.first_malformed.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [3, 4, 5, 6, 7]);
    }

    #[test]
    fn however_a_block_is_cut_into_pieces_its_lines_are_the_same() {
        let long = "x".repeat(MAX_LINE_WITH_END_BYTES);
        let line = |n: u32| format!("a,{n} 20240712000102 {{\"status\": \"{}\"}}", 200 + n % 2);
        let block = format!("{}\r\n\n{long}\n{}\nbroken\n{}", line(0), line(1), line(2));
        let filter = IndexFilter { status: Some(200), ..IndexFilter::default() };
        let json = |line: &CdxLine<'_>| {
            let mut json = Vec::new();
            line.write_json(&mut json);
            json
        };
        let mut want = Vec::new();
        let want_sifted = sift(block.as_bytes(), &filter, |line| want.push(json(line)));
        assert_eq!((want.len(), want_sifted.lines, want_sifted.malformed), (2, 6, 3));
        for piece_bytes in [1, 2, 3, 7, 40, 1_000, 70_000, block.len()] {
            let mut sieve = Sieve::new(&filter);
            let mut lines = Vec::new();
            for piece in block.as_bytes().chunks(piece_bytes) {
                sieve.pour(piece, |line| lines.push(json(line)));
                assert!(sieve.begun.len() <= MAX_LINE_WITH_END_BYTES + 1);
            }
            let sifted = sieve.end(|line| lines.push(json(line)));
            assert_eq!((&lines, &sifted), (&want, &want_sifted), "{piece_bytes}");
        }
    }
}
