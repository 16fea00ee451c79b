//! HTTP/2, frame by frame.

mod breaches;
mod floods;
mod stalls;

use fetchwell_policy::outcome::NetworkFault::Reset;

use super::super::behaviour::{Behaviour, Over};
use super::super::frames::{
    END_HEADERS, END_STREAM, FIRST_STREAM, Kind, frame, greeting, literal, ok_head,
};
use super::super::step::HostileStep;
use super::HELLO;

/// No error; the server just closes the connection.
const NO_ERROR: [u8; 4] = [0; 4];
const INTERNAL_ERROR: [u8; 4] = [0, 0, 0, 2];
const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];

/// `:status: 103`, with an indexed name and a literal value.
const STATUS_103: [u8; 5] = [0x08, 0x03, b'1', b'0', b'3'];

pub(super) fn behaviours() -> Vec<Behaviour> {
    [good(), ends(), floods::behaviours(), stalls::behaviours(), breaches::behaviours()].concat()
}

fn good() -> Vec<Behaviour> {
    let page = || vec![ok_head(), data(END_STREAM, HELLO)];
    let padded = [&[3], HELLO, &[0; 3]].concat();
    let unknown = vec![0, 0, 1, 0xee, 0, 0, 0, 0, 1, 0];
    let hints = headers(END_HEADERS, &STATUS_103);
    vec![
        answers("h2-page", "a page", &page(), HostileStep::Silence),
        answers(
            "h2-padded",
            "a padded page",
            &[ok_head(), frame(Kind::Data, END_STREAM | 0x8, FIRST_STREAM, &padded)],
            HostileStep::Silence,
        ),
        answers(
            "h2-early-hints",
            "103, then the page",
            &[vec![hints], page()].concat(),
            HostileStep::Silence,
        ),
        answers(
            "h2-trailers",
            "a page with trailers",
            &[ok_head(), data(0, HELLO), headers(END_HEADERS | END_STREAM, &literal("x", "y"))],
            HostileStep::Silence,
        ),
        answers(
            "h2-unknown-frames",
            "frames of kinds that nobody knows",
            &[vec![unknown], page()].concat(),
            HostileStep::Silence,
        ),
        answers(
            "h2-goodbye-after-page",
            "a page, and GOAWAY",
            &[page(), vec![go_away(1)]].concat(),
            HostileStep::Silence,
        ),
        answers(
            "h2-ping-flood-after-page",
            "a page, and pings without end",
            &page(),
            HostileStep::Flood(ping()),
        ),
    ]
    .into_iter()
    .map(|behaviour| behaviour.page(HELLO))
    .collect()
}

fn ends() -> Vec<Behaviour> {
    let reset = |code: [u8; 4]| frame(Kind::ResetStream, 0, FIRST_STREAM, &code);
    vec![
        greets(
            "h2-goaway-at-once",
            "GOAWAY before any request",
            [greeting(), go_away(0)].concat(),
            HostileStep::Silence,
        ),
        answers("h2-goaway", "GOAWAY instead of an answer", &[go_away(0)], HostileStep::Silence),
        answers("h2-goaway-and-close", "GOAWAY, and closes", &[go_away(0)], HostileStep::Cut),
        answers(
            "h2-reset-stream",
            "resets the stream",
            &[reset(INTERNAL_ERROR)],
            HostileStep::Silence,
        ),
        answers(
            "h2-refused-stream",
            "refuses the stream",
            &[reset(REFUSED_STREAM)],
            HostileStep::Silence,
        ),
        answers(
            "h2-reset-in-body",
            "resets the stream in the body",
            &[ok_head(), data(0, HELLO), reset(INTERNAL_ERROR)],
            HostileStep::Silence,
        ),
        answers(
            "h2-cut-in-body",
            "closes in the body",
            &[ok_head(), data(0, HELLO)],
            HostileStep::Cut,
        ),
        answers("h2-cut", "closes instead of an answer", &[], HostileStep::Cut),
    ]
    .into_iter()
    .map(|behaviour| behaviour.fails(Reset))
    .collect()
}

/// Sends the greeting, reads the request, writes these frames, and then runs a step.
fn answers(
    name: &'static str,
    does: &'static str,
    frames: &[Vec<u8>],
    then: HostileStep,
) -> Behaviour {
    let script = vec![
        HostileStep::Write(greeting()),
        HostileStep::ReadFrames,
        HostileStep::Write(frames.concat()),
        then,
    ];
    Behaviour::new(name, does, script).over(Over::Http2)
}

/// The same without reading the request.
fn greets(
    name: &'static str,
    does: &'static str,
    greeting: Vec<u8>,
    then: HostileStep,
) -> Behaviour {
    Behaviour::new(name, does, vec![HostileStep::Write(greeting), then]).over(Over::Http2)
}

fn data(flags: u8, bytes: &[u8]) -> Vec<u8> {
    frame(Kind::Data, flags, FIRST_STREAM, bytes)
}

fn headers(flags: u8, block: &[u8]) -> Vec<u8> {
    frame(Kind::Headers, flags, FIRST_STREAM, block)
}

fn go_away(last_stream: u32) -> Vec<u8> {
    frame(Kind::GoAway, 0, 0, &[&last_stream.to_be_bytes(), &NO_ERROR[..]].concat())
}

fn ping() -> Vec<u8> {
    frame(Kind::Ping, 0, 0, &[7; 8])
}
