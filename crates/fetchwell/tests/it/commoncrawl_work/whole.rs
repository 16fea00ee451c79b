//! From archives to documents: other people's programs make the index and say what is to be found, then
//! `commoncrawl batch` publishes, `commoncrawl work` takes, and every record has to be accounted for.
//!
//! Archives of our own are always read; `bench/commoncrawl/samples` names a folder of real ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::conformance::rabbitmq::RabbitStore;
use fetchwell_testkit::python::python;
use fetchwell_testkit::range_server::RangeServer;
use fetchwell_testkit::skip::skipped;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use super::archive::{html, record, response};
use super::ground::Ground;

const CRAWL: &str = "CC-TEST-2024-30";
const LINES_A_BLOCK: &str = "40";
/// A page that is one by its head, and still gives no document, has one of these wrong with it.
const DAMAGED: [&str; 4] = ["truncated", "gzip", "warc", "body"];

/// What two readers of others found in a file.
#[derive(Deserialize)]
struct FoundFile {
    file: String,
    records: Vec<FoundRecord>,
    warcio: usize,
    fastwarc: usize,
}

#[derive(Deserialize)]
struct FoundRecord {
    #[serde(rename = "type")]
    kind: Option<String>,
    status: Option<String>,
    mime: Option<String>,
    languages: Option<String>,
    offset: u64,
    is_page: bool,
}

impl FoundRecord {
    fn is_response(&self) -> bool {
        self.kind.as_deref() == Some("response")
    }

    fn codes(&self) -> Vec<&str> {
        self.languages.as_deref().map(|codes| codes.split(',').collect()).unwrap_or_default()
    }
}

/// Where a record is: its file, and where in it.
type Place = (String, u64);

/// Archives with their index, and what is in them by others' word.
struct Indexed {
    files: BTreeMap<String, Vec<u8>>,
    cluster_idx: Vec<u8>,
    found: Vec<FoundFile>,
}

impl Indexed {
    /// Has the index of these archives made.
    async fn of(python: &Path, archives: BTreeMap<String, Vec<u8>>) -> Indexed {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("crawl-data")).unwrap();
        for (name, bytes) in &archives {
            fs::write(root.path().join("crawl-data").join(name), bytes).unwrap();
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/it/commoncrawl_work/index_archive.py");
        let mut indexer = Command::new(python);
        indexer.arg(script).arg(root.path()).args([CRAWL, LINES_A_BLOCK]);
        indexer.stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(DEADLINE, indexer.output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told = String::from_utf8(output.stdout).unwrap();
        let found = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let indexes = format!("cc-index/collections/{CRAWL}/indexes");
        let cdx = fs::read(root.path().join(&indexes).join("cdx-00000.gz")).unwrap();
        let cluster_idx = fs::read(root.path().join(&indexes).join("cluster.idx")).unwrap();
        let named = |(name, bytes)| (format!("crawl-data/{name}"), bytes);
        let mut files: BTreeMap<_, _> = archives.into_iter().map(named).collect();
        files.insert(format!("{indexes}/cdx-00000.gz"), cdx);
        Indexed { files, cluster_idx, found }
    }

    fn records(&self) -> impl Iterator<Item = (Place, &FoundRecord)> {
        self.found.iter().flat_map(|found| {
            let place = |record: &FoundRecord| (found.file.clone(), record.offset);
            found.records.iter().map(move |record| (place(record), record))
        })
    }

    fn places(&self, which: impl Fn(&FoundRecord) -> bool) -> BTreeSet<Place> {
        self.records().filter(|(_, record)| which(record)).map(|(place, _)| place).collect()
    }
}

/// What became of what was selected.
struct Outcome {
    /// What the batcher said.
    batched: Value,
    documents: BTreeSet<Place>,
    /// The pages that can't be read, and the kind of each.
    broken: BTreeMap<Place, String>,
    /// Pages that were left out.
    left_out: u64,
}

/// Publishes what is selected and works on all of it: at a broker where there is one.
async fn pipe(indexed: &Indexed, base: &str, selection: &[&str]) -> Outcome {
    let ground = match RabbitStore::if_there() {
        Some(store) => Ground::on(&store, base).await,
        None => Ground::embedded(base).await,
    };
    fs::write(ground.program.file("cluster.idx"), &indexed.cluster_idx).unwrap();
    let batch = ["commoncrawl", "batch", "--cluster-idx", "cluster.idx", "--crawl", CRAWL];
    let quiet = ["--metrics-listen", "", "--json"];
    let batched = ground.program.run(&[&batch[..], &quiet, selection].concat()).await;
    let batched: Value = serde_json::from_str(&batched.expect_code(0).stdout).unwrap();
    let worker = ground.work(&[]);
    let wanted = batched["pages"].as_u64().unwrap();
    let looked_at = |told: &str| count_of(told, "fetchwell_commoncrawl_records_total");
    let what = format!("a look at all of {wanted} pages");
    let told = worker.until_told(&what, |told| looked_at(told) >= wanted).await;
    worker.stop().await;
    assert_eq!(looked_at(&told), wanted, "none comes twice");
    assert_eq!(ground.queue.waiting().await.unwrap(), 0);
    let documents: BTreeSet<Place> = ground.documents().into_keys().collect();
    let broken = ground.errors().iter().map(broken_page).collect();
    let left_out = count_of(&told, "fetchwell_commoncrawl_filtered_total");
    Outcome { batched, documents, broken, left_out }
}

fn broken_page(line: &Value) -> (Place, String) {
    let warc = &line["warc"];
    let place = (warc["filename"].as_str().unwrap().to_owned(), warc["offset"].as_u64().unwrap());
    (place, line["kind"].as_str().unwrap().to_owned())
}

/// A counter, over all its labels.
fn count_of(told: &str, name: &str) -> u64 {
    let value = |line: &str| line.strip_prefix(name)?.rsplit_once(' ')?.1.parse::<u64>().ok();
    told.lines().filter_map(value).sum()
}

/// Every record is a document, left out, or kept with what is wrong with it: which, the readers of others
/// decide.
fn expect_all_accounted_for(indexed: &Indexed, outcome: &Outcome) {
    let Outcome { batched, documents, broken, left_out } = outcome;
    let all = indexed.records().count() as u64;
    assert_eq!((&batched["lines"], &batched["pages"]), (&json!(all), &json!(all)));
    assert_eq!(batched["errors"], json!({}));
    assert_eq!(documents.len() as u64 + broken.len() as u64 + left_out, all, "zero silent loss");
    for (place, record) in indexed.records() {
        let kind = broken.get(&place).map(String::as_str);
        let is_sound = match (documents.contains(&place), kind) {
            (true, _) => record.is_page || record.is_response() && record.mime.is_none(),
            (false, None) => record.is_response() && !record.is_page,
            (false, Some("not_a_response")) => !record.is_response(),
            // Some responses are no HTTP: a crawler keeps those of DNS.
            (false, Some("http")) => !record.is_page,
            (false, Some(kind)) => DAMAGED.contains(&kind),
        };
        assert!(is_sound, "{place:?} is {kind:?}; others say {:?} {:?}", record.kind, record.mime);
    }
}

/// Filters by language go by whole codes, wherever they stand; what has no language is not wanted.
async fn expect_filters_to_hold(indexed: &Indexed, base: &str, all: &Outcome) {
    let is_ok = |record: &FoundRecord| record.status.as_deref() == Some("200");
    let english = indexed.places(|record| is_ok(record) && record.codes().contains(&"eng"));
    let outcome = pipe(indexed, base, &["--lang", "eng"]).await;
    assert_eq!(outcome.batched["pages"], json!(english.len()));
    let expected: BTreeSet<Place> = english.intersection(&all.documents).cloned().collect();
    assert!(!expected.is_empty());
    assert_eq!(outcome.documents, expected, "the English ones of all documents");
    let chinese_first = |record: &FoundRecord| record.codes().first() == Some(&"zho");
    for (arguments, wanted) in [
        (["--lang", "zho"], indexed.places(|r| is_ok(r) && r.codes().contains(&"zho"))),
        (["--lang", "any"], indexed.places(is_ok)),
    ] {
        assert_eq!(selected(indexed, base, &arguments).await, wanted.len(), "{arguments:?}");
    }
    let primary = indexed.places(|record| is_ok(record) && chinese_first(record));
    let arguments = ["--lang", "zho", "--primary"];
    assert_eq!(selected(indexed, base, &arguments).await, primary.len(), "{arguments:?}");
}

/// How many pages a selection has.
async fn selected(indexed: &Indexed, base: &str, selection: &[&str]) -> usize {
    let ground = Ground::embedded(base).await;
    fs::write(ground.program.file("cluster.idx"), &indexed.cluster_idx).unwrap();
    let batch = ["commoncrawl", "batch", "--cluster-idx", "cluster.idx", "--crawl", CRAWL];
    let quiet = ["--metrics-listen", "", "--json", "--dry-run"];
    let told = ground.program.run(&[&batch[..], &quiet, selection].concat()).await.expect_code(0);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    usize::try_from(told["pages"].as_u64().unwrap()).unwrap()
}

async fn read_all(archives: BTreeMap<String, Vec<u8>>) -> Option<(Indexed, Outcome)> {
    let indexed = Indexed::of(&python()?, archives).await;
    let server = RangeServer::sound(indexed.files.clone()).await;
    let outcome = pipe(&indexed, &server.base(), &["--lang", "any", "--status", "any"]).await;
    expect_all_accounted_for(&indexed, &outcome);
    expect_filters_to_hold(&indexed, &server.base(), &outcome).await;
    Some((indexed, outcome))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_record_of_our_own_archives_is_accounted_for() {
    let Some((_, outcome)) = read_all(own_archives()).await else { return };
    let kinds: BTreeSet<&str> = outcome.broken.values().map(String::as_str).collect();
    assert_eq!(kinds, ["not_a_response", "truncated"].into());
    assert_eq!((outcome.documents.len(), outcome.left_out), (30 + 5 + 1 + 1, 1));
}

/// Each framing that a record may have, pages and what is none, and one that is cut off.
fn own_archives() -> BTreeMap<String, Vec<u8>> {
    let pages: Vec<Vec<u8>> = (0..30).map(|number| record(number, &html(number))).collect();
    let plain: Vec<u8> = pages[..5].iter().flat_map(|page| inflated(page)).collect();
    let info = b"WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Date: 2024-07-12T00:01:02Z\r\n\
                 WARC-Record-ID: <urn:uuid:6f9619ff-8b86-d011-b42d-00c04fc964ff>\r\n\
                 Content-Type: application/warc-fields\r\nContent-Length: 9\r\n\r\na: b\r\nc:d\r\n\r\n";
    let image = response(31, 200, "image/png", b"\x89PNG\r\n");
    let missing = response(32, 404, "text/html", &html(32));
    let cut = &pages[0][..pages[0].len() / 2];
    [
        ("a-pages.warc.gz", pages.concat()),
        ("b-plain.warc", [&info[..], &plain].concat()),
        ("c-others.warc.gz", [image, missing].concat()),
        ("d-one-member.warc.gz", super::archive::gzip(&plain)),
        ("e-cut.warc.gz", cut.to_vec()),
    ]
    .map(|(name, bytes)| (name.to_owned(), bytes))
    .into()
}

fn inflated(member: &[u8]) -> Vec<u8> {
    fetchwell_archive::gzip::inflate_member(member, usize::MAX).unwrap()
}

/// The folder that `FETCHWELL_TEST_WARC_SAMPLES` names; the table goes to standard output.
#[tokio::test(flavor = "multi_thread")]
async fn every_record_of_the_samples_is_accounted_for() {
    let Some(folder) = std::env::var_os("FETCHWELL_TEST_WARC_SAMPLES").map(PathBuf::from) else {
        skipped("FETCHWELL_TEST_WARC_SAMPLES names no folder of archives");
        return;
    };
    let mut archives = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let (name, path) = entry.map(|e| (e.file_name().into_string().unwrap(), e.path())).unwrap();
        if name.contains(".warc") {
            archives.insert(name, fs::read(path).unwrap());
        }
    }
    let Some((indexed, outcome)) = read_all(archives).await else { return };
    println!("| sample | warcio | FastWARC | in the index | documents | no HTML | can't be read |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for found in &indexed.found {
        println!("{}", table_row(found, &outcome));
    }
}

fn table_row(found: &FoundFile, outcome: &Outcome) -> String {
    let is_here = |place: &&Place| place.0 == found.file;
    let documents = outcome.documents.iter().filter(is_here).count();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, kind) in outcome.broken.iter().filter(|(place, _)| is_here(place)) {
        *kinds.entry(kind).or_default() += 1;
    }
    let broken: usize = kinds.values().sum();
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let name = found.file.trim_start_matches("crawl-data/");
    let records = found.records.len();
    format!(
        "| {name} | {} | {} | {records} | {documents} | {} | {} |",
        found.warcio,
        found.fastwarc,
        records - documents - broken,
        kinds.join(", ")
    )
}
