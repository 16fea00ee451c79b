//! Violations of the protocol.

use fetchwell_policy::outcome::AnswerFault::NotHttp;

use super::super::super::behaviour::{Behaviour, Good};
use super::super::super::frames::{
    END_HEADERS, END_STREAM, FIRST_STREAM, Kind, STATUS_200, frame, literal, ok_head,
};
use super::super::super::step::HostileStep;
use super::super::HELLO;
use super::{answers, data, greets, headers};

/// The outcome for a server that violates the protocol.
const BROKEN: [Good; 1] = [Good::BadAnswer(NotHttp)];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let breach = |name, does, frames: &[Vec<u8>]| {
        answers(name, does, frames, HostileStep::Silence).good(BROKEN)
    };
    let longer = [STATUS_200, &literal("content-length", "50")].concat();
    vec![
        greets(
            "h2-is-http-1",
            "HTTP/1 where HTTP/2 was agreed on",
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello".to_vec(),
            HostileStep::Silence,
        )
        .good(BROKEN),
        breach("h2-oversized-frame", "a frame over the limit", &[ok_head(), data(0, &[0; 20_000])]),
        breach("h2-data-first", "a body before its head", &[data(END_STREAM, HELLO)]),
        breach(
            "h2-no-status",
            "a head without a status",
            &[headers(END_HEADERS | END_STREAM, &literal("x", "y"))],
        ),
        breach(
            "h2-bad-hpack",
            "headers that can't be decoded",
            &[headers(END_HEADERS | END_STREAM, &[0xff; 20])],
        ),
        breach(
            "h2-push",
            "pushes what we said we do not take",
            &[frame(
                Kind::PushPromise,
                END_HEADERS,
                FIRST_STREAM,
                &[&2_u32.to_be_bytes()[..], STATUS_200].concat(),
            )],
        ),
        breach(
            "h2-window-overflow",
            "a window beyond 31 bits",
            &[frame(Kind::WindowUpdate, 0, 0, &[0x7f, 0xff, 0xff, 0xff])],
        ),
        breach(
            "h2-short-body",
            "less than its length",
            &[headers(END_HEADERS, &longer), data(END_STREAM, HELLO)],
        ),
        breach(
            "h2-foreign-stream",
            "an answer on a stream that nobody opened",
            &[frame(Kind::Headers, END_HEADERS | END_STREAM, 99, STATUS_200)],
        ),
        breach("h2-short-ping", "a ping of four bytes", &[frame(Kind::Ping, 0, 0, &[0; 4])]),
        breach(
            "h2-bad-padding",
            "more padding than frame",
            &[ok_head(), frame(Kind::Data, 0x8, FIRST_STREAM, &[200, 0, 0])],
        ),
        breach(
            "h2-data-on-zero",
            "a body on no stream",
            &[ok_head(), frame(Kind::Data, 0, 0, HELLO)],
        ),
    ]
}
