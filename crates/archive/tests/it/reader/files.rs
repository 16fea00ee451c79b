//! What all of these tests share: files in three framings, and what a reader finds in them.

use std::io::{self, Read, Write};

use fetchwell_archive::warc::{Flaw, RecordKind, Stretch, Tally, WarcItem, WarcLimits, WarcReader};
use flate2::Compression;
use flate2::write::GzEncoder;

/// What a record was, after its reader went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: Option<RecordKind>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) block: Vec<u8>,
    pub(crate) flaw: Option<Flaw>,
    pub(crate) file_offset: u64,
    pub(crate) member_offset: u64,
}

/// All that a file has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) records: Vec<Seen>,
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) tally: Tally,
}

impl Contents {
    /// The blocks of records without a flaw.
    pub(crate) fn sound_blocks(&self) -> Vec<&[u8]> {
        let sound = self.records.iter().filter(|record| record.flaw.is_none());
        sound.map(|record| record.block.as_slice()).collect()
    }

    /// `ok/truncated/malformed/skipped`.
    pub(crate) fn counts(&self) -> String {
        let Tally { ok, truncated, malformed, skipped, .. } = self.tally;
        format!("{ok}/{truncated}/{malformed}/{skipped}")
    }
}

pub(crate) fn read(file: &[u8]) -> Contents {
    read_within(file, 1 << 20)
}

/// Reads a file to its end, in uneven gulps, and checks that its counts add up.
pub(crate) fn read_within(file: &[u8], max_block_bytes: usize) -> Contents {
    let mut reader = WarcReader::new(Gulps { file, step: 0 }, WarcLimits { max_block_bytes });
    let mut contents = Contents::default();
    while let Some(item) = reader.next().unwrap() {
        match item {
            WarcItem::Record(record) => contents.records.push(Seen {
                kind: record.kind(),
                headers: record.headers.iter().map(|(n, v)| (n.into(), v.into())).collect(),
                block: record.block.to_vec(),
                flaw: record.flaw.clone(),
                file_offset: record.place.file_offset,
                member_offset: record.place.member_offset,
            }),
            WarcItem::Malformed(stretch) => contents.stretches.push(stretch),
        }
    }
    assert!(reader.next().unwrap().is_none(), "the end stays the end");
    contents.tally = reader.tally();
    let tally = contents.tally;
    assert_eq!(tally.items(), (contents.records.len() + contents.stretches.len()) as u64);
    if !file.windows(3).any(|bytes| bytes == [0x1f, 0x8b, 8]) {
        let bytes = tally.record_bytes + tally.malformed_bytes + tally.padding_bytes;
        assert_eq!((bytes, tally.stray_bytes), (file.len() as u64, 0), "every byte counts once");
    }
    contents
}

/// Gives what it has in pieces of very different sizes.
struct Gulps<'a> {
    file: &'a [u8],
    step: usize,
}

impl Read for Gulps<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.step += 1;
        if self.step.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let most = [1, 13, 700, 65_536, 9][self.step % 5].min(room.len());
        self.file.read(&mut room[..most])
    }
}

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A record as most writers make it.
pub(crate) fn record(kind: &str, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.test/\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// How a file is made of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Plain,
    Records,
    Whole,
    /// Gzip members that begin and end anywhere, but never within a block where it speaks of WARC:
    /// that would be taken for a record, and the one before it for cut off.
    Blocks,
}

pub(crate) const FRAMINGS: [Framing; 4] =
    [Framing::Plain, Framing::Records, Framing::Whole, Framing::Blocks];

impl Framing {
    pub(crate) fn file(self, records: &[Vec<u8>]) -> Vec<u8> {
        match self {
            Framing::Plain => records.concat(),
            Framing::Records => records.iter().flat_map(|record| gzip(record)).collect(),
            Framing::Whole => gzip(&records.concat()),
            Framing::Blocks => {
                let plain = records.concat();
                let mut file = Vec::new();
                let mut rest = &plain[..];
                while !rest.is_empty() {
                    let mut end = rest.len().min(777);
                    end += usize::from(rest[end..].starts_with(b"WARC/"));
                    file.extend(gzip(&rest[..end]));
                    rest = &rest[end..];
                }
                file
            }
        }
    }
}
