//! What remains of a dead letter that another client removed.

use fetchwell_engine::ports::dead_letters::{LETTERS_PER_PAGE, Letters, Revision};
use fetchwell_engine::ports::finish::Settled;
use fetchwell_engine::ports::job::NewJob;
use fetchwell_engine::ports::queue::Ledger;

use super::LettersStore;
use super::trial::{GONE, Trial, dead, group, job, of_url, urls, urls_of};

const A: &str = "http://a.test/a";
const B: &str = "http://a.test/b";

/// It is found neither by its group nor by its URL, and it counts as skipped.
pub async fn what_another_client_takes_off_is_no_dead_letter_any_more(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    trial.kill(&[(A, GONE), (B, GONE)]).await;
    store.pop_letter(A).await;
    assert!(trial.queue.dead_letters_of(A).await.expect("it can be read").is_empty());
    assert_eq!(urls_of(&trial.letters(1).await), [B]);
    let groups = trial.queue.dead_groups().await.expect("groups can be read");
    assert_eq!(groups[&group(GONE, "a.test")].letters, 1);
    let expected = Ledger { accepted: 2, dead: 1, skipped: 1, ..Ledger::default() };
    assert_eq!(trial.ledger().await, expected);
}

/// Neither by its URL, nor with its group, nor with all.
pub async fn what_another_client_took_off_can_not_be_tried_anew(store: &dyn LettersStore) {
    let some = Letters::OfGroup { group: group(GONE, "a.test"), most: 10 };
    for which in [Letters::All, some, of_url(A)] {
        let trial = Trial::new(store).await;
        trial.kill(&[(A, GONE)]).await;
        store.pop_letter(A).await;
        assert_eq!(trial.revise(&which, Revision::Retry).await, 0, "{which:?}");
        assert!(trial.take().await.is_empty(), "{which:?}");
        assert_eq!(trial.ledger().await.dead, 0, "{which:?}");
    }
}

/// It exists when the page is read, and is gone when the page is acted on.
pub async fn a_letter_that_goes_while_it_is_read_is_not_revised(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    trial.kill(&[(A, GONE), (B, GONE)]).await;
    let page = trial.queue.dead_letters(None, LETTERS_PER_PAGE).await.expect("a page");
    store.pop_letter(A).await;
    let ids: Vec<_> = page.letters.iter().map(|letter| letter.id).collect();
    let revised = trial.queue.take_off(&ids, Revision::Retry).await.expect("they are revised");
    assert_eq!(revised, 1);
    assert_eq!(urls(&trial.take().await), [B]);
    let expected = Ledger { accepted: 2, in_flight: 1, skipped: 1, ..Ledger::default() };
    assert_eq!(trial.ledger().await, expected);
}

/// There is no way to tell which of them were removed.
pub async fn of_equal_letters_as_many_stay_as_are_left(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    trial.kill(&[(A, "one"), (A, "two"), (A, "three")]).await;
    store.pop_letter(A).await;
    assert_eq!(trial.queue.dead_letters_of(A).await.expect("they can be read").len(), 2);
    assert_eq!(trial.revise(&Letters::All, Revision::Retry).await, 2);
    assert_eq!(trial.take().await.len(), 2);
}

/// The details were removed with the letter.
pub async fn what_dies_again_is_a_letter_with_nothing_of_the_old_one(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    for (first_at, popped) in [("1", true), ("2", false)] {
        trial.add(&[A]).await;
        let lease = trial.take().await.remove(0);
        let details = format!(r#"{{"first_at":"{first_at}"}}"#);
        let settled = trial.settle(&lease, dead(GONE), Some(&details)).await;
        assert_eq!(settled, Settled::Confirmed);
        if popped {
            store.pop_letter(A).await;
        }
    }
    let letters = trial.queue.dead_letters_of(A).await.expect("it can be read");
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].details.as_deref(), Some(r#"{"first_at":"2"}"#));
    store.pop_letter(A).await;
    trial.kill(&[(A, GONE)]).await;
    let letters = trial.queue.dead_letters_of(A).await.expect("it can be read");
    assert_eq!((letters.len(), &letters[0].details), (1, &None));
}

/// As when it is dropped.
pub async fn what_is_taken_off_frees_its_key(store: &dyn LettersStore) {
    let trial = Trial::new(store).await;
    let keyed = || vec![NewJob { key: Some([7; 16]), ..job(A) }];
    assert_eq!(trial.queue.enqueue(keyed()).await.expect("it is accepted"), 1);
    let lease = trial.take().await.remove(0);
    trial.settle(&lease, dead(GONE), None).await;
    store.pop_letter(A).await;
    assert!(trial.letters(10).await.is_empty());
    assert_eq!(trial.queue.enqueue(keyed()).await.expect("it is accepted"), 1);
}
