//! The counters of a batcher, over all its runs.

use fetchwell_archive::cdxj::{Criterion, Sifted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The counters, as kept in the checkpoint and printed at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Index blocks read.
    pub blocks: u64,
    /// Their size as received.
    pub bytes: u64,
    pub lines: u64,
    /// Lines selected.
    pub wanted: u64,
    /// Lines not selected, by filter.
    pub filtered: BTreeMap<String, u64>,
    /// Lines and blocks skipped, by kind of error.
    pub errors: BTreeMap<String, u64>,
}

impl Counts {
    pub(super) fn add_block(&mut self, sifted: &Sifted, wire_bytes: u64) {
        self.blocks += 1;
        self.bytes += wire_bytes;
        self.lines += sifted.lines;
        self.wanted += sifted.wanted;
        for (criterion, count) in Criterion::ALL.into_iter().zip(sifted.rejected) {
            add(&mut self.filtered, criterion.name(), count);
        }
        self.add_error("cdx_line", sifted.malformed);
    }

    pub(super) fn add_error(&mut self, kind: &str, count: u64) {
        add(&mut self.errors, kind, count);
    }

    pub(super) fn add(&mut self, more: &Counts) {
        self.blocks += more.blocks;
        self.bytes += more.bytes;
        self.lines += more.lines;
        self.wanted += more.wanted;
        for (name, count) in &more.filtered {
            add(&mut self.filtered, name, *count);
        }
        for (kind, count) in &more.errors {
            add(&mut self.errors, kind, *count);
        }
    }
}

fn add(counts: &mut BTreeMap<String, u64>, name: &str, count: u64) {
    if count > 0 {
        *counts.entry(name.to_owned()).or_default() += count;
    }
}
