//! The one home of the wall clock.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use fetchwell_policy::time::Time;

/// Tells the time. Cheap to clone; everything that asks for the time holds one.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Time + Send + Sync>);

impl Clock {
    /// The machine's wall clock, which all processes on the machine share.
    pub fn system() -> Clock {
        Clock::new(|| {
            #[expect(
                clippy::disallowed_methods,
                reason = "the one place that reads the wall clock"
            )]
            let now = SystemTime::now();
            let micros = now
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
            Time::from_micros(micros)
        })
    }

    /// Follows tokio's clock from `start` on: with that clock paused, hours pass in an instant.
    pub fn simulated(start: Time) -> Clock {
        let origin = tokio::time::Instant::now();
        Clock::new(move || start + origin.elapsed())
    }

    /// A clock of your own, for tests that set the time by hand.
    pub fn new(read: impl Fn() -> Time + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(read))
    }

    /// What time it is.
    pub fn now(&self) -> Time {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
