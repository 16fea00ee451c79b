//! The end of a body: wrong lengths and chunks, and endless bodies.

use fetchwell_policy::outcome::AnswerFault::{BadEncoding, NotHttp, TooLarge};
use fetchwell_policy::outcome::NetworkFault::Reset;

use super::super::behaviour::{Behaviour, Good};
use super::super::step::HostileStep;
use super::{HELLO, chunked, hello};

pub(super) fn behaviours() -> Vec<Behaviour> {
    [endless(), lengths(), bad_chunks(), good_chunks(), bytes()].concat()
}

fn endless() -> Vec<Behaviour> {
    let flood = |piece: &str| HostileStep::Flood(piece.into());
    let until_close = "HTTP/1.1 200 OK\r\n\r\n";
    let long = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", u64::MAX / 2);
    vec![
        Behaviour::begins("endless-body", "a body without end", until_close, flood("x"))
            .bad(TooLarge),
        Behaviour::begins("endless-long-body", "a length of exabytes, and sent", long, flood("x"))
            .bad(TooLarge),
        Behaviour::begins(
            "endless-chunks",
            "chunks without end",
            chunked(""),
            flood(&format!("400\r\n{}\r\n", "x".repeat(1_024))),
        )
        .bad(TooLarge),
        Behaviour::begins(
            "endless-tiny-chunks",
            "chunks of a byte without end",
            chunked(""),
            flood("1\r\nx\r\n"),
        )
        .good([Good::BadAnswer(TooLarge), Good::TimedOut]),
        Behaviour::begins(
            "endless-extensions",
            "a chunk's extensions without end",
            chunked("5;a=b"),
            flood(";c=d"),
        )
        .bad(NotHttp),
        Behaviour::begins(
            "endless-trailers",
            "trailers without end",
            chunked("5\r\nhello\r\n0\r\n"),
            flood("x: y\r\n"),
        )
        .good([Good::BadAnswer(NotHttp), Good::Page(HELLO)]),
    ]
}

fn lengths() -> Vec<Behaviour> {
    let with = |lengths: &str| format!("HTTP/1.1 200 OK\r\n{lengths}\r\n\r\nhello");
    let says = |name, does, lengths: &str| Behaviour::says(name, does, with(lengths));
    vec![
        says("short-body", "less than its length", "content-length: 50").fails(Reset),
        says("long-body", "more than its length", "content-length: 5\r\nconnection: close")
            .page(HELLO),
        says("same-length-twice", "one length, twice", "content-length: 5\r\ncontent-length: 5")
            .page(HELLO),
        says("two-lengths", "two lengths", "content-length: 5\r\ncontent-length: 4").bad(NotHttp),
        says("negative-length", "a length below zero", "content-length: -5").bad(NotHttp),
        says("word-for-length", "a length that is no number", "content-length: five").bad(NotHttp),
        says("signed-length", "a length with a plus", "content-length: +5").bad(NotHttp),
        says(
            "overflowing-length",
            "a length beyond 64 bits",
            "content-length: 99999999999999999999",
        )
        .bad(NotHttp),
        says("empty-length", "a length of nothing", "content-length:").bad(NotHttp),
        says(
            "unknown-transfer-encoding",
            "a transfer encoding of its own",
            "transfer-encoding: rot13",
        )
        .bad(BadEncoding),
        says(
            "gzip-transfer-encoding",
            "a transfer encoding that nobody asked for",
            "transfer-encoding: gzip",
        )
        .bad(BadEncoding),
        Behaviour::says(
            "length-and-chunks",
            "a length, and chunks all the same",
            "HTTP/1.1 200 OK\r\ncontent-length: 99\r\ntransfer-encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\n\r\n",
        )
        .good([Good::Page(HELLO), Good::BadAnswer(NotHttp)]),
        Behaviour::says(
            "old-chunks",
            "chunks in HTTP/1.0",
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        )
        .good([Good::Page(HELLO), Good::BadAnswer(NotHttp)]),
    ]
}

fn bad_chunks() -> Vec<Behaviour> {
    let mut rows: Vec<Behaviour> = [
        ("word-for-chunk-size", "a chunk's size that is no number", "zz\r\nhello\r\n"),
        ("negative-chunk-size", "a chunk's size below zero", "-5\r\nhello\r\n"),
        ("overflowing-chunk-size", "a chunk's size beyond 64 bits", "fffffffffffffffff\r\nhello"),
        ("prefixed-chunk-size", "a chunk's size with 0x", "0x5\r\nhello\r\n0\r\n\r\n"),
        ("empty-chunk-size", "no chunk's size", "\r\nhello\r\n0\r\n\r\n"),
        ("chunk-longer-than-said", "a chunk that goes on", "3\r\nhello\r\n0\r\n\r\n"),
        ("chunk-without-crlf", "a chunk without its end", "5\r\nhello0\r\n\r\n"),
    ]
    .map(|(name, does, body)| Behaviour::says(name, does, chunked(body)).bad(NotHttp))
    .into();
    rows.extend(
        [
            ("no-last-chunk", "no last chunk", "5\r\nhello\r\n"),
            ("chunk-shorter-than-said", "a chunk that is cut", "50\r\nhello"),
            ("no-chunks", "not even one chunk", ""),
            ("huge-chunk", "a chunk of exabytes, not sent", "7fffffffffffffff\r\nhello"),
        ]
        .map(|(name, does, body)| Behaviour::says(name, does, chunked(body)).fails(Reset)),
    );
    rows
}

fn good_chunks() -> Vec<Behaviour> {
    [
        ("trailers", "trailers after the body", "5\r\nhello\r\n0\r\nx: y\r\n\r\n"),
        ("chunk-extensions", "a chunk with extensions", "5;a=b;c=\"d\"\r\nhello\r\n0\r\n\r\n"),
        ("padded-chunk-size", "a chunk's size with zeros", "00005\r\nhello\r\n000\r\n\r\n"),
        ("spaced-chunk-size", "a chunk's size with spaces", "5  \r\nhello\r\n0\r\n\r\n"),
    ]
    .map(|(name, does, body)| Behaviour::says(name, does, chunked(body)).page(HELLO))
    .into()
}

/// Bodies that are not valid text; their meaning does not matter to the client.
fn bytes() -> Vec<Behaviour> {
    let page = |name, does, headers: &str, body: &'static [u8]| {
        Behaviour::says(name, does, super::answer("200 OK", headers, body)).page(body)
    };
    vec![
        page("nul-bytes", "NULs in the body", "content-type: text/html\r\n", b"he\0\0llo"),
        page(
            "not-utf-8",
            "a body that is not the UTF-8 it says",
            "content-type: text/html; charset=utf-8\r\n",
            b"caf\xe9 \xff\xfe",
        ),
        page(
            "charset-lie",
            "UTF-8 that says it is UTF-16",
            "content-type: text/html; charset=utf-16\r\n",
            b"<p>hello</p>",
        ),
        page(
            "unknown-charset",
            "a charset that nobody knows",
            "content-type: text/html; charset=klingon\r\n",
            b"<p>hello</p>",
        ),
        page(
            "garbage-content-type",
            "a content type that is none",
            "content-type: ;;/,\r\n",
            b"hello",
        ),
        Behaviour::says(
            "two-content-types",
            "two content types",
            hello("content-type: text/html\r\ncontent-type: image/png\r\n"),
        )
        .page(HELLO),
    ]
}
