//! Operators' orders for a site, such as a pause or a rate. An order applies until another one revokes it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::pace::Rate;
use crate::time::Time;

/// The longest interval that can be ordered. To send requests even less often, pause the site.
pub const MAX_ORDERED_INTERVAL: Duration = Duration::from_hours(24);

/// An order for a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Sends nothing to the site until it is resumed.
    Pause,
    /// Ends a pause.
    Resume,
    /// One request per interval, regardless of the settings, but never more often than a Crawl-delay permits.
    SetInterval(Duration),
    /// Revokes an ordered interval.
    ClearInterval,
    /// Closes the breaker and treats the site as healthy.
    ResetBreaker,
    /// Discards the stored robots.txt, so that it is read again.
    ForgetRobots,
}

impl Order {
    /// Whether it may end a wait, so that waiting requests must be notified. A pause is noticed at the next request.
    pub fn may_end_a_wait(self) -> bool {
        self != Order::Pause
    }

    /// The name of the order, as used in commands, URL paths and the audit log.
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
pub struct OrderStamp {
    /// When it was given, by the store's clock.
    pub at: Time,
    /// Who gave it.
    pub by: String,
}

/// An ordered interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderedInterval {
    /// The interval.
    pub interval: Duration,
    /// Who ordered it, and when.
    pub given: OrderStamp,
}

/// The current orders for a site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Orders {
    /// Set while the site is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<OrderStamp>,
    /// The ordered interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<OrderedInterval>,
    /// When the stored robots.txt was last discarded. An older copy must not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robots_forgotten: Option<Time>,
}

impl Orders {
    /// Whether there is an order that must not be forgotten.
    pub fn stand(&self) -> bool {
        self.paused.is_some() || self.interval.is_some()
    }

    /// Converts the times to another clock; see [`Time::by_clock_ahead_by_us`].
    pub fn by_clock_ahead_by_us(self, ahead_us: i64) -> Orders {
        let moved = |time: Time| time.by_clock_ahead_by_us(ahead_us);
        let given = |given: OrderStamp| OrderStamp { at: moved(given.at), ..given };
        let ordered =
            |ordered: OrderedInterval| OrderedInterval { given: given(ordered.given), ..ordered };
        Orders {
            paused: self.paused.map(given),
            interval: self.interval.map(ordered),
            robots_forgotten: self.robots_forgotten.map(moved),
        }
    }

    /// Whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        *self == Orders::default()
    }

    /// The rate that applies if the settings and robots.txt require `asked`.
    pub fn rate(&self, asked: Rate) -> Rate {
        match &self.interval {
            Some(ordered) => {
                let interval = ordered.interval.max(asked.least_interval);
                Rate { interval, burst: 1, ..asked }
            }
            None => asked,
        }
    }

    /// Whether this rate comes from an order.
    pub fn decide(&self, rate: Rate) -> bool {
        self.interval.as_ref().is_some_and(|ordered| ordered.interval >= rate.least_interval)
    }
}
