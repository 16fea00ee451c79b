//! All that is counted, at one moment.

use std::collections::BTreeMap;
use std::time::Duration;

use fetchwell_engine::pipeline::{Purpose, Window};
use fetchwell_engine::ports::queue::Ledger;

use super::circuits::OpenCircuits;
use super::labels::{DoorName, Ending, Failure, StatusClass, StoreTrouble};
use crate::prometheus::Spread;

/// All that is counted in this process, at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// How long this process has been running.
    pub up_for: Duration,
    /// What it costs the machine.
    pub process: ProcessSnapshot,
    /// Door by door; those that have been at work.
    pub doors: BTreeMap<DoorName, DoorSnapshot>,
}

/// What one door has done so far, and has in hand.
#[derive(Clone, Debug)]
pub struct DoorSnapshot {
    /// Finished requests, by purpose and status class.
    pub requests: BTreeMap<(Purpose, StatusClass), u64>,
    /// Those that failed, by why; those answered with 429 among them.
    pub failures: BTreeMap<Failure, u64>,
    /// Leases that ended, by outcome.
    pub endings: BTreeMap<Ending, u64>,
    /// Times that a store did not do what it was asked.
    pub store_faults: BTreeMap<StoreTrouble, u64>,
    /// Body bytes received, after decoding.
    pub body_bytes: u64,
    /// Seconds that requests took, from connecting to the last byte.
    pub request_s: Spread,
    /// Seconds from the request's head to the answer's.
    pub first_byte_s: Spread,
    /// Seconds that requests waited for politeness: robots.txt and their site's turn.
    pub politeness_wait_s: Spread,
    /// Seconds that requests waited for a free place in flight.
    pub worker_wait_s: Spread,
    /// Seconds from acceptance to the end, of leases that ended for good.
    pub job_s: Spread,
    /// What is in hand.
    pub window: Window,
    /// Breakers.
    pub circuits: OpenCircuits,
    /// Breakers that opened and closed so far.
    pub circuits_opened: u64,
    pub circuits_closed: u64,
    /// robots.txt files that could not be reached.
    pub robots_unreachable: u64,
    /// Heads that left sooner than their site's pace allows. Should stay 0.
    pub rate_breaches: u64,
    /// Leases rescued from instances that died.
    pub rescues: u64,
    /// Settlements that came too late.
    pub stale: u64,
    /// How many jobs stand where, as the store last said.
    pub ledger: Option<Ledger>,
}

/// What this process costs the machine; a figure that can't be had here is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessSnapshot {
    /// Memory that is in RAM.
    pub resident_bytes: Option<u64>,
    /// Processor time of all threads.
    pub cpu: Option<Duration>,
    /// Open file descriptors.
    pub open_fds: Option<u64>,
    /// How many there may be.
    pub max_fds: Option<u64>,
}
