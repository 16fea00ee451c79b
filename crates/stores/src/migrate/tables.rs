//! What moves: which rows of the file become which rows of the database.
//!
//! Statements of the file may name `:ahead` (how far the database's clock is ahead), `:messages` and
//! `:deliveries` (the queues there), `:messages_here` and `:deliveries_here`.

use std::sync::LazyLock;

use crate::postgres::message_row;
use crate::shared::transfer::ColumnKind::{self, Bytes, Flag, Text, Whole};
use crate::shared::transfer::Table;

/// All that moves as it is, in this order.
pub(super) fn tables() -> Vec<&'static Table> {
    let jobs: [&'static Table; 2] = [&MESSAGES, &DELIVERIES];
    BEFORE_JOBS.iter().chain(jobs).chain(AFTER_JOBS).collect()
}

static BEFORE_JOBS: &[Table] = &[
    Table {
        what: "callers",
        into: "fetchwell_caller",
        columns: &[
            ("name", Text),
            ("role", Text),
            ("token_hash", Bytes),
            ("created_at", Whole),
            ("revoked_at", Whole),
            ("results", Whole),
            ("pruned", Whole),
        ],
        select: "SELECT name, role, token_hash, created_at, revoked_at, results, pruned FROM caller",
    },
    Table {
        what: "lanes",
        into: "fetchwell_lane",
        columns: &[("id", Whole), ("queue", Whole), ("grp", Text), ("party", Text)],
        select: "SELECT id, CASE queue WHEN :messages_here THEN :messages ELSE :deliveries END, grp, party
                 FROM lane WHERE queue IN (:messages_here, :deliveries_here)",
    },
];

static MESSAGES: LazyLock<Table> = LazyLock::new(|| Table {
    what: "messages",
    into: "fetchwell_job",
    columns: &JOB_COLUMNS,
    select: &SELECT_MESSAGES,
});

static DELIVERIES: LazyLock<Table> = LazyLock::new(|| Table {
    what: "deliveries",
    into: "fetchwell_job",
    columns: &JOB_COLUMNS,
    select: &SELECT_DELIVERIES,
});

static AFTER_JOBS: &[Table] = &[
    Table {
        what: "rooms",
        into: "fetchwell_room",
        columns: &[
            ("queue", Whole),
            ("lane", Whole),
            ("due", Whole),
            ("closed_until", Whole),
            ("site", Text),
        ],
        select: "SELECT CASE queue WHEN :messages_here THEN :messages ELSE :deliveries END, lane,
                     due + :ahead, CASE closed_until WHEN 0 THEN 0 ELSE closed_until + :ahead END, site
                 FROM room WHERE queue IN (:messages_here, :deliveries_here)",
    },
    Table {
        what: "results",
        into: "fetchwell_outbox",
        columns: &[
            ("job", Whole),
            ("cursor", Whole),
            ("stored_at", Whole),
            ("http_status", Whole),
            ("kind", Bytes),
            ("caller", Text),
            ("status", Text),
            ("content_type", Text),
            ("error", Text),
            ("extracted", Text),
            ("content", Text),
        ],
        select: "SELECT job, cursor, created_at, http_status, kind, caller, status, content_type, error,
                     extracted, content FROM outbox ORDER BY job",
    },
    Table {
        what: "idempotency keys",
        into: "fetchwell_idempotency",
        columns: &[
            ("caller", Text),
            ("key", Text),
            ("body_hash", Bytes),
            ("messages", Bytes),
            ("created_at", Whole),
        ],
        select: "SELECT caller, key, body_hash, messages, created_at + :ahead FROM idempotency",
    },
    Table {
        what: "audit entries",
        into: "fetchwell_audit",
        columns: &[
            ("at", Whole),
            ("caller", Text),
            ("action", Text),
            ("detail", Text),
            ("origin", Text),
        ],
        select: "SELECT at, caller, action, detail, origin FROM audit ORDER BY id",
    },
    Table {
        what: "ledgers",
        into: "fetchwell_ledger",
        columns: &[
            ("queue", Whole),
            ("shard", Whole),
            ("accepted", Whole),
            ("done", Whole),
            ("skipped", Whole),
            ("queued", Whole),
            ("in_flight", Whole),
            ("delayed", Whole),
            ("dead", Whole),
        ],
        select: "SELECT CASE id WHEN :messages_here THEN :messages ELSE :deliveries END, 0, accepted, done,
                     skipped, queued, in_flight, delayed, dead
                 FROM queue WHERE id IN (:messages_here, :deliveries_here)",
    },
];

/// Columns of a job, and what gives them in the file. A message's time of acceptance is what its caller is told, so
/// it is by the wall clock.
const JOB: &[(&str, ColumnKind, &str)] = &[
    ("lane", Whole, "job.lane"),
    ("due", Whole, "job.due + :ahead"),
    ("deadline", Whole, "job.deadline + :ahead"),
    ("accepted_at", Whole, "coalesce(job.created_at, job.accepted_at + :ahead)"),
    ("first_site_failure", Whole, "job.first_site_failure + :ahead"),
    ("follows", Whole, "job.follows"),
    ("ended_at", Whole, "job.ended_at + :ahead"),
    ("url_failures", Whole, "job.url_failures"),
    ("site_failures", Whole, "job.site_failures"),
    ("paced", Whole, "job.paced"),
    ("interruptions", Whole, "job.interruptions"),
    ("attempts", Whole, "job.attempts"),
    ("state", Whole, "job.state"),
    ("shares", Flag, "job.shares"),
    ("key", Bytes, "job.key"),
    ("site", Text, "job.site"),
    ("url", Text, "job.url"),
    ("odd_url", Bytes, "CASE WHEN instr(job.url, char(0)) THEN CAST(job.url AS BLOB) END"),
    ("reason", Text, "substr(job.reason, 1, 400)"),
    ("payload", Bytes, "job.payload"),
    ("story", Text, "job.story"),
    ("retry_of", Bytes, "job.retry_of"),
    ("retried_as", Bytes, "job.retried_as"),
];

/// In the order in which [`select_jobs`] gives them.
static JOB_COLUMNS: LazyLock<Vec<(&'static str, ColumnKind)>> = LazyLock::new(|| {
    let first = [("id", Whole), ("queue", Whole), ("caller", Text), ("retailer", Text)];
    let job = JOB.iter().map(|(name, kind, _)| (*name, *kind));
    first.into_iter().chain(job).chain(message_row::COLUMNS).collect()
});

static SELECT_MESSAGES: LazyLock<String> = LazyLock::new(|| {
    select_jobs(
        ":messages, lane.party, lane.grp",
        "job LEFT JOIN lane ON lane.id = job.lane WHERE job.queue = :messages_here",
    )
});

static SELECT_DELIVERIES: LazyLock<String> = LazyLock::new(|| {
    select_jobs(":deliveries, NULL, NULL", "job WHERE job.queue = :deliveries_here")
});

/// The columns of messages have the same names in the file.
fn select_jobs(queue_caller_retailer: &str, from: &str) -> String {
    let job = JOB.iter().map(|(.., value)| (*value).to_owned());
    let message = message_row::COLUMNS.into_iter().map(|(name, _)| format!("job.{name}"));
    let values: Vec<String> = job.chain(message).collect();
    let values = values.join(", ");
    format!("SELECT job.id, {queue_caller_retailer}, {values} FROM {from} ORDER BY job.id")
}
