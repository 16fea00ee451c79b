//! From a block of lines to the messages that carry the wanted ones.

use memchr::memchr;

use super::filter::{Criterion, Filter};
use super::line::Line;
use crate::line::LineFault;

/// Of the lines of a block that can't be read so many are kept; all are counted.
const MALFORMED_KEPT: usize = 16;

/// What became of the lines of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sifted {
    /// All lines.
    pub lines: u64,
    /// Wanted ones.
    pub wanted: u64,
    /// Lines that are not wanted, by what they do not meet, in the order of [`Criterion::ALL`].
    pub rejected: [u64; Criterion::ALL.len()],
    /// Lines that can't be read. What is not wanted is not read, so it is never among them.
    pub malformed: u64,
    /// The first of those: a block may have nothing else in it, a million times.
    pub first_malformed: Vec<MalformedLine>,
}

/// A line that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedLine {
    /// Which line of the block it is, from 1.
    pub number: u64,
    /// What is wrong with it.
    pub fault: LineFault,
}

/// Gives the wanted lines of a block, one by one.
pub fn sift(block: &[u8], filter: &Filter, mut take: impl FnMut(&Line<'_>)) -> Sifted {
    let mut sifted = Sifted::default();
    let mut rest = block;
    while !rest.is_empty() {
        let end = memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let (line, behind) = rest.split_at(end);
        rest = behind;
        sifted.lines += 1;
        if let Some(criterion) = filter.rejection_unread(line) {
            sifted.reject(criterion);
            continue;
        }
        match Line::parse(line) {
            Ok(line) => match filter.rejection(&line) {
                Some(criterion) => sifted.reject(criterion),
                None => {
                    sifted.wanted += 1;
                    take(&line);
                }
            },
            Err(fault) => sifted.note_malformed(fault),
        }
    }
    sifted
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

/// The wanted lines of a block as JSON arrays of `batch_size`, each a message. The same block gives the
/// same batches.
#[must_use]
pub fn batches(block: &[u8], filter: &Filter, batch_size: usize) -> (Vec<Vec<u8>>, Sifted) {
    let mut batches = Vec::new();
    let (mut batch, mut in_batch) = (Vec::new(), 0);
    let sifted = sift(block, filter, |line| {
        batch.push(if batch.is_empty() { b'[' } else { b',' });
        line.write_json(&mut batch);
        in_batch += 1;
        if in_batch >= batch_size {
            batches.push(ended(&mut batch));
            in_batch = 0;
        }
    });
    if in_batch > 0 {
        batches.push(ended(&mut batch));
    }
    (batches, sifted)
}

/// The next batch will be about as long.
fn ended(batch: &mut Vec<u8>) -> Vec<u8> {
    batch.push(b']');
    let next = Vec::with_capacity(batch.len());
    std::mem::replace(batch, next)
}
