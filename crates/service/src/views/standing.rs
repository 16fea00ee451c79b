//! Instances, queues and the audit log as JSON.

use fetchwell_engine::ports::inbox::AuditEntry;
use fetchwell_engine::ports::oversight::{InstanceView, QueueLedger};
use fetchwell_policy::rfc3339::rfc3339;
use serde::Serialize;
use utoipa::ToSchema;

/// A process that works on a queue.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Instance)]
pub struct InstanceDetails {
    /// The number of the instance, which is never used again.
    pub epoch: i64,
    /// The queue.
    pub queue: String,
    /// The host name and the process id.
    #[schema(required)]
    pub who: Option<String>,
    /// When it started.
    #[schema(required, format = DateTime)]
    pub since: Option<String>,
    /// Its last heartbeat.
    #[schema(required, format = DateTime)]
    pub last_heartbeat: Option<String>,
    /// When it is considered dead unless there is another heartbeat.
    #[schema(format = DateTime)]
    pub expires_at: String,
    /// The number of jobs that it holds.
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
    /// Jobs with a result.
    pub done: i64,
    /// Jobs that were not to be fetched, or were dropped.
    pub skipped: i64,
    /// Jobs that wait to be fetched.
    pub queued: i64,
    /// Jobs that an instance holds.
    pub in_flight: i64,
    /// Jobs that wait for a later time.
    pub delayed: i64,
    /// Jobs that were given up.
    pub dead: i64,
    /// Whether `accepted` is the sum of the other states.
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

/// An entry of the audit log.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditLine {
    /// When it happened.
    #[schema(format = DateTime)]
    pub at: String,
    /// The caller; null if unknown.
    #[schema(required)]
    pub caller: Option<String>,
    /// The action.
    pub action: String,
    /// Details, as text.
    pub detail: String,
    /// The address that the request came from.
    pub from: String,
}

impl From<AuditEntry> for AuditLine {
    fn from(entry: AuditEntry) -> AuditLine {
        let AuditEntry { at, caller, action, detail, from } = entry;
        AuditLine { at: rfc3339(at), caller, action, detail, from }
    }
}
