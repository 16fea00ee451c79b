//! Bodies, as archives have them, with their encodings undone.

use std::io::Write;

use fetchwell_archive::{BodyFlaw, HttpMessage};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

const TEXT: &str =
    "The quick brown fox jumps over the lazy dog, and the lazy dog does not mind it. ";

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zlib(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn deflate(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn brotli(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    brotli::CompressorWriter::new(&mut out, 4_096, 5, 20).write_all(content).unwrap();
    out
}

fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 3).unwrap()
}

fn chunked(content: &[u8], chunk_bytes: usize, trailer: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in content.chunks(chunk_bytes) {
        write!(out, "{:X};x=y\r\n", chunk.len()).unwrap();
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    write!(out, "0\r\n{trailer}\r\n").unwrap();
    out
}

fn decoded(headers: &str, body: &[u8], max_bytes: usize) -> (Vec<u8>, Option<BodyFlaw>) {
    let head = format!("HTTP/1.1 200 OK\r\n{headers}\r\n");
    let block = [head.as_bytes(), body].concat();
    let mut scratch = b"what was there before".to_vec();
    let body = HttpMessage::parse(&block).unwrap().body(&mut scratch, max_bytes);
    (body.bytes.to_vec(), body.flaw)
}

fn exceeds(headers: &str, body: &[u8], max_bytes: usize) -> bool {
    let head = format!("HTTP/1.1 200 OK\r\n{headers}\r\n");
    let block = [head.as_bytes(), body].concat();
    HttpMessage::parse(&block).unwrap().body_exceeds(max_bytes)
}

fn text() -> Vec<u8> {
    TEXT.repeat(200).into_bytes()
}

#[test]
fn every_encoding_is_undone() {
    let text = text();
    let cases: [(&str, Vec<u8>); 14] = [
        ("", text.clone()),
        ("Content-Encoding: identity\r\n", text.clone()),
        ("X-Crawler-Content-Encoding: gzip\r\n", text.clone()),
        ("Content-Encoding: gzip\r\n", gzip(&text)),
        ("Content-Encoding: X-GZip\r\n", [gzip(&text[..99]), gzip(&text[99..])].concat()),
        ("Content-Encoding: gzip\r\n", [gzip(&text), b"\0junk".to_vec()].concat()),
        ("Content-Encoding: deflate\r\n", zlib(&text)),
        ("Content-Encoding: deflate\r\n", deflate(&text)),
        ("Content-Encoding: br\r\n", brotli(&text)),
        ("Content-Encoding: zstd\r\n", zstd(&text)),
        ("Transfer-Encoding: chunked\r\n", chunked(&text, 1_000, "")),
        ("Transfer-Encoding: Chunked\r\n", chunked(&text, 7, "Expires: 0\r\nX: y\r\n")),
        ("Transfer-Encoding: chunked\r\nContent-Encoding: br\r\n", chunked(&brotli(&text), 99, "")),
        (
            "Transfer-Encoding: gzip, chunked\r\nContent-Encoding: br\r\nContent-Encoding: zstd\r\n",
            chunked(&gzip(&zstd(&brotli(&text))), 99, ""),
        ),
    ];
    for (headers, body) in cases {
        let (bytes, flaw) = decoded(headers, &body, 1 << 20);
        assert!(bytes == text && flaw.is_none(), "{headers:?}: {} bytes, {flaw:?}", bytes.len());
        assert_eq!(decoded(headers, &body, text.len()).1, None, "{headers:?}: it just fits");
        assert!(!exceeds(headers, &body, text.len()), "{headers:?}: it just fits");
        assert!(exceeds(headers, &body, text.len() - 1), "{headers:?}: it is one too many");
    }
}

#[test]
fn what_is_not_encoded_is_given_as_it_is() {
    let html = b"<!DOCTYPE html><html><body>Hello, this is plain.</body></html>";
    for (headers, flaw) in [
        ("Content-Encoding: gzip\r\n", BodyFlaw::NotEncoded),
        ("Content-Encoding: zstd\r\n", BodyFlaw::NotEncoded),
        ("Content-Encoding: deflate\r\n", BodyFlaw::NotEncoded),
        ("Content-Encoding: br\r\n", BodyFlaw::NotEncoded),
        ("Transfer-Encoding: chunked\r\n", BodyFlaw::NotEncoded),
        ("Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n", BodyFlaw::NotEncoded),
        ("Content-Encoding: rot13\r\n", BodyFlaw::UnknownEncoding),
        ("Content-Encoding: br, br, br, br, br\r\n", BodyFlaw::UnknownEncoding),
    ] {
        assert_eq!(decoded(headers, html, 1_000), (html.to_vec(), Some(flaw)), "{headers:?}");
        assert_eq!(decoded(headers, b"", 1_000).0, b"", "{headers:?}");
        assert!(!exceeds(headers, html, html.len()), "{headers:?}");
    }
    // The inner encoding is there, though the outer is not.
    let headers = "Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n";
    assert_eq!(decoded(headers, &gzip(html), 1_000), (html.to_vec(), Some(BodyFlaw::NotEncoded)));
}

#[test]
fn what_is_cut_or_too_large_is_given_as_far_as_it_goes() {
    let text = text();
    for (headers, body) in [
        ("Content-Encoding: gzip\r\n", gzip(&text)),
        ("Content-Encoding: deflate\r\n", zlib(&text)),
        ("Content-Encoding: br\r\n", brotli(&text)),
        ("Content-Encoding: zstd\r\n", zstd(&text)),
    ] {
        let (bytes, flaw) = decoded(headers, &body, 500);
        assert_eq!((bytes.as_slice(), flaw), (&text[..500], Some(BodyFlaw::TooLarge)), "{headers}");
        assert!(exceeds(headers, &body, 500) && !exceeds(headers, &body[..9], 500), "{headers}");
        for end in 1..body.len() - 12 {
            let (bytes, flaw) = decoded(headers, &body[..end], 1 << 20);
            let is_told = matches!(flaw, Some(BodyFlaw::Truncated | BodyFlaw::NotEncoded));
            assert!(is_told, "{headers:?} cut at {end}: {flaw:?}");
            let is_raw = flaw == Some(BodyFlaw::NotEncoded);
            assert!(is_raw || text.starts_with(&bytes), "{headers:?} cut at {end}");
        }
    }
    let chunks = chunked(&text, 1_000, "");
    let (bytes, flaw) = decoded("Transfer-Encoding: chunked\r\n", &chunks[..1_500], 1 << 20);
    assert!(text.starts_with(&bytes) && bytes.len() > 1_400);
    assert_eq!(flaw, Some(BodyFlaw::Truncated));
    let (bytes, flaw) =
        decoded("Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\nfffffffffffffff\r\nde", 1 << 20);
    assert_eq!((bytes.as_slice(), flaw), (b"abcde".as_slice(), Some(BodyFlaw::Truncated)));
    let (bytes, flaw) = decoded("Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\nzz\r\n", 1 << 20);
    assert_eq!((bytes.as_slice(), flaw), (b"abc".as_slice(), Some(BodyFlaw::Corrupt)));
}
