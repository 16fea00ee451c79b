//! Gzip members, inflated under a cap.

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::GzDecoder;

/// Why a member was not inflated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InflateFault {
    /// It would have more bytes than the caller allows.
    #[error("more than {max_bytes} bytes when inflated")]
    TooLarge {
        /// What the caller allows.
        max_bytes: usize,
    },
    /// The input ends before the member does.
    #[error("the gzip member is cut off")]
    Truncated,
    /// It is no gzip, or its checksum does not fit.
    #[error("not a sound gzip member: {0}")]
    Corrupt(String),
    /// The input itself could not be read.
    #[error("it can't be read: {0}")]
    Unreadable(String),
}

/// Inflates the first member of the input; what follows it is ignored.
pub fn inflate_member(member: &[u8], max_bytes: usize) -> Result<Vec<u8>, InflateFault> {
    // One byte more than allowed tells "just fits" from "too large"; the last read of a member
    // that fits finds its end and checks its sum.
    let one_too_many = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    let mut inflated = Vec::new();
    let read = GzDecoder::new(member).take(one_too_many).read_to_end(&mut inflated);
    if inflated.len() > max_bytes {
        return Err(InflateFault::TooLarge { max_bytes });
    }
    match read {
        Ok(_) => Ok(inflated),
        Err(error) => Err(error.into()),
    }
}

/// A member of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its content, as far as the caller wanted it.
    pub content: Vec<u8>,
    /// How many bytes of the file it takes.
    pub stored_bytes: u64,
}

/// Reads the next member of a file, which must end within `limit_bytes`; none when the file ends
/// here. It is read and checked whole, but no more than `max_bytes` of its content are kept.
pub fn next_member(
    file: &mut impl BufRead,
    limit_bytes: u64,
    max_bytes: u64,
) -> Result<Option<Member>, InflateFault> {
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

impl From<io::Error> for InflateFault {
    fn from(error: io::Error) -> InflateFault {
        match error.kind() {
            ErrorKind::UnexpectedEof => InflateFault::Truncated,
            ErrorKind::InvalidInput | ErrorKind::InvalidData => {
                InflateFault::Corrupt(error.to_string())
            }
            _ => InflateFault::Unreadable(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn member(content: &[u8]) -> Vec<u8> {
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
        let (first, second) = (member(b"first"), member(b"second"));
        let file = [first.clone(), second.clone()].concat();
        for end in 0..=file.len() {
            let (mut rest, mut left) = (&file[..], end as u64);
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
            let expected = if is_at_an_end { Ok(None) } else { Err(InflateFault::Truncated) };
            assert_eq!(last, expected, "{end}");
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
