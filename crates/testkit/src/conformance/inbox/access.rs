//! Callers, their tokens, and the audit log.

use fetchwell_engine::ports::inbox::{
    AuditEntry, Caller, CallerRecord, Inbox, KeyRotated, MAX_TOKENS, NewToken, Role, TokenAdded,
    WebhookKey, WebhookKeys,
};
use fetchwell_policy::time::Time;

use super::InboxStore;
use super::trial::{ANNA, BERTA, Trial, cursors, message, secs, success};

fn caller(name: &str, role: Role) -> Caller {
    Caller { name: name.to_owned(), role }
}

fn only(current: WebhookKey) -> WebhookKeys {
    WebhookKeys { current, previous: None }
}

fn token(name: &str, byte: u8) -> NewToken {
    NewToken { name: name.to_owned(), hash: [byte; 32], expires_in: None }
}

/// The entry for a change of callers.
fn noted() -> AuditEntry {
    AuditEntry {
        at: Time::from_secs(5),
        caller: Some("boss".to_owned()),
        action: "change".to_owned(),
        detail: String::new(),
        from: "192.0.2.7".to_owned(),
    }
}

/// Adds a token, which must be accepted.
async fn add(inbox: &dyn Inbox, caller: &str, token: NewToken) {
    let added = inbox.add_token(caller, &token, &noted()).await.expect("answered");
    assert!(matches!(added, TokenAdded::Added(_)), "{added:?}");
}

async fn token_names(inbox: &dyn Inbox, caller: &str) -> Vec<String> {
    let tokens = inbox.tokens(Some(caller)).await.expect("answered");
    tokens.into_iter().map(|token| token.name).collect()
}

/// Each of them identifies the caller, and revoking one of them does not change the others.
pub async fn a_caller_has_several_tokens_and_each_ends_alone(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let inbox = &*trial.store.inbox;
    let caller_of = async |byte: u8| {
        let caller = inbox.caller_of(&[byte; 32]).await.expect("answered");
        caller.map(|caller| caller.name)
    };
    add(inbox, ANNA, token("ci", 11)).await;
    let taken = inbox.add_token(ANNA, &token("ci", 12), &noted()).await;
    assert_eq!(taken.expect("answered"), TokenAdded::NameTaken);
    let none = inbox.add_token("nobody", &token("ci", 12), &noted()).await;
    assert_eq!(none.expect("answered"), TokenAdded::NoCaller);
    assert_eq!(token_names(inbox, ANNA).await, ["ci", "default"]);
    let of_all = inbox.tokens(None).await.expect("answered");
    let of_all: Vec<_> = of_all.iter().map(|one| (one.caller.as_str(), &*one.name)).collect();
    assert_eq!(of_all, [(ANNA, "ci"), (ANNA, "default"), (BERTA, "default")]);
    assert_eq!(
        (caller_of(1).await.as_deref(), caller_of(11).await.as_deref()),
        (Some(ANNA), Some(ANNA))
    );

    // The secret of webhooks was derived from the first token, and stays.
    assert!(inbox.revoke_token(ANNA, "default", &noted()).await.expect("answered"));
    assert!(!inbox.revoke_token(ANNA, "default", &noted()).await.expect("answered"), "it is gone");
    assert!(!inbox.revoke_token("nobody", "default", &noted()).await.expect("answered"));
    assert_eq!((caller_of(1).await, caller_of(11).await.as_deref()), (None, Some(ANNA)));
    assert_eq!(inbox.webhook_keys(ANNA).await.expect("answered"), Some(only([1; 32])));
    let again = inbox.add_caller(&caller(ANNA, Role::Caller), &[13; 32], &noted()).await;
    assert!(!again.expect("answered"), "it still has a token");

    assert!(inbox.revoke_token(ANNA, "ci", &noted()).await.expect("answered"));
    assert_eq!((caller_of(11).await, token_names(inbox, ANNA).await), (None, Vec::new()));
    assert_eq!(inbox.webhook_keys(ANNA).await.expect("answered"), None);
    assert!(
        inbox.add_caller(&caller(ANNA, Role::Caller), &[13; 32], &noted()).await.expect("answered")
    );
    assert_eq!(inbox.webhook_keys(ANNA).await.expect("answered"), Some(only([13; 32])));

    add(inbox, BERTA, token("ci", 14)).await;
    assert!(inbox.revoke_caller(BERTA, &noted()).await.expect("answered"));
    assert_eq!((caller_of(2).await, caller_of(14).await), (None, None), "all of them end");
    assert!(
        inbox
            .add_caller(&caller(BERTA, Role::Caller), &[15; 32], &noted())
            .await
            .expect("answered")
    );
    assert_eq!(
        (caller_of(14).await, token_names(inbox, BERTA).await),
        (None, vec!["default".to_owned()])
    );
}

/// A token ends at its time, and the number of tokens is limited.
pub async fn a_token_expires_and_says_when_it_was_used(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let inbox = &*trial.store.inbox;
    let short = NewToken { expires_in: Some(secs(60)), ..token("short", 11) };
    add(inbox, ANNA, short).await;
    let added_at = trial.now();
    trial.clock.advance(secs(59));
    assert!(inbox.caller_of(&[11; 32]).await.expect("answered").is_some());
    inbox.tokens_used(&[[11; 32], [99; 32]]).await.expect("written");
    let tokens = inbox.tokens(Some(ANNA)).await.expect("answered");
    assert_eq!((tokens[0].last_used_at, tokens[1].last_used_at), (None, Some(trial.now())));
    assert_eq!((tokens[0].expires_at, tokens[1].expires_at), (None, Some(added_at + secs(60))));
    trial.clock.advance(secs(1));
    assert_eq!(inbox.caller_of(&[11; 32]).await.expect("answered"), None);
    assert!(inbox.caller_of(&[1; 32]).await.expect("answered").is_some());
    assert_eq!(token_names(inbox, ANNA).await, ["default", "short"], "it is still listed");
    for number in 2..MAX_TOKENS {
        add(inbox, ANNA, token(&format!("t{number}"), 20 + number as u8)).await;
    }
    let more = inbox.add_token(ANNA, &token("more", 12), &noted()).await;
    assert_eq!(more.expect("answered"), TokenAdded::TooMany);
}

/// Both keys sign until the overlap ends. A rotation during the overlap is refused, unless it ends it.
pub async fn a_webhook_key_is_replaced_with_an_overlap(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let inbox = &*trial.store.inbox;
    let rotate = async |byte: u8, overlap| {
        inbox.rotate_webhook_key(ANNA, &[byte; 32], overlap, &noted()).await.expect("answered")
    };
    let keys = async || inbox.webhook_keys(ANNA).await.expect("answered").expect("it has keys");
    let until = trial.now() + secs(60);
    assert_eq!(rotate(50, secs(60)).await, KeyRotated::Rotated { previous_until: Some(until) });
    assert_eq!(keys().await, WebhookKeys { current: [50; 32], previous: Some([1; 32]) });
    assert_eq!(rotate(51, secs(60)).await, KeyRotated::UnderWay(until));
    trial.clock.advance(secs(60));
    assert_eq!(keys().await, only([50; 32]));
    rotate(52, secs(60)).await;
    assert_eq!(keys().await, WebhookKeys { current: [52; 32], previous: Some([50; 32]) });
    assert_eq!(rotate(53, secs(0)).await, KeyRotated::Rotated { previous_until: None });
    assert_eq!(keys().await, only([53; 32]));
    let nobody = inbox.rotate_webhook_key("nobody", &[1; 32], secs(60), &noted()).await;
    assert_eq!(nobody.expect("answered"), KeyRotated::NoCaller);
    // A caller that comes back has a secret of its own again.
    assert!(inbox.revoke_caller(ANNA, &noted()).await.expect("answered"));
    assert!(
        inbox.add_caller(&caller(ANNA, Role::Caller), &[5; 32], &noted()).await.expect("answered")
    );
    assert_eq!(keys().await, only([5; 32]));
}

/// Each token identifies one caller; a revoked or unknown one identifies none.
pub async fn a_token_names_its_caller_until_it_is_revoked(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let inbox = &trial.store.inbox;
    let zoe = caller("zoe", Role::Operator);
    assert!(inbox.add_caller(&zoe, &[9; 32], &noted()).await.expect("answered"));
    assert!(!inbox.add_caller(&zoe, &[8; 32], &noted()).await.expect("answered"), "there is one");
    assert_eq!(inbox.caller_of(&[9; 32]).await.expect("answered"), Some(zoe.clone()));
    assert_eq!(inbox.caller_of(&[8; 32]).await.expect("answered"), None);
    assert_eq!(inbox.webhook_keys("zoe").await.expect("answered"), Some(only([9; 32])));
    assert_eq!(inbox.webhook_keys("nobody").await.expect("answered"), None);
    let added_at = trial.now();
    trial.clock.advance(secs(5));
    assert!(inbox.revoke_caller("zoe", &noted()).await.expect("answered"));
    assert!(
        !inbox.revoke_caller("zoe", &noted()).await.expect("answered"),
        "it has no token any more"
    );
    assert!(!inbox.revoke_caller("nobody", &noted()).await.expect("answered"));
    assert_eq!(inbox.caller_of(&[9; 32]).await.expect("answered"), None);
    assert_eq!(inbox.webhook_keys("zoe").await.expect("answered"), None);
    let last = || async { inbox.callers().await.expect("answered").pop() };
    let revoked_at = Some(trial.now());
    let record = CallerRecord { caller: zoe, created_at: added_at, revoked_at };
    assert_eq!(last().await, Some(record));

    trial.clock.advance(secs(5));
    let zoe = caller("zoe", Role::Viewer);
    assert!(inbox.add_caller(&zoe, &[7; 32], &noted()).await.expect("answered"));
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
    assert!(inbox.revoke_caller(ANNA, &noted()).await.expect("answered"));
    trial.end(&lease, success("page")).await;
    assert!(
        inbox.add_caller(&caller(ANNA, Role::Caller), &[5; 32], &noted()).await.expect("answered")
    );
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

/// What changes nothing is not in the audit log; what is changed is there once.
pub async fn a_change_of_callers_is_committed_with_its_entry(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let inbox = &*trial.store.inbox;
    let entry = |detail: &str| AuditEntry { detail: detail.to_owned(), ..noted() };
    let zoe = caller("zoe", Role::Caller);
    for expected in [true, false] {
        let added = inbox.add_caller(&zoe, &[9; 32], &entry("add")).await.expect("answered");
        assert_eq!(added, expected);
        let added = inbox.add_token("zoe", &token("ci", 10), &entry("token")).await;
        assert_eq!(matches!(added, Ok(TokenAdded::Added(_))), expected, "{added:?}");
        let rotated = inbox.rotate_webhook_key("zoe", &[11; 32], secs(60), &entry("rotate")).await;
        assert_eq!(matches!(rotated, Ok(KeyRotated::Rotated { .. })), expected, "{rotated:?}");
    }
    for expected in [true, false] {
        let revoked = inbox.revoke_token("zoe", "ci", &entry("revoke token")).await;
        assert_eq!(revoked.expect("answered"), expected);
    }
    for expected in [true, false] {
        let revoked = inbox.revoke_caller("zoe", &entry("revoke")).await;
        assert_eq!(revoked.expect("answered"), expected);
    }
    let trail = inbox.audit_trail(10).await.expect("it can be read");
    let details: Vec<&str> = trail.iter().map(|entry| entry.detail.as_str()).collect();
    assert_eq!(details[..5], ["revoke", "revoke token", "rotate", "token", "add"]);
    assert_eq!(trail[0], entry("revoke"));
}

/// An entry that cannot be stored undoes the change: nobody would be shown the new token or secret.
pub async fn a_change_of_callers_fails_with_its_entry(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    let inbox = &*trial.store.inbox;
    inbox.audit(&[noted()]).await.expect("it is kept");
    place.execute("CREATE UNIQUE INDEX no_second_entry ON {}audit (action)").await;
    let zoe = caller("zoe", Role::Caller);
    assert!(inbox.add_caller(&zoe, &[9; 32], &noted()).await.is_err());
    assert!(inbox.add_token(ANNA, &token("ci", 10), &noted()).await.is_err());
    assert!(inbox.rotate_webhook_key(ANNA, &[11; 32], secs(60), &noted()).await.is_err());
    assert!(inbox.revoke_token(ANNA, "default", &noted()).await.is_err());
    assert!(inbox.revoke_caller(ANNA, &noted()).await.is_err());
    for hash in [[9; 32], [10; 32]] {
        assert_eq!(inbox.caller_of(&hash).await.expect("answered"), None);
    }
    assert_eq!(
        inbox.caller_of(&[1; 32]).await.expect("answered"),
        Some(caller(ANNA, Role::Caller))
    );
    assert_eq!(inbox.webhook_keys(ANNA).await.expect("answered"), Some(only([1; 32])));
    place.execute("DROP INDEX no_second_entry").await;
    assert!(inbox.add_caller(&zoe, &[9; 32], &noted()).await.expect("answered"));
}

/// The check reads and writes.
pub async fn an_inbox_that_works_says_so(place: &dyn InboxStore) {
    let trial = Trial::new(place).await;
    trial.store.inbox.check().await.expect("it can be read and written");
    trial.ledger().await;
}
