//! The design's own programs, in Python: each side takes what the other published.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use fetchwell_engine::ports::batches::{Batch, BatchQueue};
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::conformance::rabbitmq::RabbitStore;
use fetchwell_testkit::python::python;
use fetchwell_testkit::range_server::RangeServer;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use super::archive::TestArchive;
use super::ground::{Ground, on_broker, program, reopened};

/// Declares the queue and publishes as the design's batcher does: without durability, id or confirms.
const BATCHER: &str = r#"
import json, os, sys, pika
connection = pika.BlockingConnection(pika.URLParameters(os.environ["RABBITMQ_CONNECTION_STRING"]))
channel = connection.channel()
channel.queue_declare(queue=sys.argv[1])
for batch in json.load(open(sys.argv[2])):
    channel.basic_publish(exchange="", routing_key=sys.argv[1], body=json.dumps(batch))
connection.close()
"#;

/// Consumes as the design's worker does, and prints what it got.
const WORKER: &str = r#"
import json, os, sys, pika
connection = pika.BlockingConnection(pika.URLParameters(os.environ["RABBITMQ_CONNECTION_STRING"]))
channel = connection.channel()
if sys.argv[3] == "declares":
    channel.queue_declare(queue=sys.argv[1])
channel.basic_qos(prefetch_count=1)
left = int(sys.argv[2])
def process(ch, method, properties, body):
    global left
    print(json.dumps({"id": properties.message_id, "type": properties.content_type,
                      "mode": properties.delivery_mode, "body": json.loads(body)}), flush=True)
    ch.basic_ack(delivery_tag=method.delivery_tag)
    left -= 1
    if left == 0:
        ch.stop_consuming()
channel.basic_consume(queue=sys.argv[1], on_message_callback=process)
channel.start_consuming()
connection.close()
"#;

async fn run(python: &Path, store: &RabbitStore, code: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(python);
    command
        .args(["-c", code])
        .args(arguments)
        .env("RABBITMQ_CONNECTION_STRING", &store.url)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = timeout(DEADLINE, command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn our_worker_takes_the_batches_of_the_designs_batcher() {
    let (Some(python), Some(store)) = (python(), RabbitStore::if_there()) else { return };
    let archive = TestArchive::of(2, 30);
    let server = RangeServer::sound(archive.files.clone()).await;
    let program = on_broker(program(&server.base()), &store);
    let batches: Vec<Value> = archive
        .batches(25)
        .iter()
        .map(|batch| serde_json::from_slice(&batch.body).unwrap())
        .collect();
    let file = program.file("batches.json");
    std::fs::write(&file, serde_json::to_vec(&batches).unwrap()).unwrap();
    run(&python, &store, BATCHER, &[&store.queue, file.to_str().unwrap()]).await;
    let ground = Ground { program, queue: Arc::new(reopened(&store).await.unwrap()) };
    let said = ground.work_until(&[], 60).await;
    assert!(said.contains("is not durable"), "{said}");
    assert_eq!(ground.documents().len(), 60);
    assert_eq!(ground.queue.waiting().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_designs_worker_takes_our_batches() {
    let (Some(python), Some(store)) = (python(), RabbitStore::if_there()) else { return };
    let batches = TestArchive::of(1, 60).batches(25);
    let read = |printed: &str| -> Vec<Value> {
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let check = |got: &[Value], batches: &[Batch]| {
        for (got, batch) in got.iter().zip(batches) {
            assert_eq!((&got["id"], &got["mode"]), (&batch.id.as_str().into(), &2.into()));
            assert_eq!(got["type"], "application/json");
            assert_eq!(got["body"], serde_json::from_slice::<Value>(&batch.body).unwrap());
        }
    };
    // Ours was there first, durable: theirs would be refused if it declared it as it is used to.
    reopened(&store).await.unwrap().publish(&batches).await.unwrap();
    let printed = run(&python, &store, WORKER, &[&store.queue, "3", "trusts"]).await;
    assert_eq!(read(&printed).len(), 3);
    check(&read(&printed), &batches);
    // Told to, ours declares it as theirs does.
    let store = RabbitStore::on(store.url.clone());
    let clock = fetchwell_engine::clock::Clock::system();
    let queue =
        fetchwell_stores::rabbitmq::RabbitQueue::open(&store.url, &store.queue, true, clock);
    queue.await.unwrap().publish(&batches).await.unwrap();
    let printed = run(&python, &store, WORKER, &[&store.queue, "3", "declares"]).await;
    check(&read(&printed), &batches);
}
