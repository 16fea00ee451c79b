//! The record of one attempt, stored with its message for the message's timeline.

use std::time::Duration;

use fetchwell_policy::time::Time;
use serde::{Deserialize, Serialize};

use crate::web::{Outcome, Phases};

/// The maximum length of each stored text, in characters.
const MOST_TEXT: usize = 240;

/// An attempt at a message: its last request, or why there was none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// When it ended, by the wall clock.
    pub at: Time,
    /// Whether a request was sent.
    pub sent: bool,
    /// What happened, as text.
    pub told: String,
    /// The status code of the response.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub http_status: Option<u16>,
    /// The robots.txt rule that decided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub robots: Option<String>,
    /// Time in the queue, from acceptance until it was taken, in microseconds.
    pub queued_us: u64,
    /// Time waiting for robots.txt.
    pub robots_us: u64,
    /// Time waiting for the site's slot.
    pub slot_us: u64,
    /// Time to connect; 0 on a reused connection.
    pub connect_us: u64,
    /// Time from the request head to the response head.
    pub first_byte_us: u64,
    /// Time to read the body.
    pub body_us: u64,
}

impl AttemptRecord {
    /// Creates the record of an outcome.
    pub fn of(outcome: &Outcome, wall: Time) -> AttemptRecord {
        let Phases { queued, robots, slot, connect, first_byte, body, .. } = outcome.phases;
        AttemptRecord {
            at: wall,
            sent: outcome.was_sent,
            told: short(&outcome.happened.to_string()),
            http_status: outcome.happened.status(),
            robots: outcome.why.robots.as_deref().map(short),
            queued_us: micros(queued),
            robots_us: micros(robots),
            slot_us: micros(slot),
            connect_us: micros(connect),
            first_byte_us: micros(first_byte),
            body_us: micros(body),
        }
    }

    /// Writes it as one line of JSON. The attempts of a message are stored as such lines.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Parses stored attempts, oldest first. Lines that cannot be parsed are skipped.
pub fn attempts_of(lines: &str) -> Vec<AttemptRecord> {
    lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn short(text: &str) -> String {
    text.chars().filter(|character| *character != '\0').take(MOST_TEXT).collect()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
