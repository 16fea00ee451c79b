//! Callers, their tokens, and the audit log.

use fetchwell_engine::ports::inbox::{AuditEntry, Caller, CallerRecord, Role};

use super::InboxStore;
use super::trial::{ANNA, Trial, cursors, message, secs, success};

fn caller(name: &str, role: Role) -> Caller {
    Caller { name: name.to_owned(), role }
}

/// Each token identifies one caller; a revoked or unknown one identifies none.
pub async fn a_token_names_its_caller_until_it_is_revoked(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let inbox = &trial.store.inbox;
    let zoe = caller("zoe", Role::Operator);
    assert!(inbox.add_caller(&zoe, &[9; 32]).await.expect("answered"));
    assert!(!inbox.add_caller(&zoe, &[8; 32]).await.expect("answered"), "there is one");
    assert_eq!(inbox.caller_of(&[9; 32]).await.expect("answered"), Some(zoe.clone()));
    assert_eq!(inbox.caller_of(&[8; 32]).await.expect("answered"), None);
    assert_eq!(inbox.token_of("zoe").await.expect("answered"), Some([9; 32]));
    assert_eq!(inbox.token_of("nobody").await.expect("answered"), None);
    let added_at = trial.now();
    trial.clock.advance(secs(5));
    assert!(inbox.revoke_caller("zoe").await.expect("answered"));
    assert!(!inbox.revoke_caller("zoe").await.expect("answered"), "it has no token any more");
    assert!(!inbox.revoke_caller("nobody").await.expect("answered"));
    assert_eq!(inbox.caller_of(&[9; 32]).await.expect("answered"), None);
    assert_eq!(inbox.token_of("zoe").await.expect("answered"), None);
    let last = || async { inbox.callers().await.expect("answered").pop() };
    let revoked_at = Some(trial.now());
    let record = CallerRecord { caller: zoe, created_at: added_at, revoked_at };
    assert_eq!(last().await, Some(record));

    trial.clock.advance(secs(5));
    let zoe = caller("zoe", Role::Viewer);
    assert!(inbox.add_caller(&zoe, &[7; 32]).await.expect("answered"));
    assert_eq!(inbox.caller_of(&[7; 32]).await.expect("answered"), Some(zoe.clone()));
    assert_eq!(inbox.caller_of(&[9; 32]).await.expect("answered"), None, "it stays revoked");
    let record = CallerRecord { caller: zoe, created_at: trial.now(), revoked_at: None };
    assert_eq!(last().await, Some(record));
    let names: Vec<_> = inbox.callers().await.expect("answered");
    let names: Vec<_> = names.iter().map(|record| record.caller.name.as_str()).collect();
    assert_eq!(names, ["anna", "berta", "zoe"]);
}

/// Its results still exist, and the cursors continue.
pub async fn a_caller_that_comes_back_finds_its_results(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let inbox = &trial.store.inbox;
    trial.send(ANNA, message("http://a.test/1")).await;
    let lease = trial.lease_one().await;
    assert!(inbox.revoke_caller(ANNA).await.expect("answered"));
    trial.end(&lease, success("page")).await;
    assert!(inbox.add_caller(&caller(ANNA, Role::Caller), &[5; 32]).await.expect("answered"));
    trial.send(ANNA, message("http://a.test/2")).await;
    trial.end_all(&success("page")).await;
    assert_eq!(cursors(&trial.results(ANNA, None).await), [1, 2]);
}

/// Newest first, up to the limit; submissions are recorded automatically.
pub async fn the_audit_tells_what_happened(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let inbox = &trial.store.inbox;
    let ids =
        trial.submit(ANNA, vec![message("http://a.test/1"), message("http://a.test/2")]).await;
    let entry = |number: u64, caller: Option<&str>| AuditEntry {
        at: trial.now() + secs(number),
        caller: caller.map(str::to_owned),
        action: "authentication_failed".to_owned(),
        detail: format!("number {number}"),
        from: "192.0.2.1:80".to_owned(),
    };
    let entries = [entry(1, None), entry(2, Some(ANNA)), entry(3, None)];
    inbox.audit(&entries).await.expect("it is kept");
    inbox.audit(&[]).await.expect("nothing is kept");
    let trail = inbox.audit_trail(10).await.expect("it can be read");
    let newest_first: Vec<_> = entries.iter().rev().cloned().collect();
    assert_eq!(trail[..3], newest_first);
    assert_eq!(inbox.audit_trail(2).await.expect("it can be read"), newest_first[..2]);
    let submitted = AuditEntry {
        at: trial.now(),
        caller: Some(ANNA.to_owned()),
        action: "submit".to_owned(),
        detail: format!("2 messages, first {}", ids[0]),
        from: "192.0.2.7".to_owned(),
    };
    assert_eq!(trail[3..], [submitted]);
    let strange = AuditEntry { detail: "a \0 in it".to_owned(), ..entry(4, None) };
    inbox.audit(&[strange]).await.expect("strangers write what they like");
}

/// The check reads and writes.
pub async fn an_inbox_that_works_says_so(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    trial.store.inbox.check().await.expect("it can be read and written");
    trial.ledger().await;
}
