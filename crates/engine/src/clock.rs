//! The clocks: for decisions, for timestamps, and for CPU time.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fetchwell_policy::time::Time;
use rustix::time::{ClockId, clock_gettime};

/// Continues while the machine sleeps, if the system has such a clock.
#[cfg(target_os = "linux")]
const SINCE_BOOT: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const SINCE_BOOT: ClockId = ClockId::Monotonic;

type Reading = Arc<dyn Fn() -> Time + Send + Sync>;

/// Cheap to clone; everything that needs the time holds one.
#[derive(Clone)]
pub struct Clock {
    read: Reading,
    wall: Reading,
}

impl Clock {
    /// The machine's wall clock. It jumps when it is set.
    pub fn system() -> Clock {
        Clock::new(wall_clock)
    }

    /// A clock that never jumps, and that all processes on the machine share: it showed `booted_at` at boot.
    pub fn since_boot(booted_at: Time) -> Clock {
        Clock { read: Arc::new(move || booted_at + time_since_boot()), wall: Arc::new(wall_clock) }
    }

    /// When the machine was booted, according to the current wall clock.
    pub fn booted_at() -> Time {
        wall_clock() - time_since_boot()
    }

    /// Follows tokio's clock from `start` on: with that clock paused, hours pass in an instant.
    pub fn simulated(start: Time) -> Clock {
        let origin = tokio::time::Instant::now();
        Clock::new(move || start + origin.elapsed())
    }

    /// A custom clock, for tests that set the time by hand.
    pub fn new(read: impl Fn() -> Time + Send + Sync + 'static) -> Clock {
        let read = Arc::new(read);
        Clock { wall: read.clone(), read }
    }

    /// The same with another wall clock, for tests that set only that one.
    pub fn with_wall(self, wall: impl Fn() -> Time + Send + Sync + 'static) -> Clock {
        Clock { wall: Arc::new(wall), ..self }
    }

    /// The time on which decisions are based.
    pub fn now(&self) -> Time {
        (self.read)()
    }

    /// The wall clock, for timestamps that are visible outside.
    pub fn wall(&self) -> Time {
        (self.wall)()
    }
}

/// The CPU time of a thread: what its work costs, however busy the machine is, and however long the thread slept.
#[derive(Clone, Copy, Debug)]
pub struct ThreadTime(Duration);

impl ThreadTime {
    /// The CPU time that the current thread has used so far.
    pub fn now() -> ThreadTime {
        ThreadTime(Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default())
    }

    /// The CPU time used since then. Must be called on the same thread.
    pub fn elapsed(self) -> Duration {
        ThreadTime::now().0.saturating_sub(self.0)
    }
}

fn wall_clock() -> Time {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    let now = SystemTime::now();
    Time::EPOCH + now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn time_since_boot() -> Duration {
    Duration::try_from(clock_gettime(SINCE_BOOT)).unwrap_or_default()
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
