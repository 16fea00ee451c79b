//! What an operator ordered for a site: a pause, a pace. An order stands until another takes it back.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::pace::Rate;
use crate::time::Time;

/// The longest interval that can be ordered: a site that may go less often is better paused.
pub const MAX_ORDERED_INTERVAL: Duration = Duration::from_hours(24);

/// What an operator wants of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Nothing goes there until it is resumed.
    Pause,
    /// Takes a pause back.
    Resume,
    /// One request an interval, whatever the settings say; never more often than a Crawl-delay asks for.
    SetInterval(Duration),
    /// Takes an interval back.
    ClearInterval,
    /// The site counts as sound: its breaker closes.
    ResetBreaker,
    /// What is known of its robots.txt is forgotten, so that it is read again.
    ForgetRobots,
}

impl Order {
    /// Whether it may end a wait, so that those who wait must hear of it. A pause is met when somebody asks.
    pub fn may_end_a_wait(self) -> bool {
        self != Order::Pause
    }

    /// In one word, as commands, paths and the audit have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Order::Pause => "pause",
            Order::Resume => "resume",
            Order::SetInterval(_) => "set-rate",
            Order::ClearInterval => "clear-rate",
            Order::ResetBreaker => "reset-breaker",
            Order::ForgetRobots => "refetch-robots",
        }
    }
}

/// Who gave an order, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// When, by the store's clock.
    pub at: Time,
    /// Who.
    pub by: String,
}

/// An interval that was ordered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderedInterval {
    /// The interval.
    pub interval: Duration,
    /// Who ordered it, and when.
    pub given: Given,
}

/// The orders that stand for a site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Orders {
    /// Nothing goes there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Given>,
    /// Its pace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<OrderedInterval>,
    /// When what was known of its robots.txt was last forgotten: older knowledge is not gone by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robots_forgotten: Option<Time>,
}

impl Orders {
    /// Whether one stands that must not be forgotten.
    pub fn stand(&self) -> bool {
        self.paused.is_some() || self.interval.is_some()
    }

    /// The same by another clock; see [`Time::by_clock_ahead_by_us`].
    pub fn by_clock_ahead_by_us(self, ahead_us: i64) -> Orders {
        let moved = |time: Time| time.by_clock_ahead_by_us(ahead_us);
        let given = |given: Given| Given { at: moved(given.at), ..given };
        let ordered =
            |ordered: OrderedInterval| OrderedInterval { given: given(ordered.given), ..ordered };
        Orders {
            paused: self.paused.map(given),
            interval: self.interval.map(ordered),
            robots_forgotten: self.robots_forgotten.map(moved),
        }
    }

    /// Whether there is nothing to be remembered.
    pub fn is_empty(&self) -> bool {
        *self == Orders::default()
    }

    /// The pace that holds where the settings and robots.txt ask for `asked`.
    pub fn rate(&self, asked: Rate) -> Rate {
        match &self.interval {
            Some(ordered) => {
                let interval = ordered.interval.max(asked.least_interval);
                Rate { interval, burst: 1, ..asked }
            }
            None => asked,
        }
    }

    /// Whether it is an order that this pace comes from.
    pub fn decide(&self, rate: Rate) -> bool {
        self.interval.as_ref().is_some_and(|ordered| ordered.interval >= rate.least_interval)
    }
}
