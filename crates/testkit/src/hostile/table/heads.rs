//! Headers: too many, too long, malformed.

use fetchwell_policy::outcome::AnswerFault::{HeadersTooLarge, NotHttp};

use super::super::behaviour::{Behaviour, Good};
use super::super::step::HostileStep;
use super::{HELLO, hello};

pub(super) fn behaviours() -> Vec<Behaviour> {
    [too_much(), much(), misshapen()].concat()
}

fn too_much() -> Vec<Behaviour> {
    let begins = "HTTP/1.1 200 OK\r\n";
    let flood = |piece: &str| HostileStep::Flood(piece.into());
    vec![
        Behaviour::begins("endless-headers", "ever more headers", begins, flood("x-more: y\r\n")),
        Behaviour::begins("endless-value", "a header without end", begins, flood("x: y")),
        Behaviour::begins("endless-name", "a header's name without end", begins, flood("x")),
        Behaviour::begins("endless-reason", "a reason without end", "HTTP/1.1 200 ", flood("x")),
        Behaviour::begins(
            "endless-fold",
            "a folded line without end",
            "HTTP/1.1 200 OK\r\nx: y",
            flood("\r\n folded"),
        ),
        Behaviour::says(
            "ten-thousand-headers",
            "10,000 headers, 130 kB",
            hello(&"x-more: yes\r\n".repeat(10_000)),
        ),
        Behaviour::says(
            "megabyte-header",
            "a header of 1 MB",
            hello(&format!("x: {}\r\n", "y".repeat(1 << 20))),
        ),
        Behaviour::says(
            "many-small-headers",
            "3,000 headers, 18 kB",
            hello(&"x: y\r\n".repeat(3_000)),
        ),
    ]
    .into_iter()
    .map(|behaviour| behaviour.bad(HeadersTooLarge))
    .collect()
}

/// Many, but within the limit on bytes.
fn much() -> Vec<Behaviour> {
    [
        ("thousand-headers", "1,000 headers, 8 kB", "x: yes\r\n".repeat(1_000)),
        ("long-header", "a header of 40 kB", format!("set-cookie: {}\r\n", "y".repeat(40_000))),
    ]
    .map(|(name, does, headers)| Behaviour::says(name, does, hello(&headers)).page(HELLO))
    .into()
}

/// Browsers accept all of this; invalid headers are ignored.
fn misshapen() -> Vec<Behaviour> {
    let mut rows: Vec<Behaviour> = [
        ("no-colon", "a header without a colon", &b"what is this\r\n"[..]),
        ("no-name", "a header without a name", b": nobody\r\n"),
        ("space-before-colon", "a space between name and colon", b"server : odd\r\n"),
        ("folded-header", "a header over two lines", b"x: one\r\n  two\r\n"),
        ("latin-1-header", "a header that is not UTF-8", b"x: caf\xe9\r\n"),
        ("control-in-header", "a control character in a header", b"x: a\x01b\r\n"),
        ("spaces-in-name", "a header's name with spaces", b"an odd name: y\r\n"),
        ("quotes-in-name", "a header's name in quotes", b"\"x\": y\r\n"),
    ]
    .map(|(name, does, header)| Behaviour::says(name, does, hello_with(header)).page(HELLO))
    .into();
    rows.extend(
        [
            ("nul-in-header", "a NUL in a header", &b"x: a\0b\r\n"[..]),
            ("cr-in-header", "a CR within a header", b"x: a\rb\r\n"),
            ("nul-in-name", "a NUL in a header's name", b"a\0b: x\r\n"),
        ]
        .map(|(name, does, header)| {
            let good = [Good::Page(HELLO), Good::BadAnswer(NotHttp)];
            Behaviour::says(name, does, hello_with(header)).good(good)
        }),
    );
    rows
}

fn hello_with(header: &[u8]) -> Vec<u8> {
    [b"HTTP/1.1 200 OK\r\n", header, b"content-length: 5\r\n\r\nhello"].concat()
}
