//! What passes from a file to a database when a store moves.

use fetchwell_policy::time::Time;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Whole,
    Text,
    Bytes,
    Flag,
}

impl ColumnKind {
    /// The type of such a column in the database.
    pub(crate) fn sql_type(self) -> &'static str {
        match self {
            ColumnKind::Whole => "BIGINT",
            ColumnKind::Text => "TEXT",
            ColumnKind::Bytes => "BYTEA",
            ColumnKind::Flag => "BOOLEAN",
        }
    }
}

/// Values of a column.
#[derive(Debug)]
pub(crate) enum Column {
    Whole(Vec<Option<i64>>),
    Text(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Flag(Vec<Option<bool>>),
}

/// Rows that move.
#[derive(Debug)]
pub(crate) struct Table {
    /// What people call them.
    pub(crate) what: &'static str,
    /// The table in the database.
    pub(crate) into: &'static str,
    /// Its columns.
    pub(crate) columns: Vec<(&'static str, ColumnKind)>,
    /// Gives them, in that order, from the file.
    pub(crate) select: String,
}

impl Table {
    /// A table whose columns are listed by what they hold.
    pub(crate) fn new(
        what: &'static str,
        into: &'static str,
        columns: &[(ColumnKind, &[&'static str])],
        select: &str,
    ) -> Table {
        let columns = columns
            .iter()
            .flat_map(|(kind, names)| names.iter().map(move |name| (*name, *kind)))
            .collect();
        Table { what, into, columns, select: select.to_owned() }
    }
}

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
