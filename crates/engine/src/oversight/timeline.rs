//! The way of a message, from its acceptance to its result, as far as it has come.

use std::time::Duration;

use fetchwell_policy::time::Time;

use super::Dossier;

/// A stretch of the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Milestone {
    /// What it was spent on: `queued`, `robots`, `slot`, `connect`, `first_byte`, `extracted` (the body was
    /// read and understood) or `delivered` (the result was stored).
    pub stage: &'static str,
    /// When it was over, by the wall clock.
    pub at: Time,
    /// How long it took.
    pub took: Duration,
}

/// The way of a message by its last attempt: earlier ones count as time in the queue.
pub fn timeline(dossier: &Dossier) -> Vec<Milestone> {
    let Some(last) = dossier.attempts.last() else {
        return dossier.outbox.as_ref().map_or_else(Vec::new, |outbox| {
            vec![stage("delivered", outbox.created_at, dossier.message.created_at)]
        });
    };
    let spans = [
        ("robots", last.robots_us),
        ("slot", last.slot_us),
        ("connect", last.connect_us),
        ("first_byte", last.first_byte_us),
        ("extracted", last.body_us),
    ];
    let spent_us: u64 = spans.iter().map(|(_, us)| us).sum();
    let begun = last.at - Duration::from_micros(spent_us);
    let mut way = vec![stage("queued", begun, dossier.message.created_at)];
    let mut at = begun;
    for (name, us) in spans {
        at = at + Duration::from_micros(us);
        way.push(Milestone { stage: name, at, took: Duration::from_micros(us) });
    }
    if let Some(outbox) = &dossier.outbox {
        way.push(stage("delivered", outbox.created_at, last.at));
    }
    way
}

fn stage(stage: &'static str, at: Time, since: Time) -> Milestone {
    Milestone { stage, at, took: at.since(since) }
}
