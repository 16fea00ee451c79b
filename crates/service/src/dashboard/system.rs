//! The system page: instances, stores, settings and the audit log.

use std::time::Duration;

use askama::Template;
use fetchwell_engine::ports::inbox::AuditEntry;
use fetchwell_engine::ports::oversight::{InstanceView, QueueLedger};
use fetchwell_telemetry::metrics::snapshot::ProcessSnapshot;

use super::access::Visitor;
use super::fault::PageResult;
use super::layout::{self, Section};
use super::{SettingRow, SystemInfo, words};

/// The maximum number of audit entries on the page.
const AUDIT_MOST: u32 = 50;

#[derive(Template)]
#[template(path = "system.html")]
struct System<'a> {
    store: &'a str,
    politeness: &'a str,
    at_work: Option<AtWork>,
    process: ProcessSnapshot,
    up_for: Duration,
    audit: Vec<AuditEntry>,
    is_audit_stored: bool,
    given: Vec<&'a SettingRow>,
    defaults: Vec<&'a SettingRow>,
}

/// The instances that work on the store, and the ledgers of its queues.
struct AtWork {
    instances: Vec<InstanceView>,
    ledgers: Vec<QueueLedger>,
}

pub(super) async fn page(visitor: Visitor) -> PageResult {
    let subject = &visitor.dashboard.subject;
    let SystemInfo { store, politeness, settings } = &subject.system;
    let (defaults, given) = settings.iter().partition(|setting| setting.is_default);
    let at_work = match &subject.oversight {
        Some(oversight) => Some(AtWork {
            instances: oversight.instances().await?,
            ledgers: oversight.ledgers().await?,
        }),
        None => None,
    };
    let snapshot = subject.process_metrics.snapshot();
    let content = System {
        at_work,
        process: snapshot.process,
        up_for: snapshot.up_for,
        store,
        politeness,
        audit: subject.audit.latest(AUDIT_MOST).await?,
        is_audit_stored: subject.audit.is_stored(),
        given,
        defaults,
    };
    layout::page(&visitor, (Section::System, "System"), &content).await
}
