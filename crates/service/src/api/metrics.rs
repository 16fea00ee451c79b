//! The metrics of the API.

use std::collections::BTreeMap;

use fetchwell_engine::ports::queue::Ledger;
use fetchwell_telemetry::metric_set;
use fetchwell_telemetry::registry::{
    GaugeVec, IntCounter, IntCounterVec, Registry, counts_by_label,
};

metric_set! {
    /// The metrics of the API.
    pub struct ApiMetrics(registry) {
        registry: Registry = registry.clone(),
        /// Only known routes and methods become labels, so that clients cannot create new series.
        requests: IntCounterVec = registry.counters(
            "fetchwell_http_requests_total", "Requests answered.", &["route", "method", "status"]),
        /// By the status in the outbox.
        results: IntCounterVec = registry.counters(
            "fetchwell_results_total",
            "Results stored by this process, by their status.", &["status"]),
        accepted: IntCounter = registry.counter(
            "fetchwell_messages_accepted_total", "Messages accepted by this process."),
        authentication_failures: IntCounter = registry.counter(
            "fetchwell_authentication_failures_total", "Requests without a valid token."),
        ledger: GaugeVec = registry.gauges(
            "fetchwell_ledger_messages",
            "Messages in the store; accepted is the sum of all other states.", &["state"]),
    }
}

impl ApiMetrics {
    /// A request was answered.
    pub(super) fn answered(&self, route: &str, method: &http::Method, status: u16) {
        let status = status.to_string();
        self.requests.with_label_values(&[route, known_method(method), status.as_str()]).inc();
    }

    /// Messages were accepted.
    pub(super) fn accepted(&self, count: usize) {
        self.accepted.inc_by(count as u64);
    }

    /// A request had no valid token.
    pub(super) fn authentication_failed(&self) {
        self.authentication_failures.inc();
    }

    /// The result of a message was stored.
    pub fn result(&self, status: &str) {
        self.results.with_label_values(&[status]).inc();
    }

    /// The number of results so far, by status.
    pub fn results(&self) -> BTreeMap<String, u64> {
        counts_by_label(&self.results, "status")
    }

    /// All metrics in the Prometheus text format.
    pub(super) fn render(&self, ledger: &Ledger) -> String {
        self.registry.render(|| {
            for (state, count) in ledger.states() {
                self.ledger.with_label_values(&[state]).set(count as f64);
            }
        })
    }
}

fn known_method(method: &http::Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_in_prometheuss_format() {
        let metrics = ApiMetrics::default();
        metrics.answered("/messages/{id}", &http::Method::GET, 200);
        metrics.answered("/messages/{id}", &http::Method::GET, 200);
        metrics.answered("unknown", &http::Method::from_bytes(b"BREW").unwrap(), 404);
        metrics.accepted(3);
        metrics.result("success");
        let text = metrics.render(&Ledger { accepted: 5, done: 5, ..Ledger::default() });
        for line in [
            r#"fetchwell_http_requests_total{method="GET",route="/messages/{id}",status="200"} 2"#,
            r#"fetchwell_http_requests_total{method="other",route="unknown",status="404"} 1"#,
            "# TYPE fetchwell_messages_accepted_total counter",
            "fetchwell_messages_accepted_total 3",
            r#"fetchwell_results_total{status="success"} 1"#,
            r#"fetchwell_ledger_messages{state="done"} 5"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
