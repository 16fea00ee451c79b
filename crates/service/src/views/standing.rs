//! Instances, queues and the audit, in JSON.

use fetchwell_engine::ports::inbox::AuditEntry;
use fetchwell_engine::ports::oversight::{InstanceView, QueueLedger};
use fetchwell_policy::rfc3339::rfc3339;
use serde::Serialize;
use utoipa::ToSchema;

/// A process at work on a queue.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Instance)]
pub struct InstanceDetails {
    /// Its number: no two instances ever have the same.
    pub epoch: i64,
    /// The queue.
    pub queue: String,
    /// The machine, and the number of the process.
    #[schema(required)]
    pub who: Option<String>,
    /// Since when.
    #[schema(required, format = DateTime)]
    pub since: Option<String>,
    /// Its last heartbeat.
    #[schema(required, format = DateTime)]
    pub last_heartbeat: Option<String>,
    /// When it is considered dead unless there is another heartbeat.
    #[schema(format = DateTime)]
    pub expires_at: String,
    /// How many jobs it holds.
    pub in_flight: u64,
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
pub struct QueueView {
    /// Its name.
    pub queue: String,
    /// All jobs ever accepted.
    pub accepted: i64,
    /// With a result.
    pub done: i64,
    /// Not to be fetched, or dropped.
    pub skipped: i64,
    /// Waiting.
    pub queued: i64,
    /// Held by an instance.
    pub in_flight: i64,
    /// Waiting for a later time.
    pub delayed: i64,
    /// Given up.
    pub dead: i64,
    /// Whether the sum is right.
    pub balances: bool,
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
pub struct AuditLine {
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
    /// The caller; null: unknown.
    #[schema(required)]
    pub caller: Option<String>,
    /// The action.
    pub action: String,
    /// Details, as text.
    pub detail: String,
    /// From which address.
    pub from: String,
}

impl From<AuditEntry> for AuditLine {
    fn from(entry: AuditEntry) -> AuditLine {
        let AuditEntry { at, caller, action, detail, from } = entry;
        AuditLine { at: rfc3339(at), caller, action, detail, from }
    }
}
