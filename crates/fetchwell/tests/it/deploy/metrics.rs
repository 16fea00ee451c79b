//! Every metric that is named in `deploy/` is one that the program tells. (The documentation has a test of its own.)

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

use fetchwell_testkit::crash::{Program, Service};
use fetchwell_testkit::plain_http::ask;

use super::deploy;
use crate::observe::door;

/// What metrics begin with.
const BEGINNINGS: [&str; 3] = ["fetchwell_", "page_fetcher_", "process_"];

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_that_is_named_is_told() {
    let mut told = BTreeSet::new();
    let service = Service::start(program()).await;
    told.extend(families(service.address).await);
    let pages = program();
    let (_process, address) = door(&pages, &["pages", "--metrics-listen", "127.0.0.1:0"]).await;
    told.extend(families(address).await);
    let work = program();
    let arguments = ["commoncrawl", "work", "--base", ".", "--metrics-listen", "127.0.0.1:0"];
    let (_process, address) = door(&work, &arguments).await;
    told.extend(families(address).await);

    let mut named = 0;
    for (file, text) in texts() {
        for name in metrics_in(&text) {
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix).filter(|base| told.contains(*base)))
                .unwrap_or(&name);
            assert!(told.contains(family), "{file} names {name}, which no door tells");
            named += 1;
        }
    }
    assert!(named > 40, "{named} names were found: where are the others?");
}

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
}

async fn families(address: SocketAddr) -> BTreeSet<String> {
    let answer = ask(address, "", "GET /metrics", &[], "").await.unwrap();
    let text = String::from_utf8(answer.body).unwrap();
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    kinds.filter_map(|kind| Some(kind.split_once(' ')?.0.to_owned())).collect()
}

/// Every text in `deploy/`.
fn texts() -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![deploy()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if is_text(&path) {
                files.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files
}

fn is_text(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("yml" | "yaml" | "json" | "md" | "service"))
}

/// The names of metrics in a text.
fn metrics_in(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let words = text.split(|c: char| !(is_part(c) || c.is_ascii_uppercase()));
    let is_metric = |word: &&str| {
        word.chars().all(is_part)
            && BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
            && !word.ends_with('_')
    };
    words.filter(is_metric).map(str::to_owned).collect()
}
