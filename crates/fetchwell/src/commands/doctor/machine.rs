//! Checks the machine: open files, disk, clock, free ports, name servers.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::descriptors::{Connections, Descriptors};
use fetchwell_policy::outcome::{FetchOutcome, NameFault, NetworkFault};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use fetchwell_settings::Settings;
use fetchwell_stores::finding::Finding;

use crate::console::output::folder_of;
use crate::wiring::Parts;

/// With less free space than this on its disk, a store is soon full.
const LEAST_FREE_BYTES: u64 = 1 << 30;
/// A clock that shows an earlier time is wrong: this program did not exist then.
const LATEST_PAST: Time = Time::from_secs(1_767_225_600);
/// A host name that always exists, to check whether names can be resolved.
const WELL_KNOWN: &str = "http://example.com/";

pub(super) async fn examine(settings: &Settings) -> Vec<Finding> {
    let mut findings = vec![open_files(settings, Descriptors::of_this_process())];
    findings.extend(disk(settings));
    findings.push(clock());
    findings.push(name_servers(settings).await);
    let values = &settings.values;
    for (door, address) in [
        ("serve", Some(settings.retriever_address())),
        ("pages", values.pages_metrics_listen),
        ("commoncrawl batch", values.commoncrawl_batch_metrics_listen),
        ("commoncrawl work", values.commoncrawl_work_metrics_listen),
    ] {
        findings.extend(address.map(|address| listener(door, address)));
    }
    findings
}

/// The soft limit was raised to the hard limit at startup.
fn open_files(settings: &Settings, descriptors: Descriptors) -> Finding {
    let wanted = settings.values.max_in_flight;
    let fits = descriptors.fit(Connections { in_flight: wanted, idle: 0 }).in_flight;
    if fits < wanted {
        return Finding::warn(
            "open files",
            format!(
                "the limit is {descriptors}, which is enough for {fits} concurrent requests; \
                 max_in_flight is {wanted}"
            ),
            "fewer requests run at once than max_in_flight allows",
            "raise the hard limit (ulimit -Hn, LimitNOFILE= in systemd), or lower max_in_flight",
        );
    }
    Finding::ok("open files", format!("{descriptors}, enough for {wanted} concurrent requests"))
}

/// The disk of an embedded store.
fn disk(settings: &Settings) -> Option<Finding> {
    let path = settings.values.store.file()?;
    let folder = folder_of(path);
    Some(match rustix::fs::statvfs(folder) {
        Ok(space) => judge_disk(folder, space.f_bavail.saturating_mul(space.f_frsize)),
        Err(error) => Finding::fail(
            "disk",
            format!("cannot examine {}: {error}", folder.display()),
            "the store cannot be created there",
            "create the folder, or use another one with --store",
        ),
    })
}

fn judge_disk(folder: &Path, free_bytes: u64) -> Finding {
    let what = format!("{} MiB free in {}", free_bytes >> 20, folder.display());
    if free_bytes < LEAST_FREE_BYTES {
        return Finding::warn(
            "disk",
            what,
            "when the disk is full, the store accepts nothing and fetching stops",
            "free some space, or move the store",
        );
    }
    Finding::ok("disk", what)
}

/// The monotonic clock, on which all decisions are based, must not go back; the wall clock should be about right.
fn clock() -> Finding {
    let steady = Clock::since_boot(Clock::booted_at());
    let first = steady.now();
    let second = steady.now();
    judge_clock(first, second, Clock::system().now())
}

fn judge_clock(first: Time, second: Time, wall: Time) -> Finding {
    if second < first {
        return Finding::fail(
            "clock",
            "the monotonic clock goes backwards",
            "the pace of sites cannot be kept",
            "this is a bug in the hardware or the hypervisor: use another machine",
        );
    }
    if wall < LATEST_PAST {
        return Finding::warn(
            "clock",
            format!("the time is {wall}, which is long past"),
            "certificates may appear not yet valid, and timestamps are wrong",
            "set the clock, preferably with NTP",
        );
    }
    Finding::ok("clock", "monotonic, and the time is plausible")
}

async fn name_servers(settings: &Settings) -> Finding {
    let asked = async {
        let parts = Parts::in_memory(settings).map_err(|exit| exit.to_string())?;
        let url = WebUrl::parse(WELL_KNOWN).map_err(|fault| fault.to_string())?;
        Ok::<_, String>(parts.client.addresses(&url).await)
    };
    match asked.await {
        Ok(found) => judge_names(found.map(|_| ())),
        Err(why) => Finding::warn("name servers", why, "names cannot be resolved", "see above"),
    }
}

/// A server that answers that there is no such name works, too.
fn judge_names(found: Result<(), FetchOutcome>) -> Finding {
    let why = match found {
        Ok(()) => return Finding::ok("name servers", "answer"),
        Err(FetchOutcome::Network(NetworkFault::Dns(
            NameFault::NoSuchName | NameFault::NoAddress | NameFault::TooManyAddresses,
        ))) => return Finding::ok("name servers", "they answer, but do not know example.com"),
        Err(FetchOutcome::Refused(_)) => return Finding::ok("name servers", "answer"),
        Err(happened) => happened.to_string(),
    };
    Finding::warn(
        "name servers",
        why,
        "only hosts in /etc/hosts and in the setting `resolve` can be resolved",
        "check the network and /etc/resolv.conf, or set dns.servers",
    )
}

fn listener(door: &str, address: SocketAddr) -> Finding {
    let check = format!("port of \"{door}\"");
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(check, format!("{address} is free")),
        Err(error) => Finding::warn(
            check,
            format!("cannot listen on {address}: {error}"),
            format!("\"{door}\" cannot start, unless it is the process that already listens there"),
            "stop the process that listens there, or use another address",
        ),
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_stores::finding::Verdict;

    use super::*;

    #[test]
    fn what_the_machine_gives_is_judged() {
        let now = Time::from_secs(1_800_000_000);
        assert_eq!(judge_clock(now, now, now).verdict, Verdict::Ok);
        assert_eq!(judge_clock(now, Time::from_secs(1), now).verdict, Verdict::Fail);
        assert_eq!(judge_clock(now, now, Time::from_secs(0)).verdict, Verdict::Warn);
        assert_eq!(judge_disk(Path::new("."), LEAST_FREE_BYTES).verdict, Verdict::Ok);
        assert_eq!(judge_disk(Path::new("."), LEAST_FREE_BYTES - 1).verdict, Verdict::Warn);
    }

    #[test]
    fn name_servers_that_know_nothing_have_answered() {
        let dns = |fault| Err(FetchOutcome::Network(NetworkFault::Dns(fault)));
        for (found, expected) in [
            (Ok(()), Verdict::Ok),
            (dns(NameFault::NoSuchName), Verdict::Ok),
            (dns(NameFault::TimedOut), Verdict::Warn),
            (dns(NameFault::NoServer), Verdict::Warn),
            (dns(NameFault::ServerFailed), Verdict::Warn),
        ] {
            assert_eq!(judge_names(found.clone()).verdict, expected, "{found:?}");
        }
    }
}
