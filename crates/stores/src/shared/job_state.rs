//! The state of a job in the SQL stores. The numbers are defined only here.

use fetchwell_engine::ports::inbox::MessageStatus;
use fetchwell_engine::ports::queue::Ledger;
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};

/// The values of the column `state` of a job. The numbers are in existing stores and in the conditions of their partial
/// indexes, so they must not change. The order matters, too: states below `Leased` wait, and states above it have
/// ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub(crate) enum JobState {
    /// It waits and is due.
    Queued = 0,
    /// It waits but is not due yet.
    Delayed = 1,
    /// An instance holds it.
    Leased = 2,
    /// It was given up and is kept as a dead letter.
    Dead = 3,
    /// A message that ended with a page.
    Completed = 4,
    /// A message that ended without one.
    Failed = 5,
}

impl From<JobState> for MessageStatus {
    fn from(state: JobState) -> MessageStatus {
        match state {
            JobState::Queued | JobState::Delayed => MessageStatus::Queued,
            JobState::Leased => MessageStatus::Processing,
            JobState::Completed => MessageStatus::Completed,
            JobState::Dead | JobState::Failed => MessageStatus::Failed,
        }
    }
}

impl JobState {
    /// All states, in the order of their numbers.
    const ALL: [JobState; 6] = [
        JobState::Queued,
        JobState::Delayed,
        JobState::Leased,
        JobState::Dead,
        JobState::Completed,
        JobState::Failed,
    ];

    pub(crate) const fn number(self) -> i16 {
        self as i16
    }

    /// The state with this number.
    pub(crate) fn of(number: i64) -> Option<JobState> {
        JobState::ALL.into_iter().find(|state| i64::from(state.number()) == number)
    }

    /// The states in which a message has this status: one (given twice) or two.
    pub(crate) const fn of_status(status: MessageStatus) -> (JobState, JobState) {
        match status {
            MessageStatus::Queued => (JobState::Queued, JobState::Delayed),
            MessageStatus::Processing => (JobState::Leased, JobState::Leased),
            MessageStatus::Completed => (JobState::Completed, JobState::Completed),
            MessageStatus::Failed => (JobState::Dead, JobState::Failed),
        }
    }

    /// Whether it is neither leased nor ended.
    pub(crate) const fn waits(self) -> bool {
        matches!(self, JobState::Queued | JobState::Delayed)
    }

    /// The counter of the jobs that wait in this state.
    pub(crate) fn waiting(self, ledger: &mut Ledger) -> &mut i64 {
        match self {
            JobState::Delayed => &mut ledger.delayed,
            _ => &mut ledger.queued,
        }
    }

    /// Its name in [`sql!`].
    const fn placeholder(self) -> &'static str {
        match self {
            JobState::Queued => "{queued}",
            JobState::Delayed => "{delayed}",
            JobState::Leased => "{leased}",
            JobState::Dead => "{dead}",
            JobState::Completed => "{completed}",
            JobState::Failed => "{failed}",
        }
    }
}

impl ToSql for JobState {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.number()))
    }
}

impl FromSql for JobState {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<JobState> {
        let number = i64::column_result(value)?;
        JobState::of(number).ok_or(FromSqlError::OutOfRange(number))
    }
}

#[cfg(feature = "postgres")]
impl sqlx::Type<sqlx::Postgres> for JobState {
    fn type_info() -> sqlx::postgres::PgTypeInfo {
        <i16 as sqlx::Type<sqlx::Postgres>>::type_info()
    }
}

#[cfg(feature = "postgres")]
#[derive(Debug, thiserror::Error)]
#[error("a job has the unknown state {0}")]
struct UnknownState(i16);

#[cfg(feature = "postgres")]
impl<'r> sqlx::Decode<'r, sqlx::Postgres> for JobState {
    fn decode(value: sqlx::postgres::PgValueRef<'r>) -> Result<JobState, sqlx::error::BoxDynError> {
        let number = <i16 as sqlx::Decode<'r, sqlx::Postgres>>::decode(value)?;
        let state = JobState::of(i64::from(number));
        state.ok_or_else(|| UnknownState(number).into())
    }
}

/// Replaces the names of states in an SQL text by their numbers at compile time, so that it stays a `&'static str`:
/// `state < {leased}` becomes `state < 2`. The numbers are not bound as parameters, because a partial index is used
/// only if its condition is visible in the statement.
macro_rules! sql {
    ($text:expr) => {{
        const TEXT: &str = $text;
        const BYTES: [u8; $crate::shared::job_state::length(TEXT)] =
            $crate::shared::job_state::with_numbers(TEXT);
        const SQL: &str = match std::str::from_utf8(&BYTES) {
            Ok(sql) => sql,
            Err(_) => panic!("not UTF-8"),
        };
        SQL
    }};
}
pub(crate) use sql;

/// The length of a text of [`sql!`] after the replacement.
pub(crate) const fn length(text: &str) -> usize {
    let mut length = 0;
    let mut from = 0;
    while from < text.len() {
        from = next(text.as_bytes(), from).1;
        length += 1;
    }
    length
}

/// The text of [`sql!`] after the replacement.
pub(crate) const fn with_numbers<const LENGTH: usize>(text: &str) -> [u8; LENGTH] {
    let mut written = [0; LENGTH];
    let mut length = 0;
    let mut from = 0;
    while from < text.len() {
        let (byte, to) = next(text.as_bytes(), from);
        written[length] = byte;
        length += 1;
        from = to;
    }
    written
}

/// Reads a byte or a placeholder at `from`. Returns the byte to write, and the position after what was read.
const fn next(text: &[u8], from: usize) -> (u8, usize) {
    if text[from] != b'{' {
        return (text[from], from + 1);
    }
    let mut state = 0;
    while state < JobState::ALL.len() {
        let name = JobState::ALL[state].placeholder().as_bytes();
        if has_at(text, from, name) {
            return (b'0' + JobState::ALL[state].number() as u8, from + name.len());
        }
        state += 1;
    }
    panic!("no state of a job has this name")
}

const fn has_at(text: &[u8], from: usize, name: &[u8]) -> bool {
    if text.len() - from < name.len() {
        return false;
    }
    let mut place = 0;
    while place < name.len() {
        if text[from + place] != name[place] {
            return false;
        }
        place += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_existing_stores() {
        assert_eq!(JobState::ALL.map(JobState::number), [0, 1, 2, 3, 4, 5]);
        for state in JobState::ALL {
            assert_eq!(JobState::of(i64::from(state.number())), Some(state));
        }
        assert_eq!([JobState::of(-1), JobState::of(6)], [None, None]);
    }

    #[test]
    fn names_in_sql_become_numbers() {
        assert_eq!(sql!("state < {leased} OR job.state = {failed}"), "state < 2 OR job.state = 5");
        assert_eq!(
            sql!(concat!("{queued}{delayed}", "{leased}{dead}{completed}{failed}")),
            "012345"
        );
        assert_eq!(sql!("SELECT 'ü'"), "SELECT 'ü'");
    }
}
