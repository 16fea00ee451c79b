//! How dead letters are retried and dropped.

use fetchwell_engine::ports::dead_letters::{LETTERS_PER_PAGE, Letters, Revision};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::NewJob;
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::source::{Demand, Taken};
use fetchwell_policy::retry::History;

use super::LettersStore;
use super::trial::{GONE, Trial, dead, group, job, of_url, urls, urls_of};
use crate::conformance::queue::LEASE_TTL;

/// All its attempts are available again; only the time at which it was accepted stays.
pub async fn a_retry_starts_with_a_clean_record_and_can_die_again(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    let one = of_url("http://a.test/");
    let accepted_at = trial.clock.now();
    trial.add(&["http://a.test/"]).await;
    let lease = trial.take().await.remove(0);
    let history = History { url_failures: 1, site_failures: 2, paced: 3, first_site_failure: None };
    trial.settle(&lease, Settlement::retry(accepted_at, history), None).await;
    // It was interrupted, too.
    let lease = trial.take().await.remove(0);
    trial.worker.started(&[lease.id]).await.expect("a start is noted");
    trial.clock.advance(LEASE_TTL);
    trial.worker.renew().await.expect("it comes back");
    let lease = trial.take().await.remove(0);
    assert_eq!((lease.interruptions, lease.history), (1, history));
    trial.settle(&lease, dead(GONE), Some("{}")).await;
    assert_eq!(trial.revise(&one, Revision::Retry).await, 1);
    assert_eq!(trial.revise(&one, Revision::Retry).await, 0);
    assert_eq!(trial.ledger().await, Ledger { accepted: 1, queued: 1, ..Ledger::default() });
    let again = trial.take().await.remove(0);
    assert_eq!((again.interruptions, again.history), (0, History::default()));
    assert_eq!((again.accepted_at, again.job.url.as_str()), (accepted_at, "http://a.test/"));
    trial.settle(&again, dead("again"), None).await;
    let letters = trial.letters(10).await;
    assert_eq!((letters[0].group.reason.as_str(), &letters[0].details), ("again", &None));
}

/// First in, first out, whatever their URLs.
pub async fn what_is_retried_waits_in_the_order_it_came_in(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    let urls_in = ["http://a.test/3", "http://a.test/1", "http://a.test/2"];
    trial.kill(&urls_in.map(|url| (url, GONE))).await;
    assert_eq!(trial.revise(&Letters::All, Revision::Retry).await, 3);
    assert_eq!(urls(&trial.take().await), urls_in);
}

/// The job is handed out at its deadline even if its site is closed.
pub async fn a_retried_dead_letter_keeps_its_deadline(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    let deadline = trial.clock.now() + LEASE_TTL / 2;
    let mut urgent = job("http://a.test/");
    urgent.job.deadline = Some(deadline);
    assert_eq!(trial.queue.enqueue(vec![urgent]).await.expect("it is accepted"), 1);
    let lease = trial.take().await.remove(0);
    trial.settle(&lease, dead(GONE), None).await;
    assert!(trial.take().await.is_empty(), "nothing is waiting");
    assert_eq!(trial.revise(&Letters::All, Revision::Retry).await, 1);
    let site = lease.job.site.expect("it has a site");
    let closed = vec![(site, deadline + LEASE_TTL)];
    let closing = Demand { most: 10, most_per_site: 10, closed, ..Demand::default() };
    let taken = trial.worker.take(&closing).await.expect("a take is answered");
    assert!(matches!(taken, Taken::Idle { until } if until <= deadline), "{taken:?}");
    trial.clock.set(deadline);
    assert_eq!(urls(&trial.take().await), ["http://a.test/"]);
}

/// Even those that died for another reason.
pub async fn a_url_takes_all_its_letters_with_it(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    let url = "http://a.test/";
    let other = "http://a.test/other";
    trial.kill(&[(url, "one"), (other, "one"), (url, "another")]).await;
    assert_eq!(trial.revise(&of_url(url), Revision::Retry).await, 2);
    assert_eq!(urls_of(&trial.letters(10).await), [other]);
    assert_eq!(urls(&trial.take().await), [url, url]);
}

/// The first ones of a group; the next call continues with the following ones.
pub async fn canaries_go_before_the_rest_of_their_group(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    for n in 0..5 {
        let ours = format!("http://a.test/{n}");
        let others = format!("http://b.test/{n}");
        trial.kill(&[(&ours, GONE), (&others, GONE)]).await;
    }
    let canary = Letters::OfGroup { group: group(GONE, "b.test"), most: 2 };
    assert_eq!(trial.revise(&canary, Revision::Retry).await, 2);
    assert_eq!(urls(&trial.take().await), ["http://b.test/0", "http://b.test/1"]);
    assert_eq!(trial.revise(&canary, Revision::Drop).await, 2);
    assert_eq!(trial.revise(&canary, Revision::Retry).await, 1);
    assert_eq!(trial.revise(&canary, Revision::Retry).await, 0);
    assert_eq!(urls(&trial.take().await), ["http://b.test/4"]);
    assert_eq!(trial.ledger().await.dead, 5);
}

/// Similar reasons and sites are not affected.
pub async fn a_group_is_exactly_its_reason_and_site(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    trial.kill(&[("http://a.test/", GONE), ("http://a.test/", "the server"), ("x", GONE)]).await;
    for (reason, site) in [("the server", "b.test"), ("server", "a.test"), ("", ""), (GONE, "a")] {
        let some = Letters::OfGroup { group: group(reason, site), most: usize::MAX };
        assert_eq!(trial.revise(&some, Revision::Drop).await, 0, "{reason} {site}");
    }
    let nowhere = Letters::OfGroup { group: group(GONE, ""), most: usize::MAX };
    assert_eq!(trial.revise(&nowhere, Revision::Drop).await, 1);
    assert_eq!(
        trial.ledger().await,
        Ledger { accepted: 3, dead: 2, skipped: 1, ..Ledger::default() }
    );
}

/// After that, another job with its key is accepted.
pub async fn what_is_dropped_is_skipped_and_frees_its_key(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    let keyed = || vec![NewJob { key: Some([7; 16]), ..job("http://a.test/") }];
    assert_eq!(trial.queue.enqueue(keyed()).await.expect("it is accepted"), 1);
    let lease = trial.take().await.remove(0);
    trial.settle(&lease, dead(GONE), Some("{}")).await;
    assert_eq!(trial.queue.enqueue(keyed()).await.expect("it is accepted"), 0);
    assert_eq!(trial.revise(&Letters::All, Revision::Drop).await, 1);
    assert_eq!(trial.ledger().await, Ledger { accepted: 1, skipped: 1, ..Ledger::default() });
    assert!(trial.take().await.is_empty() && trial.letters(10).await.is_empty());
    assert_eq!(trial.queue.enqueue(keyed()).await.expect("it is accepted"), 1);
}

/// A revision is not limited to one page.
pub async fn more_than_a_page_is_revised(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    let many = LETTERS_PER_PAGE * 2 + 50;
    let names: Vec<String> = (0..many).map(|n| format!("http://a.test/{n}")).collect();
    trial.add(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let leases = trial.take().await;
    let gone = dead(GONE);
    let ends: Vec<_> = leases.iter().map(|lease| (lease, &gone, None)).collect();
    trial.worker.settle_with(&ends).await.expect("they are settled");
    let some = Letters::OfGroup { group: group(GONE, "a.test"), most: LETTERS_PER_PAGE + 20 };
    assert_eq!(trial.revise(&some, Revision::Drop).await, LETTERS_PER_PAGE + 20);
    assert_eq!(trial.revise(&Letters::All, Revision::Retry).await, LETTERS_PER_PAGE + 30);
    assert_eq!(trial.take().await.len(), LETTERS_PER_PAGE + 30);
}

/// Each letter is removed by one of the two: none is lost, and none is retried twice.
pub async fn two_that_revise_at_once_take_each_letter_once(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    let names: Vec<String> = (0..100).map(|n| format!("http://a.test/{n}")).collect();
    trial.add(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let leases = trial.take().await;
    let gone = dead(GONE);
    let ends: Vec<_> = leases.iter().map(|lease| (lease, &gone, None)).collect();
    trial.worker.settle_with(&ends).await.expect("they are settled");
    let other = trial.beside(store).await;
    let some = Letters::OfGroup { group: group(GONE, "a.test"), most: 40 };
    let (retried, dropped, retried_too) = tokio::join!(
        trial.revise(&some, Revision::Retry),
        other.revise(&Letters::All, Revision::Drop),
        other.revise(&some, Revision::Retry),
    );
    let ledger = trial.ledger().await;
    let count = |letters: usize| i64::try_from(letters).expect("few");
    assert_eq!(ledger.skipped, count(dropped));
    assert_eq!(ledger.queued, count(retried + retried_too));
    assert_eq!(ledger.accepted, 100);
    assert_eq!(trial.take().await.len(), retried + retried_too);
}
