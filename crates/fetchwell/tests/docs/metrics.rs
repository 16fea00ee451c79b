//! docs/metrics.md lists what running programs tell, no more and no less.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use fetchwell_testkit::crash::Program;
use fetchwell_testkit::eventually::eventually_ok;
use fetchwell_testkit::plain_http::ask;

use crate::{archive, read};

/// A metric's type, and its labels.
type Metrics = BTreeMap<String, (String, BTreeSet<String>)>;

#[tokio::test]
async fn serve() {
    let address = free_address();
    let program = program();
    let _running = program.start(&["serve", "--listen", &address.to_string()]);
    compare("serve", address).await;
}

#[tokio::test]
async fn pages() {
    let address = free_address();
    let program = program();
    let _running = program.start(&["pages", "--metrics-listen", &address.to_string()]);
    compare("pages", address).await;
}

#[tokio::test]
async fn commoncrawl_batch() {
    let address = free_address();
    let program = program();
    let archive = archive::folder();
    archive::put_index(program.folder());
    // A full queue keeps it from its end.
    let program = program.variable("FETCHWELL_COMMONCRAWL__MAX_QUEUE", "1");
    let base = archive.path().display().to_string();
    let _running = program.start(&[
        "commoncrawl",
        "batch",
        "--crawl",
        archive::NAMED,
        "--base",
        &base,
        "--cluster-idx",
        "cluster.idx",
        "--batch-size",
        "1",
        "--metrics-listen",
        &address.to_string(),
    ]);
    compare("commoncrawl batch", address).await;
}

#[tokio::test]
async fn commoncrawl_work() {
    let address = free_address();
    let program = program();
    let archive = archive::folder();
    let base = archive.path().display().to_string();
    let listen = address.to_string();
    let _running =
        program.start(&["commoncrawl", "work", "--base", &base, "--metrics-listen", &listen]);
    compare("commoncrawl work", address).await;
}

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
}

/// The table under the heading has the metrics that are told there, with their types; a label that is
/// told is in it.
async fn compare(heading: &str, address: SocketAddr) {
    let told = told(address).await;
    let mut listed = listed("every command");
    listed.extend(self::listed(heading));
    let types = |metrics: &Metrics| -> BTreeMap<String, String> {
        metrics.iter().map(|(name, (kind, _))| (name.clone(), kind.clone())).collect()
    };
    assert_eq!(types(&listed), types(&told), "docs/metrics.md, {heading}: listed, told");
    for (name, (_, labels)) in told {
        let known = &listed[&name].1;
        assert!(labels.is_subset(known), "{name} has the labels {labels:?}, not {known:?}");
    }
}

async fn told(address: SocketAddr) -> Metrics {
    let look = async || ask(address, "", "GET /metrics", &[], "").await;
    let answer = eventually_ok("metrics", look).await;
    parse(&String::from_utf8(answer.body).expect("metrics are text"))
}

fn parse(text: &str) -> Metrics {
    let mut metrics = Metrics::new();
    for line in text.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|l| l.split_once(' ')) {
            metrics.insert(name.to_owned(), (kind.to_owned(), BTreeSet::new()));
        } else if let Some((name, rest)) = line.split_once('{') {
            let Some((_, labels)) = metrics.get_mut(name) else { continue };
            let (inside, _) = rest.rsplit_once('}').expect("labels are closed");
            let names = inside.split("\",").filter_map(|label| label.split_once("=\""));
            labels.extend(names.map(|(name, _)| name.to_owned()));
        }
    }
    metrics
}

fn listed(heading: &str) -> Metrics {
    let page = read("docs/metrics.md");
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).expect("the heading is there");
    let section = section.split("\n## ").next().expect("there is a first");
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let labels = cells[3].split(',').map(|label| label.trim().trim_matches('`').to_owned());
        let labels = labels.filter(|label| !label.is_empty()).collect();
        (cells[1].trim_matches('`').to_owned(), (cells[2].to_owned(), labels))
    };
    section.lines().filter(|line| line.starts_with("| `")).map(row).collect()
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("it has an address")
}
