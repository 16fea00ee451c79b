//! Files that are odd and not broken.

use fetchwell_archive::warc::{RecordKind, WarcItem, WarcLimits, WarcReader};

use super::files::{FRAMINGS, Framing, gzip, read, record};

#[test]
fn every_framing_gives_the_same() {
    let blocks: Vec<Vec<u8>> = (0..40).map(|n| vec![b'a' + n; 100 * usize::from(n)]).collect();
    let records: Vec<Vec<u8>> = blocks.iter().map(|block| record("response", block)).collect();
    for framing in FRAMINGS {
        let found = read(&framing.file(&records));
        assert_eq!(found.counts(), "40/0/0/0", "{framing:?}");
        assert!(found.sound_blocks().iter().eq(blocks.iter()), "{framing:?}");
    }
}

#[test]
fn places_lead_back_to_the_records() {
    let records: Vec<Vec<u8>> = (0..9).map(|n| record("response", &vec![b'x'; n * 50])).collect();
    for framing in [Framing::Plain, Framing::Records] {
        let file = framing.file(&records);
        for (number, seen) in read(&file).records.iter().enumerate() {
            let from_there = read(&file[usize::try_from(seen.file_offset).unwrap()..]);
            assert_eq!(from_there.records.len(), 9 - number, "{framing:?}");
            assert_eq!(from_there.records[0].block, seen.block);
        }
    }
    let offsets: Vec<u64> = read(&Framing::Whole.file(&records))
        .records
        .iter()
        .map(|seen| seen.member_offset)
        .collect();
    let lengths = records.iter().map(|record| record.len() as u64);
    let expected: Vec<u64> =
        lengths.scan(0, |end, length| Some(std::mem::replace(end, *end + length))).collect();
    assert_eq!(offsets, expected);
}

/// WARC 1.1 says that the names of fields and types ignore case, and requires CRLF; warcio also reads the lower-case
/// version, the bare line feeds and the other mistakes here.
#[test]
fn heads_are_as_writers_make_them() {
    let head = |lines: &str| format!("{lines}Content-Length: 3\r\n\r\nabc\r\n\r\n");
    for lines in [
        "WARC/0.17\r\nWARC-Type: response\r\n",
        "WARC/0.18\r\nwarc-type: Response\r\n",
        "WARC/1.0\nWARC-Type:response\n",
        "warc/1.0\r\nwarc-type: response\r\n",
        "WARC/1.1 \r\nWARC-Type: response\r\nWARC-Date: 2017-02\r\n",
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Date: yesterday\r\nContent-Length: 3\r\n",
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.test/a b\r\n c\r\nno colon\r\n",
    ] {
        let file = head(lines).into_bytes();
        for twice in [[file.clone(), file.clone()].concat(), [gzip(&file), gzip(&file)].concat()] {
            assert_eq!(read(&twice).counts(), "2/0/0/0", "{lines:?}");
        }
        let found = read(&file);
        assert_eq!(
            (found.records[0].kind, &found.records[0].block[..]),
            (Some(RecordKind::Response), &b"abc"[..])
        );
    }
    let unknown = read(head("WARC/1.0\r\nWARC-Type: poem\r\n").as_bytes());
    assert_eq!(unknown.counts(), "0/0/0/1", "a type that is not known is to be skipped");
    assert_eq!(read(head("WARC/1.0\r\n").as_bytes()).counts(), "0/0/0/1");
}

#[test]
fn uris_are_given_bare() {
    for (line, uri) in [
        ("<http://a.test/x>", "http://a.test/x"),
        ("http://a.test/a b", "http://a.test/a b"),
        ("<http://a.test/", "<http://a.test/"),
    ] {
        let file = format!("WARC/1.0\r\nWARC-Target-URI: {line}\r\nContent-Length: 0\r\n\r\n");
        let mut reader = WarcReader::new(file.as_bytes(), WarcLimits::default());
        let Some(WarcItem::Record(record)) = reader.next().unwrap() else { panic!("no record") };
        assert_eq!(record.target_uri().as_deref(), Some(uri));
    }
}

#[test]
fn line_ends_between_records_may_be_any_number() {
    for between in ["", "\n", "\r\n", "\r\n\r\n\r\n", &"\r\n".repeat(500_000)] {
        let one = record("response", b"abc");
        let one = &one[..one.len() - 4];
        let file = [one, between.as_bytes(), one, between.as_bytes()].concat();
        for file in [file.clone(), [between.as_bytes(), &file].concat(), gzip(&file)] {
            assert_eq!(read(&file).counts(), "2/0/0/0", "{} line ends", between.len());
        }
    }
}

#[test]
fn a_page_that_speaks_of_warc_is_no_record() {
    let page = b"\r\n\r\nWARC/1.0\r\nWARC-Type: response\r\nContent-Length: 7\r\n\r\nabc";
    let records = [record("response", page), record("response", b"next")];
    for framing in FRAMINGS {
        assert_eq!(
            read(&framing.file(&records)).sound_blocks(),
            [&page[..], b"next"],
            "{framing:?}"
        );
    }
}

#[test]
fn an_empty_file_has_nothing() {
    for file in [b"".to_vec(), gzip(b""), b"\r\n\r\n".to_vec(), gzip(b"\n")] {
        assert_eq!(read(&file).counts(), "0/0/0/0");
    }
}
