//! A site's state as the texts that a server keeps.

use fetchwell_policy::breaker::Breaker;
use fetchwell_policy::pace::Pace;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;
use serde::{Deserialize, Serialize};
use tracing::warn;

/// What a server keeps of a site. They are compared as they stand, so that a newer program that writes
/// more into them is not overwritten by an older one that can't see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// Pace and penalty, as JSON.
    pub rate_limit: Option<String>,
    /// The breaker, as JSON; absent while it is closed and nothing has failed.
    pub circuit: Option<String>,
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

impl Texts {
    /// As it is to be kept.
    pub fn of(state: &SiteState) -> Texts {
        let SiteState { pace, breaker, generation, penalty_until, limited_in_a_row, last_served } =
            *state;
        let rate_limit =
            RateLimit { pace, generation, penalty_until, limited_in_a_row, last_served };
        let has_failed = breaker != Breaker::default();
        Texts {
            rate_limit: serde_json::to_string(&rate_limit).ok(),
            circuit: has_failed.then(|| serde_json::to_string(&breaker).ok()).flatten(),
        }
    }

    /// What they mean. A text that makes no sense counts as none: somebody else's key must not stop us.
    pub fn state(&self) -> SiteState {
        let rate_limit: Option<RateLimit> = read(self.rate_limit.as_deref());
        let breaker: Option<Breaker> = read(self.circuit.as_deref());
        let mut state = SiteState { breaker: breaker.unwrap_or_default(), ..SiteState::default() };
        if let Some(kept) = rate_limit {
            state.pace = kept.pace;
            state.generation = kept.generation;
            state.penalty_until = kept.penalty_until;
            state.limited_in_a_row = kept.limited_in_a_row;
            state.last_served = kept.last_served;
        }
        state
    }

    /// Whether anything is kept.
    pub fn is_empty(&self) -> bool {
        self.rate_limit.is_none() && self.circuit.is_none()
    }
}

fn read<'a, T: Deserialize<'a>>(text: Option<&'a str>) -> Option<T> {
    let text = text?;
    serde_json::from_str(text)
        .inspect_err(|error| warn!(%error, text, "a site's state makes no sense; starting anew"))
        .ok()
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::breaker::BreakerRule;
    use fetchwell_policy::pace::Rate;
    use fetchwell_policy::site::{Mark, Report};

    use super::*;

    #[test]
    fn a_state_comes_back_as_it_was_kept() {
        let now = Time::from_secs(1_700_000_000);
        let (rule, rate) = (BreakerRule::default(), Rate::per_second(1.0, 1));
        let mut state = SiteState::default();
        state.ask(now, rate, false, &rule);
        assert_eq!(Texts::of(&state).circuit, None);
        let report = Report { mark: Mark::Failed, retry_after: None, generation: 0 };
        state.record(&report, now, &rule, 0.5);
        let texts = Texts::of(&state);
        assert!(texts.circuit.is_some());
        assert_eq!(texts.state(), state);
    }

    #[test]
    fn what_makes_no_sense_counts_as_nothing() {
        let texts = Texts { rate_limit: Some("17".to_owned()), circuit: Some("{".to_owned()) };
        assert_eq!(texts.state(), SiteState::default());
    }
}
