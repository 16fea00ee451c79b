//! What this process does, counted: one registry for all its doors.
//!
//! Each door has its [`DoorMeasures`], which listens to the news of its pipeline. [`Measures::snapshot`] is all
//! of it at one moment; what Prometheus reads is written from that, and so is the dashboard.
//!
//! | file | |
//! |---|---|
//! | `labels` | what may stand in a label: few words, and never a site, a URL or a caller |
//! | `door` | one door's counters, and what each piece of news does to them |
//! | `circuits` | the breakers that are open, as far as this process knows |
//! | `snapshot` | all of it at one moment |
//! | `exposition` | a snapshot in Prometheus's text format |
//! | `process` | memory, processor time and open files |

mod circuits;
mod door;
mod exposition;
pub(crate) mod labels;
mod process;
pub(crate) mod snapshot;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fetchwell_engine::pipeline::Watcher;
use tokio::time::Instant;

pub(crate) use door::DoorMeasures;
pub(crate) use labels::DoorName;
pub(crate) use snapshot::Snapshot;

/// All that is counted in this process.
pub(crate) struct Measures {
    started: Instant,
    doors: Mutex<BTreeMap<DoorName, Arc<DoorMeasures>>>,
}

impl Default for Measures {
    fn default() -> Measures {
        Measures { started: Instant::now(), doors: Mutex::default() }
    }
}

impl Measures {
    /// What is counted of a door; the same one each time.
    pub(crate) fn door(&self, name: DoorName) -> Arc<DoorMeasures> {
        let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        doors.entry(name).or_default().clone()
    }

    /// Counts what a door's pipeline tells, and passes it on.
    pub(crate) fn listening(&self, name: DoorName, then: Watcher) -> Watcher {
        let door = self.door(name);
        Arc::new(move |news| {
            door.hear(&news);
            then(news);
        })
    }

    /// All of it, as it is now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Snapshot {
            up_for: self.started.elapsed(),
            process: process::look(),
            doors: doors.into_iter().map(|(name, door)| (name, door.snapshot())).collect(),
        }
    }

    /// All of it in Prometheus's text format.
    pub(crate) fn render(&self) -> String {
        exposition::render(&self.snapshot())
    }
}
