//! Inflates a member in memory piece by piece, so that its whole content is never in memory.

use flate2::{Decompress, FlushDecompress, Status};

use super::{InflateFault, Inflater, WINDOW_BITS};

/// A member with no more content than this is inflated as one piece, which is much faster.
const MAX_AT_ONCE_BYTES: usize = 4 * 1024 * 1024;

const PIECE_BYTES: usize = 64 * 1024;

/// Passes on the content of the first member of the input in pieces, up to `max_bytes`. The pieces before an error are
/// valid content.
pub fn inflate_pieces(
    member: &[u8],
    max_bytes: usize,
    mut take: impl FnMut(&[u8]),
) -> Result<(), InflateFault> {
    let mut inflater = Inflater::default();
    if let Some(bytes) = inflater.at_once(member, max_bytes.min(MAX_AT_ONCE_BYTES)) {
        take(&inflater.content[..bytes]);
        return Ok(());
    }
    let mut stream = Decompress::new_gzip(WINDOW_BITS);
    let mut piece = vec![0; PIECE_BYTES];
    let mut taken = 0;
    let mut given = 0;
    loop {
        let rest = member.get(taken..).unwrap_or_default();
        let status = stream.decompress(rest, &mut piece, FlushDecompress::None);
        let before = (taken, given);
        taken = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
        given = usize::try_from(stream.total_out()).unwrap_or(usize::MAX);
        if given > max_bytes {
            return Err(InflateFault::TooLarge { max_bytes });
        }
        take(&piece[..given - before.1]);
        match status {
            Ok(Status::StreamEnd) => return Ok(()),
            Ok(_) if before == (taken, given) => return Err(InflateFault::Truncated),
            Ok(_) => {}
            Err(error) => return Err(InflateFault::Corrupt(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::inflate_member;
    use super::super::tests::member;
    use super::*;

    /// All pieces together, and the largest.
    fn joined(member: &[u8], max_bytes: usize) -> (Result<Vec<u8>, InflateFault>, usize) {
        let mut content = Vec::new();
        let mut largest = 0;
        let ended = inflate_pieces(member, max_bytes, |piece| {
            content.extend_from_slice(piece);
            largest = largest.max(piece.len());
        });
        (ended.map(|()| content), largest)
    }

    #[test]
    fn pieces_are_what_the_whole_is() {
        let content: Vec<u8> =
            (0..MAX_AT_ONCE_BYTES + 1).map(|n| (n * n / 7 % 251) as u8).collect();
        let large = member(&content);
        let mut broken = large.clone();
        let crc = broken.len() - 8;
        broken[crc] ^= 1;
        let small = member(b"small");
        let max = content.len();
        let cut = large.len() / 2;
        for input in [&small, &large, &large[..cut], &large[..large.len() - 1], &broken, b"", b"no"]
        {
            for max_bytes in [max, max - 1, 5, 4] {
                let (pieces, largest) = joined(input, max_bytes);
                assert_eq!(pieces, inflate_member(input, max_bytes), "{max_bytes}");
                assert!(largest <= PIECE_BYTES, "{largest}");
            }
        }
    }
}
