//! A little that becomes a lot.

use flate2::{Compress, Compression, Crc, FlushCompress};

const MEBIBYTE: usize = 1 << 20;

/// A gzip member that inflates to this many mebibytes of zeros. Only the first of them is compressed; the others are
/// copies of it.
pub(crate) fn gzip_bomb(mebibytes: usize) -> Vec<u8> {
    let zeros = vec![0; MEBIBYTE];
    let mut block = Vec::with_capacity(MEBIBYTE);
    let mut deflate = Compress::new(Compression::best(), false);
    deflate.compress_vec(&zeros, &mut block, FlushCompress::Full).unwrap();
    let mut crc = Crc::new();
    let mut crc_of_block = Crc::new();
    crc_of_block.update(&zeros);
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    for _ in 0..mebibytes {
        member.extend_from_slice(&block);
        crc.combine(&crc_of_block);
    }
    let empty_last_block = [3, 0];
    member.extend(empty_last_block);
    member.extend(crc.sum().to_le_bytes());
    member.extend(crc.amount().to_le_bytes());
    member
}
