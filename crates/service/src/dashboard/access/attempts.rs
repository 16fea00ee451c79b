//! Limits failed logins to one account from one address.
//!
//! Failures are counted per account and address. An attacker who shares an address with others (an office, a proxy)
//! does not lock out their accounts, and one who tries an account from another address does not lock out its owner.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::server::network_of;

/// So many logins may fail…
const MOST: u32 = 10;
/// …within this time.
const WINDOW: Duration = Duration::from_secs(60);
/// Minimum time between token lookups for addresses with too many failed logins. This bounds the load on the store,
/// while a valid user at the same address is delayed but not locked out.
const LOOKUP_INTERVAL: Duration = Duration::from_millis(20);
/// The maximum number of accounts and addresses; all further ones are counted together.
const MOST_KEYS: usize = 4_096;

/// The account, if it is known, and the address.
type Key = (Option<String>, IpAddr);

/// Counts failed logins.
#[derive(Default)]
pub(in super::super) struct Attempts {
    failures: Mutex<HashMap<Key, (u32, Instant)>>,
    /// Held during a lookup for an address with too many failed logins.
    turn: tokio::sync::Mutex<()>,
}

impl Attempts {
    /// Looks up a token, for a login to this account. If too many logins from this address have failed, lookups run
    /// one at a time, with a pause before each.
    pub(super) async fn look_up<T>(
        &self,
        account: Option<&str>,
        from: IpAddr,
        lookup: impl Future<Output = T>,
    ) -> T {
        if self.wait(account, from).is_none() {
            return lookup.await;
        }
        let _turn = self.turn.lock().await;
        tokio::time::sleep(LOOKUP_INTERVAL).await;
        lookup.await
    }

    /// How long a login to this account from this address has to wait.
    pub(super) fn wait(&self, account: Option<&str>, from: IpAddr) -> Option<Duration> {
        let failures = self.failures.lock();
        let (failed, since) = failures.get(&key(account, from, &failures))?;
        let left = WINDOW.checked_sub(since.elapsed())?;
        (*failed >= MOST).then_some(left)
    }

    /// Records a failed login.
    pub(super) fn failed(&self, account: Option<&str>, from: IpAddr) {
        let mut failures = self.failures.lock();
        failures.retain(|_, (_, since)| since.elapsed() < WINDOW);
        let key = key(account, from, &failures);
        failures.entry(key).or_insert((0, Instant::now())).0 += 1;
    }
}

fn key(account: Option<&str>, from: IpAddr, known: &HashMap<Key, (u32, Instant)>) -> Key {
    let own = (account.map(str::to_owned), network_of(from));
    let has_room = known.len() < MOST_KEYS || known.contains_key(&own);
    if has_room { own } else { (None, Ipv4Addr::UNSPECIFIED.into()) }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn after_so_many_failures_an_account_waits_at_one_address_and_no_other_does() {
        let attempts = Attempts::default();
        let one = ip("2001:db8::1");
        for _ in 0..MOST {
            assert_eq!(attempts.wait(None, one), None);
            attempts.failed(None, one);
        }
        assert_eq!(attempts.wait(None, one), Some(WINDOW));
        assert_eq!(attempts.wait(None, ip("2001:db8::2")), Some(WINDOW), "the same network");
        assert_eq!(attempts.wait(Some("operator"), one), None, "another account");
        assert_eq!(attempts.wait(None, ip("192.0.2.7")), None, "another address");
        tokio::time::advance(WINDOW + Duration::from_secs(1)).await;
        assert_eq!(attempts.wait(None, one), None);
    }

    #[tokio::test(start_paused = true)]
    async fn lookups_for_those_who_failed_too_often_take_turns_and_others_do_not_wait() {
        let attempts = Attempts::default();
        let stranger = ip("192.0.2.7");
        for _ in 0..MOST {
            attempts.failed(None, stranger);
        }
        let began = Instant::now();
        let look_up = |from| attempts.look_up(None, from, async { began.elapsed() });
        let strangers = (0..100).map(|_| look_up(stranger));
        let (times, other) = tokio::join!(join_all(strangers), look_up(ip("192.0.2.8")));
        assert_eq!(other, Duration::ZERO);
        for (number, time) in (1..).zip(times) {
            assert!(time >= LOOKUP_INTERVAL * number, "lookup {number} after {time:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_number_of_addresses_fills_the_memory() {
        let attempts = Attempts::default();
        for number in 0..10_000u32 {
            attempts.failed(None, IpAddr::V4((0x0a00_0000 + number).into()));
        }
        assert!(attempts.failures.lock().len() <= MOST_KEYS + 1);
        assert!(
            attempts.wait(None, ip("192.0.2.7")).is_some(),
            "of those beyond, all count as one"
        );
    }
}
