//! Answers before the answer (1xx): a few may pass, a flood is no HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::pool::RequestBody;

/// No honest server has more to say before it answers.
const MOST_INTERIM_ANSWERS: usize = 32;

/// Counts the interim answers to a request, and notifies when they are too many.
pub(super) fn flood_of_interim_answers(head: &mut http::Request<RequestBody>) -> Arc<Notify> {
    let count = AtomicUsize::new(0);
    let flood = Arc::new(Notify::new());
    let notified = flood.clone();
    hyper::ext::on_informational(head, move |_| {
        if count.fetch_add(1, Ordering::Relaxed) == MOST_INTERIM_ANSWERS {
            flood.notify_one();
        }
    });
    notified
}
