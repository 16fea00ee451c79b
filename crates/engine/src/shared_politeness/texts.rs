//! The state of a site as the texts that a server stores.

use fetchwell_policy::breaker::Breaker;
use fetchwell_policy::health::SiteHealth;
use fetchwell_policy::orders::Orders;
use fetchwell_policy::pace::Pace;
use fetchwell_policy::recent::Recent;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;
use serde::{Deserialize, Serialize};
use tracing::warn;

/// The stored texts of a site. They are compared as text, so an older program never overwrites fields that a newer one
/// added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// Pace and penalty, as JSON.
    pub rate_limit: Option<String>,
    /// The breaker, as JSON; absent while it is closed and nothing has failed.
    pub circuit: Option<String>,
    /// Orders of operators, recent limits and failures, and the health of the site, as JSON; absent if there are none.
    pub notes: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct RateLimit {
    #[serde(flatten)]
    pace: Pace,
    generation: u64,
    penalty_until: Time,
    limited_in_a_row: u32,
    last_served: Option<Time>,
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Notes {
    #[serde(flatten)]
    orders: Orders,
    #[serde(skip_serializing_if = "Recent::is_empty")]
    limited: Recent,
    #[serde(skip_serializing_if = "Recent::is_empty")]
    failed: Recent,
    #[serde(skip_serializing_if = "SiteHealth::is_empty")]
    health: SiteHealth,
}

impl Texts {
    /// Serializes a state.
    pub fn of(state: &SiteState) -> Texts {
        let SiteState { pace, generation, penalty_until, limited_in_a_row, last_served, .. } =
            *state;
        let rate_limit =
            RateLimit { pace, generation, penalty_until, limited_in_a_row, last_served };
        let SiteState { limited, failed, health, .. } = *state;
        let notes = Notes { orders: state.orders.clone(), limited, failed, health };
        Texts {
            rate_limit: serde_json::to_string(&rate_limit).ok(),
            circuit: text_unless_default(&state.breaker),
            notes: text_unless_default(&notes),
        }
    }

    /// Parses the texts. An invalid text counts as missing, so that a foreign key cannot stop the program.
    pub fn state(&self) -> SiteState {
        let rate_limit: Option<RateLimit> = read(self.rate_limit.as_deref());
        let breaker: Option<Breaker> = read(self.circuit.as_deref());
        let notes: Option<Notes> = read(self.notes.as_deref());
        let Notes { orders, limited, failed, health } = notes.unwrap_or_default();
        let breaker = breaker.unwrap_or_default();
        let mut state =
            SiteState { breaker, orders, limited, failed, health, ..SiteState::default() };
        if let Some(kept) = rate_limit {
            state.pace = kept.pace;
            state.generation = kept.generation;
            state.penalty_until = kept.penalty_until;
            state.limited_in_a_row = kept.limited_in_a_row;
            state.last_served = kept.last_served;
        }
        state
    }

    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.rate_limit.is_none() && self.circuit.is_none() && self.notes.is_none()
    }
}

fn text_unless_default<T: Serialize + Default + PartialEq>(value: &T) -> Option<String> {
    if *value == T::default() { None } else { serde_json::to_string(value).ok() }
}

fn read<'a, T: Deserialize<'a>>(text: Option<&'a str>) -> Option<T> {
    let text = text?;
    serde_json::from_str(text)
        .inspect_err(
            |error| warn!(%error, text, "the stored state of a site is invalid; resetting it"),
        )
        .ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fetchwell_policy::breaker::BreakerRule;
    use fetchwell_policy::orders::Order;
    use fetchwell_policy::outcome::Mark;
    use fetchwell_policy::pace::Rate;
    use fetchwell_policy::site::Report;

    use super::*;

    #[test]
    fn a_state_comes_back_as_it_was_kept() {
        let now = Time::from_secs(1_700_000_000);
        let rule = BreakerRule::default();
        let rate = Rate::per_second(1.0, 1);
        let mut state = SiteState::default();
        state.ask(now, rate, false, &rule);
        let at_rest = Texts::of(&state);
        assert_eq!((at_rest.circuit, at_rest.notes), (None, None));
        let report = Report { mark: Mark::Failed, retry_after: None, generation: 0 };
        state.record(&report, now, &rule, 0.5);
        state.obey(Order::Pause, "ann", now);
        state.obey(Order::SetInterval(Duration::from_secs(5)), "bob", now);
        let texts = Texts::of(&state);
        assert!(texts.circuit.is_some());
        assert_eq!(texts.state(), state);
        // Other readers of the contract's keys see nothing new in them.
        let fields = |text: Option<String>| -> Vec<String> {
            let object: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(&text.unwrap()).unwrap();
            object.into_iter().map(|(name, _)| name).collect()
        };
        let contract = [
            "generation",
            "interval",
            "last_head",
            "last_served",
            "limited_in_a_row",
            "penalty_until",
            "used_until",
        ];
        assert_eq!(fields(texts.rate_limit), contract);
    }

    #[test]
    fn what_makes_no_sense_counts_as_nothing() {
        let rate_limit = Some("17".to_owned());
        let circuit = Some("{".to_owned());
        let texts = Texts { rate_limit, circuit, notes: Some("[]".to_owned()) };
        assert_eq!(texts.state(), SiteState::default());
    }
}
