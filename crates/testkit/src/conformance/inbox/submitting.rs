//! What is accepted, and what is accepted only once.

use std::collections::BTreeSet;

use fetchwell_engine::ports::inbox::{
    Idempotency, Message, MessageStatus, NewMessage, Submission, Submitted,
};
use fetchwell_engine::ports::job::Lane;
use futures::future::join_all;

use super::InboxStore;
use super::trial::{ANNA, BERTA, DEADLINE, Trial, message, submission};

fn named(key: &str, body: u8, messages: Vec<NewMessage>) -> Submission {
    let name = Idempotency { key: key.to_owned(), body_hash: [body; 32] };
    Submission { idempotency: Some(name), ..submission(ANNA, messages) }
}

/// The caller gets back everything that it sent, and the flow gets what it needs.
pub async fn a_message_is_read_back_as_it_was_sent(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let sent = NewMessage {
        correlation_id: "ü 1".to_owned(),
        options: vec![0, 255, 10].into(),
        ..message("HTTP://Shop.test:8080/x?y#z")
    };
    let id = trial.send(ANNA, sent.clone()).await;
    let expected = Message {
        id,
        url: sent.url.clone(),
        retailer: sent.retailer.clone(),
        correlation_id: sent.correlation_id.clone(),
        caller: ANNA.to_owned(),
        status: MessageStatus::Queued,
        created_at: trial.now(),
        attempts: 0,
        outbox: None,
    };
    assert_eq!(trial.find(id, Some(ANNA)).await, Some(expected));
    let job = trial.lease_one().await.job;
    assert_eq!((job.url, job.site), (sent.url, Some(sent.site)));
    assert_eq!(job.payload, sent.options);
    assert_eq!(job.deadline, Some(trial.now() + DEADLINE));
    let group = Some(sent.retailer);
    let party = Some(ANNA.to_owned());
    assert_eq!(job.lane, Lane { group, party });
}

/// A caller learns nothing about the messages of others, not even that they exist.
pub async fn anothers_message_is_as_unknown_as_one_that_never_was(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let id = trial.send(ANNA, message("http://a.test/")).await;
    assert_eq!(trial.find(id, Some(BERTA)).await, None);
    assert_eq!(trial.find(message("http://a.test/").id, Some(BERTA)).await, None);
    assert!(trial.find(id, Some(ANNA)).await.is_some());
    assert!(trial.find(id, None).await.is_some());
    trial.end_all(&super::trial::success("page")).await;
    assert!(trial.results(BERTA, None).await.is_empty());
    assert_eq!(trial.results(ANNA, None).await.len(), 1);
    assert!(trial.results("nobody", None).await.is_empty());
}

/// Whether or not a store can represent such a message: all are accepted or none.
pub async fn a_batch_goes_in_whole_or_not_at_all(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let mut messages: Vec<NewMessage> =
        (0..20).map(|n| message(&format!("http://a{n}.test/"))).collect();
    messages[13].correlation_id = "with a \0 in it".to_owned();
    let ids: Vec<_> = messages.iter().map(|message| message.id).collect();
    let accepted = trial.try_to_submit(submission(ANNA, messages)).await.is_ok();
    let expected = if accepted { ids.len() } else { 0 };
    let found = join_all(ids.into_iter().map(|id| trial.find(id, Some(ANNA)))).await;
    assert_eq!(found.into_iter().flatten().count(), expected);
    assert_eq!(trial.lease(100).await.len(), expected);
}

/// Submissions that are committed together with an invalid one are still accepted.
pub async fn a_bad_submission_harms_no_other(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let submissions = (0..30).map(|n| {
        let mut one = message(&format!("http://a{n}.test/"));
        if n == 11 {
            one.correlation_id = "with a \0 in it".to_owned();
        }
        (n == 11, submission(ANNA, vec![one]))
    });
    let submit = submissions.map(|(is_bad, one)| {
        let trial = &trial;
        async move { (is_bad, trial.try_to_submit(one).await.is_ok()) }
    });
    let answers = join_all(submit).await;
    assert!(answers.iter().all(|(is_bad, accepted)| *is_bad || *accepted), "{answers:?}");
    let accepted = answers.iter().filter(|(_, accepted)| *accepted).count();
    assert_eq!(trial.lease(100).await.len(), accepted);
}

/// A second message with the same id is rejected, together with everything submitted with it.
pub async fn a_message_has_a_name_of_its_own(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let first = message("http://a.test/first");
    trial.send(ANNA, first.clone()).await;
    let twin = NewMessage { id: first.id, ..message("http://a.test/twin") };
    let before = message("http://a.test/before");
    let after = message("http://a.test/after");
    let batch = submission(ANNA, vec![before, twin, after]);
    assert!(trial.try_to_submit(batch).await.is_err());
    assert_eq!(trial.lease_one().await.job.url, "http://a.test/first");
    assert_eq!(trial.ledger().await.accepted, 1);
}

/// The same body gets the first answer, another body is reported as a conflict; keys of other callers are independent.
pub async fn what_is_sent_again_is_not_accepted_again(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let two = || vec![message("http://a.test/1"), message("http://a.test/2")];
    let first = trial.try_to_submit(named("k", 1, two())).await.expect("it is accepted");
    assert_eq!(trial.ledger().await.accepted, 2);
    let ids_of = |submitted: &Submitted| match submitted {
        Submitted::Accepted { ids, .. } => ids.clone(),
        Submitted::KeyUsedOtherwise => panic!("the body is the same"),
    };
    let again = trial.try_to_submit(named("k", 1, two())).await.expect("it is answered");
    assert_eq!(again, Submitted::Accepted { ids: ids_of(&first), created_at: None });
    let other = trial.try_to_submit(named("k", 2, two())).await.expect("it is answered");
    assert_eq!(other, Submitted::KeyUsedOtherwise);
    assert_eq!(trial.ledger().await.accepted, 2);
    let audited = trial.store.inbox.audit_trail(100).await.expect("the audit can be read");
    assert_eq!(audited.iter().filter(|entry| entry.action == "submit").count(), 1);

    let of_another = Submission { caller: BERTA.to_owned(), ..named("k", 1, two()) };
    let ids: Vec<_> = of_another.messages.iter().map(|message| message.id).collect();
    let accepted = trial.try_to_submit(of_another).await.expect("it is accepted");
    assert_eq!(accepted, Submitted::Accepted { ids, created_at: Some(trial.now()) });
    assert_eq!(trial.ledger().await.accepted, 4);
    // This also applies after the messages of the first answer have ended.
    trial.end_all(&super::trial::success("page")).await;
    let late = trial.try_to_submit(named("k", 1, two())).await.expect("it is answered");
    assert_eq!(ids_of(&late), ids_of(&first));
}

/// The same submission many times, from two processes: all get the same answer.
pub async fn of_many_at_once_with_one_name_one_wins(place: &dyn InboxStore) {
    let here = Trial::new(place).await;
    let there = here.beside(place).await;
    for round in 0..5 {
        let key = format!("round {round}");
        let submit = (0..8).map(|n| {
            let trial = if n % 2 == 0 { &here } else { &there };
            trial.try_to_submit(named(&key, 1, vec![message("http://a.test/")]))
        });
        let answers: Vec<Submitted> = join_all(submit)
            .await
            .into_iter()
            .map(|answer| answer.expect("it is answered"))
            .collect();
        let mut firsts = 0;
        let mut all = BTreeSet::new();
        for answer in &answers {
            let Submitted::Accepted { ids, created_at } = answer else { panic!("{answers:?}") };
            firsts += u32::from(created_at.is_some());
            all.insert(ids.clone());
        }
        assert_eq!((firsts, all.len()), (1, 1), "{answers:?}");
        let ids = all.first().expect("an answer");
        assert!(here.find(ids[0], Some(ANNA)).await.is_some());
        assert_eq!(here.ledger().await.accepted, round + 1);
    }
}

/// Of two different bodies one is accepted, and the other is reported as a conflict.
pub async fn of_two_bodies_at_once_with_one_name_one_is_accepted(place: &dyn InboxStore) {
    let here = Trial::new(place).await;
    let there = here.beside(place).await;
    for round in 0..5 {
        let key = format!("round {round}");
        let one = || vec![message("http://a.test/")];
        let (first, second) = tokio::join!(
            here.try_to_submit(named(&key, 1, one())),
            there.try_to_submit(named(&key, 2, one())),
        );
        let answers = [first.expect("it is answered"), second.expect("it is answered")];
        let refused = answers.iter().filter(|one| **one == Submitted::KeyUsedOtherwise).count();
        assert_eq!((refused, here.ledger().await.accepted), (1, round + 1), "{answers:?}");
    }
}

/// Whatever arrives at the same time, nothing is lost.
pub async fn many_at_once_all_go_in(place: &dyn InboxStore) {
    let here = Trial::new(place).await;
    let there = here.beside(place).await;
    let submit = (0..60).map(|n| {
        let (trial, caller) = if n % 2 == 0 { (&here, ANNA) } else { (&there, BERTA) };
        let messages = (0..n % 7 + 1).map(|m| message(&format!("http://a{n}.test/{m}")));
        trial.submit(caller, messages.collect())
    });
    let ids: Vec<_> = join_all(submit).await.concat();
    assert_eq!(here.ledger().await.accepted, i64::try_from(ids.len()).unwrap_or(0));
    for id in &ids {
        assert!(there.find(*id, None).await.is_some());
    }
    let some = here.lease(1_000).await;
    let more = there.lease(1_000).await;
    assert_eq!(some.len() + more.len(), ids.len());
}
