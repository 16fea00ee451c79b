//! Caches name lookups, and shares one lookup between concurrent requests for the same name.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_policy::outcome::NameFault;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::{DnsSettings, NameAnswer, Resolve};

/// The maximum number of cached names.
const MAX_NAMES: usize = 10_000;

/// A web site has a handful of addresses; a name with more than this is refused.
const MAX_ADDRESSES: usize = 64;

/// The minimum time to cache addresses, regardless of their TTL: a page is fetched right after its robots.txt.
const LEAST_TTL: Duration = Duration::from_secs(5);

/// The maximum time to cache addresses, because sites move.
const MOST_TTL: Duration = Duration::from_secs(3_600);

/// How long to cache that a name or its address does not exist, if the answer has no TTL.
const ABSENCE_TTL: Duration = Duration::from_secs(60);

/// The maximum time to cache that, because new sites appear.
const MOST_ABSENCE_TTL: Duration = Duration::from_secs(300);

/// The pause between two lookups that confirm that a name does not exist.
const ABSENCE_PAUSE: Duration = Duration::from_millis(2_500);

/// How long to cache a failed lookup.
const FAILURE_TTL: Duration = Duration::from_secs(10);

type Names = HashMap<String, Arc<OnceCell<Remembered>>>;

/// A cache in front of a resolver.
pub(in crate::http) struct CachedNames {
    source: Box<dyn Resolve>,
    timeout: Duration,
    /// The number of lookups that must agree that a name does not exist, and the pause between them.
    absence_lookups: u32,
    absence_pause: Duration,
    /// An empty cell belongs to a lookup in progress.
    names: Mutex<Names>,
}

struct Remembered {
    addresses: Result<Vec<IpAddr>, NameFault>,
    until: Instant,
}

impl CachedNames {
    /// Looks names up with `source`. The pause between lookups that confirm that a name does not exist is short enough
    /// for three of them to finish within `connect_timeout`.
    pub(in crate::http) fn new(
        source: Box<dyn Resolve>,
        settings: &DnsSettings,
        connect_timeout: Duration,
    ) -> CachedNames {
        CachedNames {
            source,
            timeout: settings.timeout,
            absence_lookups: settings.absence_lookups,
            absence_pause: ABSENCE_PAUSE.min(connect_timeout / 4),
            names: Mutex::default(),
        }
    }

    /// All addresses of a name; never empty.
    pub(in crate::http) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, NameFault> {
        let cell = self.cell(host);
        // Concurrent callers wait here for the first lookup. If its caller is cancelled, the next one starts another.
        cell.get_or_init(|| self.look_up(host)).await.addresses.clone()
    }

    fn cell(&self, host: &str) -> Arc<OnceCell<Remembered>> {
        let now = Instant::now();
        let mut names = self.names.lock();
        if let Some(cell) = names.get(host).filter(|cell| is_current(cell, now)) {
            return cell.clone();
        }
        if names.len() >= MAX_NAMES {
            make_room(&mut names, now);
        }
        let cell = Arc::new(OnceCell::new());
        names.insert(host.to_owned(), cell.clone());
        cell
    }

    async fn look_up(&self, host: &str) -> Remembered {
        let mut answer = self.ask(host).await;
        for _ in 1..self.absence_lookups {
            if answer.addresses != Err(NameFault::NoSuchName) {
                break;
            }
            tokio::time::sleep(self.absence_pause).await;
            answer = self.ask(host).await;
        }
        let addresses = answer.addresses.and_then(within_bounds);
        let until = Instant::now() + lifetime(&addresses, answer.ttl);
        Remembered { addresses, until }
    }

    async fn ask(&self, host: &str) -> NameAnswer {
        let timed_out = NameAnswer { addresses: Err(NameFault::TimedOut), ttl: None };
        let asking = self.source.look_up(host);
        tokio::time::timeout(self.timeout, asking).await.unwrap_or(timed_out)
    }
}

fn is_current(cell: &OnceCell<Remembered>, now: Instant) -> bool {
    cell.get().is_none_or(|remembered| now < remembered.until)
}

/// Removes expired names, and enough others that the next inserts do not have to do this again.
fn make_room(names: &mut Names, now: Instant) {
    names.retain(|_, cell| is_current(cell, now));
    let surplus = names.len().saturating_sub(MAX_NAMES / 4 * 3);
    let victims: Vec<String> = names.keys().take(surplus).cloned().collect();
    for name in victims {
        names.remove(&name);
    }
}

fn within_bounds(addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, NameFault> {
    match addresses.len() {
        0 => Err(NameFault::NoAddress),
        1..=MAX_ADDRESSES => Ok(addresses),
        _ => Err(NameFault::TooManyAddresses),
    }
}

fn lifetime(found: &Result<Vec<IpAddr>, NameFault>, ttl: Option<Duration>) -> Duration {
    match found {
        Ok(_) => ttl.unwrap_or(LEAST_TTL).clamp(LEAST_TTL, MOST_TTL),
        Err(NameFault::NoSuchName | NameFault::NoAddress | NameFault::TooManyAddresses) => {
            ttl.unwrap_or(ABSENCE_TTL).clamp(LEAST_TTL, MOST_ABSENCE_TTL)
        }
        // Our own shortage says nothing about the name.
        Err(NameFault::Ours) => Duration::ZERO,
        Err(
            NameFault::ServerFailed
            | NameFault::Nonsense
            | NameFault::TimedOut
            | NameFault::NoServer,
        ) => FAILURE_TTL,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use tokio::sync::Semaphore;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    /// Answers with 8.0.0.1 first, then with 8.0.0.2 and so on; or always with one fault.
    struct Counting {
        asked: Arc<AtomicU32>,
        fault: Option<NameFault>,
        ttl: Option<Duration>,
        /// Each answer takes one permit.
        permits: Arc<Semaphore>,
    }

    #[async_trait]
    impl Resolve for Counting {
        async fn look_up(&self, _host: &str) -> NameAnswer {
            let count = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
            self.permits.acquire().await.unwrap().forget();
            let number = IpAddr::from((0x0800_0000 + count).to_be_bytes());
            NameAnswer { addresses: self.fault.map_or(Ok(vec![number]), Err), ttl: self.ttl }
        }
    }

    struct Bench {
        names: Arc<CachedNames>,
        asked: Arc<AtomicU32>,
        permits: Arc<Semaphore>,
    }

    fn bench(fault: Option<NameFault>, ttl: Option<u64>, permits: usize) -> Bench {
        let asked = Arc::new(AtomicU32::new(0));
        let permits = Arc::new(Semaphore::new(permits));
        let ttl = ttl.map(Duration::from_secs);
        let source = Counting { asked: asked.clone(), fault, ttl, permits: permits.clone() };
        let settings = DnsSettings { timeout: TIMEOUT, ..DnsSettings::default() };
        let names = Arc::new(CachedNames::new(Box::new(source), &settings, TIMEOUT));
        Bench { names, asked, permits }
    }

    impl Bench {
        fn asked(&self) -> u32 {
            self.asked.load(Ordering::SeqCst)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_hold_for_their_time_within_bounds() {
        use NameFault::*;
        for (fault, ttl, holds_secs) in [
            (None, None, 5),
            (None, Some(0), 5),
            (None, Some(1), 5),
            (None, Some(300), 300),
            (None, Some(86_400), 3_600),
            (Some(NoSuchName), None, 60),
            (Some(NoSuchName), Some(0), 5),
            (Some(NoSuchName), Some(120), 120),
            (Some(NoSuchName), Some(86_400), 300),
            (Some(NoAddress), Some(30), 30),
            (Some(ServerFailed), Some(86_400), 10),
            (Some(Nonsense), None, 10),
            (Some(NoServer), None, 10),
            (Some(TimedOut), None, 10),
        ] {
            let bench = bench(fault, ttl, 100);
            let first = bench.names.addresses("a.test").await;
            tokio::time::advance(Duration::from_secs(holds_secs) - Duration::from_millis(1)).await;
            assert_eq!(bench.names.addresses("a.test").await, first, "{fault:?} {ttl:?}");
            assert_eq!(bench.asked(), 1, "{fault:?} {ttl:?}");
            tokio::time::advance(Duration::from_millis(1)).await;
            let second = bench.names.addresses("a.test").await;
            assert_eq!(bench.asked(), 2, "{fault:?} {ttl:?}");
            assert_eq!(second == first, fault.is_some(), "{fault:?} {ttl:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_ask_at_the_same_time_share_one_lookup() {
        let bench = bench(None, None, 0);
        let ask = |_| {
            let names = bench.names.clone();
            tokio::spawn(async move { names.addresses("a.test").await })
        };
        let asking: Vec<_> = (0..100).map(ask).collect();
        tokio::task::yield_now().await;
        bench.permits.add_permits(100);
        for answer in asking {
            assert_eq!(answer.await.unwrap(), Ok(vec![IpAddr::from([8, 0, 0, 1])]));
        }
        assert_eq!(bench.asked(), 1);
        bench.names.addresses("b.test").await.unwrap();
        assert_eq!(bench.asked(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_gives_up_leaves_the_lookup_to_the_next() {
        let bench = bench(None, None, 0);
        let ask = || {
            let names = bench.names.clone();
            tokio::spawn(async move { names.addresses("a.test").await })
        };
        let impatient = ask();
        tokio::task::yield_now().await;
        let patient = ask();
        tokio::task::yield_now().await;
        impatient.abort();
        assert!(impatient.await.is_err());
        bench.permits.add_permits(1);
        assert_eq!(patient.await.unwrap(), Ok(vec![IpAddr::from([8, 0, 0, 2])]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lookup_ends_in_time_and_its_end_is_remembered() {
        let bench = bench(None, None, 0);
        let began = Instant::now();
        for _ in 0..3 {
            assert_eq!(bench.names.addresses("a.test").await, Err(NameFault::TimedOut));
        }
        assert_eq!((began.elapsed(), bench.asked()), (TIMEOUT, 1));
    }

    /// Names that are there from the given lookup on, or never.
    struct AppearsAt(Option<u32>, AtomicU32);

    #[async_trait]
    impl Resolve for AppearsAt {
        async fn look_up(&self, _host: &str) -> NameAnswer {
            let lookup = self.1.fetch_add(1, Ordering::SeqCst) + 1;
            let is_there = self.0.is_some_and(|first| lookup >= first);
            let found = Ok(vec![IpAddr::from([8, 0, 0, 1])]);
            let addresses = if is_there { found } else { Err(NameFault::NoSuchName) };
            NameAnswer { addresses, ttl: None }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn that_a_name_does_not_exist_is_believed_after_three_lookups_over_five_seconds() {
        for (appears_at, time_s, is_there, took_ms) in [
            (None, 10, false, 5_000),
            (None, 2, false, 1_000),
            (Some(2), 10, true, 2_500),
            (Some(3), 10, true, 5_000),
            (Some(4), 10, false, 5_000),
            (Some(1), 10, true, 0),
        ] {
            let source = Box::new(AppearsAt(appears_at, AtomicU32::new(0)));
            let settings = DnsSettings { absence_lookups: 3, ..DnsSettings::default() };
            let names = CachedNames::new(source, &settings, Duration::from_secs(time_s));
            let began = Instant::now();
            let found = names.addresses("a.test").await;
            assert_eq!(found.is_ok(), is_there, "{appears_at:?}");
            assert_eq!(began.elapsed(), Duration::from_millis(took_ms), "{appears_at:?}");
            // What was found is remembered.
            assert_eq!(names.addresses("a.test").await, found);
            assert_eq!(began.elapsed(), Duration::from_millis(took_ms), "{appears_at:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded_and_what_is_over_goes_first() {
        let bench = bench(None, Some(60), Semaphore::MAX_PERMITS);
        let held = || bench.names.names.lock().len();
        for number in 0..MAX_NAMES {
            bench.names.addresses(&format!("{number}.test")).await.unwrap();
        }
        assert_eq!(held(), MAX_NAMES);
        bench.names.addresses("one-more.test").await.unwrap();
        assert_eq!(held(), MAX_NAMES / 4 * 3 + 1);
        tokio::time::advance(Duration::from_secs(59)).await;
        for number in MAX_NAMES..MAX_NAMES + MAX_NAMES / 4 - 1 {
            bench.names.addresses(&format!("{number}.test")).await.unwrap();
        }
        assert_eq!(held(), MAX_NAMES);
        tokio::time::advance(Duration::from_secs(1)).await;
        bench.names.addresses("last.test").await.unwrap();
        assert_eq!(held(), MAX_NAMES / 4, "those of the last second, and the new one");
    }

    #[test]
    fn a_name_has_some_addresses_and_not_too_many() {
        let so_many = |count| within_bounds(vec![IpAddr::from([8, 8, 8, 8]); count]);
        assert_eq!(so_many(0), Err(NameFault::NoAddress));
        assert!(so_many(1).is_ok() && so_many(MAX_ADDRESSES).is_ok());
        assert_eq!(so_many(MAX_ADDRESSES + 1), Err(NameFault::TooManyAddresses));
    }
}
