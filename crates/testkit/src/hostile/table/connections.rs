//! Connections that end too early or too late, or send more than requested.

use fetchwell_policy::outcome::AnswerFault::NotHttp;
use fetchwell_policy::outcome::NetworkFault::{ConnectRefused, Reset};

use super::super::behaviour::{Behaviour, Good};
use super::super::step::HostileStep;
use super::{HELLO, hello};

const POISON: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison";

pub(super) fn behaviours() -> Vec<Behaviour> {
    [broken(), talkative()].concat()
}

fn broken() -> Vec<Behaviour> {
    let part = "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello";
    vec![
        Behaviour::new("close-at-once", "closes the connection unread", vec![]),
        Behaviour::new("reset-at-once", "resets the connection unread", vec![HostileStep::Reset])
            .fails(ConnectRefused),
        Behaviour::new("empty-reply", "reads the request and closes", vec![HostileStep::Read]),
        Behaviour::begins("reset-after-request", "reads and resets", "", HostileStep::Reset),
        Behaviour::says("close-in-status-line", "closes in the status line", "HTTP/1.1 20"),
        Behaviour::says("close-in-headers", "closes in the headers", "HTTP/1.1 200 OK\r\nx: y"),
        Behaviour::begins(
            "reset-in-headers",
            "resets in the headers",
            "HTTP/1.1 200 OK\r\nx",
            HostileStep::Reset,
        ),
        Behaviour::begins("reset-in-body", "resets in the body", part, HostileStep::Reset),
        Behaviour::begins(
            "half-close-in-body",
            "half-closes in the body",
            part,
            HostileStep::HalfClose,
        ),
        Behaviour::new(
            "half-close-unasked",
            "half-closes at once",
            vec![HostileStep::HalfClose, HostileStep::Silence],
        ),
        Behaviour::says(
            "only-continue",
            "100 Continue and no more",
            "HTTP/1.1 100 Continue\r\n\r\n",
        ),
    ]
    .into_iter()
    .map(|behaviour| behaviour.fails(Reset))
    .collect()
}

fn talkative() -> Vec<Behaviour> {
    let after = |name, does, headers: &str, more: &[u8]| {
        Behaviour::says(name, does, [&hello(headers), more].concat()).page(HELLO)
    };
    let close = "connection: close\r\n";
    let later = vec![
        HostileStep::Read,
        HostileStep::Write(hello("")),
        HostileStep::Pause,
        HostileStep::Write(POISON.into()),
        HostileStep::Silence,
    ];
    let early = vec![HostileStep::Write(hello("")), HostileStep::Silence];
    vec![
        after("second-answer", "a second answer that nobody asked for", "", POISON),
        after("second-answer-after-close", "a second answer after the last", close, POISON),
        after("garbage-after-answer", "garbage after the answer", "", b"\0\0garbage"),
        after("blank-lines-after-answer", "blank lines after the answer", "", b"\r\n\r\n"),
        Behaviour::new("second-answer-later", "a second answer, a moment later", later).page(HELLO),
        Behaviour::begins(
            "flood-after-answer",
            "the answer, and then no end",
            hello(""),
            HostileStep::Flood(b"x".into()),
        )
        .page(HELLO),
        Behaviour::begins(
            "half-close-after-answer",
            "the answer, and half-closes",
            hello(""),
            HostileStep::HalfClose,
        )
        .page(HELLO),
        Behaviour::begins(
            "keeps-open-after-close",
            "says close and does not",
            hello(close),
            HostileStep::Silence,
        )
        .page(HELLO),
        Behaviour::begins(
            "reset-after-answer",
            "the answer, and then a reset",
            hello(""),
            HostileStep::Reset,
        )
        .good([Good::Page(HELLO), Good::Network(Reset)]),
        Behaviour::new("answer-before-request", "answers before it is asked", early).good([
            Good::Page(HELLO),
            Good::Network(Reset),
            Good::BadAnswer(NotHttp),
        ]),
    ]
}
