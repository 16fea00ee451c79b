//! A member of a gibibyte. It has a process of its own, so that what it takes can be measured.

#![expect(clippy::unwrap_used, reason = "a helper of tests is test code")]

use std::io::Write;

use fetchwell_archive::gzip::{InflateFault, Inflater};
use fetchwell_archive::warc::{Flaw, WarcItem, WarcLimits, WarcReader};
use flate2::{Compress, Compression, Crc, FlushCompress, write::GzEncoder};

const MIB: usize = 1 << 20;
const BOMB_BYTES: usize = 1 << 30;

/// A gzip member whose content is `head` and then zeros, up to a gibibyte and some.
fn bomb(head: &[u8]) -> Vec<u8> {
    let zeros = vec![0; MIB];
    let mut crc = Crc::new();
    let mut zeros_crc = Crc::new();
    crc.update(head);
    zeros_crc.update(&zeros);
    let mut deflate = Compress::new(Compression::fast(), false);
    let mut block = |content: &[u8]| {
        let mut out = Vec::with_capacity(2 * MIB);
        deflate.compress_vec(content, &mut out, FlushCompress::Full).unwrap();
        out
    };
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    member.extend(block(head));
    let mebibyte = block(&zeros);
    for _ in 0..BOMB_BYTES / MIB {
        member.extend_from_slice(&mebibyte);
        crc.combine(&zeros_crc);
    }
    // An empty last block.
    member.extend([3, 0]);
    member.extend(crc.sum().to_le_bytes());
    member.extend(crc.amount().to_le_bytes());
    member
}

#[cfg(target_os = "linux")]
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1_024
}

#[cfg(not(target_os = "linux"))]
fn peak_bytes() -> usize {
    0
}

#[test]
fn a_bomb_takes_no_more_memory_than_the_cap_and_a_little() {
    let next = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n";
    let mut file = bomb(
        format!("WARC/1.0\r\nWARC-Type: response\r\nContent-Length: {BOMB_BYTES}\r\n\r\n")
            .as_bytes(),
    );
    let lone = bomb(b"no record at all");
    file.extend_from_slice(&lone);
    let mut member = GzEncoder::new(&mut file, Compression::fast());
    member.write_all(next).unwrap();
    member.finish().unwrap();
    let before = peak_bytes();

    let limits = WarcLimits::default();
    let mut reader = WarcReader::new(&file[..], limits);
    let Some(WarcItem::Record(first)) = reader.next().unwrap() else { panic!("no record") };
    let declared_bytes = BOMB_BYTES as u64;
    let max_bytes = limits.max_block_bytes;
    assert_eq!(first.flaw, Some(Flaw::TooLong { declared_bytes, max_bytes }));
    assert_eq!(first.block.len(), max_bytes);
    let Some(WarcItem::Malformed(stretch)) = reader.next().unwrap() else { panic!("no stretch") };
    assert_eq!(stretch.bytes, declared_bytes + 16);
    let Some(WarcItem::Record(last)) = reader.next().unwrap() else { panic!("no record") };
    assert_eq!((last.block, last.flaw), (&b"hi"[..], None));
    assert_eq!(reader.next().unwrap(), None);
    drop(reader);

    let mut inflater = Inflater::default();
    let inflated = inflater.inflate(&lone, max_bytes);
    assert_eq!(inflated.fault, Some(InflateFault::TooLarge { max_bytes }));
    assert_eq!(inflated.content.len(), max_bytes);

    let taken = peak_bytes() - before;
    assert!(taken <= max_bytes + 32 * MIB, "{} MiB", taken / MIB);
}
