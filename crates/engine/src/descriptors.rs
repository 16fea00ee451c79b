//! File descriptors: how many this process may open, and how connections are made to fit.
//!
//! Each connection takes one. A process that runs out fails requests to healthy sites, so the limit is raised as far as
//! the system allows, and the numbers of connections are reduced if they still do not fit.

use std::fmt;
use std::sync::Once;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// For everything except connections: stores, output, standard streams, the runtime.
const RESERVED: usize = 40;

/// Incoming connections get 1/`FOR_LISTENERS` of the descriptors.
const FOR_LISTENERS: usize = 4;

/// Connections reserved for health checks: at most this many, and at most 1/`FOR_HEALTH_CHECKS` of the listener's
/// descriptors.
const MAX_HEALTH_CHECKS: usize = 128;
const FOR_HEALTH_CHECKS: usize = 4;

/// A request takes a connection, and two more descriptors while its name is looked up (one each for IPv4 and IPv6).
const PER_REQUEST: usize = 3;

/// Raises the soft limit to the hard limit, which every process may do.
pub fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Some systems report an unlimited hard limit but refuse to set it. Then the soft limit stays, and everything
        // is made to fit into that.
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap_or_default();
    }
}

/// The limit on open files, and how many connections fit into it.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors {
    /// The soft limit.
    limit: usize,
}

/// The number of connections of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// For concurrent requests.
    pub in_flight: usize,
    /// Kept open for later requests.
    pub idle: usize,
}

/// How many connections a listener accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Connections for any request.
    pub most: usize,
    /// Additional connections for health checks only.
    pub health_checks: usize,
}

impl Descriptors {
    /// The current limit of this process.
    pub fn of_this_process() -> Descriptors {
        let limit = getrlimit(Resource::Nofile).current;
        let limit = limit.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        Descriptors { limit }
    }

    pub fn with_limit(limit: usize) -> Descriptors {
        Descriptors { limit }
    }

    /// The limit; `None` if unlimited.
    pub fn limit(self) -> Option<u64> {
        (self.limit != usize::MAX).then_some(self.limit as u64)
    }

    /// Reduces the wanted connections to what the limit allows. Concurrent requests take precedence.
    pub fn fit(self, wanted: Connections) -> Connections {
        let reserved = RESERVED.saturating_add(self.limit / FOR_LISTENERS);
        let left = self.limit.saturating_sub(reserved);
        let in_flight = wanted.in_flight.min(left / (PER_REQUEST + 1)).max(1);
        let idle = wanted.idle.min(left.saturating_sub(in_flight.saturating_mul(PER_REQUEST)));
        Connections { in_flight, idle }
    }

    /// Reduces the wanted connections to the share of one of the process's `listeners`.
    pub fn fit_listener(self, wanted: usize, listeners: usize) -> Incoming {
        let share = self.limit / FOR_LISTENERS / listeners;
        let health_checks = MAX_HEALTH_CHECKS.min(share / FOR_HEALTH_CHECKS).max(1);
        let most = wanted.min(share.saturating_sub(health_checks)).max(1);
        Incoming { most, health_checks }
    }

    /// Warns once per process that fewer connections fit than are wanted, and what to do about it.
    pub fn say_what_fits(self, wanted: Connections, fits: Connections) {
        static SAID: Once = Once::new();
        if wanted == fits {
            return;
        }
        SAID.call_once(|| {
            warn!(
                "the limit of {self} open files allows {} concurrent requests (max_in_flight: {}) \
                 and {} idle connections (usual: {}). To change that, raise the hard limit (ulimit \
                 -Hn, LimitNOFILE= in systemd), or lower max_in_flight.",
                fits.in_flight, wanted.in_flight, fits.idle, wanted.idle
            );
        });
    }
}

impl fmt::Display for Descriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            usize::MAX => f.write_str("unlimited"),
            limit => write!(f, "{limit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Connections = Connections { in_flight: 128, idle: 512 };

    fn fit(limit: usize) -> Connections {
        Descriptors { limit }.fit(WANTED)
    }

    #[test]
    fn what_is_wanted_is_had_where_there_is_enough() {
        for limit in [2_048, 65_536, usize::MAX] {
            assert_eq!(fit(limit), WANTED, "{limit}");
        }
    }

    #[test]
    fn whatever_the_limit_is_connections_fit_into_it_and_one_request_goes() {
        for limit in 0..2_048 {
            let Connections { in_flight, idle } = fit(limit);
            assert!(in_flight >= 1, "{limit}");
            for listeners in [1, 2] {
                let incoming = Descriptors { limit }.fit_listener(1_024, listeners);
                let Incoming { most, health_checks } = incoming;
                assert!(most >= 1 && health_checks >= 1, "{limit}");
                let listening = listeners * (most + health_checks);
                let used = in_flight * PER_REQUEST + idle + listening + RESERVED;
                let least = RESERVED + PER_REQUEST + limit / FOR_LISTENERS + 2 * listeners;
                assert!(used <= limit.max(least), "{limit}, {listeners} listeners: {used}");
            }
        }
        assert_eq!(fit(64), Connections { in_flight: 2, idle: 2 });
        assert_eq!(fit(256), Connections { in_flight: 38, idle: 38 });
    }

    #[test]
    fn a_listener_keeps_a_part_of_its_descriptors_for_health_checks() {
        for (limit, listeners, most, health_checks) in [
            (usize::MAX, 1, 1_024, 128),
            (4 * 1_024 + 512, 1, 1_024, 128),
            (1_024, 1, 192, 64),
            (1_024, 2, 96, 32),
            (0, 2, 1, 1),
        ] {
            let fits = Descriptors { limit }.fit_listener(1_024, listeners);
            assert_eq!(fits, Incoming { most, health_checks }, "{limit}");
        }
    }
}
