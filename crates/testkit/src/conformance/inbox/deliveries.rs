//! Deliveries to callback URLs.

use fetchwell_engine::budget::Share;
use fetchwell_engine::ports::finish::{Finished, Settled, Settlement};
use fetchwell_engine::ports::inbox::{MessageId, NewMessage};
use fetchwell_engine::ports::job::{Lane, Lease};
use fetchwell_engine::web::Phases;
use fetchwell_policy::url::Site;

use super::InboxStore;
use super::trial::{ANNA, Trial, message, secs, shared, success};

const CALLBACK: &str = "https://hooks.test:8443/anna";

fn called_back(message: NewMessage) -> NewMessage {
    NewMessage { callback_url: Some(CALLBACK.to_owned()), ..message }
}

fn messages_of(deliveries: &[Lease]) -> Vec<MessageId> {
    let id = |lease: &Lease| {
        let text = std::str::from_utf8(&lease.job.payload).expect("the payload is text");
        text.parse().expect("the payload is a message's id")
    };
    deliveries.iter().map(id).collect()
}

/// With its result, not earlier, not twice, and only if there is a callback URL.
pub async fn a_callback_is_delivered_once(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let id = trial.send(ANNA, called_back(message("http://a.test/1"))).await;
    trial.send(ANNA, message("http://a.test/2")).await;
    let leases = trial.lease(10).await;
    assert!(trial.deliveries().await.is_empty());
    for lease in &leases {
        assert_eq!(trial.end(lease, success("page")).await, Settled::Confirmed);
        assert_eq!(trial.end(lease, success("page")).await, Settled::Stale);
    }
    let deliveries = trial.deliveries().await;
    assert_eq!(messages_of(&deliveries), [id]);
    let job = &deliveries[0].job;
    assert_eq!((job.url.as_str(), &job.deadline), (CALLBACK, &None));
    assert_eq!(job.site, Site::parse("hooks.test:8443").ok());
    assert_eq!(job.lane, Lane { group: None, party: Some(ANNA.to_owned()) });
    let delivered = Finished {
        lease: deliveries[0].clone(),
        records: Vec::new(),
        settlement: Settlement::Done,
        phases: Phases::default(),
        share: Share::none(),
    };
    let settled = trial.store.deliveries.finish.finish(&[delivered]).await;
    assert_eq!(settled.expect("it is settled"), [Settled::Confirmed]);
    trial.wait(secs(60)).await;
    assert!(trial.deliveries().await.is_empty());
}

/// The message that is fetched, its followers, and those that are answered from the stored page.
pub async fn those_who_share_a_result_are_each_told(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let mut sent = Vec::new();
    for _ in 0..2 {
        sent.push(trial.send(ANNA, called_back(shared("http://a.test/", 1, secs(60)))).await);
    }
    trial.end_all(&success("page")).await;
    sent.push(trial.send(ANNA, called_back(shared("http://a.test/", 1, secs(60)))).await);
    let mut told = messages_of(&trial.deliveries().await);
    told.sort();
    assert_eq!(told, sent);
}
