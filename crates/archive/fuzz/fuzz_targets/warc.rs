//! Any bytes are read to their end, and the counts add up.

#![no_main]

use fetchwell_archive::warc::{WarcItem, WarcLimits, WarcReader};
use libfuzzer_sys::fuzz_target;

const MAX_BLOCK_BYTES: usize = 10_000;

fuzz_target!(|file: &[u8]| {
    let mut reader = WarcReader::new(file, WarcLimits { max_block_bytes: MAX_BLOCK_BYTES });
    let mut items = 0;
    let mut scratch = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        items += 1;
        if let WarcItem::Record(record) = item {
            assert!(record.block.len() <= MAX_BLOCK_BYTES);
            if let Ok(message) = record.http() {
                let body = message.body(&mut scratch, 3 * MAX_BLOCK_BYTES);
                assert!(body.bytes.len() <= 3 * MAX_BLOCK_BYTES);
            }
        }
    }
    let tally = reader.tally();
    assert_eq!(tally.items(), items);
    if !file.windows(3).any(|bytes| bytes == [0x1f, 0x8b, 8]) {
        let bytes = tally.record_bytes + tally.malformed_bytes + tally.padding_bytes;
        assert_eq!(bytes, file.len() as u64);
    }
});
