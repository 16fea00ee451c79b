//! What moves: which rows of the file become which rows of the database.
//!
//! Statements of the file may name `:ahead` (how far the database's clock is ahead), `:messages` and
//! `:deliveries` (the queues there), `:messages_here` and `:deliveries_here`.

use std::sync::LazyLock;

use crate::postgres::message_row;
use crate::shared::transfer::ColumnKind::{self, Bytes, Flag, Text, Whole};
use crate::shared::transfer::Table;

/// All that moves as it is, in this order.
pub(super) static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    vec![
        Table::new(
            "callers",
            "fetchwell_caller",
            &[
                (Text, &["name", "role"]),
                (Bytes, &["token_hash", "webhook_key", "webhook_key_before"]),
                (Whole, &["created_at", "revoked_at", "results", "pruned", "batches"]),
                (Whole, &["webhook_since", "webhook_before_until", "body_bytes"]),
            ],
            "SELECT name, role, token_hash, webhook_key, webhook_key_before, created_at, revoked_at, results,
                 pruned, batches, webhook_since, webhook_before_until, body_bytes FROM caller",
        ),
        Table::new(
            "tokens",
            "fetchwell_token",
            &[
                (Text, &["caller", "name"]),
                (Bytes, &["hash"]),
                (Whole, &["since", "created_at", "expires_at", "last_used_at"]),
            ],
            "SELECT caller, name, hash, since, created_at, expires_at, last_used_at FROM token",
        ),
        Table::new(
            "lanes",
            "fetchwell_lane",
            &[(Whole, &["id", "queue"]), (Text, &["grp", "party"])],
            "SELECT id, CASE queue WHEN :messages_here THEN :messages ELSE :deliveries END, grp, party
             FROM lane WHERE queue IN (:messages_here, :deliveries_here)",
        ),
        jobs(
            "messages",
            ":messages, lane.party, lane.grp",
            "job LEFT JOIN lane ON lane.id = job.lane WHERE job.queue = :messages_here",
        ),
        jobs("deliveries", ":deliveries, NULL, NULL", "job WHERE job.queue = :deliveries_here"),
        Table::new(
            "rooms",
            "fetchwell_room",
            &[(Whole, &["queue", "lane", "due", "closed_until"]), (Text, &["site"])],
            "SELECT CASE queue WHEN :messages_here THEN :messages ELSE :deliveries END, lane,
                 due + :ahead, CASE closed_until WHEN 0 THEN 0 ELSE closed_until + :ahead END, site
             FROM room WHERE queue IN (:messages_here, :deliveries_here)",
        ),
        Table::new(
            "results",
            "fetchwell_outbox",
            &[
                (Whole, &["job", "cursor", "stored_at", "http_status", "cached_age", "body_of"]),
                (Bytes, &["kind"]),
                (Text, &["caller", "status", "content_type", "error", "extracted", "content"]),
                (Text, &["details"]),
            ],
            "SELECT job, cursor, created_at, http_status, cached_age, body_of, kind, caller, status, content_type,
                 error, extracted, content, details FROM outbox ORDER BY job",
        ),
        Table::new(
            "bodies",
            "fetchwell_message_body",
            &[(Whole, &["job", "expires_at"]), (Text, &["caller"]), (Bytes, &["bytes"])],
            "SELECT job, expires_at, caller, bytes FROM message_body ORDER BY job",
        ),
        Table::new(
            "delivery records",
            "fetchwell_delivery",
            &[
                (Whole, &["id", "attempts", "created_at"]),
                (Text, &["webhook", "caller", "url", "status", "story"]),
            ],
            "SELECT id, attempts, created_at, webhook, caller, url, status, story FROM delivery ORDER BY id",
        ),
        Table::new(
            "batches",
            "fetchwell_message_batch",
            &[
                (Bytes, &["id"]),
                (Text, &["caller", "callback_url", "skipped_told"]),
                (Whole, &["created_at", "expected_at", "cancelled_at", "ended_at"]),
                (Whole, &["first_job", "last_job", "total", "completed", "failed", "cancelled"]),
                (Whole, &["skipped", "number", "place", "pruned"]),
            ],
            "SELECT id, caller, callback_url, skipped_told, created_at, expected_at, cancelled_at,
                 ended_at, first_job, last_job, total, completed, failed, cancelled, skipped, number,
                 place, pruned FROM message_batch",
        ),
        Table::new(
            "results of batches",
            "fetchwell_message_batch_result",
            &[(Bytes, &["batch"]), (Whole, &["place", "job"])],
            "SELECT batch, place, job FROM message_batch_result",
        ),
        Table::new(
            "idempotency keys",
            "fetchwell_idempotency",
            &[
                (Text, &["caller", "key"]),
                (Bytes, &["body_hash", "messages"]),
                (Whole, &["created_at"]),
            ],
            "SELECT caller, key, body_hash, messages, created_at + :ahead FROM idempotency",
        ),
        Table::new(
            "audit entries",
            "fetchwell_audit",
            &[(Whole, &["at"]), (Text, &["caller", "action", "detail", "origin"])],
            "SELECT at, caller, action, detail, origin FROM audit ORDER BY id",
        ),
        Table::new(
            "ledgers",
            "fetchwell_ledger",
            &[
                (Whole, &["queue", "shard", "accepted", "done", "skipped"]),
                (Whole, &["queued", "in_flight", "delayed", "dead"]),
            ],
            "SELECT CASE id WHEN :messages_here THEN :messages ELSE :deliveries END, 0, accepted, done,
                 skipped, queued, in_flight, delayed, dead
             FROM queue WHERE id IN (:messages_here, :deliveries_here)",
        ),
    ]
});

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
    ("batch", Bytes, "job.batch"),
];

/// The jobs of a queue. The columns of messages have the same names in the file.
fn jobs(what: &'static str, queue_caller_retailer: &str, from: &str) -> Table {
    let first = [("id", Whole), ("queue", Whole), ("caller", Text), ("retailer", Text)];
    let job = JOB.iter().map(|(name, kind, _)| (*name, *kind));
    let columns = first.into_iter().chain(job).chain(message_row::COLUMNS).collect();
    let job = JOB.iter().map(|(.., value)| (*value).to_owned());
    let message = message_row::COLUMNS.into_iter().map(|(name, _)| format!("job.{name}"));
    let values = job.chain(message).collect::<Vec<_>>().join(", ");
    let select =
        format!("SELECT job.id, {queue_caller_retailer}, {values} FROM {from} ORDER BY job.id");
    Table { what, into: "fetchwell_job", columns, select }
}
