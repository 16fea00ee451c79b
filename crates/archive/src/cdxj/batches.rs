//! From a block of lines to the messages that carry the wanted ones.

use memchr::memchr;

use super::filter::Filter;
use super::line::Line;
use crate::line::LineFault;

/// What became of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// JSON arrays of wanted lines, each a message.
    pub batches: Vec<Vec<u8>>,
    /// Lines that can't be read. What is not wanted is not read, so it is never among them.
    pub malformed: Vec<MalformedLine>,
    /// All lines.
    pub lines: u64,
    /// Wanted ones.
    pub wanted: u64,
}

/// A line that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedLine {
    /// Which line of the block it is, from 1.
    pub number: u64,
    /// What is wrong with it.
    pub fault: LineFault,
}

/// Selects the wanted lines of a block, `batch_size` a batch. The same block gives the same batches.
#[must_use]
pub fn batches(block: &[u8], filter: &Filter, batch_size: usize) -> Selection {
    let mut selection = Selection::default();
    let (mut batch, mut in_batch) = (Vec::new(), 0);
    let mut rest = block;
    while !rest.is_empty() {
        let end = memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let (line, behind) = rest.split_at(end);
        rest = behind;
        selection.lines += 1;
        if filter.rejects_unread(line) {
            continue;
        }
        let line = match Line::parse(line) {
            Ok(line) if filter.wants(&line) => line,
            Ok(_) => continue,
            Err(fault) => {
                selection.malformed.push(MalformedLine { number: selection.lines, fault });
                continue;
            }
        };
        selection.wanted += 1;
        push(&mut batch, &line);
        in_batch += 1;
        if in_batch >= batch_size {
            selection.batches.push(ended(&mut batch));
            in_batch = 0;
        }
    }
    if in_batch > 0 {
        selection.batches.push(ended(&mut batch));
    }
    selection
}

fn push(batch: &mut Vec<u8>, line: &Line<'_>) {
    batch.push(if batch.is_empty() { b'[' } else { b',' });
    // Strings can always be written as JSON, and memory takes whatever is written to it.
    drop(line.write_json(batch));
}

/// The next batch will be about as long.
fn ended(batch: &mut Vec<u8>) -> Vec<u8> {
    batch.push(b']');
    let next = Vec::with_capacity(batch.len());
    std::mem::replace(batch, next)
}
