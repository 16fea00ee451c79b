//! What moves: which rows of the file become which rows of the database.
//!
//! Statements of the file may name `:ahead` (how far the database's clock is ahead), `:messages` and
//! `:deliveries` (the queues there), `:messages_here` and `:deliveries_here`.

use Kind::{Bytes, Flag, Text, Whole};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Whole,
    Text,
    Bytes,
    Flag,
}

impl Kind {
    /// The type of such a column in the database.
    pub(crate) fn sql_type(self) -> &'static str {
        match self {
            Kind::Whole => "BIGINT",
            Kind::Text => "TEXT",
            Kind::Bytes => "BYTEA",
            Kind::Flag => "BOOLEAN",
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
    pub(crate) columns: &'static [(&'static str, Kind)],
    /// Gives them, in that order, from the file.
    pub(crate) select: &'static str,
}

/// A message's time of acceptance is what its caller is told, so it is by the wall clock.
macro_rules! job_columns {
    () => {
        "job.lane, job.due + :ahead, job.deadline + :ahead,
         coalesce(job.created_at, job.accepted_at + :ahead), job.first_site_failure + :ahead,
         job.follows, job.ended_at + :ahead, job.url_failures, job.site_failures, job.paced,
         job.interruptions, job.attempts, job.state, job.shares, job.key, job.kind, job.site, job.url,
         CASE WHEN instr(job.url, char(0)) THEN CAST(job.url AS BLOB) END, job.correlation_id,
         job.callback_url, substr(job.reason, 1, 400), job.payload, job.story, job.retry_of, job.retried_as"
    };
}

/// In the order in which they move.
pub(crate) static TABLES: &[Table] = &[
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
    Table {
        what: "messages",
        into: "fetchwell_job",
        columns: JOB_COLUMNS,
        select: concat!(
            "SELECT job.id, :messages, ",
            job_columns!(),
            ", lane.party, lane.grp FROM job LEFT JOIN lane ON lane.id = job.lane
             WHERE job.queue = :messages_here ORDER BY job.id"
        ),
    },
    Table {
        what: "deliveries",
        into: "fetchwell_job",
        columns: JOB_COLUMNS,
        select: concat!(
            "SELECT job.id, :deliveries, ",
            job_columns!(),
            ", NULL, NULL FROM job WHERE job.queue = :deliveries_here ORDER BY job.id"
        ),
    },
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

/// Sites, whose states are translated one by one.
pub(crate) static SITES: Table = Table {
    what: "sites",
    into: "fetchwell_site",
    columns: &[
        ("site", Text),
        ("rate_limit", Text),
        ("circuit", Text),
        ("notes", Text),
        ("forgettable_at", Whole),
        ("notable", Flag),
    ],
    select: "SELECT site, state FROM site",
};

/// Copies of robots.txt, likewise.
pub(crate) static ROBOTS: Table = Table {
    what: "robots.txt",
    into: "fetchwell_robots",
    columns: &[("origin", Text), ("record", Text), ("kept_at", Whole)],
    select: "SELECT origin, record FROM robots",
};

/// As `job_columns` gives them, with what stands before and after it.
const JOB_COLUMNS: &[(&str, Kind)] = &[
    ("id", Whole),
    ("queue", Whole),
    ("lane", Whole),
    ("due", Whole),
    ("deadline", Whole),
    ("accepted_at", Whole),
    ("first_site_failure", Whole),
    ("follows", Whole),
    ("ended_at", Whole),
    ("url_failures", Whole),
    ("site_failures", Whole),
    ("paced", Whole),
    ("interruptions", Whole),
    ("attempts", Whole),
    ("state", Whole),
    ("shares", Flag),
    ("key", Bytes),
    ("kind", Bytes),
    ("site", Text),
    ("url", Text),
    ("odd_url", Bytes),
    ("correlation_id", Text),
    ("callback_url", Text),
    ("reason", Text),
    ("payload", Bytes),
    ("story", Text),
    ("retry_of", Bytes),
    ("retried_as", Bytes),
    ("caller", Text),
    ("retailer", Text),
];
