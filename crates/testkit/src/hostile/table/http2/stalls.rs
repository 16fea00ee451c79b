//! Servers that stop, or almost stop.

use super::super::super::behaviour::Behaviour;
use super::super::super::frames::{Kind, STATUS_200, frame, ok_head};
use super::super::super::step::HostileStep;
use super::super::HELLO;
use super::{answers, data, greets, headers, ping};

pub(super) fn behaviours() -> Vec<Behaviour> {
    let no_streams = frame(Kind::Settings, 0, 0, &[0, 3, 0, 0, 0, 0]);
    let trickles = |name, does, begins: &[Vec<u8>], piece| {
        answers(name, does, begins, HostileStep::Trickle(piece))
    };
    vec![
        greets("h2-silence", "says nothing at all", vec![], HostileStep::Silence),
        greets("h2-no-streams", "allows no stream", no_streams, HostileStep::Silence),
        answers("h2-stall", "says nothing to the request", &[], HostileStep::Silence),
        answers(
            "h2-stall-in-head",
            "stops in the headers",
            &[headers(0, STATUS_200)],
            HostileStep::Silence,
        ),
        answers(
            "h2-stall-before-body",
            "stops after the headers",
            &[ok_head()],
            HostileStep::Silence,
        ),
        answers(
            "h2-stall-in-body",
            "stops in the body",
            &[ok_head(), data(0, HELLO)],
            HostileStep::Silence,
        ),
        trickles("h2-drip-body", "a body byte by byte", &[ok_head()], data(0, b"x")),
        trickles("h2-drip-pings", "pings, one by one", &[], ping()),
    ]
    .into_iter()
    .map(Behaviour::times_out)
    .collect()
}
