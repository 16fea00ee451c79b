//! Encodes bodies in every content encoding.

use async_compression::Level;
use async_compression::tokio::write::{BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder};
use futures::FutureExt;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Zeros as one zstd block: one byte, repeated 128 KiB times.
pub(super) const ZSTD_ZEROS: [u8; 4] = [0x02, 0x00, 0x10, 0x00];

/// The window descriptor of a zstd frame for 8 MiB of memory.
pub(super) const ZSTD_WINDOW_8_MIB: u8 = 13 << 3;
/// The same for 2 GiB.
pub(super) const ZSTD_WINDOW_2_GIB: u8 = 21 << 3;

pub(super) fn gzip(text: &[u8]) -> Vec<u8> {
    encoded(GzipEncoder::new(Vec::new()), text, GzipEncoder::into_inner)
}

pub(super) fn zlib(text: &[u8]) -> Vec<u8> {
    encoded(ZlibEncoder::new(Vec::new()), text, ZlibEncoder::into_inner)
}

pub(super) fn raw_deflate(text: &[u8]) -> Vec<u8> {
    encoded(DeflateEncoder::new(Vec::new()), text, DeflateEncoder::into_inner)
}

pub(super) fn brotli(text: &[u8]) -> Vec<u8> {
    // At the default level, compressing a bomb takes seconds.
    let encoder = BrotliEncoder::with_quality(Vec::new(), Level::Fastest);
    encoded(encoder, text, BrotliEncoder::into_inner)
}

/// The beginning of a zstd frame: magic number, no optional fields, and a window of this size.
pub(super) fn zstd_begin(window: u8) -> Vec<u8> {
    vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, window]
}

/// A zstd frame with the uncompressed text in a single block.
pub(super) fn zstd(window: u8, text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or_default();
    let block = ((length << 3) | 1).to_le_bytes();
    [&zstd_begin(window), &block[..3], text].concat()
}

/// Encodes in memory, where writing never blocks or fails.
fn encoded<E>(mut encoder: E, text: &[u8], into_inner: fn(E) -> Vec<u8>) -> Vec<u8>
where
    E: AsyncWrite + Unpin,
{
    let writing = async {
        encoder.write_all(text).await?;
        encoder.shutdown().await
    };
    match writing.now_or_never() {
        Some(Ok(())) => into_inner(encoder),
        other => panic!("a body can't be encoded: {other:?}"),
    }
}
