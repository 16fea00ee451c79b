//! What operators see: lists, counts, groups, and the details of a message.

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::inbox::{AttemptRecord, FetchResult, MessageId, NewMessage};
use fetchwell_engine::ports::oversight::{MessageFilter, MessageState, timeline};
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;

use super::InboxStore;
use super::trial::{ANNA, BERTA, Trial, failure, finished, message, secs, shared, success};

impl Trial {
    /// All matches, read in pages of two.
    pub(super) async fn listed(&self, filter: &MessageFilter) -> Vec<MessageId> {
        let mut ids = Vec::new();
        let mut from = None;
        loop {
            let page = self.store.oversight.list(filter, from, 2).await.expect("lists are given");
            assert!(page.messages.len() <= 2);
            ids.extend(page.messages.iter().map(|seen| seen.id));
            from = page.next;
            if from.is_none() {
                return ids;
            }
        }
    }

    pub(super) async fn counted(&self, filter: &MessageFilter) -> u64 {
        let count = self.store.oversight.count(filter).await.expect("messages are counted");
        assert!(count.is_exact);
        count.found
    }
}

fn timed_out() -> FetchResult {
    FetchResult { status: "timeout".to_owned(), http_status: None, ..failure("too late") }
}

fn attempt(at: Time, told: &str) -> AttemptRecord {
    AttemptRecord {
        at,
        sent: true,
        told: told.to_owned(),
        http_status: Some(503),
        robots: None,
        queued_us: 1,
        robots_us: 20,
        slot_us: 300,
        connect_us: 4_000,
        first_byte_us: 50_000,
        body_us: 600_000,
    }
}

/// Five messages of two callers, one in each state, in the order in which they were sent.
async fn one_of_each(trial: &Trial) -> [MessageId; 5] {
    let ended = |url: &str| NewMessage { retailer: "other".to_owned(), ..message(url) };
    let completed = trial.send(ANNA, ended("http://a.test/Completed")).await;
    assert_eq!(trial.end(&trial.lease_one().await, success("page")).await, Settled::Confirmed);
    let failed = trial.send(BERTA, message("http://b.test/failed")).await;
    assert_eq!(trial.end(&trial.lease_one().await, failure("gone")).await, Settled::Confirmed);
    let delayed = trial.send(ANNA, message("http://c.test/delayed")).await;
    let again = Settlement::retry(trial.now() + secs(600), History::default());
    trial.finish(vec![finished(&trial.lease_one().await, again, None)]).await;
    let processing = trial.send(BERTA, message("http://d.test/processing")).await;
    trial.lease_one().await;
    let queued = trial.send(ANNA, message("http://e.test/queued")).await;
    [completed, failed, delayed, processing, queued]
}

/// Each filter finds exactly the matching messages, newest first, and the count agrees.
pub async fn a_list_has_what_matches(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    assert_eq!(trial.listed(&MessageFilter::default()).await, []);
    let [completed, failed, delayed, processing, queued] = one_of_each(&trial).await;
    let all = MessageFilter::default;
    let text = |text: &str| Some(text.to_owned());
    let correlation_id = trial.message(failed).await.correlation_id;
    for (filter, expected) in [
        (all(), vec![queued, processing, delayed, failed, completed]),
        (MessageFilter { state: Some(MessageState::Queued), ..all() }, vec![queued]),
        (MessageFilter { state: Some(MessageState::Processing), ..all() }, vec![processing]),
        (MessageFilter { state: Some(MessageState::Delayed), ..all() }, vec![delayed]),
        (MessageFilter { state: Some(MessageState::Completed), ..all() }, vec![completed]),
        (MessageFilter { state: Some(MessageState::Failed), ..all() }, vec![failed]),
        (MessageFilter { site: text("c.test"), ..all() }, vec![delayed]),
        (MessageFilter { caller: text(BERTA), ..all() }, vec![processing, failed]),
        (MessageFilter { retailer: text("other"), ..all() }, vec![completed]),
        (MessageFilter { reason: text("http_error 404"), ..all() }, vec![failed]),
        (MessageFilter { reason: text("http_error 404"), site: text("a.test"), ..all() }, vec![]),
        (MessageFilter { reason: text("http_error"), ..all() }, vec![]),
        (MessageFilter { url_contains: text("TEST/comp"), ..all() }, vec![completed]),
        (MessageFilter { url_contains: text("%"), ..all() }, vec![]),
        (MessageFilter { correlation_id: Some(correlation_id), ..all() }, vec![failed]),
        (MessageFilter { state: Some(MessageState::Queued), caller: text(BERTA), ..all() }, vec![]),
    ] {
        assert_eq!(trial.listed(&filter).await, expected, "{filter:?}");
        assert_eq!(trial.counted(&filter).await, expected.len() as u64, "{filter:?}");
    }
}

/// Messages that arrived or ended after the moment are not included.
pub async fn a_moment_shows_nothing_that_came_later(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let old = trial.send(ANNA, message("http://a.test/old")).await;
    let ends_later = trial.send(ANNA, message("http://b.test/ends-later")).await;
    let page =
        trial.store.oversight.list(&MessageFilter::default(), None, 10).await.expect("a list");
    assert_eq!(page.messages.len(), 2);
    trial.wait(secs(1)).await;
    trial.send(ANNA, message("http://c.test/new")).await;
    let leases = trial.lease(10).await;
    let ended = leases.iter().find(|lease| lease.job.url.contains("later")).expect("it is there");
    trial.end(ended, failure("gone")).await;
    let seen = MessageFilter { as_of: Some(page.as_of), ..MessageFilter::default() };
    assert_eq!(trial.listed(&seen).await, [old]);
    assert_eq!(trial.counted(&seen).await, 1);
    assert_eq!(trial.counted(&MessageFilter::default()).await, 3);
    let failed = MessageFilter { state: Some(MessageState::Failed), ..MessageFilter::default() };
    assert_eq!(trial.listed(&failed).await, [ends_later]);
    assert_eq!(trial.listed(&MessageFilter { as_of: seen.as_of, ..failed }).await, []);
}

/// Failures are grouped by reason and site, the largest group first, each with its newest message.
pub async fn failures_are_grouped_by_reason_and_site(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    for (url, result) in [
        ("http://a.test/1", failure("gone")),
        ("http://a.test/2", timed_out()),
        ("http://a.test/3", failure("gone")),
        ("http://b.test/4", failure("gone")),
        ("http://b.test/5", success("page")),
    ] {
        trial.send(ANNA, message(url)).await;
        trial.end(&trial.lease_one().await, result).await;
    }
    // A message that ends without a result has its own reason.
    trial.send(ANNA, message("http://c.test/6")).await;
    let dead = Settlement::Dead { reason: "it made the program panic".repeat(200) };
    trial.finish(vec![finished(&trial.lease_one().await, dead, None)]).await;
    let failures = trial.store.oversight.failures().await.expect("failures are shown");
    assert!(failures.is_exact);
    let found: Vec<(&str, &str, u64, &str)> = failures
        .groups
        .iter()
        .map(|group| {
            let reason = group.reason.get(..14).unwrap_or(&group.reason);
            (reason, group.site.as_str(), group.messages, group.sample.url.as_str())
        })
        .collect();
    assert_eq!(
        found,
        [
            ("http_error 404", "a.test", 2, "http://a.test/3"),
            ("http_error 404", "b.test", 1, "http://b.test/4"),
            ("it made the pr", "c.test", 1, "http://c.test/6"),
            ("timeout", "a.test", 1, "http://a.test/2"),
        ]
    );
}

/// Attempts are kept with their reasons, the last one with the result; the timeline is consistent.
pub async fn a_message_has_its_story(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let id = trial.send(ANNA, message("http://a.test/")).await;
    let detail = async || {
        let found = trial.store.oversight.detail(id).await.expect("a story is told");
        found.expect("the message is there")
    };
    assert_eq!((detail().await.attempts, timeline(&detail().await)), (vec![], vec![]));
    let mut told = Vec::new();
    for number in 1..=12_u32 {
        trial.wait(secs(1)).await;
        let what = format!("attempt {number}: {}", "it failed ".repeat(15));
        told.push(attempt(trial.now(), &what));
        let result = FetchResult { attempt: told.last().cloned(), ..failure("down") };
        let history = History { site_failures: number, ..History::default() };
        let again = Settlement::retry(trial.now(), history);
        trial.finish(vec![finished(&trial.lease_one().await, again, Some(result))]).await;
    }
    assert_eq!(trial.message(id).await.outbox, None);
    trial.wait(secs(1)).await;
    told.push(attempt(trial.now(), "the last one"));
    let last = FetchResult { attempt: told.last().cloned(), attempts: 13, ..failure("down") };
    trial.wait(secs(2)).await;
    trial.end(&trial.lease_one().await, last).await;

    let detail = detail().await;
    let kept = detail.attempts.len();
    assert!((6..=10).contains(&kept), "{kept} attempts are kept");
    assert_eq!(detail.attempts, told[told.len() - kept..]);
    assert_eq!((detail.message.attempts, detail.message.state), (13, MessageState::Failed));
    assert_eq!(detail.outbox.as_ref().map(|outbox| outbox.message), Some(id));
    let way = timeline(&detail);
    let stages: Vec<&str> = way.iter().map(|milestone| milestone.stage).collect();
    assert_eq!(
        stages,
        ["queued", "robots", "slot", "connect", "first_byte", "extracted", "delivered"]
    );
    let total: std::time::Duration = way.iter().map(|milestone| milestone.took).sum();
    assert_eq!(way.last().map(|last| last.at), Some(detail.message.created_at + total));
    assert_eq!(way[4].took, std::time::Duration::from_micros(50_000));
}

/// A follower names its leader; a message that does not exist is not found.
pub async fn a_follower_says_whom_it_follows(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let leader = trial.send(ANNA, shared("http://a.test/", 1, secs(60))).await;
    let follower = trial.send(ANNA, shared("http://a.test/", 1, secs(60))).await;
    let find = async |id| trial.store.oversight.detail(id).await.expect("a story is told");
    assert_eq!(find(follower).await.and_then(|found| found.follows), Some(leader));
    assert_eq!(find(leader).await.and_then(|found| found.follows), None);
    assert_eq!(find(MessageId([9; 16])).await, None);
}

/// The instances with their leases, the queues with their counters, the outboxes with their ranges.
pub async fn the_store_says_who_is_at_work(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let beside = trial.beside(place).await;
    for n in 0..3 {
        trial.send(ANNA, message(&format!("http://a{n}.test/"))).await;
    }
    trial.lease(2).await;
    let lease = beside.lease_one().await;
    trial.wait(secs(3)).await;
    beside.renew().await;
    let instances = trial.store.oversight.instances().await.expect("instances are shown");
    let of_messages: Vec<_> = instances.iter().filter(|one| one.queue == "messages").collect();
    let in_flight: Vec<u64> = of_messages.iter().map(|one| one.in_flight).collect();
    assert_eq!((in_flight, instances.len()), (vec![2, 1], 4));
    for one in of_messages {
        assert_eq!(one.since, Some(trial.now() - secs(3)));
        assert_eq!(one.last_heartbeat, Some(trial.now()));
        assert_eq!(one.expires_at, trial.now() + super::LEASE_TTL);
        assert!(one.who.as_ref().is_some_and(|who| who.contains('/')));
    }
    beside.end(&lease, success("page")).await;
    let outboxes = trial.store.oversight.outboxes().await.expect("outboxes are shown");
    let extents: Vec<(&str, i64)> =
        outboxes.iter().map(|outbox| (outbox.caller.as_str(), outbox.newest)).collect();
    assert_eq!(extents, [(ANNA, 1), (BERTA, 0)]);
    let ledgers = trial.store.oversight.ledgers().await.expect("ledgers are shown");
    let names: Vec<&str> = ledgers.iter().map(|one| one.queue.as_str()).collect();
    let mut expected = vec!["messages", "webhooks"];
    if trial.store.crawls.is_some() {
        expected.insert(0, "crawls");
    }
    assert_eq!(names, expected);
    let of_messages = ledgers.iter().find(|one| one.queue == "messages").expect("messages");
    assert_eq!((of_messages.ledger.accepted, of_messages.ledger.done), (3, 1));
    for recount in trial.store.oversight.recount().await.expect("rows are counted") {
        assert_eq!(recount.difference, None, "{:?}", recount.told);
    }
}
