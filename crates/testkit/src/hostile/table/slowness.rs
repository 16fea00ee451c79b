//! Slow servers.

use fetchwell_policy::outcome::AnswerFault::NotHttp;
use fetchwell_policy::outcome::NetworkFault::Reset;

use super::super::behaviour::{Behaviour, Good};
use super::super::step::HostileStep;
use super::{HELLO, chunked};

const LONG: &str = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";

pub(super) fn behaviours() -> Vec<Behaviour> {
    [too_slow(), stalls(), slow_enough()].concat()
}

fn too_slow() -> Vec<Behaviour> {
    let trickle = |name, does, begins: &str, piece: &str| {
        Behaviour::begins(name, does, begins, HostileStep::Trickle(piece.into())).times_out()
    };
    let head = "HTTP/1.1 200 OK\r\n";
    vec![
        trickle("drip-body", "a body byte by byte", LONG, "x"),
        trickle(
            "drip-endless-body",
            "a body without end, byte by byte",
            "HTTP/1.1 200 OK\r\n\r\n",
            "x",
        ),
        trickle("drip-chunks", "chunks byte by byte", &chunked(""), "1\r\nx\r\n"),
        trickle("drip-extension", "a chunk's extension byte by byte", &chunked("5;"), "x"),
        trickle("drip-trailers", "trailers one by one", &chunked("0\r\n"), "x: y\r\n"),
        trickle("drip-headers", "headers one by one", head, "x-more: y\r\n"),
        trickle("drip-header", "a header byte by byte", head, "x"),
        trickle("drip-status-line", "a status line byte by byte", "HTTP/1.1 200 ", "O"),
        trickle("drip-continue", "100 Continue, one by one", "", "HTTP/1.1 100 Continue\r\n\r\n")
            .bad(NotHttp),
        trickle("drip-blank-lines", "blank lines one by one", "", "\r\n"),
    ]
}

fn stalls() -> Vec<Behaviour> {
    let stall = |name, does, begins: &str| {
        Behaviour::begins(name, does, begins, HostileStep::Silence).times_out()
    };
    vec![
        Behaviour::new(
            "silence",
            "takes the connection and says nothing",
            vec![HostileStep::Silence],
        )
        .times_out(),
        stall("silence-after-request", "reads the request and says nothing", ""),
        stall("stall-in-status-line", "stops in the status line", "HTTP/1.1 2"),
        stall("stall-in-headers", "stops in the headers", "HTTP/1.1 200 OK\r\nx: "),
        stall("stall-before-body", "stops after the headers", LONG),
        stall("stall-in-body", "stops in the body", &format!("{LONG}hello")),
        stall("stall-in-chunk", "stops in a chunk", &chunked("50\r\nhello")),
        stall("stall-before-last-chunk", "stops before the last chunk", &chunked("5\r\nhello\r\n")),
        stall(
            "stall-without-length",
            "stops in a body that only its end ends",
            "HTTP/1.1 200 OK\r\n\r\nhello",
        ),
    ]
}

/// Slow, but not for long.
fn slow_enough() -> Vec<Behaviour> {
    let page = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    let drip = HostileStep::Drip(HELLO.into());
    let cut = vec![
        HostileStep::Read,
        HostileStep::Write(LONG.into()),
        HostileStep::Drip(HELLO.into()),
        HostileStep::Reset,
    ];
    vec![
        Behaviour::begins("slow-page", "a short page byte by byte", page, drip).page(HELLO),
        Behaviour::new("slow-then-reset", "byte by byte, and then a reset", cut)
            .good([Good::Network(Reset)]),
    ]
}
