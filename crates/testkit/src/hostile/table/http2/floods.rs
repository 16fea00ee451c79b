//! Endless frames, and headers that inflate.

use fetchwell_policy::outcome::AnswerFault::{HeadersTooLarge, NotHttp, TooLarge};

use super::super::super::behaviour::{Behaviour, Good};
use super::super::super::frames::{
    END_HEADERS, FIRST_STREAM, Kind, STATUS_200, frame, literal, ok_head,
};
use super::super::super::step::HostileStep;
use super::{STATUS_103, answers, data, headers, ping};

pub(super) fn behaviours() -> Vec<Behaviour> {
    let settings = frame(Kind::Settings, 0, 0, &[0, 3, 0, 0, 0, 100]);
    let more = frame(Kind::Continuation, 0, FIRST_STREAM, &literal("x-more", "y"));
    let long = literal("x", &"y".repeat(1_000));
    // A table entry of 4 kB, followed by 10,000 references to it: 40 MB in 14 kB.
    let entry = [&[0x40][..], &literal("x", &"y".repeat(3_900))[1..]].concat();
    let hpack_bomb = [STATUS_200, &entry, &[0xbe; 10_000]].concat();
    let informational = headers(END_HEADERS, &STATUS_103);
    let floods = |name, does, begins: &[Vec<u8>], piece| {
        answers(name, does, begins, HostileStep::Flood(piece))
    };
    let large_head: Vec<Vec<u8>> = std::iter::once(headers(0, STATUS_200))
        .chain((0..100).map(|_| frame(Kind::Continuation, 0, FIRST_STREAM, &long)))
        .chain([frame(Kind::Continuation, END_HEADERS, FIRST_STREAM, &[])])
        .collect();
    vec![
        floods(
            "h2-endless-body",
            "a body without end, beyond every window",
            &[ok_head()],
            data(0, &[b'x'; 1_000]),
        )
        .good([Good::BadAnswer(TooLarge), Good::BadAnswer(NotHttp)]),
        floods(
            "h2-endless-continuation",
            "a header block without end",
            &[headers(0, STATUS_200)],
            more,
        )
        .good([Good::BadAnswer(HeadersTooLarge), Good::BadAnswer(NotHttp)]),
        floods(
            "h2-empty-continuation",
            "empty CONTINUATION frames without end",
            &[headers(0, STATUS_200)],
            frame(Kind::Continuation, 0, FIRST_STREAM, &[]),
        )
        .good([Good::BadAnswer(HeadersTooLarge), Good::BadAnswer(NotHttp), Good::TimedOut]),
        floods("h2-ping-flood", "pings without end", &[], ping())
            .good([Good::TimedOut, Good::BadAnswer(NotHttp)]),
        floods("h2-settings-flood", "settings without end", &[], settings)
            .good([Good::TimedOut, Good::BadAnswer(NotHttp)]),
        floods(
            "h2-window-flood",
            "window updates without end",
            &[],
            frame(Kind::WindowUpdate, 0, 0, &[0, 0, 0, 1]),
        )
        .good([Good::TimedOut, Good::BadAnswer(NotHttp)]),
        floods("h2-empty-data", "empty DATA frames without end", &[ok_head()], data(0, b""))
            .good([Good::TimedOut, Good::BadAnswer(NotHttp)]),
        floods(
            "h2-unknown-flood",
            "unknown frames without end",
            &[],
            vec![0, 0, 1, 0xee, 0, 0, 0, 0, 0, 0],
        )
        .good([Good::TimedOut, Good::BadAnswer(NotHttp)]),
        floods("h2-informational-flood", "103 without end", &[], informational)
            .good([Good::TimedOut, Good::BadAnswer(NotHttp)]),
        answers("h2-large-head", "headers of 100 kB", &large_head, HostileStep::Silence)
            .good([Good::BadAnswer(HeadersTooLarge), Good::BadAnswer(NotHttp)]),
        answers(
            "h2-hpack-bomb",
            "headers that inflate to 40 MB",
            &[headers(END_HEADERS, &hpack_bomb)],
            HostileStep::Silence,
        )
        .good([Good::BadAnswer(HeadersTooLarge), Good::BadAnswer(NotHttp)]),
    ]
}
