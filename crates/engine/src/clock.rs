//! The one home of the clocks.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fetchwell_policy::time::Time;
use rustix::time::{ClockId, clock_gettime};

/// Runs on while the machine sleeps, where there is such a clock.
#[cfg(target_os = "linux")]
const SINCE_BOOT: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const SINCE_BOOT: ClockId = ClockId::Monotonic;

type Reading = Arc<dyn Fn() -> Time + Send + Sync>;

/// Tells the time. Cheap to clone; everything that asks for the time holds one.
#[derive(Clone)]
pub struct Clock {
    read: Reading,
    wall: Reading,
}

impl Clock {
    /// The machine's wall clock. It jumps when somebody sets it.
    pub fn system() -> Clock {
        Clock::new(wall_clock)
    }

    /// A clock that never jumps, and that all processes on the machine share: it showed `booted_at`
    /// when the machine was started.
    pub fn since_boot(booted_at: Time) -> Clock {
        Clock { read: Arc::new(move || booted_at + time_since_boot()), wall: Arc::new(wall_clock) }
    }

    /// When the machine was started, by what the wall clock shows now.
    pub fn booted_at() -> Time {
        wall_clock() - time_since_boot()
    }

    /// Follows tokio's clock from `start` on: with that clock paused, hours pass in an instant.
    pub fn simulated(start: Time) -> Clock {
        let origin = tokio::time::Instant::now();
        Clock::new(move || start + origin.elapsed())
    }

    /// A clock of your own, for tests that set the time by hand.
    pub fn new(read: impl Fn() -> Time + Send + Sync + 'static) -> Clock {
        let read = Arc::new(read);
        Clock { wall: read.clone(), read }
    }

    /// What time it is, for everything that is decided.
    pub fn now(&self) -> Time {
        (self.read)()
    }

    /// What the wall clock shows, for everything that is told to the world.
    pub fn wall(&self) -> Time {
        (self.wall)()
    }
}

/// The processor time of a thread: what its work costs, however busy the machine is, and however long it slept.
#[derive(Clone, Copy, Debug)]
pub struct ThreadTime(Duration);

impl ThreadTime {
    /// What the thread that asks has used so far.
    pub fn now() -> ThreadTime {
        ThreadTime(Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default())
    }

    /// What it has used since; of the same thread.
    pub fn elapsed(self) -> Duration {
        ThreadTime::now().0.saturating_sub(self.0)
    }
}

fn wall_clock() -> Time {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    let now = SystemTime::now();
    let micros = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
    Time::from_micros(micros)
}

fn time_since_boot() -> Duration {
    Duration::try_from(clock_gettime(SINCE_BOOT)).unwrap_or_default()
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
