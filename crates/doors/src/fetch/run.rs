//! Builds the door of `fetch` and its jobs.

use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::gate::GateRules;
use fetchwell_engine::pipeline::Door;
use fetchwell_engine::ports::finish::Finish;
use fetchwell_engine::ports::job::{Job, NewJob};
use fetchwell_engine::ports::source::Source;

use super::plan::{FetchPlan, FetchRules};
use super::row::FetchRow;

/// The gate rules of this door: URLs of a host that does not exist fail at once instead of waiting for it.
pub fn gate_rules(mut rules: GateRules) -> GateRules {
    rules.missing_hosts_fail = true;
    rules
}

/// Jobs for the queue. An invalid URL also gets one: it ends with a row that says so.
pub fn jobs<'a>(urls: impl IntoIterator<Item = &'a String>) -> Vec<NewJob> {
    urls.into_iter().map(|url| NewJob::keyed(Job::new(url.clone(), Vec::new()))).collect()
}

/// The door that turns each URL into a row.
pub fn door(
    source: Arc<dyn Source>,
    finish: Arc<dyn Finish<FetchRow>>,
    rules: FetchRules,
    clock: Clock,
) -> Door<FetchRow> {
    Door {
        source,
        planner: Arc::new(move |lease| Box::new(FetchPlan::new(lease, rules))),
        finish,
        give_up_record: Arc::new(move |lease, cause, reason| {
            vec![FetchRow::given_up(lease, cause, reason, &rules, clock.wall())]
        }),
    }
}
