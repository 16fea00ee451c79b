//! Waiting for something that happens elsewhere: in another process, in another task, on a server.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::DEADLINE;

const POLL: Duration = Duration::from_millis(20);

/// Waits until `holds` is true: `eventually("a hit", async || !origin.hits().is_empty()).await`.
///
/// If only elapsed time distinguishes right from wrong, wrap it in a [`timeout`] that is far longer than a busy machine
/// needs and shorter than the wrong behaviour would take.
///
/// # Panics
///
/// After [`DEADLINE`]; the message names `what`.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    eventually_ok(what, async || if holds().await { Ok(()) } else { Err("not yet") }).await;
}

/// Waits until `look` returns `Ok`, and returns the value. An `Err` describes the state so far.
///
/// # Panics
///
/// After [`DEADLINE`]; the message names `what` and the last `Err`.
pub async fn eventually_ok<T, E: Display>(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let mut last = None;
    let looking = async {
        loop {
            match look().await {
                Ok(found) => return found,
                Err(state) => last = Some(state),
            }
            sleep(POLL).await;
        }
    };
    let found = timeout(DEADLINE, looking).await;
    found.unwrap_or_else(|_| match last {
        Some(state) => panic!("waited {DEADLINE:?} for {what}: {state}"),
        None => panic!("waited {DEADLINE:?} for {what}: the first look has not ended"),
    })
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_holds_already_is_not_waited_for() {
        let began = Instant::now();
        eventually("nothing", async || true).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_later_is_waited_for_and_returned() {
        let began = Instant::now();
        let mut looks = 0;
        let look = async || {
            looks += 1;
            if looks == 5 { Ok("found") } else { Err(looks) }
        };
        assert_eq!(eventually_ok("the fifth look", look).await, "found");
        assert!((4 * POLL..5 * POLL).contains(&began.elapsed()), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "waited 300s for a bus: not yet")]
    async fn what_never_comes_is_named() {
        eventually("a bus", async || false).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "waited 300s for a bus: it is three stops away")]
    async fn the_last_state_is_told() {
        let look = async || Err::<(), _>("it is three stops away");
        eventually_ok("a bus", look).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "waited 300s for a bus: the first look has not ended")]
    async fn a_look_that_hangs_is_not_waited_for_either() {
        eventually("a bus", pending).await;
    }
}
