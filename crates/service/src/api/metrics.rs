//! What is counted, and how Prometheus reads it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fetchwell_engine::ports::queue::Ledger;
use fetchwell_telemetry::prometheus::family;

/// The counters of this process.
#[derive(Default)]
pub struct Metrics {
    /// By route, method and status. Routes and methods are those that are known: nobody can make more.
    requests: Mutex<BTreeMap<(String, &'static str, u16), u64>>,
    /// By the status in the outbox.
    results: Mutex<BTreeMap<String, u64>>,
    accepted: AtomicU64,
    authentication_failures: AtomicU64,
}

impl Metrics {
    /// A request was answered.
    pub(super) fn answered(&self, route: &str, method: &http::Method, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((route.to_owned(), known_method(method), status)).or_default() += 1;
    }

    /// Messages were accepted.
    pub(super) fn accepted(&self, count: usize) {
        self.accepted.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Somebody came without a good token.
    pub(super) fn authentication_failed(&self) {
        self.authentication_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// A message has its result.
    pub fn result(&self, status: &str) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        *results.entry(status.to_owned()).or_default() += 1;
    }

    /// How many results there were so far, by their status.
    pub fn results(&self) -> BTreeMap<String, u64> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All of them in Prometheus's text format.
    pub(super) fn render(&self, ledger: &Ledger) -> String {
        let mut text = String::new();
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let requests = requests.into_iter().map(|((route, method, status), count)| {
            (format!("{{route=\"{route}\",method=\"{method}\",status=\"{status}\"}}"), count)
        });
        family(
            &mut text,
            "fetchwell_http_requests_total",
            "counter",
            "Requests answered.",
            requests,
        );
        let results = self
            .results()
            .into_iter()
            .map(|(status, count)| (format!("{{status=\"{status}\"}}"), count));
        family(
            &mut text,
            "fetchwell_results_total",
            "counter",
            "Results stored by this process, by their status.",
            results,
        );
        let single = |counter: &AtomicU64| [(String::new(), counter.load(Ordering::Relaxed))];
        family(
            &mut text,
            "fetchwell_messages_accepted_total",
            "counter",
            "Messages accepted by this process.",
            single(&self.accepted),
        );
        family(
            &mut text,
            "fetchwell_authentication_failures_total",
            "counter",
            "Requests without a valid token.",
            single(&self.authentication_failures),
        );
        let states =
            ledger.states().map(|(state, count)| (format!("{{state=\"{state}\"}}"), count));
        let about = "Messages in the store; accepted is the sum of all other states.";
        family(&mut text, "fetchwell_ledger_messages", "gauge", about, states);
        text
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
        let metrics = Metrics::default();
        metrics.answered("/messages/{id}", &http::Method::GET, 200);
        metrics.answered("/messages/{id}", &http::Method::GET, 200);
        metrics.answered("unknown", &http::Method::from_bytes(b"BREW").unwrap(), 404);
        metrics.accepted(3);
        metrics.result("success");
        let text = metrics.render(&Ledger { accepted: 5, done: 5, ..Ledger::default() });
        for line in [
            r#"fetchwell_http_requests_total{route="/messages/{id}",method="GET",status="200"} 2"#,
            r#"fetchwell_http_requests_total{route="unknown",method="other",status="404"} 1"#,
            "# TYPE fetchwell_messages_accepted_total counter",
            "fetchwell_messages_accepted_total 3",
            r#"fetchwell_results_total{status="success"} 1"#,
            r#"fetchwell_ledger_messages{state="done"} 5"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
