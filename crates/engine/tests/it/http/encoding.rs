//! Content encodings are undone, within the caps.

use async_compression::tokio::write::{
    BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder,
};
use fetchwell_engine::web::Request;
use fetchwell_policy::outcome::{AnswerFault, FetchOutcome};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::client::{answered, client, client_limited, exchange, failure, fetch};
use super::script::{Server, Step, answer, ok};

async fn encoded<E>(mut encoder: E, text: &[u8], into_inner: fn(E) -> Vec<u8>) -> Vec<u8>
where
    E: AsyncWrite + Unpin,
{
    encoder.write_all(text).await.unwrap();
    encoder.shutdown().await.unwrap();
    into_inner(encoder)
}

async fn gzip(text: &[u8]) -> Vec<u8> {
    encoded(GzipEncoder::new(Vec::new()), text, GzipEncoder::into_inner).await
}

async fn zlib(text: &[u8]) -> Vec<u8> {
    encoded(ZlibEncoder::new(Vec::new()), text, ZlibEncoder::into_inner).await
}

async fn raw_deflate(text: &[u8]) -> Vec<u8> {
    encoded(DeflateEncoder::new(Vec::new()), text, DeflateEncoder::into_inner).await
}

async fn brotli(text: &[u8]) -> Vec<u8> {
    encoded(BrotliEncoder::new(Vec::new()), text, BrotliEncoder::into_inner).await
}

async fn zstd(text: &[u8]) -> Vec<u8> {
    encoded(ZstdEncoder::new(Vec::new()), text, ZstdEncoder::into_inner).await
}

/// The text in every encoding, with its name in the header.
async fn in_every_encoding(text: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("gzip", gzip(text).await),
        ("deflate", zlib(text).await),
        ("deflate", raw_deflate(text).await),
        ("br", brotli(text).await),
        ("zstd", zstd(text).await),
    ]
}

fn encoded_answer(encoding: &str, body: &[u8]) -> Vec<u8> {
    ok(&format!("content-encoding: {encoding}\r\n"), body)
}

fn bad_encoding() -> FetchOutcome {
    FetchOutcome::BadAnswer(AnswerFault::BadEncoding)
}

/// Text that does not shrink much, so that all its bytes count.
fn long_text() -> Vec<u8> {
    (0_u32..50_000).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

#[tokio::test]
async fn every_encoding_is_undone() {
    let client = client();
    for text in [b"hello".to_vec(), long_text()] {
        for (encoding, body) in in_every_encoding(&text).await {
            let server = Server::answering(encoded_answer(encoding, &body)).await;
            let answer = fetch(&client, server.url("/")).await;
            assert!(answer.body == text, "{encoding}, {} bytes", text.len());
        }
    }
}

#[tokio::test]
async fn an_encoding_is_undone_however_the_bytes_arrive() {
    let client = client();
    for (encoding, body) in in_every_encoding(b"hello").await {
        let (first, rest) = body.split_at(1);
        let script = vec![
            Step::Read,
            Step::Write(
                encoded_answer(encoding, &body)[..].strip_suffix(&body[..]).unwrap().into(),
            ),
            Step::Write(first.into()),
            Step::Pause(Duration::from_millis(50)), // So that the first byte comes alone.
            Step::Write(rest.into()),
        ];
        let server = Server::start([script]).await;
        assert_eq!(fetch(&client, server.url("/")).await.body, "hello", "{encoding}");
    }
}

#[tokio::test]
async fn all_members_of_a_body_are_read() {
    let client = client();
    for (encoding, [first, second]) in [
        ("gzip", [gzip(b"hello ").await, gzip(b"world").await]),
        ("zstd", [zstd(b"hello ").await, zstd(b"world").await]),
    ] {
        let body = [first, second].concat();
        let server = Server::answering(encoded_answer(encoding, &body)).await;
        assert_eq!(fetch(&client, server.url("/")).await.body, "hello world", "{encoding}");
    }
}

/// Each frame costs time, however little is in it: a body of ten megabytes could have a million of them.
#[tokio::test]
async fn a_body_of_too_many_frames_is_bad() {
    let client = client_limited(|limits| limits.max_frames = 100);
    for (encoding, empty, full) in [
        ("gzip", gzip(b"").await, gzip(b"hello").await),
        ("zstd", zstd(b"").await, zstd(b"hello").await),
        // A frame that is to be skipped, of no bytes.
        ("zstd", [0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0].to_vec(), zstd(b"hello").await),
    ] {
        for (empty_frames, is_good) in [(99, true), (100, false), (100_000, false)] {
            let body = [empty.repeat(empty_frames), full.clone()].concat();
            let server = Server::answering(encoded_answer(encoding, &body)).await;
            if is_good {
                assert_eq!(fetch(&client, server.url("/")).await.body, "hello", "{encoding}");
            } else {
                let expected = FetchOutcome::BadAnswer(AnswerFault::TooManyFrames);
                let happened = failure(&client, server.url("/")).await;
                assert_eq!(happened, expected, "{encoding}, {empty_frames} frames");
            }
        }
    }
}

#[tokio::test]
async fn names_of_encodings_are_read_as_they_come() {
    let client = client();
    let gzip = gzip(b"hello").await;
    for (name, body) in
        [("GZip", &gzip[..]), ("x-gzip", &gzip[..]), ("identity", b"hello"), ("", b"hello")]
    {
        let server = Server::answering(encoded_answer(name, body)).await;
        assert_eq!(fetch(&client, server.url("/")).await.body, "hello", "{name}");
    }
}

/// Some servers say of every `.gz` file that it is encoded; a part of it can't be decoded by itself.
#[tokio::test]
async fn a_range_is_taken_as_it_comes() {
    let client = client();
    let file = gzip(&long_text()).await;
    for part in [&file[..], &file[7..400], &file[..400], b"plain"] {
        for encoding in ["gzip", "br", "compress"] {
            let server = Server::answering(encoded_answer(encoding, part)).await;
            let request = Request::page(server.url("/")).with_header("range", "bytes=7-399");
            let answer = answered(exchange(&client, request).await);
            assert!(answer.body == part, "{encoding}, {} bytes", part.len());
        }
    }
}

#[tokio::test]
async fn corrupt_bodies_are_bad() {
    let client = client();
    for (encoding, mut body) in in_every_encoding(&long_text()).await {
        let middle = body.len() / 2;
        body.truncate(middle);
        let server = Server::answering(encoded_answer(encoding, &body)).await;
        assert_eq!(failure(&client, server.url("/")).await, bad_encoding(), "cut {encoding}");

        let server = Server::answering(encoded_answer(encoding, b"\xFF\xFFnonsense")).await;
        assert_eq!(failure(&client, server.url("/")).await, bad_encoding(), "no {encoding}");
    }
    let mut wrong_checksum = gzip(b"hello").await;
    let at = wrong_checksum.len() - 8;
    wrong_checksum[at] ^= 1;
    let server = Server::answering(encoded_answer("gzip", &wrong_checksum)).await;
    assert_eq!(failure(&client, server.url("/")).await, bad_encoding());
}

#[tokio::test]
async fn other_encodings_and_several_layers_are_bad() {
    let client = client();
    let twice = gzip(&gzip(b"hello").await).await;
    for header in [
        "content-encoding: gzip, gzip\r\n",
        "content-encoding: gzip\r\ncontent-encoding: gzip\r\n",
        "content-encoding: compress\r\n",
        "content-encoding: \u{fe}\r\n",
    ] {
        let server = Server::answering(ok(header, &twice)).await;
        assert_eq!(failure(&client, server.url("/")).await, bad_encoding(), "{header}");
    }
}

#[tokio::test]
async fn an_empty_body_needs_no_decoding() {
    let client = client();
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        let server = Server::answering(encoded_answer(encoding, b"")).await;
        assert_eq!(fetch(&client, server.url("/")).await.body, "", "{encoding}");
    }
}

#[tokio::test]
async fn a_body_that_inflates_beyond_the_ratio_is_a_bomb() {
    let client = client();
    let mebibyte = vec![0; 1 << 20];
    let server = Server::answering(encoded_answer("gzip", &gzip(&mebibyte).await)).await;
    assert_eq!(fetch(&client, server.url("/")).await.body.len(), 1 << 20);

    let bomb = vec![0; 5 << 20];
    for (encoding, body) in in_every_encoding(&bomb).await {
        let server = Server::answering(encoded_answer(encoding, &body)).await;
        let expected = FetchOutcome::BadAnswer(AnswerFault::Bomb);
        assert_eq!(failure(&client, server.url("/")).await, expected, "{encoding}");
    }
}

#[tokio::test]
async fn the_size_limit_counts_inflated_bytes_and_closes_the_connection() {
    let client = client_limited(|limits| limits.max_body_bytes = 10_000);
    let over = gzip(&[b'x'; 10_001]).await;
    let script = [answer(encoded_answer("gzip", &over)), vec![Step::AwaitClose]].concat();
    let server = Server::start([script, answer(ok("", b"hello"))]).await;
    let expected = FetchOutcome::BadAnswer(AnswerFault::TooLarge);
    assert_eq!(failure(&client, server.url("/")).await, expected);
    assert_eq!(fetch(&client, server.url("/")).await.body, "hello");
    assert_eq!(server.seen().connections, 2);
}

/// The decoder knows its end before the last chunk says so; the connection is good all the same.
#[tokio::test]
async fn an_encoded_body_in_chunks_leaves_its_connection_usable() {
    let client = client();
    for (encoding, body) in in_every_encoding(b"hello").await {
        let mut chunked = format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-encoding: {encoding}\r\n\r\n\
             {:x}\r\n",
            body.len()
        )
        .into_bytes();
        chunked.extend(body);
        let once = vec![
            Step::Read,
            Step::Write(chunked),
            Step::Pause(Duration::from_millis(50)), // So that the decoder ends before.
            Step::Write(b"\r\n0\r\n\r\n".to_vec()),
        ];
        let server = Server::start([[once.clone(), once].concat()]).await;
        for _ in 0..2 {
            assert_eq!(fetch(&client, server.url("/")).await.body, "hello", "{encoding}");
        }
        assert_eq!(server.seen().connections, 1, "{encoding}");
    }
}

#[tokio::test]
async fn a_zstd_body_may_ask_for_a_window_of_8_mib_and_no_larger() {
    // The magic number, no options, the window (2 to the power of 10 and its upper five bits), and one
    // last block that is stored as it is.
    let frame =
        |window| [&[0x28, 0xB5, 0x2F, 0xFD, 0, window, 5 << 3 | 1, 0, 0], &b"hello"[..]].concat();
    let server = Server::answering(encoded_answer("zstd", &frame(13 << 3))).await;
    assert_eq!(fetch(&client(), server.url("/")).await.body, "hello");
    let server = Server::answering(encoded_answer("zstd", &frame(14 << 3))).await;
    assert_eq!(failure(&client(), server.url("/")).await, bad_encoding());
}
