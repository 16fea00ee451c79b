//! Any bytes are read to their end, and the counts add up.

#![no_main]

use fetchwell_archive::ArchiveFormat;
use fetchwell_archive::arc::{ArcItem, ArcReader};
use fetchwell_archive::warc::WarcLimits;
use libfuzzer_sys::fuzz_target;

const MAX_BLOCK_BYTES: usize = 10_000;

fuzz_target!(|file: &[u8]| {
    let _ = ArchiveFormat::detect(file);
    let mut reader = ArcReader::new(file, WarcLimits { max_block_bytes: MAX_BLOCK_BYTES });
    while let Some(item) = reader.next().unwrap() {
        if let ArcItem::Record(record) = item {
            assert!(record.block.len() <= MAX_BLOCK_BYTES);
        }
    }
    let tally = reader.tally();
    if !file.windows(3).any(|bytes| bytes == [0x1f, 0x8b, 8]) {
        let bytes = tally.record_bytes + tally.malformed_bytes + tally.padding_bytes;
        assert_eq!(bytes, file.len() as u64);
    }
});
