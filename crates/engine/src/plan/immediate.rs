//! The plan of a lease whose end is known without fetching anything.

use serde::de::DeserializeOwned;

use super::one_page::PlanEnd;
use crate::ports::finish::Settlement;
use crate::ports::job::Lease;
use crate::ports::plan::{Moment, Plan, Step};
use crate::web::Outcome;

/// Ends at its first step, with the result of the function.
pub struct ImmediatePlan<F>(pub F);

impl<R, F: FnMut(Moment) -> PlanEnd<R> + Send> Plan<R> for ImmediatePlan<F> {
    fn step(&mut self, _: Option<Outcome>, moment: Moment) -> Step<R> {
        let (records, settlement) = (self.0)(moment);
        Step::Finish(records, settlement)
    }
}

/// Parses the payload of a lease and creates its plan. A lease whose payload cannot be parsed is given up.
pub fn decode_payload<P: DeserializeOwned, R: 'static>(
    lease: &Lease,
    plan: impl FnOnce(P) -> Box<dyn Plan<R>>,
) -> Box<dyn Plan<R>> {
    match serde_json::from_slice(&lease.job.payload) {
        Ok(payload) => plan(payload),
        Err(fault) => dead(format!("cannot read the payload of the job: {fault}")),
    }
}

/// A plan that gives up its lease.
pub fn dead<R: 'static>(reason: String) -> Box<dyn Plan<R>> {
    let end = move |_: Moment| (Vec::new(), Settlement::Dead { reason: reason.clone() });
    Box::new(ImmediatePlan(end))
}
