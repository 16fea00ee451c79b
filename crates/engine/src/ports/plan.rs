//! What a door does with a lease, step by step.

use fetchwell_policy::time::Time;

use crate::ports::finish::Settlement;
use crate::web::{Outcome, Request};

/// What a plan wants next.
#[derive(Debug)]
pub enum Step<R> {
    /// These requests besides those under way; an empty list waits for the latter.
    Fetch(Vec<Request>),
    /// The end.
    Finish(Vec<R>, Settlement),
    /// The door can't go on, for this reason: all that is held goes back, and the run ends.
    Halt(String),
}

/// Time and chance, for plans: they are pure.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// What time it is, by the clock that decides.
    pub now: Time,
    /// What the wall clock shows: for what the world is told.
    pub wall: Time,
    /// A number in `0.0..1.0`.
    pub chance: f64,
}

/// What a door does with one lease: a pure state machine.
pub trait Plan<R>: Send {
    /// Called first with nothing, then with each outcome as it comes.
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<R>;

    /// Whether there are results in hand that would be lost if the lease were handed back now. Such a
    /// lease waits in memory, however long.
    fn has_results_in_hand(&self) -> bool {
        false
    }

    /// The memory that a step on a body of so many bytes takes besides the body. The step begins when the byte budget
    /// has that.
    fn working_bytes(&self, _body_bytes: usize) -> usize {
        0
    }

    /// The memory that the records of its last step hold, which counts until they are stored; `None`: as much as the
    /// last body.
    fn held_bytes(&self) -> Option<usize> {
        None
    }
}
