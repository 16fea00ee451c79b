//! Kafka: what its log promises besides what every log does.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use fetchwell_engine::ports::error::StoreErrorKind;
use fetchwell_engine::ports::event_log::{EventLog, LogEvent, Published};
use fetchwell_stores::kafka::KafkaLog;
use fetchwell_testkit::conformance::kafka::{create_topic, read_topic, unused_topic};
use fetchwell_testkit::conformance::servers::server_url;
use fetchwell_testkit::crash::OwnServer;
use fetchwell_testkit::eventually::{eventually, eventually_ok};
use rdkafka::admin::{NewTopic, TopicReplication};
use rdkafka::mocking::MockCluster;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

const KAFKA: &str = "FETCHWELL_TEST_KAFKA_BOOTSTRAP";
/// Events of a batch under load.
const BATCH: usize = 50;
/// Batches that are confirmed before a crash, and after it.
const BATCHES_EACH: usize = 40;

/// Between a publisher's batches.
const PAUSE: Duration = Duration::from_millis(5);
/// A broker is started twice within this.
const OUTAGE_WITHIN: Duration = Duration::from_secs(180);

fn event(number: usize) -> LogEvent {
    let value = format!(r#"{{"number":{number}}}"#);
    LogEvent { id: number.to_string(), key: [(number % 7) as u8; 32], value }
}

#[tokio::test]
async fn a_topic_that_is_missing_is_made() {
    let Some(servers) = server_url(KAFKA) else { return };
    let topic = unused_topic();
    for number in 0..2 {
        let log = KafkaLog::open(&servers, &topic).await.unwrap();
        assert_eq!(log.publish(&[event(number)]).await.unwrap(), [Published::Confirmed]);
    }
    assert_eq!(read_topic(&servers, &topic).await, [event(0), event(1)]);
}

#[tokio::test]
async fn a_topic_with_an_impossible_name_is_a_fault_that_says_so() {
    let Some(servers) = server_url(KAFKA) else { return };
    let fault = KafkaLog::open(&servers, "not/a topic").await.err().unwrap().to_string();
    assert!(fault.contains("not/a topic") && fault.contains(&servers), "{fault}");
}

#[tokio::test]
async fn a_cluster_that_is_away_is_a_fault_that_names_it() {
    let fault = KafkaLog::open("127.0.0.1:1", "webpage_log").await.err().unwrap();
    assert_eq!(fault.kind(), StoreErrorKind::Transient);
    let words = fault.to_string();
    assert!(
        words.contains("127.0.0.1:1") && words.contains("check that the servers run"),
        "{words}"
    );
}

/// A broker judges a set of messages by its whole size: no event may be refused for its neighbours.
#[tokio::test]
async fn only_what_is_too_large_by_itself_is_refused_by_a_broker_with_a_low_limit() {
    let Some(servers) = server_url(KAFKA) else { return };
    let topic = unused_topic();
    let strict =
        NewTopic::new(&topic, 1, TopicReplication::Fixed(1)).set("max.message.bytes", "2000");
    create_topic(&servers, &strict).await;
    let log = KafkaLog::open(&servers, &topic).await.unwrap();
    let mut events: Vec<LogEvent> = (0..60).map(event).collect();
    events[20].value = format!(r#"{{"url":"{}"}}"#, "x".repeat(3_000));
    let published = log.publish(&events).await.unwrap();
    let refused = published.iter().enumerate().filter(|(_, one)| **one != Published::Confirmed);
    assert_eq!(refused.map(|(at, _)| at).collect::<Vec<_>>(), [20]);
    assert!(matches!(&published[20], Published::Refused { reason } if reason.contains(&topic)));
    let read: BTreeSet<String> =
        read_topic(&servers, &topic).await.into_iter().map(|e| e.id).collect();
    assert_eq!(read.len(), 59);
}

/// An idempotent producer may come to an end that no waiting mends.
#[tokio::test]
async fn a_producer_that_is_done_for_is_replaced() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("webpage_log", 1, 1).unwrap();
    let denied = RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
    cluster.request_errors(RDKafkaApiKey::InitProducerId, &[denied]);
    let log = KafkaLog::open(&cluster.bootstrap_servers(), "webpage_log").await.unwrap();
    let fault = log.publish(&[event(1)]).await.unwrap_err();
    assert!(fault.is_transient(), "{fault}");
    assert_eq!(log.publish(&[event(1)]).await.unwrap(), [Published::Confirmed]);
}

#[tokio::test]
async fn a_topic_that_goes_is_a_fault_that_says_how_to_make_it_and_passes_when_it_is_there() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("webpage_log", 1, 1).unwrap();
    let log = KafkaLog::open(&cluster.bootstrap_servers(), "webpage_log").await.unwrap();
    let unknown = RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    cluster.topic_error("webpage_log", unknown).unwrap();
    cluster.request_errors(RDKafkaApiKey::Produce, &[unknown; 1_000]);
    // The client may first replace its connection to the broker, and then the first event fails.
    eventually_ok("the fault", async || {
        let fault = log.publish(&[event(1)]).await.unwrap_err();
        assert!(fault.is_transient(), "{fault:?}");
        let words = fault.to_string();
        let says =
            words.contains("no such topic") && words.contains("--create --topic webpage_log");
        if says { Ok(()) } else { Err(words) }
    })
    .await;
    cluster.topic_error("webpage_log", RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR).unwrap();
    cluster.clear_request_errors(RDKafkaApiKey::Produce);
    // The client asks for the topic from time to time.
    eventually_ok("the topic to be found", async || log.publish(&[event(1)]).await).await;
}

/// Also where there is nothing to publish that could tell.
#[tokio::test]
async fn a_check_fails_while_the_brokers_are_away() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("webpage_log", 1, 1).unwrap();
    let log = KafkaLog::open(&cluster.bootstrap_servers(), "webpage_log").await.unwrap();
    log.check().await.unwrap();
    cluster.broker_down(1).unwrap();
    let fault = log.check().await.unwrap_err();
    assert!(fault.is_transient(), "{fault:?}");
    assert!(fault.to_string().contains("topic webpage_log"), "{fault}");
    cluster.broker_up(1).unwrap();
    eventually_ok("the broker to be found", async || log.check().await).await;
}

/// Publishes batches of its own until `is_over`, each as often as it takes. Returns what was confirmed.
async fn publish_until(
    log: &KafkaLog,
    is_over: &AtomicBool,
    batches: &AtomicUsize,
    faults: &AtomicUsize,
) -> usize {
    let mut first = 0;
    while !is_over.load(Ordering::SeqCst) {
        let events: Vec<LogEvent> = (first..first + BATCH).map(event).collect();
        match log.publish(&events).await {
            Ok(published) => {
                assert_eq!(published, vec![Published::Confirmed; BATCH]);
                first += BATCH;
                batches.fetch_add(1, Ordering::SeqCst);
            }
            Err(fault) if fault.is_transient() => {
                faults.fetch_add(1, Ordering::SeqCst);
            }
            Err(fault) => panic!("{fault}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
    first
}

async fn until_more(counter: &AtomicUsize, more: usize) {
    let goal = counter.load(Ordering::SeqCst) + more;
    eventually("more of them", async || counter.load(Ordering::SeqCst) >= goal).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_crashes_under_load_loses_nothing_confirmed_and_a_full_disk_is_transient() {
    let Some(server) = OwnServer::start("kafka").await else { return };
    let topic = unused_topic();
    let log = KafkaLog::open(server.url(), &topic).await.unwrap();
    let is_over = AtomicBool::new(false);
    let batches = AtomicUsize::new(0);
    let faults = AtomicUsize::new(0);
    let outage = async {
        until_more(&batches, BATCHES_EACH).await;
        server.crash().await;
        until_more(&faults, 1).await;
        server.restart().await;
        until_more(&batches, BATCHES_EACH).await;
        is_over.store(true, Ordering::SeqCst);
    };
    let load = publish_until(&log, &is_over, &batches, &faults);
    let under_load = tokio::time::timeout(OUTAGE_WITHIN, async { tokio::join!(load, outage) });
    let (confirmed, ()) = under_load.await.unwrap();
    let read: BTreeSet<String> =
        read_topic(server.url(), &topic).await.into_iter().map(|e| e.id).collect();
    let missing: Vec<usize> = (0..confirmed).filter(|n| !read.contains(&n.to_string())).collect();
    assert!(
        confirmed >= 2 * BATCHES_EACH * BATCH && missing.is_empty(),
        "{confirmed}: {missing:?}"
    );

    // A partition on a full disk.
    let topic = unused_topic();
    let partition = server.data_folder().join(format!("{topic}-0"));
    fs::create_dir(&partition).unwrap();
    symlink("/dev/full", partition.join("00000000000000000000.log")).unwrap();
    let log = KafkaLog::open(server.url(), &topic).await.unwrap();
    let fault = log.publish(&[event(0)]).await.unwrap_err();
    assert_eq!(fault.kind(), StoreErrorKind::Transient, "{fault}");
    let log = fs::read_to_string(server.data_folder().with_file_name("log")).unwrap();
    assert!(log.contains("No space left on device"));
}
