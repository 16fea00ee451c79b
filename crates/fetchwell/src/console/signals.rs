//! SIGTERM and Ctrl-C: the first signal stops gracefully, the second exits at once.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// The exit code after a second signal.
pub(crate) const AT_ONCE: i32 = 130;

/// A token that the first signal cancels. The second loses nothing either: a killed run can be resumed.
pub(crate) fn stop_on_signal() -> CancellationToken {
    stop_on_signal_and(|| {})
}

/// The same, with a cleanup that runs even before the immediate exit.
pub(crate) fn stop_on_signal_and(last: impl Fn() + Send + 'static) -> CancellationToken {
    let stop = CancellationToken::new();
    let token = stop.clone();
    tokio::spawn(async move {
        let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
        let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
            return warn!("cannot handle signals: any signal ends the program at once");
        };
        for count in 0.. {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if count == 1 {
                last();
                std::process::exit(AT_ONCE);
            }
            warn!("stopping: waiting for requests in flight; a second signal exits at once");
            token.cancel();
        }
    });
    stop
}

/// Sleeps, unless stopped.
pub(crate) async fn sleep_unless_stopped(interval: Duration, stop: &CancellationToken) {
    stop.run_until_cancelled(tokio::time::sleep(interval)).await;
}
