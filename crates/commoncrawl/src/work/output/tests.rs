use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use fetchwell_engine::clock::Clock;
use parquet::file::reader::{FileReader, SerializedFileReader};
use tempfile::TempDir;

use super::*;
use crate::work::document::{Document, WarcPlace};
use crate::work::in_hand::Part;
use crate::work::record::BrokenPage;

const SMALL: SegmentRule = SegmentRule {
    format: SegmentFormat::JsonLines,
    max_bytes: 1 << 20,
    max_age: Duration::from_secs(60),
};
const COLUMNS: SegmentRule = SegmentRule { format: SegmentFormat::Parquet, ..SMALL };

fn place(file: &str, offset: u64) -> WarcPlace {
    WarcPlace { filename: file.to_owned(), offset, length: 9 }
}

fn document(file: &str, offset: u64) -> WorkRecord {
    let title = format!("{file} {offset}");
    WorkRecord::Document(Box::new(Document {
        url: format!("https://example.com/{offset}"),
        surt: format!("com,example)/{offset}"),
        timestamp: "20240712000102".to_owned(),
        lang: offset.is_multiple_of(2).then(|| "eng".to_owned()),
        text: format!("What {title} says."),
        title,
        content_hash: "00".to_owned(),
        warc: place(file, offset),
        in_hand: Part::default(),
    }))
}

fn broken(file: &str, offset: u64) -> WorkRecord {
    WorkRecord::Broken(Box::new(BrokenPage {
        url: None,
        surt: "com,example)/".to_owned(),
        timestamp: "20240712000102".to_owned(),
        warc: Some(place(file, offset)),
        kind: "gzip".into(),
        reason: "not a sound gzip member".to_owned(),
        metadata: [("languages".to_owned(), "eng".to_owned())].into(),
    }))
}

fn target(folder: &TempDir) -> OutputTarget {
    OutputTarget::create(folder.path()).unwrap()
}

async fn open(folder: &TempDir, rule: SegmentRule) -> Output {
    let metrics = Arc::<WorkMetrics>::default();
    Output::open(target(folder), rule, Clock::system(), metrics).await.unwrap()
}

async fn write(output: &Output, records: &[WorkRecord]) {
    output.write(&records.iter().collect::<Vec<_>>()).await.unwrap();
}

fn files(folder: &TempDir, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_str().unwrap().ends_with(ending)).collect()
}

/// The titles in all sealed files, sorted.
fn titles(folder: &TempDir) -> Vec<String> {
    let mut titles = Vec::new();
    for path in files(folder, ".jsonl.zst") {
        let text = zstd::decode_all(fs::File::open(path).unwrap()).unwrap();
        for line in String::from_utf8(text).unwrap().lines() {
            titles.push(serde_json::from_str::<Document>(line).unwrap().title);
        }
    }
    titles.sort_unstable();
    titles
}

#[tokio::test]
async fn a_page_is_written_once_whoever_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let one = open(&folder, SMALL).await;
    let another = open(&folder, SMALL).await;
    write(&one, &[document("a", 0), document("a", 5), document("a", 5)]).await;
    write(&another, &[document("a", 5), document("b", 5)]).await;
    write(&one, &[document("b", 5), document("a", 0)]).await;
    one.close().await.unwrap();
    another.close().await.unwrap();
    let later = open(&folder, SMALL).await;
    write(&later, &[document("a", 0), document("c", 1)]).await;
    later.close().await.unwrap();
    assert_eq!(titles(&folder), ["a 0", "a 5", "b 5", "c 1"]);
    assert_eq!((files(&folder, ".jsonl.zst").len(), files(&folder, ".part").len()), (3, 0));
}

#[tokio::test]
async fn what_a_crash_leaves_is_cut_to_what_was_confirmed_and_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let output = open(&folder, SMALL).await;
    write(&output, &[document("a", 0)]).await;
    let part = files(&folder, ".part").remove(0);
    drop(output); // As a process that is killed: nothing is sealed.
    OpenOptions::new().append(true).open(&part).unwrap().write_all(b"half a frame").unwrap();
    fs::write(folder.path().join("documents-0.jsonl.zst.part"), b"never committed").unwrap();
    let next = open(&folder, SMALL).await;
    assert_eq!((titles(&folder), files(&folder, ".part").len()), (vec!["a 0".to_owned()], 0));
    write(&next, &[document("a", 0), document("a", 1)]).await;
    next.close().await.unwrap();
    assert_eq!(titles(&folder), ["a 0", "a 1"]);
}

#[tokio::test]
async fn a_segment_that_another_process_writes_to_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let output = open(&folder, SMALL).await;
    write(&output, &[document("a", 0)]).await;
    let another = open(&folder, SMALL).await;
    assert_eq!((files(&folder, ".part").len(), titles(&folder).len()), (1, 0));
    another.close().await.unwrap();
    write(&output, &[document("a", 1)]).await;
    output.close().await.unwrap();
    assert_eq!(titles(&folder), ["a 0", "a 1"]);
}

#[tokio::test]
async fn a_rename_that_was_not_noted_is_noted_and_a_lost_segment_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = open(&folder, SMALL).await;
    write(&output, &[document("a", 0)]).await;
    drop(output);
    let part = files(&folder, ".part").remove(0);
    let name = part.with_extension("");
    fs::rename(&part, &name).unwrap();
    open(&folder, SMALL).await;
    assert_eq!(titles(&folder), ["a 0"]);
    let output = open(&folder, SMALL).await;
    write(&output, &[document("a", 1)]).await;
    drop(output);
    fs::remove_file(files(&folder, ".part").remove(0)).unwrap();
    let metrics = Arc::<WorkMetrics>::default();
    let opened = Output::open(target(&folder), SMALL, Clock::system(), metrics).await;
    let fault = opened.err().unwrap().to_string();
    assert!(fault.contains("is missing") && fault.contains("put it back"), "{fault}");
}

#[tokio::test]
async fn a_segment_is_sealed_when_it_is_large_or_old() {
    let folder = tempfile::tempdir().unwrap();
    let rule = SegmentRule { max_bytes: 1, ..SMALL };
    write(&open(&folder, rule).await, &[document("a", 0)]).await;
    assert_eq!(titles(&folder), ["a 0"]);
    let rule = SegmentRule { max_age: Duration::ZERO, ..SMALL };
    let output = open(&folder, rule).await;
    write(&output, &[document("a", 1)]).await;
    assert_eq!(titles(&folder), ["a 0"]);
    output.seal_when_old().await.unwrap();
    assert_eq!(titles(&folder), ["a 0", "a 1"]);
}

#[tokio::test]
async fn bad_pages_stand_once_in_their_file_and_may_be_good_another_time() {
    let folder = tempfile::tempdir().unwrap();
    let output = open(&folder, SMALL).await;
    write(&output, &[broken("a", 0), broken("a", 1), document("a", 2)]).await;
    write(&output, &[broken("a", 0), broken("a", 2), document("a", 1)]).await;
    output.close().await.unwrap();
    let text = fs::read_to_string(folder.path().join(ERRORS)).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let places: Vec<_> = lines.iter().map(|line| line["warc"]["offset"].as_u64()).collect();
    assert_eq!(places, [Some(0), Some(1)]);
    assert_eq!((&lines[0]["kind"], &lines[0]["warc"]["filename"]), (&"gzip".into(), &"a".into()));
    assert_eq!(titles(&folder), ["a 1", "a 2"]);
}

/// Another worker may want what this one left out.
#[tokio::test]
async fn a_bad_page_that_was_left_out_is_no_error_any_more_and_may_become_a_document() {
    let folder = tempfile::tempdir().unwrap();
    let output = open(&folder, SMALL).await;
    let left_out = |offset| WorkRecord::LeftOut { filter: "too_short", warc: place("a", offset) };
    write(&output, &[broken("a", 0), broken("a", 1), document("a", 2)]).await;
    write(&output, &[left_out(0), left_out(2), left_out(3)]).await;
    let kinds = || {
        let mut file = ErrorFile::open(folder.path()).unwrap();
        [file.read_next().unwrap(), file.read_next().unwrap()].map(|entry| match entry {
            Some(ErrorEntry::Page(_, kind)) => kind,
            other => format!("{other:?}"),
        })
    };
    assert_eq!(kinds(), ["left_out", "gzip"]);
    write(&output, &[document("a", 0), document("a", 2), document("a", 3)]).await;
    assert_eq!(kinds(), ["Some(Read)", "gzip"]);
    output.close().await.unwrap();
    assert_eq!(titles(&folder), ["a 0", "a 2", "a 3"]);
}

#[tokio::test]
async fn bad_pages_are_given_again_until_they_are_good() {
    let folder = tempfile::tempdir().unwrap();
    let error = ErrorFile::open(folder.path()).err().unwrap().to_string();
    assert!(error.contains("no worker"), "{error}");
    let output = open(&folder, SMALL).await;
    let mut file = ErrorFile::open(folder.path()).unwrap();
    assert_eq!(file.read_next().unwrap(), None, "there is no such file yet");
    let WorkRecord::Broken(mut nowhere) = broken("a", 9) else { panic!() };
    nowhere.warc = None;
    let WorkRecord::Broken(mut no_page) = broken("a", 10) else { panic!() };
    no_page.kind = "item".into();
    let others = [WorkRecord::Broken(nowhere), WorkRecord::Broken(no_page)];
    write(&output, &[broken("a", 0), broken("a", 1)]).await;
    write(&output, &[document("a", 1)]).await;
    write(&output, &others).await;
    let mut lines = OpenOptions::new().append(true).open(folder.path().join(ERRORS)).unwrap();
    lines.write_all(b"never committed\n").unwrap();
    let mut file = ErrorFile::open(folder.path()).unwrap();
    let mut next = || file.read_next().unwrap();
    let Some(ErrorEntry::Page(page, kind)) = next() else { panic!("a page") };
    assert_eq!((page.surt_url.as_str(), kind.as_str()), ("com,example)/", "gzip"));
    assert_eq!(page.metadata["languages"], "eng");
    assert_eq!(next(), Some(ErrorEntry::Read));
    assert_eq!([next(), next()], [Some(ErrorEntry::Nowhere), Some(ErrorEntry::Nowhere)]);
    assert_eq!(next(), None);
}

#[tokio::test]
async fn columns_hold_what_lines_hold() {
    let folder = tempfile::tempdir().unwrap();
    let output = open(&folder, COLUMNS).await;
    write(&output, &[document("a", 1), document("a", 2)]).await;
    drop(output);
    let output = open(&folder, COLUMNS).await; // It seals what the first one left.
    write(&output, &[document("a", 2), document("b", 3)]).await;
    output.close().await.unwrap();
    let mut rows = Vec::new();
    for path in files(&folder, ".parquet") {
        let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            rows.push(row.unwrap().to_string());
        }
    }
    rows.sort_unstable();
    assert_eq!(rows.len(), 3);
    assert_eq!(
        rows[0],
        "{url: \"https://example.com/1\", surt: \"com,example)/1\", timestamp: \"20240712000102\", \
         lang: null, title: \"a 1\", text: \"What a 1 says.\", content_hash: \"00\", \
         warc: {filename: \"a\", offset: 1, length: 9}}"
    );
    assert!(rows[1].contains("lang: \"eng\""), "{}", rows[1]);
    assert_eq!((files(&folder, ".part").len(), files(&folder, ".unfinished").len()), (0, 0));
}
