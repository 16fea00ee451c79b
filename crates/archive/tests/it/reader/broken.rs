//! Files that are broken, each in its way: what can be saved is, and what can't is counted.

use fetchwell_archive::gzip::InflateFault;
use fetchwell_archive::warc::{Flaw, StretchFault, WarcFault};

use super::files::{Contents, Framing, gzip, read, read_within, record};

fn fault(contents: &Contents) -> &StretchFault {
    &contents.stretches[0].fault
}

/// A block that does not shrink much.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b"abcdefghijklmnopqrstuvwxyz \n<>/"[(state >> 16) as usize % 31]
    };
    (0..bytes).map(|_| next()).collect()
}

#[test]
fn a_cut_file_gives_what_is_there() {
    let first = record("response", b"the first");
    let block = noise(5_000);
    let second = record("response", &block);
    let head_bytes = second.len() - block.len() - 4;
    for framing in [Framing::Plain, Framing::Records, Framing::Whole] {
        let whole = framing.file(&[first.clone(), second.clone()]);
        for end in (1..whole.len()).step_by(13) {
            let found = read(&whole[..end]);
            let tally = found.tally;
            assert!(tally.ok + tally.truncated + tally.malformed > 0, "{framing:?} cut at {end}");
            let last = found.records.last();
            if let Some(last) = last.filter(|last| last.block.len() > 100) {
                assert!(block.starts_with(&last.block), "{framing:?} cut at {end}");
                let is_whole = framing == Framing::Plain && end >= whole.len() - 4;
                assert_eq!(last.flaw.is_none(), is_whole, "{framing:?} cut at {end}");
            }
        }
        let present = read(&whole[..whole.len() - 1_000]);
        assert_eq!(present.counts(), "1/1/0/0", "{framing:?}");
        assert!(present.records[1].block.len() > 2_500, "{framing:?}");
    }
    let in_the_head = [first, second[..head_bytes - 9].to_vec()].concat();
    let found = read(&in_the_head);
    assert_eq!(
        (found.counts().as_str(), fault(&found)),
        ("1/0/1/0", &StretchFault::Record(WarcFault::HeadCutOff))
    );
}

#[test]
fn a_cut_member_costs_only_its_end() {
    let blocks = [noise(9_000), noise(7_000), noise(8_000)];
    let members: Vec<Vec<u8>> =
        blocks.iter().map(|block| gzip(&record("response", block))).collect();
    for kept in [1, 9, 20, 300, 2_000, members[1].len() - 1] {
        let file = [&members[0], &members[1][..kept], &members[2]].concat();
        let found = read(&file);
        assert_eq!(found.sound_blocks(), [&blocks[0][..], &blocks[2]], "{kept}");
        assert_eq!(found.tally.truncated + found.tally.malformed, 1, "{kept}: {:?}", found.tally);
    }
}

#[test]
fn a_wrong_checksum_is_told_and_the_record_is_given() {
    let mut member = gzip(&record("response", b"abc"));
    let checksum = member.len() - 8;
    member[checksum] ^= 1;
    let found = read(&[member, gzip(&record("response", b"def"))].concat());
    assert_eq!(found.counts(), "1/0/1/0");
    assert!(matches!(found.records[0].flaw, Some(Flaw::Damaged(InflateFault::Corrupt(_)))));
    assert_eq!(found.records[0].block, b"abc");
}

#[test]
fn wrong_lengths_cost_no_other_record() {
    let with_length = |length: &str| {
        let head = format!("WARC/1.0\r\nWARC-Type: response\r\nContent-Length: {length}\r\n\r\n");
        [head.as_bytes(), &b"0123456789".repeat(10), b"\r\n\r\n"].concat()
    };
    for (length, counts) in [
        ("100", "3/0/0/0"),
        ("99", "3/0/1/0"),
        ("0", "3/0/1/0"),
        // One of the line ends behind it; who can tell?
        ("101", "3/0/0/0"),
        ("150", "2/1/0/0"),
        ("230", "2/1/0/0"),
        ("999999", "2/1/0/0"),
        ("99999999999", "2/1/0/0"),
        ("99999999999999999999", "2/0/1/0"),
        ("-1", "2/0/1/0"),
        ("", "2/0/1/0"),
        ("1e2", "2/0/1/0"),
        ("100\r\nContent-Length: 7", "2/0/1/0"),
    ] {
        let records = [
            record("response", b"before"),
            with_length(length),
            record("response", &b"after".repeat(50)),
        ];
        for framing in [Framing::Plain, Framing::Whole, Framing::Records] {
            let found = read(&framing.file(&records));
            assert_eq!(found.counts(), counts, "{length:?} in {framing:?}: {:?}", found.stretches);
            let blocks = found.sound_blocks();
            assert!(blocks.contains(&&b"before"[..]) && blocks.contains(&&b"after".repeat(50)[..]));
        }
    }
}

#[test]
fn what_is_no_archive_is_one_stretch() {
    for file in [
        b"<!DOCTYPE html><html><body>404 Not Found</body></html>".to_vec(),
        b"com,example)/ 20240712000102 {}\n".repeat(9_000),
        vec![0; 3_000_000],
        b"WARC".to_vec(),
        b"WARC/1.0".to_vec(),
        b"WARC/9999999999999999999999999.0\r\n\r\n".to_vec(),
        gzip(b"<html>"),
        b"\x1f\x8b\x08".to_vec(),
        b"\x1f\x8b\x08\x00 this is no deflate stream".to_vec(),
    ] {
        let found = read(&file);
        assert_eq!(found.counts(), "0/0/1/0", "{:?}", &file[..file.len().min(20)]);
    }
}

/// Would take minutes if each record searched all that follows it.
#[test]
fn many_tiny_records_take_linear_time() {
    let records = "WARC/1.0\nX: y\nContent-Length: 0\n\nz\n".repeat(100_000);
    let found = read(&gzip(records.as_bytes()));
    assert_eq!(found.stretches.len(), 100_000);
}

#[test]
fn garbage_before_between_and_behind_is_counted_with_its_place() {
    let one = record("response", b"one");
    let two = record("response", b"two");
    let plain =
        [b"garbage\n".as_slice(), &one, b"WARC/x\r\n\r\nmore garbage\r\n", &two, b"end"].concat();
    let found = read(&plain);
    assert_eq!(
        (found.counts().as_str(), found.sound_blocks()),
        ("2/0/3/0", vec![&b"one"[..], b"two"])
    );
    let places: Vec<u64> =
        found.stretches.iter().map(|stretch| stretch.place.file_offset).collect();
    let behind = 8 + one.len() as u64;
    assert_eq!(places, [0, behind, behind + 24 + two.len() as u64]);

    let one = gzip(&one);
    let two = gzip(&two);
    let stray =
        [b"garbage".as_slice(), &one, &[0; 999], b"\x1f\x8b\x08", &two, b"\x1f\x8b"].concat();
    let found = read(&stray);
    assert_eq!(
        (found.counts().as_str(), found.sound_blocks()),
        ("2/0/3/0", vec![&b"one"[..], b"two"])
    );
    assert!(found.stretches.iter().all(|stretch| stretch.fault == StretchFault::Stray));
    let bytes: Vec<u64> = found.stretches.iter().map(|stretch| stretch.bytes).collect();
    assert_eq!((bytes, found.tally.stray_bytes), (vec![7, 1_002, 2], 1_011));
}

#[test]
fn a_head_without_end_does_not_hold_up_the_next_record() {
    let endless = format!("WARC/1.0\r\n{}", "X-Header: value\r\n".repeat(10_000));
    let file = [endless.as_bytes(), &record("response", b"next")].concat();
    let found = read(&file);
    assert_eq!(
        (found.counts().as_str(), fault(&found)),
        ("1/0/1/0", &StretchFault::Record(WarcFault::HeadTooLong))
    );
    let found = read_within(&file, 10);
    assert_eq!(found.counts(), "1/0/1/0");
}

#[test]
fn a_long_block_is_given_up_to_the_cap() {
    let records = [record("response", &noise(300_000)), record("response", b"next")];
    for framing in [Framing::Plain, Framing::Records, Framing::Whole, Framing::Blocks] {
        let file = framing.file(&records);
        let found = read_within(&file, 10_000);
        assert_eq!(found.counts(), "1/1/0/0", "{framing:?}");
        let flaw = Flaw::TooLong { declared_bytes: 300_000, max_bytes: 10_000 };
        assert_eq!((found.records[0].block.len(), &found.records[0].flaw), (10_000, &Some(flaw)));
        assert_eq!(read_within(&file, 300_000).counts(), "2/0/0/0", "{framing:?}: it just fits");
    }
}

#[test]
fn a_failing_disk_is_an_error_and_no_end() {
    struct Failing;
    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    use std::io::Read;
    let file = gzip(&record("response", &noise(100_000)));
    let half = file[..file.len() / 2].chain(Failing);
    let mut reader = fetchwell_archive::warc::WarcReader::new(half, Default::default());
    assert!(reader.next().is_err());
}

/// Where the first member ends can't be told by the size that stands before the third.
#[test]
fn a_member_whose_beginning_is_lost_is_not_taken_for_the_end_of_its_twin() {
    let twin = gzip(&record("response", b"the same"));
    let mut headless = twin.clone();
    headless[0] = 0;
    let found = read(&[&twin[..], &headless, &gzip(&record("response", b"another"))].concat());
    assert_eq!(found.counts(), "2/0/1/0");
    assert_eq!(found.tally.stray_bytes, headless.len() as u64);
}
