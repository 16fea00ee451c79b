//! A lease that has not begun, in a compact form: a window may hold a million of them.

use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;

use crate::ports::job::{Job, Lane, Lease, LeaseId};

/// A lease that waits for its turn. It does not store its site, because it waits on the shelf of that site.
#[derive(Debug)]
pub struct PendingLease {
    /// When it began to wait.
    pub since: Time,
    id: LeaseId,
    address: Address,
    accepted_at: Time,
    /// `None` for most leases, which have only defaults here.
    rest: Option<Box<Rest>>,
}

#[derive(Debug, Default, PartialEq)]
struct Rest {
    lane: Lane,
    deadline: Option<Time>,
    payload: Vec<u8>,
    history: History,
    interruptions: u32,
}

impl PendingLease {
    /// Converts a lease to the compact form.
    pub fn of(lease: Lease, since: Time) -> PendingLease {
        let Lease { id, job, history, interruptions, accepted_at } = lease;
        let Job { url, site, lane, deadline, payload } = job;
        let rest = Rest { lane, deadline, payload, history, interruptions };
        let rest = (rest != Rest::default()).then(|| Box::new(rest));
        PendingLease { since, id, address: Address::of(&url, site.as_ref()), accepted_at, rest }
    }

    /// Converts it back to the lease.
    pub fn open(self, site: &Site) -> Lease {
        let rest = self.rest.map(|rest| *rest).unwrap_or_default();
        let Rest { lane, deadline, payload, history, interruptions } = rest;
        let url = self.address.url(site);
        let site = Some(site.clone());
        let job = Job { url, site, lane, deadline, payload };
        Lease { id: self.id, job, history, interruptions, accepted_at: self.accepted_at }
    }

    pub(super) fn id(&self) -> LeaseId {
        self.id
    }

    pub(super) fn lane(&self) -> Option<&Lane> {
        self.rest.as_deref().map(|rest| &rest.lane)
    }
}

/// A URL without its scheme and site, which need not be stored a hundred times: a letter for the omitted part, and the
/// rest.
#[derive(Debug)]
struct Address(Box<str>);

/// The scheme that each letter stands for.
const SCHEMES: [(&str, &str); 2] = [("s", "https://"), ("h", "http://")];
/// Marks a URL that is stored in full.
const WHOLE: &str = "=";

impl Address {
    fn of(url: &str, site: Option<&Site>) -> Address {
        let without = |(letter, scheme)| {
            let rest = url.strip_prefix(scheme)?.strip_prefix(site?.as_str())?;
            Some([letter, rest].concat())
        };
        let short = SCHEMES.into_iter().find_map(without);
        Address(short.unwrap_or_else(|| [WHOLE, url].concat()).into())
    }

    fn url(&self, site: &Site) -> String {
        let (letter, rest) = self.0.split_at(WHOLE.len());
        match SCHEMES.iter().find(|(of, _)| *of == letter) {
            Some((_, scheme)) => [*scheme, site.as_str(), rest].concat(),
            None => rest.to_owned(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::workbench) fn lease(id: LeaseId, group: Option<&str>) -> Lease {
        let lane = Lane { group: group.map(str::to_owned), party: None };
        let site = Site::parse("a.test").ok();
        let url = format!("http://a.test/{id}");
        Lease {
            id,
            job: Job { url, site, lane, deadline: None, payload: Vec::new() },
            history: History::default(),
            interruptions: 0,
            accepted_at: Time::from_secs(7),
        }
    }

    #[test]
    fn a_url_comes_out_as_it_was_written() {
        let site = Site::parse("a.test").unwrap();
        for url in [
            "https://a.test/x?y",
            "http://a.test/",
            "HTTP://A.test/Shouted",
            "http://a.test:80/x",
            "http://www.a.test/",
            "not a URL",
            "",
        ] {
            assert_eq!(Address::of(url, Some(&site)).url(&site), url);
        }
        assert_eq!(&*Address::of("https://a.test/x", Some(&site)).0, "s/x");
    }

    #[test]
    fn a_lease_comes_out_as_it_went_in() {
        let plain = lease(1, None);
        let mut full = lease(2, Some("g"));
        full.job.deadline = Some(Time::from_secs(9));
        full.job.payload = vec![1, 2];
        full.history = History { url_failures: 1, ..History::default() };
        full.interruptions = 2;
        for before in [plain, full] {
            let pending_lease = PendingLease::of(before.clone(), Time::EPOCH);
            assert_eq!(pending_lease.lane().cloned().unwrap_or_default(), before.job.lane);
            let after = pending_lease.open(&Site::parse("a.test").unwrap());
            assert_eq!((after.id, &after.job), (before.id, &before.job));
            assert_eq!(
                (after.history, after.interruptions),
                (before.history, before.interruptions)
            );
            assert_eq!(after.accepted_at, before.accepted_at);
        }
    }

    #[test]
    fn a_plain_lease_is_small() {
        assert_eq!(size_of::<PendingLease>(), 48);
        assert!(PendingLease::of(lease(1, None), Time::EPOCH).rest.is_none());
    }
}
