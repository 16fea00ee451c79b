//! Scripts touch what they named, and nothing else.

use fetchwell_engine::ports::dead_letters::{DeadLetters, Letters, Revision};
use fetchwell_engine::ports::finish::{Settle, Settlement};
use fetchwell_engine::ports::queue::Queue;
use fetchwell_engine::ports::source::Source;

use super::rig::{DEAD_LIST, LIST, Rig, at_most, open, server_clock, take};

#[tokio::test]
async fn a_user_who_may_touch_these_keys_only_can_do_everything() {
    let Some(rig) = Rig::if_there().await else { return };
    let user = format!("narrow{:x}", fetchwell_testkit::conformance::servers::unique());
    let keys = format!("~{LIST} ~{LIST}:* ~{DEAD_LIST} ~{DEAD_LIST}:details");
    rig.ask::<()>(&format!("ACL SETUSER {user} on >secret {keys} +@all")).await;
    let address = rig.address.replacen("redis://", &format!("redis://{user}:secret@"), 1);
    let queue = open(&address, server_clock()).await;
    let urls = ["http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4", "bad"];
    rig.push(&urls).await;
    let worker = queue.instance();
    let sleeper = queue.instance();
    worker.renew().await.unwrap();
    let leases = take(&worker, 10).await;
    let ids: Vec<_> = leases.iter().map(|lease| lease.id).collect();
    worker.started(&ids).await.unwrap();
    let now = rig.clock.now();
    let ends = [
        Settlement::Done,
        Settlement::Skipped,
        Settlement::retry(now, Default::default()),
        Settlement::Dead { reason: "so".to_owned() },
        Settlement::HandBack { at: now },
    ];
    let batch: Vec<_> = leases.iter().zip(&ends).collect();
    worker.settle(&batch).await.unwrap();
    queue.audit().await.unwrap().unwrap();
    assert_eq!(queue.dead_groups().await.unwrap().len(), 1);
    assert_eq!(queue.revise(&Letters::All, Revision::Retry).await.unwrap(), 1);
    sleeper.renew().await.unwrap();
    assert_eq!(take(&sleeper, 1).await.len(), 1);
    sleeper.leave().await.unwrap();
    worker.take(&at_most(1)).await.unwrap();
    worker.leave().await.unwrap();
    assert_eq!(rig.list().await.len(), 3);
    rig.ask::<()>(&format!("ACL DELUSER {user}")).await;
}
