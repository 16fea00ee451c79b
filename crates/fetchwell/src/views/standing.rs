//! Instances, queues and the audit, in JSON.

use fetchwell_engine::ports::inbox::AuditEntry;
use fetchwell_engine::ports::oversight::{InstanceView, QueueLedger};
use fetchwell_policy::rfc3339::rfc3339;
use serde::Serialize;
use utoipa::ToSchema;

/// A process at work on a queue.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Instance)]
pub(crate) struct InstanceDetails {
    /// Its number: no two instances ever have the same.
    pub(crate) epoch: i64,
    /// The queue.
    pub(crate) queue: String,
    /// The machine, and the number of the process.
    #[schema(required)]
    pub(crate) who: Option<String>,
    /// Since when.
    #[schema(required, format = DateTime)]
    pub(crate) since: Option<String>,
    /// When it last said that it is there.
    #[schema(required, format = DateTime)]
    pub(crate) last_heartbeat: Option<String>,
    /// When it is taken for dead if it says so no more.
    #[schema(format = DateTime)]
    pub(crate) expires_at: String,
    /// How many jobs it holds.
    pub(crate) in_flight: u64,
}

impl From<InstanceView> for InstanceDetails {
    fn from(instance: InstanceView) -> InstanceDetails {
        InstanceDetails {
            epoch: instance.epoch,
            queue: instance.queue,
            who: instance.who,
            since: instance.since.map(rfc3339),
            last_heartbeat: instance.last_heartbeat.map(rfc3339),
            expires_at: rfc3339(instance.expires_at),
            in_flight: instance.in_flight,
        }
    }
}

/// A queue: accepted = done + skipped + queued + in_flight + delayed + dead.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = QueueLedger)]
pub(crate) struct QueueView {
    /// Its name.
    pub(crate) queue: String,
    /// All that ever came in.
    pub(crate) accepted: i64,
    /// With a result.
    pub(crate) done: i64,
    /// Not to be fetched, or taken away.
    pub(crate) skipped: i64,
    /// Waiting.
    pub(crate) queued: i64,
    /// An instance has it.
    pub(crate) in_flight: i64,
    /// Waiting for a time.
    pub(crate) delayed: i64,
    /// Given up.
    pub(crate) dead: i64,
    /// Whether the sum is right.
    pub(crate) balances: bool,
}

impl From<QueueLedger> for QueueView {
    fn from(QueueLedger { queue, ledger }: QueueLedger) -> QueueView {
        QueueView {
            queue,
            accepted: ledger.accepted,
            done: ledger.done,
            skipped: ledger.skipped,
            queued: ledger.queued,
            in_flight: ledger.in_flight,
            delayed: ledger.delayed,
            dead: ledger.dead,
            balances: ledger.balances(),
        }
    }
}

/// Something that was done.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(crate) struct AuditLine {
    /// When.
    #[schema(format = DateTime)]
    pub(crate) at: String,
    /// By whom; null: nobody knows.
    #[schema(required)]
    pub(crate) caller: Option<String>,
    /// What, in one word.
    pub(crate) action: String,
    /// On what, in words.
    pub(crate) detail: String,
    /// From which address.
    pub(crate) from: String,
}

impl From<AuditEntry> for AuditLine {
    fn from(entry: AuditEntry) -> AuditLine {
        let AuditEntry { at, caller, action, detail, from } = entry;
        AuditLine { at: rfc3339(at), caller, action, detail, from }
    }
}
