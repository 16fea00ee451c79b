//! What one attempt came to: kept with the message, so that its story can be told.

use std::time::Duration;

use fetchwell_policy::time::Time;
use serde::{Deserialize, Serialize};

use crate::web::{Outcome, Phases};

/// The longest text that is kept of an attempt, in characters.
const MOST_TEXT: usize = 240;

/// An attempt at a message: its last request, or why there was none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it ended, by the wall clock.
    pub at: Time,
    /// Whether a request went out.
    pub sent: bool,
    /// What happened, in words.
    pub told: String,
    /// The answer's status.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub http_status: Option<u16>,
    /// The robots.txt rule that decided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub robots: Option<String>,
    /// In the store, from acceptance until it was taken, in microseconds.
    pub queued_us: u64,
    /// Waiting for robots.txt.
    pub robots_us: u64,
    /// Waiting for the site's slot.
    pub slot_us: u64,
    /// Connecting; 0 on a kept connection.
    pub connect_us: u64,
    /// From the request's head to the answer's.
    pub first_byte_us: u64,
    /// Reading the body.
    pub body_us: u64,
}

impl Attempt {
    /// What an outcome tells of it.
    pub fn of(outcome: &Outcome, wall: Time) -> Attempt {
        let Phases { queued, robots, slot, connect, first_byte, body, .. } = outcome.phases;
        Attempt {
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

    /// As one line of JSON: a message's attempts are such lines.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The attempts that a store kept, the oldest first. What can't be read is left out.
pub fn attempts_of(lines: &str) -> Vec<Attempt> {
    lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn short(text: &str) -> String {
    text.chars().filter(|character| *character != '\0').take(MOST_TEXT).collect()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
