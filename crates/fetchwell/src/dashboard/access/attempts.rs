//! Failed logins: so many from one place, and then none for a while.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// So many may fail from one place…
const MOST: u32 = 10;
/// …within this time.
const WINDOW: Duration = Duration::from_secs(60);
/// Places that are remembered; of more, all that fail count as one.
const MOST_PLACES: usize = 4_096;

/// Who failed how often.
#[derive(Default)]
pub(in super::super) struct Attempts(Mutex<HashMap<IpAddr, (u32, Instant)>>);

impl Attempts {
    /// How long whoever comes from there is to wait.
    pub(super) fn wait(&self, from: IpAddr) -> Option<Duration> {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (failed, since) = places.get(&place(from, &places))?;
        let left = WINDOW.checked_sub(since.elapsed())?;
        (*failed >= MOST).then_some(left)
    }

    /// Another one failed.
    pub(super) fn failed(&self, from: IpAddr) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|_, (_, since)| since.elapsed() < WINDOW);
        let place = place(from, &places);
        places.entry(place).or_insert((0, Instant::now())).0 += 1;
    }
}

/// A network of IPv6 is one place: it has more addresses than anybody can remember.
fn place(from: IpAddr, known: &HashMap<IpAddr, (u32, Instant)>) -> IpAddr {
    let place = match from {
        IpAddr::V6(ip) => {
            let network = u128::from(ip) & !u128::from(u64::MAX);
            ip.to_ipv4_mapped().map_or(IpAddr::V6(network.into()), IpAddr::V4)
        }
        v4 => v4,
    };
    let has_room = known.len() < MOST_PLACES || known.contains_key(&place);
    if has_room { place } else { IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_so_many_failures_a_place_waits_and_no_other_does() {
        let attempts = Attempts::default();
        let (one, other) = ("2001:db8::1".parse().unwrap(), "192.0.2.7".parse().unwrap());
        for _ in 0..MOST {
            assert_eq!(attempts.wait(one), None);
            attempts.failed(one);
        }
        assert_eq!(attempts.wait(one), Some(WINDOW));
        assert_eq!(attempts.wait("2001:db8::2".parse().unwrap()), Some(WINDOW));
        assert_eq!(attempts.wait(other), None);
        tokio::time::advance(WINDOW + Duration::from_secs(1)).await;
        assert_eq!(attempts.wait(one), None);
    }

    #[tokio::test(start_paused = true)]
    async fn no_number_of_places_fills_the_memory() {
        let attempts = Attempts::default();
        for number in 0..10_000u32 {
            attempts.failed(IpAddr::V4((0x0a00_0000 + number).into()));
        }
        assert!(attempts.0.lock().unwrap().len() <= MOST_PLACES + 1);
        let stranger = "192.0.2.7".parse().unwrap();
        assert!(attempts.wait(stranger).is_some(), "of those beyond, all count as one");
    }
}
