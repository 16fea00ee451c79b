//! What a door does with a lease, step by step.

use fetchwell_policy::retry::{Attempt, History, Next, RetryRule};
use fetchwell_policy::time::Time;

use crate::ports::finish::Settlement;
use crate::web::{Outcome, Request};

/// The next step of a plan.
#[derive(Debug)]
pub enum Step<R> {
    /// Send these requests in addition to those in flight. With an empty list, wait for the latter.
    Fetch(Vec<Request>),
    /// The plan ends with these records, and the lease is settled.
    Finish(Vec<R>, Settlement),
    /// The door cannot continue, for this reason. All leases are handed back, and the run ends.
    Halt(String),
}

/// The time and a random number. Plans get them as input, because they are pure.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The current time, by the clock that decides.
    pub now: Time,
    /// The time of the wall clock, for output.
    pub wall: Time,
    /// A random number in `0.0..1.0`.
    pub chance: f64,
}

impl Moment {
    /// What a retry rule says to do after an outcome. `history` is that before this attempt.
    pub fn next(self, rule: &RetryRule, history: History, outcome: &Outcome) -> Next {
        let attempt = Attempt {
            happened: &outcome.happened,
            retry_after: outcome.retry_after,
            site_last_served: outcome.why.site_last_served,
        };
        rule.next(&attempt, history, self.now, self.chance)
    }
}

/// What a door does with one lease: a pure state machine.
pub trait Plan<R>: Send {
    /// Called first with `None`, then with each outcome as it arrives.
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<R>;

    /// Whether the plan holds results that would be lost if the lease were handed back now. Such a lease waits in
    /// memory, for as long as it takes.
    fn has_results_in_hand(&self) -> bool {
        false
    }

    /// The memory that a step on this body needs in addition to the body. The step begins once the byte budget has that
    /// much.
    fn working_bytes(&self, _body: &[u8]) -> usize {
        0
    }

    /// The memory that the records of the last step use, which counts against the byte budget until they are stored;
    /// `None` for the size of the last body.
    fn held_bytes(&self) -> Option<usize> {
        None
    }
}
