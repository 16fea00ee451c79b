//! Interim responses (1xx): a few are ignored, a flood counts as a violation of HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::pool::RequestBody;

/// No honest server sends more interim responses than this.
const MOST_INTERIM_ANSWERS: usize = 32;

/// Counts the interim responses to a request, and notifies if there are too many.
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
