//! Redirects: loops, invalid targets, and forbidden targets.

use fetchwell_policy::outcome::AnswerFault::{BadRedirect, TooManyRedirects};

use super::super::behaviour::{Behaviour, Good};
use super::super::step::HostileStep;
use super::{HELLO, answer, hello};

pub(super) fn behaviours() -> Vec<Behaviour> {
    [endless(), nowhere(), forbidden(), laden()].concat()
}

fn to(location: &str) -> Vec<u8> {
    answer("302 Found", &format!("location: {location}\r\n"), b"")
}

fn endless() -> Vec<Behaviour> {
    let answers = |name, does, answer: fn(&str) -> Vec<u8>| {
        Behaviour::new(name, does, vec![HostileStep::Read, HostileStep::Answer(answer)])
            .bad(TooManyRedirects)
    };
    vec![
        answers("redirect-loop", "to itself", to),
        answers("redirect-circle", "there and back", |path| {
            to(if path == "/page" { "/other" } else { "/page" })
        }),
        answers("redirect-ever-further", "ever new URLs", |path| to(&format!("{path}x"))),
        answers("redirect-growing", "URLs that double", |path| to(&format!("{path}{path}"))),
    ]
}

fn nowhere() -> Vec<Behaviour> {
    let bare = answer("302 Found", "", HELLO);
    let mut rows = vec![
        Behaviour::says("redirect-without-location", "no Location", bare).bad(BadRedirect),
        Behaviour::says(
            "redirect-not-text",
            "a Location that is no text",
            [b"HTTP/1.1 302 Found\r\nlocation: /caf\xe9\xff\r\ncontent-length: 0\r\n\r\n".to_vec()]
                .concat(),
        )
        .good([Good::BadAnswer(BadRedirect), Good::BadAnswer(TooManyRedirects)]),
    ];
    rows.extend(
        [
            ("redirect-garbage", "a Location that is no URL", "http://[".to_owned()),
            ("redirect-no-host", "a Location without a host", "http://".to_owned()),
            ("redirect-too-long", "a Location of 20 kB", format!("/{}", "x".repeat(20_000))),
        ]
        .map(|(name, does, location)| Behaviour::says(name, does, to(&location)).bad(BadRedirect)),
    );
    rows
}

fn forbidden() -> Vec<Behaviour> {
    [
        ("redirect-to-file", "to a file of ours", "file:///etc/passwd"),
        ("redirect-to-ftp", "to FTP", "ftp://127.0.0.1/"),
        ("redirect-to-javascript", "to a program", "javascript:alert(1)"),
        ("redirect-to-data", "to data", "data:text/html,hello"),
        ("redirect-with-password", "to a URL with a password", "http://me:secret@127.0.0.1/"),
        ("redirect-to-blocked-port", "to a mail server", "http://127.0.0.1:25/"),
        ("redirect-to-private", "to a private network", "http://10.0.0.1/"),
        ("redirect-to-metadata", "to a cloud's secrets", "http://169.254.169.254/latest/"),
        ("redirect-to-mapped", "to a private network in disguise", "http://[::ffff:10.0.0.1]/"),
        ("redirect-to-decimal", "to a private network as a number", "http://167772161/"),
    ]
    .map(|(name, does, location)| Behaviour::says(name, does, to(location)).good([Good::Refused]))
    .into()
}

/// The body of a redirect does not matter; the page that it leads to counts.
fn laden() -> Vec<Behaviour> {
    let lands = |name, does, answer: fn(&str) -> Vec<u8>, then: Vec<HostileStep>| {
        let script = [vec![HostileStep::Read, HostileStep::Answer(answer)], then].concat();
        Behaviour::new(name, does, script).page(HELLO)
    };
    let bad_body: fn(&str) -> Vec<u8> = |path| match path {
        "/page" => answer("302 Found", "location: /landed\r\ncontent-encoding: gzip\r\n", HELLO),
        _ => hello(""),
    };
    vec![
        lands(
            "redirect-with-endless-body",
            "a redirect whose body never ends",
            |path| match path {
                "/page" => b"HTTP/1.1 302 Found\r\nlocation: /landed\r\n\r\n".to_vec(),
                _ => hello(""),
            },
            vec![HostileStep::Flood(b"x".to_vec())],
        ),
        lands(
            "redirect-without-its-body",
            "a redirect that stalls in its body",
            |path| match path {
                "/page" => answer("302 Found", "location: /landed\r\n", &[0; 90])[..90].to_vec(),
                _ => hello(""),
            },
            vec![HostileStep::Silence],
        ),
        // Its connection may be reused.
        lands(
            "redirect-with-bad-body",
            "a redirect whose body is no gzip",
            bad_body,
            vec![HostileStep::Read, HostileStep::Answer(bad_body)],
        ),
    ]
}
