//! What passes from a file to a database when a store moves.

mod tables;

use fetchwell_policy::time::Time;

pub(crate) use tables::{Column, Kind, ROBOTS, SITES, TABLES, Table};

/// A part of what moves.
pub(crate) enum Part {
    /// Rows of a table.
    Rows(&'static Table, Vec<Column>),
    /// That was all.
    End {
        /// So many rows of each table there are.
        counts: Vec<(&'static Table, u64)>,
        /// All of it in short: what was moved is recognised by it.
        receipt: String,
    },
}

/// How the two stores differ.
#[derive(Clone, Copy)]
pub(crate) struct Differences {
    /// How far the database's clock is ahead, in microseconds.
    pub(crate) ahead_us: i64,
    /// What the queues are called in the file: messages, deliveries.
    pub(crate) queues_here: [i64; 2],
    /// What they are called in the database.
    pub(crate) queues_there: [i64; 2],
}

impl Differences {
    /// A time of the file, by the database's clock.
    pub(crate) fn there(&self, time: Time) -> Time {
        time.by_clock_ahead_by_us(self.ahead_us)
    }
}
