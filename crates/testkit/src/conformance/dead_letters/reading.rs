//! How dead letters are read.

use fetchwell_engine::ports::dead_letters::{DeadLetter, GroupSize};
use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::queue::Ledger;

use super::LettersStore;
use super::trial::{GONE, Trial, dead, group, urls_of};
use crate::conformance::queue::LEASE_TTL;

/// What the door knows is stored with the settlement.
pub async fn a_letter_tells_all_that_is_known(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/x"]).await;
    let lease = trial.take().await.remove(0);
    let details = r#"{"attempts":3}"#;
    assert_eq!(trial.settle(&lease, dead(GONE), Some(details)).await, Settled::Confirmed);
    trial.kill(&[("nonsense", "no URL")]).await;
    let letters = trial.letters(10).await;
    let known = |letter: &DeadLetter| (letter.group.clone(), letter.details.clone());
    assert_eq!(urls_of(&letters), ["http://a.test/x", "nonsense"]);
    assert_eq!(known(&letters[0]), (group(GONE, "a.test"), Some(details.to_owned())));
    assert_eq!(known(&letters[1]), (group("no URL", ""), None));
    let of_url = trial.queue.dead_letters_of("http://a.test/x").await.expect("it can be read");
    assert_eq!(of_url, letters[..1]);
    assert!(trial.queue.dead_letters_of("http://a.test/").await.expect("none").is_empty());
}

/// A lost lease and a successful settlement leave no letter.
pub async fn what_is_stale_leaves_no_letter(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    trial.add(&["http://a.test/1", "http://a.test/2"]).await;
    let leases = trial.take().await;
    assert_eq!(trial.settle(&leases[0], Settlement::Done, Some("{}")).await, Settled::Confirmed);
    assert_eq!(trial.settle(&leases[0], dead(GONE), Some("{}")).await, Settled::Stale);
    trial.clock.advance(LEASE_TTL * 2);
    assert_eq!(trial.settle(&leases[1], dead(GONE), Some("{}")).await, Settled::Stale);
    assert!(trial.letters(10).await.is_empty());
    assert!(trial.queue.dead_groups().await.expect("groups can be read").is_empty());
}

/// For any page size.
pub async fn pages_name_each_letter_once(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    let urls = ["http://b.test/", "é", "http://a.test/b", "http://a.test/", "http://a.test/b"];
    for url in urls {
        trial.kill(&[(url, "so")]).await;
    }
    for page_size in 1..=6 {
        let letters = trial.letters(page_size).await;
        let expected =
            ["http://a.test/", "http://a.test/b", "http://a.test/b", "http://b.test/", "é"];
        assert_eq!(urls_of(&letters), expected, "by {page_size}");
    }
}

/// A URL may be queued twice and die twice.
pub async fn equal_urls_are_letters_apart(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    trial.kill(&[("http://a.test/", "one"), ("http://a.test/", "another")]).await;
    let letters = trial.queue.dead_letters_of("http://a.test/").await.expect("they can be read");
    let reasons: Vec<_> = letters.iter().map(|letter| letter.group.reason.as_str()).collect();
    assert_eq!(reasons, ["one", "another"]);
    assert_ne!(letters[0].id, letters[1].id);
    assert_eq!(trial.ledger().await, Ledger { accepted: 2, dead: 2, ..Ledger::default() });
}

/// A group is a reason and a site.
pub async fn groups_are_counted_with_a_sample(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    trial
        .kill(&[
            ("http://a.test/2", GONE),
            ("http://a.test/1", GONE),
            ("http://b.test/1", GONE),
            ("http://a.test/3", "other"),
            ("bad", "other"),
        ])
        .await;
    let size = |letters, url: &str| GroupSize { letters, sample_url: url.to_owned() };
    let expected = [
        (group("other", ""), size(1, "bad")),
        (group("other", "a.test"), size(1, "http://a.test/3")),
        (group(GONE, "a.test"), size(2, "http://a.test/1")),
        (group(GONE, "b.test"), size(1, "http://b.test/1")),
    ];
    let groups = trial.queue.dead_groups().await.expect("groups can be read");
    assert_eq!(groups, expected.into_iter().collect());
}
