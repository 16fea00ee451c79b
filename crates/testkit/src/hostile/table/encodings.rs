//! Content encodings: bombs, wrong declarations and damage, and unusual but valid ones.

use fetchwell_policy::outcome::AnswerFault::{BadEncoding, Bomb, TooLarge, TooManyFrames};

use super::super::behaviour::{Behaviour, Good};
use super::super::coders::{
    ZSTD_WINDOW_2_GIB, ZSTD_WINDOW_8_MIB, ZSTD_ZEROS, brotli, gzip, raw_deflate, zlib, zstd,
    zstd_begin,
};
use super::super::step::HostileStep;
use super::{HELLO, answer};

/// The decoded size of a bomb.
const BOMB_BYTES: usize = 16 << 20;

pub(super) fn behaviours() -> Vec<Behaviour> {
    [bombs(), endless(), bad(), good()].concat()
}

fn encoded(name: &'static str, does: &'static str, encoding: &str, body: &[u8]) -> Behaviour {
    Behaviour::says(name, does, answer("200 OK", &header(encoding), body))
}

fn header(encoding: &str) -> String {
    format!("content-encoding: {encoding}\r\n")
}

fn bombs() -> Vec<Behaviour> {
    let zeros = vec![0; BOMB_BYTES];
    let blocks = ZSTD_ZEROS.repeat(BOMB_BYTES / (128 << 10));
    let zstd_bomb = [zstd_begin(ZSTD_WINDOW_8_MIB), blocks].concat();
    [
        ("gzip-bomb", "16 MiB in a gzip of 16 kB", "gzip", gzip(&zeros)),
        ("deflate-bomb", "16 MiB in a zlib of 16 kB", "deflate", zlib(&zeros)),
        ("raw-deflate-bomb", "16 MiB in a raw deflate of 16 kB", "deflate", raw_deflate(&zeros)),
        ("brotli-bomb", "16 MiB in a Brotli of a few kB", "br", brotli(&zeros)),
        ("zstd-bomb", "16 MiB in a zstd of 512 bytes", "zstd", zstd_bomb),
    ]
    .map(|(name, does, encoding, body)| encoded(name, does, encoding, &body).bad(Bomb))
    .into()
}

fn endless() -> Vec<Behaviour> {
    let begins = |name, does, encoding: &str, body: &[u8], flood: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", header(encoding));
        let script = vec![
            HostileStep::Read,
            HostileStep::Write([head.as_bytes(), body].concat()),
            HostileStep::Flood(flood.to_vec()),
        ];
        Behaviour::new(name, does, script)
    };
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18][..], &1_000_u32.to_le_bytes(), &[0; 1_000]].concat();
    let mut named = gzip(HELLO);
    named[3] = 0x08; // A file name follows, up to a NUL.
    vec![
        begins(
            "endless-zstd-bomb",
            "zstd of zeros without end",
            "zstd",
            &zstd_begin(ZSTD_WINDOW_8_MIB),
            &ZSTD_ZEROS,
        )
        .bad(Bomb),
        begins(
            "endless-empty-members",
            "empty gzip members without end",
            "gzip",
            &gzip(HELLO),
            &gzip(b""),
        )
        .bad(TooManyFrames),
        begins(
            "endless-skippable-frames",
            "zstd frames of nothing without end",
            "zstd",
            b"",
            &skippable,
        )
        .good([Good::BadAnswer(TooLarge), Good::BadAnswer(TooManyFrames)]),
        begins(
            "endless-gzip-name",
            "a file's name in gzip without end",
            "gzip",
            &named[..10],
            b"x",
        )
        .bad(TooLarge),
        begins(
            "garbage-without-end-after-gzip",
            "gzip, and then garbage without end",
            "gzip",
            &gzip(HELLO),
            b"garbage",
        )
        .good([Good::BadAnswer(TooLarge), Good::Page(HELLO)]),
    ]
}

fn bad() -> Vec<Behaviour> {
    let long: Vec<u8> = (0..=u8::MAX).cycle().take(50_000).collect();
    let whole = gzip(&long);
    let mut corrupt = whole.clone();
    let middle = corrupt.len() / 2;
    corrupt[middle] ^= 0xff;
    let mut wrong_sum = gzip(HELLO);
    let sum_at = wrong_sum.len() - 8;
    wrong_sum[sum_at] ^= 1;
    let twice = gzip(&gzip(HELLO));
    [
        ("gzip-in-gzip", "two layers", "gzip, gzip", twice.clone()),
        (
            "gzip-in-gzip-in-two-headers",
            "two layers in two headers",
            "gzip\r\ncontent-encoding: gzip",
            twice,
        ),
        ("unknown-encoding", "an encoding that we did not ask for", "compress", HELLO.into()),
        ("encoding-lie", "says gzip, is plain", "gzip", HELLO.into()),
        ("brotli-lie", "says Brotli, is gzip", "br", gzip(&long)),
        ("zstd-lie", "says zstd, is plain", "zstd", HELLO.into()),
        ("deflate-lie", "says deflate, is nothing of the kind", "deflate", vec![0xff; 20]),
        ("corrupt-gzip", "gzip with a byte turned", "gzip", corrupt),
        ("truncated-gzip", "half a gzip", "gzip", whole[..whole.len() / 2].to_vec()),
        ("gzip-without-trailer", "gzip without its sum", "gzip", gzip(HELLO)[..20].to_vec()),
        ("gzip-of-wrong-sum", "gzip with a wrong sum", "gzip", wrong_sum),
        (
            "second-member-corrupt",
            "a good gzip member and a bad one",
            "gzip",
            [gzip(HELLO), vec![0x1f, 0x8b, 0xff, 0xff]].concat(),
        ),
        (
            "zstd-of-huge-window",
            "zstd that wants 2 GiB of memory",
            "zstd",
            zstd(ZSTD_WINDOW_2_GIB, HELLO),
        ),
    ]
    .map(|(name, does, encoding, body)| encoded(name, does, encoding, &body).bad(BadEncoding))
    .into()
}

/// Unusual, but browsers accept it.
fn good() -> Vec<Behaviour> {
    let zstd = |text| zstd(ZSTD_WINDOW_8_MIB, text);
    let rows = [
        ("gzip-members", "several gzip members", "gzip", [gzip(b"he"), gzip(b"llo")].concat()),
        (
            "gzip-and-garbage",
            "gzip, and garbage after",
            "gzip",
            [&gzip(HELLO), &b"junk"[..]].concat(),
        ),
        ("gzip-and-zeros", "gzip, padded with zeros", "gzip", [gzip(HELLO), vec![0; 512]].concat()),
        ("raw-deflate", "deflate without zlib around it", "deflate", raw_deflate(HELLO)),
        ("zlib-deflate", "deflate as it should be", "deflate", zlib(HELLO)),
        (
            "zlib-and-garbage",
            "zlib, and garbage after",
            "deflate",
            [&zlib(HELLO), &b"junk"[..]].concat(),
        ),
        (
            "brotli-and-garbage",
            "Brotli, and garbage after",
            "br",
            [&brotli(HELLO), &b"junk"[..]].concat(),
        ),
        ("zstd-frames", "several zstd frames", "zstd", [zstd(b"he"), zstd(b"llo")].concat()),
        (
            "zstd-and-garbage",
            "zstd, and garbage after",
            "zstd",
            [&zstd(HELLO), &b"\xff\xff"[..]].concat(),
        ),
        ("shouted-encoding", "an encoding in capitals", "GZIP", gzip(HELLO)),
        ("old-name-of-gzip", "x-gzip", "x-gzip", gzip(HELLO)),
        ("identity", "an encoding that is none", "identity", HELLO.into()),
        ("empty-encoding", "an encoding without a name", "", HELLO.into()),
    ];
    let mut rows: Vec<Behaviour> = rows
        .map(|(name, does, encoding, body)| encoded(name, does, encoding, &body).page(HELLO))
        .into();
    rows.push(encoded("empty-gzip", "gzip of not even a header", "gzip", b"").page(b""));
    rows
}
