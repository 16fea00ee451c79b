//! ARC files: sound, odd and broken.

use fetchwell_archive::ArchiveFormat;
use fetchwell_archive::arc::{ArcItem, ArcReader};
use fetchwell_archive::warc::{Flaw, StretchFault, WarcLimits};
use proptest::prelude::*;

use crate::reader::files::{FRAMINGS, Framing, gzip, record};

/// As the Internet Archive described version 1 in 1996.
const DESCRIPTION: &str = "filedesc://a.arc 0 20090101000000 text/plain 76\n\
    1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n\n";

/// A record of version 1.
fn version_1(url: &str, block: &[u8]) -> Vec<u8> {
    let line = format!("{url} 192.0.2.1 20090101000000 text/html {}\n", block.len());
    [line.as_bytes(), block, b"\n"].concat()
}

/// A record of version 2.
fn version_2(url: &str, block: &[u8]) -> Vec<u8> {
    let length = block.len();
    let line =
        format!("{url} 2001:db8::1 20090101000000 text/html 200 SUM - 1234 a.arc {length}\n");
    [line.as_bytes(), block, b"\n"].concat()
}

/// The items of a file: the URL and the block of each record, with `…` if it is cut, and `?` for malformed bytes.
fn items(file: &[u8]) -> Vec<String> {
    let limits = WarcLimits { max_block_bytes: 10_000 };
    let mut reader = ArcReader::new(file, limits);
    let mut items = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        items.push(match item {
            ArcItem::Record(record) => {
                let block = String::from_utf8_lossy(record.block);
                let cut = if record.flaw.is_some() { "…" } else { "" };
                format!("{} {block}{cut}", record.url)
            }
            ArcItem::Malformed(stretch) => format!("? {}", stretch.bytes),
        });
    }
    assert!(reader.next().unwrap().is_none(), "the end stays the end");
    let tally = reader.tally();
    if !file.windows(3).any(|bytes| bytes == [0x1f, 0x8b, 8]) {
        let bytes = tally.record_bytes + tally.malformed_bytes + tally.padding_bytes;
        assert_eq!(bytes, file.len() as u64, "every byte counts once");
    }
    items
}

#[test]
fn both_versions_are_read_in_every_framing() {
    let records = [
        DESCRIPTION.as_bytes().to_vec(),
        version_1("http://a.test/1", b"one"),
        version_2("http://a.test/a b", b"\n\ntwo\n\n"),
        version_1("dns:a.test", b""),
    ];
    for framing in FRAMINGS {
        let file = framing.file(&records);
        let want = ["http://a.test/1 one", "http://a.test/a b \n\ntwo\n\n", "dns:a.test "];
        assert_eq!(items(&file), want, "{framing:?}");
        assert_eq!(ArchiveFormat::detect(&file), Some(ArchiveFormat::Arc), "{framing:?}");
    }
}

#[test]
fn formats_are_detected_by_their_content() {
    let html = b"<!doctype html><p>http://a.test/ 192.0.2.1 20090101000000 text/html 2";
    for (content, want) in [
        (record("response", b"x"), Some(ArchiveFormat::Warc)),
        (version_1("http://a.test/", b"x"), Some(ArchiveFormat::Arc)),
        (DESCRIPTION.as_bytes()[..20].to_vec(), Some(ArchiveFormat::Arc)),
        (html.to_vec(), None),
        (b"http://a.test/\nhttp://b.test/\n".to_vec(), None),
        (Vec::new(), None),
    ] {
        assert_eq!(ArchiveFormat::detect(&content), want);
        assert_eq!(ArchiveFormat::detect(&gzip(&content)), want);
    }
}

#[test]
fn positions_lead_back_to_the_records() {
    let records = ["http://a.test/1", "http://a.test/2"].map(|url| version_1(url, b"hi"));
    for framing in [Framing::Plain, Framing::Records] {
        let file = framing.file(&records);
        let mut reader = ArcReader::new(file.as_slice(), WarcLimits::default());
        reader.next().unwrap();
        let Some(ArcItem::Record(second)) = reader.next().unwrap() else { panic!("no record") };
        let offset = usize::try_from(second.place.file_offset).unwrap();
        assert_eq!(items(&file[offset..]), ["http://a.test/2 hi"], "{framing:?}");
    }
}

#[test]
fn what_is_broken_costs_no_other_record() {
    let good = version_1("http://a.test/1", b"hi");
    let garbage = b"garbage\nhttp://a.test/ and more of it\n".to_vec();
    let plain = [&good[..], &garbage, &good].concat();
    let want = ["http://a.test/1 hi", "? 38", "http://a.test/1 hi"];
    assert_eq!(items(&plain), want);
    let mut damaged = gzip(&good);
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    let members = [gzip(&good), damaged, gzip(&good)].concat();
    let found = items(&members);
    assert_eq!((found.len(), &found[0], &found[2]), (3, &want[0].into(), &want[2].into()));

    // A length that is too large ends at the next record.
    let long = b"http://a.test/2 192.0.2.1 20090101000000 text/html 9999\nhi\n".to_vec();
    let found = items(&[&long[..], &good].concat());
    assert_eq!(found, ["http://a.test/2 hi\n…", "http://a.test/1 hi"]);
}

#[test]
fn truncated_files_have_typed_errors() {
    let file = version_1("http://a.test/1", b"twelve bytes");
    for end in 0..file.len() - 1 {
        let mut reader = ArcReader::new(&file[..end], WarcLimits::default());
        match reader.next().unwrap() {
            Some(ArcItem::Record(record)) => {
                let is_cut = matches!(record.flaw, Some(Flaw::Cut { declared_bytes: 12, .. }));
                assert!(is_cut, "{end}: {record:?}");
            }
            Some(ArcItem::Malformed(stretch)) => {
                assert!(matches!(stretch.fault, StretchFault::Record(_)), "{end}: {stretch:?}");
            }
            None => assert_eq!(end, 0),
        }
    }
}

#[test]
fn a_block_over_the_limit_is_cut_and_its_rest_skipped() {
    let file =
        [version_1("http://a.test/1", &[b'x'; 100_000]), version_1("http://a.test/2", b"hi")];
    for framing in FRAMINGS {
        let mut reader = ArcReader::new(
            std::io::Cursor::new(framing.file(&file)),
            WarcLimits { max_block_bytes: 1_000 },
        );
        let Some(ArcItem::Record(first)) = reader.next().unwrap() else { panic!("no record") };
        let flaw = Flaw::TooLong { declared_bytes: 100_000, max_bytes: 1_000 };
        assert_eq!((first.block.len(), first.flaw), (1_000, Some(flaw)), "{framing:?}");
        let Some(ArcItem::Record(second)) = reader.next().unwrap() else { panic!("no record") };
        assert_eq!((second.block, second.flaw), (b"hi".as_slice(), None), "{framing:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..3_000)) {
        items(&bytes);
        items(&[&[0x1f, 0x8b, 8, 0], &bytes[..]].concat());
        items(&gzip(&bytes));
        items(&[b"http://a.test/ 192.0.2.1 20090101000000 text/html ", &bytes[..]].concat());
    }

    #[test]
    fn any_damage_leaves_the_records_before_it(
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2_000), 1..6),
        at in any::<usize>(),
        byte in any::<u8>(),
    ) {
        let records: Vec<_> =
            blocks.iter().map(|block| version_1("http://a.test/", block)).collect();
        for framing in [Framing::Plain, Framing::Records] {
            let mut file = framing.file(&records);
            let at = at % file.len();
            file[at] = byte;
            let sound = records.iter().scan(0, |end, record| {
                *end += framing.file(std::slice::from_ref(record)).len();
                Some(*end)
            });
            let sound = sound.filter(|end| *end <= at).count();
            let found = items(&file);
            for (number, block) in blocks.iter().take(sound).enumerate() {
                let want = format!("http://a.test/ {}", String::from_utf8_lossy(block));
                prop_assert_eq!(&found[number], &want, "{:?}", framing);
            }
        }
    }
}
