//! What our writer writes is what our reader reads.

use fetchwell_archive::warc::RecordKind;
use fetchwell_archive::warc_writer::{Block, NewRecord};
use proptest::prelude::*;

use super::files::{FRAMINGS, read};

const KINDS: [RecordKind; 8] = [
    RecordKind::Warcinfo,
    RecordKind::Request,
    RecordKind::Response,
    RecordKind::Metadata,
    RecordKind::Resource,
    RecordKind::Revisit,
    RecordKind::Conversion,
    RecordKind::Continuation,
];

/// Blocks of all sizes, some of which look like records or like gzip.
fn block() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        prop::collection::vec(any::<u8>(), 0..20_000),
        "([ -~\r\n]{0,200}){0,20}".prop_map(String::into_bytes),
        Just(b"\r\nWARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n".to_vec()),
        Just([&[0x1f, 0x8b, 8][..]; 9].concat()),
        (1_usize..9).prop_map(|times| b"\r\n\r\n".repeat(times)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_written_is_what_is_read(
        drafts in prop::collection::vec((0_usize..8, block(), "http://[!-~]{1,40}"), 0..12),
    ) {
        let mut written = Vec::new();
        let mut records = Vec::new();
        for (kind, block, uri) in &drafts {
            let record = NewRecord {
                target_uri: Some(uri),
                ..NewRecord::new(KINDS[*kind], "2026-11-15T12:00:00Z", "a/b", Block::Bytes(block))
            };
            let mut plain = Vec::new();
            let id = record.write_plain(&mut plain).unwrap();
            records.push(plain);
            written.push(id.to_string());
        }
        for framing in FRAMINGS {
            let found = read(&framing.file(&records));
            prop_assert_eq!(found.counts(), format!("{}/0/0/0", drafts.len()), "{:?}", framing);
            for ((found, (kind, block, uri)), id) in found.records.iter().zip(&drafts).zip(&written) {
                prop_assert_eq!(found.kind, Some(KINDS[*kind]));
                prop_assert_eq!(&found.block, block);
                let has = |name: &str, value: &str| {
                    found.headers.contains(&(name.to_owned(), value.to_owned()))
                };
                prop_assert!(has("WARC-Target-URI", uri) && has("WARC-Record-ID", id));
            }
        }
    }
}
