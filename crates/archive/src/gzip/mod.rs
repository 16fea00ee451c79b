//! Inflates gzip members, up to a limit.

mod inflate;
pub(crate) mod members;
mod pieces;

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::GzDecoder;
use flate2::{Decompress, DecompressError};
use libdeflater::Decompressor;
use memchr::memmem;

use crate::shared_error::SharedError;

pub(crate) use inflate::{MemberEnd, inflate};
pub use pieces::inflate_pieces;

/// The first bytes of every member: gzip with deflate.
pub(crate) const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// Header and trailer.
pub(crate) const LEAST_MEMBER_BYTES: usize = 18;

/// The largest window of gzip.
pub(crate) const WINDOW_BITS: u8 = 15;

/// Why a member was not inflated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InflateFault {
    /// Its content exceeds the limit of the caller.
    #[error("the inflated content exceeds {max_bytes} bytes")]
    TooLarge {
        /// The limit of the caller.
        max_bytes: usize,
    },
    /// The input ends before the member.
    #[error("the gzip member is cut off")]
    Truncated,
    /// It is not gzip, or its checksum does not match.
    #[error("not a valid gzip member: {0}")]
    Corrupt(#[source] SharedError<DecompressError>),
}

/// Why the next member of a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The file, or the part of it that may be read, ends before the member.
    #[error("the gzip member is cut off")]
    Truncated,
    /// It is not gzip, or its checksum does not match.
    #[error("not a valid gzip member: {0}")]
    Corrupt(#[source] io::Error),
    /// The file itself could not be read.
    #[error("it could not be read: {0}")]
    Unreadable(#[source] io::Error),
}

/// The content of a member.
#[derive(Debug, PartialEq, Eq)]
pub struct Inflated<'i> {
    /// All of it, or the part before the error.
    pub content: &'i [u8],
    /// Why it is incomplete.
    pub fault: Option<InflateFault>,
}

impl<'i> Inflated<'i> {
    /// The content, if it is complete.
    pub fn whole(self) -> Result<&'i [u8], InflateFault> {
        self.fault.map_or(Ok(self.content), Err)
    }
}

/// Inflates members in memory, all into the same buffer.
pub struct Inflater {
    whole: Decompressor,
    content: Vec<u8>,
}

impl Default for Inflater {
    fn default() -> Inflater {
        Inflater { whole: Decompressor::new(), content: Vec::new() }
    }
}

impl Inflater {
    /// Inflates the first member of the input, up to `max_bytes`; anything after it is ignored.
    pub fn inflate(&mut self, member: &[u8], max_bytes: usize) -> Inflated<'_> {
        if let Some(bytes) = self.at_once(member, max_bytes) {
            return Inflated { content: &self.content[..bytes], fault: None };
        }
        self.content.clear();
        let stream = Decompress::new_gzip(WINDOW_BITS);
        let fault = match inflate(stream, member, &mut self.content, max_bytes) {
            MemberEnd::Whole { .. } => None,
            MemberEnd::Truncated => Some(InflateFault::Truncated),
            MemberEnd::TooLarge => Some(InflateFault::TooLarge { max_bytes }),
            MemberEnd::Corrupt(error) => Some(InflateFault::Corrupt(error.into())),
        };
        Inflated { content: &self.content, fault }
    }

    /// The fast path for a single complete member: its last bytes state its size, so the buffer can be allocated.
    /// Returns that size; anything unusual is left to the slow path.
    fn at_once(&mut self, member: &[u8], max_bytes: usize) -> Option<usize> {
        let bytes = stated_size(member).filter(|bytes| *bytes <= max_bytes)?;
        if self.content.len() < bytes {
            self.content.resize(bytes, 0);
        }
        let inflated = self.whole.gzip_decompress(member, &mut self.content[..bytes]);
        (inflated == Ok(bytes)).then_some(bytes)
    }
}

/// The size that the end of a member states, if it is plausible: deflate compresses by a factor of 1,032 at most.
#[must_use]
pub fn stated_size(member: &[u8]) -> Option<usize> {
    let size = u32::from_le_bytes(*member.last_chunk()?);
    let size = usize::try_from(size).ok()?;
    (member.len() >= LEAST_MEMBER_BYTES && size / 1_032 <= member.len()).then_some(size)
}

/// Whether bytes that begin with a member of the size that they state contain nothing else. A member ends with its
/// size, so if those bytes occur nowhere else, the input ends with the member.
pub(crate) fn ends_with_its_member(bytes: &[u8]) -> bool {
    bytes.split_last_chunk::<4>().is_some_and(|(before, size_field)| {
        let behind_head = before.get(LEAST_MEMBER_BYTES - 8..).unwrap_or_default();
        memmem::find(behind_head, size_field).is_none()
    })
}

/// Inflates the first member of the input; anything after it is ignored.
pub fn inflate_member(member: &[u8], max_bytes: usize) -> Result<Vec<u8>, InflateFault> {
    let mut inflater = Inflater::default();
    let bytes = inflater.inflate(member, max_bytes).whole()?.len();
    inflater.content.truncate(bytes);
    Ok(inflater.content)
}

/// A member of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its content, up to the limit of the caller.
    pub content: Vec<u8>,
    /// Its size in the file.
    pub stored_bytes: u64,
}

/// Reads the next member of a file, which must end within `limit_bytes`; `None` at the end of the file. The whole
/// member is read and checked, but at most `max_bytes` of its content are kept.
pub fn next_member(
    file: &mut impl BufRead,
    limit_bytes: u64,
    max_bytes: u64,
) -> Result<Option<Member>, MemberError> {
    let mut rest = file.take(limit_bytes);
    if rest.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut member = GzDecoder::new(rest);
    let mut content = Vec::new();
    (&mut member).take(max_bytes).read_to_end(&mut content)?;
    io::copy(&mut member, &mut io::sink())?;
    let stored_bytes = limit_bytes - member.into_inner().limit();
    Ok(Some(Member { content, stored_bytes }))
}

impl From<io::Error> for MemberError {
    fn from(error: io::Error) -> MemberError {
        match error.kind() {
            ErrorKind::UnexpectedEof => MemberError::Truncated,
            ErrorKind::InvalidInput | ErrorKind::InvalidData => MemberError::Corrupt(error),
            _ => MemberError::Unreadable(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    pub(super) fn member(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_first_member_is_inflated() {
        let two = [member(b"first"), member(b"second")].concat();
        assert_eq!(inflate_member(&two, 100), Ok(b"first".to_vec()));
        assert_eq!(inflate_member(&member(b""), 0), Ok(Vec::new()));
    }

    #[test]
    fn members_are_read_one_by_one_and_a_cut_one_is_not_taken_for_whole() {
        let first = member(b"first");
        let second = member(b"second");
        let file = [first.clone(), second.clone()].concat();
        for end in 0..=file.len() {
            let mut rest = &file[..];
            let mut left = end as u64;
            let mut found = Vec::new();
            let last = loop {
                match next_member(&mut rest, left, 3) {
                    Ok(Some(member)) => {
                        left -= member.stored_bytes;
                        found.push(String::from_utf8(member.content).unwrap());
                    }
                    last => break last,
                }
            };
            let whole = usize::from(end >= first.len()) + usize::from(end == file.len());
            assert_eq!(found, ["fir", "sec"][..whole], "{end}");
            let is_at_an_end = end == 0 || end == first.len() || end == file.len();
            match last {
                Ok(None) => assert!(is_at_an_end, "{end}"),
                Err(MemberError::Truncated) => assert!(!is_at_an_end, "{end}"),
                other => panic!("{end}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_bomb_ends_at_the_cap() {
        let bomb = member(&vec![0; 10_000_000]);
        assert_eq!(inflate_member(&bomb, 1_000), Err(InflateFault::TooLarge { max_bytes: 1_000 }));
        assert_eq!(inflate_member(&bomb, 10_000_000).map(|bytes| bytes.len()), Ok(10_000_000));
    }

    #[test]
    fn what_is_cut_or_broken_is_not_taken_for_whole() {
        let whole = member(b"some words that are long enough to be cut");
        for end in 0..whole.len() {
            assert_eq!(inflate_member(&whole[..end], 1_000), Err(InflateFault::Truncated), "{end}");
        }
        let mut broken = whole.clone();
        let crc = broken.len() - 8;
        broken[crc] ^= 1;
        assert!(matches!(inflate_member(&broken, 1_000), Err(InflateFault::Corrupt(_))));
        assert!(matches!(inflate_member(b"plain text, no gzip", 9), Err(InflateFault::Corrupt(_))));
    }
}
