//! A manual clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_policy::time::Time;

/// The start time: any time that is far from both limits.
const START: Time = Time::from_secs(1_700_000_000);

/// A store in which time can be advanced.
#[async_trait]
pub trait Ageing: Send + Sync {
    /// Advances the time, so that everything gets older by this much and expired data is gone.
    async fn let_pass(&self, span: Duration);
}

/// A clock that stands still until it is moved. Clones share the time.
#[derive(Clone)]
pub struct HandClock(Arc<AtomicI64>);

impl HandClock {
    /// A clock at an arbitrary time.
    #[expect(
        clippy::new_without_default,
        reason = "a clock at no time in particular is no default"
    )]
    pub fn new() -> HandClock {
        HandClock(Arc::new(AtomicI64::new(START.as_micros())))
    }

    /// The current time.
    pub fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::SeqCst))
    }

    /// Moves it forward.
    pub fn advance(&self, span: Duration) {
        self.set(self.now() + span);
    }

    /// Sets it, possibly back.
    pub fn set(&self, time: Time) {
        self.0.store(time.as_micros(), Ordering::SeqCst);
    }

    /// As the `Clock` that the adapters take.
    pub fn clock(&self) -> Clock {
        let hands = self.clone();
        Clock::new(move || hands.now())
    }
}
