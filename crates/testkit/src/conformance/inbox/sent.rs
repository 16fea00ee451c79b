//! A caller's list of its own messages.

use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::inbox::sent::{SentFilter, SentPage};
use fetchwell_engine::ports::inbox::{
    BatchId, Message, MessageId, MessageStatus, NewBatch, NewMessage, Submission,
};
use fetchwell_engine::ports::oversight::{Action, ActionResult};
use fetchwell_policy::retry::History;

use super::InboxStore;
use super::trial::{ANNA, BERTA, Trial, failure, finished, message, secs, submission, success};

async fn page(trial: &Trial, filter: &SentFilter, from: Option<i64>, most: u32) -> SentPage {
    trial.store.inbox.sent(ANNA, filter, from, most).await.expect("the list can be read")
}

/// The ids of all pages of this size, in order.
async fn ids_of_all(trial: &Trial, filter: &SentFilter, most: u32) -> Vec<MessageId> {
    let mut ids = Vec::new();
    let mut from = None;
    loop {
        let page = page(trial, filter, from, most).await;
        assert!(page.messages.len() <= most as usize, "{page:?}");
        ids.extend(page.messages.iter().map(|one| one.message.id));
        from = page.next;
        if from.is_none() {
            return ids;
        }
    }
}

fn of_shop(retailer: &str, url: &str) -> NewMessage {
    NewMessage { retailer: retailer.to_owned(), ..message(url) }
}

/// Newest first, whatever retailers they are for, and without those of others.
pub async fn a_caller_lists_its_own_messages(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    assert_eq!(
        page(&trial, &SentFilter::default(), None, 10).await,
        SentPage { messages: Vec::new(), next: None }
    );
    let mut sent = Vec::new();
    for number in 0..7 {
        let shop = format!("shop-{}", number % 3);
        sent.push(trial.send(ANNA, of_shop(&shop, &format!("http://a.test/{number}"))).await);
        trial.send(BERTA, of_shop(&shop, &format!("http://a.test/{number}"))).await;
    }
    sent.reverse();
    for most in [1, 2, 3, 6, 7, 8] {
        assert_eq!(ids_of_all(&trial, &SentFilter::default(), most).await, sent, "by {most}");
    }
    // A list in progress is not disturbed by what is sent meanwhile.
    let first = page(&trial, &SentFilter::default(), None, 3).await;
    trial.send(ANNA, message("http://a.test/new")).await;
    let second = page(&trial, &SentFilter::default(), first.next, 100).await;
    let listed = first.messages.iter().chain(&second.messages).map(|one| one.message.id);
    assert_eq!(listed.collect::<Vec<_>>(), sent);
    assert_eq!(ids_of_all(&trial, &SentFilter::default(), 3).await.len(), 8);
}

/// By its own id for them, by status, or by both. Each is as `message` shows it, without its result.
pub async fn a_list_has_only_what_was_asked_for(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let named =
        |name: &str, url: &str| NewMessage { correlation_id: name.to_owned(), ..message(url) };
    let good = trial.send(ANNA, named("order", "http://a.test/good")).await;
    trial.end_all(&success("page")).await;
    let bad = trial.send(ANNA, named("order", "http://a.test/bad")).await;
    trial.end_all(&failure("not found")).await;
    let dead = trial.send(ANNA, named("other", "http://a.test/dead")).await;
    let lost = Settlement::Dead { reason: "it crashed".to_owned() };
    trial.finish(vec![finished(&trial.lease_one().await, lost, None)]).await;
    let later = trial.send(ANNA, named("other", "http://a.test/later")).await;
    let history = History { site_failures: 2, ..History::default() };
    let retry = Settlement::retry(trial.now() + secs(500), history);
    trial.finish(vec![finished(&trial.lease_one().await, retry, None)]).await;
    let held = trial.send(ANNA, named("order", "http://a.test/held")).await;
    trial.lease_one().await;
    let queued = trial.send(ANNA, named("order", "http://a.test/queued")).await;
    trial.send(BERTA, named("order", "http://a.test/good")).await;

    for (correlation_id, status, expected) in [
        (Some("order"), None, vec![queued, held, bad, good]),
        (Some("other"), None, vec![later, dead]),
        (Some("nothing"), None, vec![]),
        (None, Some(MessageStatus::Queued), vec![queued, later]),
        (None, Some(MessageStatus::Processing), vec![held]),
        (None, Some(MessageStatus::Completed), vec![good]),
        (None, Some(MessageStatus::Failed), vec![dead, bad]),
        (Some("order"), Some(MessageStatus::Failed), vec![bad]),
        (Some("other"), Some(MessageStatus::Completed), vec![]),
    ] {
        let correlation_id = correlation_id.map(str::to_owned);
        let filter = SentFilter { correlation_id, status, batch: None };
        for most in [1, 100] {
            assert_eq!(ids_of_all(&trial, &filter, most).await, expected, "{filter:?} by {most}");
        }
    }
    let all = page(&trial, &SentFilter::default(), None, 100).await.messages;
    assert_eq!(all.len(), 6);
    for listed in all {
        let found = trial.message(listed.message.id).await;
        let result_status = found.outbox.as_ref().map(|outbox| outbox.result.status.clone());
        assert_eq!(listed.result_status, result_status);
        assert_eq!(listed.message, Message { outbox: None, ..found });
    }
}

/// What was cancelled is listed as failed; what has expired is listed no more.
pub async fn a_list_follows_what_becomes_of_messages(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let id = trial.send(ANNA, message("http://a.test/")).await;
    let acted = trial.store.oversight.act_on(Action::Cancel, &[id], None).await;
    assert_eq!(acted.expect("an act is answered"), [ActionResult::Cancelled]);
    let listed = page(&trial, &SentFilter::default(), None, 10).await.messages;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].message.status, MessageStatus::Failed);
    assert_eq!(listed[0].result_status.as_deref(), Some("cancelled"));
    trial.wait(secs(100)).await;
    let pruned = trial.store.inbox.prune(secs(50), 100).await;
    assert_eq!(pruned.expect("the store prunes"), 1);
    assert!(page(&trial, &SentFilter::default(), None, 10).await.messages.is_empty());
}

/// The list of a batch contains exactly its messages, and only its caller can read it.
pub async fn a_list_of_a_batch_has_all_of_its_messages_and_no_others(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let mut batches = Vec::new();
    for number in 0..3 {
        trial.send(ANNA, message("http://a.test/alone")).await;
        let urls = (0..5).map(|page| message(&format!("http://a{page}.test/{number}")));
        let new =
            Submission { batch: Some(NewBatch::default()), ..submission(ANNA, urls.collect()) };
        let mut ids: Vec<MessageId> = new.messages.iter().map(|message| message.id).collect();
        let id = BatchId::of(ids.iter().copied()).expect("it has messages");
        trial.try_to_submit(new).await.expect("the batch is accepted");
        ids.reverse();
        batches.push((id, ids));
    }
    trial.end_all(&success("page")).await;
    trial.send(ANNA, message("http://a.test/alone")).await;
    for (id, ids) in &batches {
        let filter = SentFilter { batch: Some(*id), ..SentFilter::default() };
        for most in [1, 2, 5, 100] {
            assert_eq!(&ids_of_all(&trial, &filter, most).await, ids, "{id} by {most}");
        }
        let ended = SentFilter { status: Some(MessageStatus::Completed), ..filter.clone() };
        assert_eq!(&ids_of_all(&trial, &ended, 2).await, ids);
        let waiting = SentFilter { status: Some(MessageStatus::Queued), ..filter.clone() };
        assert!(ids_of_all(&trial, &waiting, 2).await.is_empty());
        let of_berta = trial.store.inbox.sent(BERTA, &filter, None, 100).await;
        let nothing = SentPage { messages: Vec::new(), next: None };
        assert_eq!(of_berta.expect("the list can be read"), nothing);
    }
    let unknown = SentFilter { batch: Some(BatchId([9; 16])), ..SentFilter::default() };
    assert!(ids_of_all(&trial, &unknown, 100).await.is_empty());
}
