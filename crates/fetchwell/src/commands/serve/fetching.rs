//! The flow that fetches messages, for `serve` and the demo.

use fetchwell_doors::retriever::{self, OnResult};
use fetchwell_engine::pipeline::{Door, EventSink, Runtime};
use fetchwell_engine::ports::inbox::FetchResult;
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;

use super::args::message_rules;
use crate::wiring::{Parts, fitting_in_flight, gate_rules};

/// The door and the runtime for fetching the messages of a store.
pub(crate) fn messages(
    settings: &Settings,
    parts: &Parts,
    store: &RetrieverStore,
    on_result: OnResult,
    event_sink: EventSink,
) -> (Door<FetchResult>, Runtime) {
    let values = &settings.values;
    let rules = message_rules(settings);
    let gate = parts.gate_by(rules.gate_rules(gate_rules(settings, None)));
    let mut runtime = parts.runtime(settings, gate, DoorName::Serve, event_sink);
    let workers = values.retriever_worker_count.unwrap_or(values.max_in_flight);
    runtime.limits.max_in_flight = fitting_in_flight(workers);
    (retriever::messages(store, rules, on_result), runtime)
}
