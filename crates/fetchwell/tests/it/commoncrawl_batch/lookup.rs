//! `find` and `get`, from a folder and from a server.

use std::collections::BTreeSet;
use std::sync::Arc;

use fetchwell_testkit::range_server::{RangeBehaviour, RangeServer};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::archive::{TestArchive, page};
use super::rig::Rig;

/// Two captures of one page among many others.
fn archive() -> TestArchive {
    let mut archive = TestArchive::of(30, 20);
    let mut newer = page("00031/about", Some("eng"));
    newer.timestamp = "20240715000000";
    let mut gone = page("00031/about", Some("eng"));
    gone.timestamp = "20240716000000";
    gone.fields.push(("status", json!("404")));
    archive.add_block(&[page("00031/about", Some("eng")), newer, gone]);
    archive.add_block(&[page("00032/x", Some("eng"))]);
    archive
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_are_found_wherever_the_archive_is() {
    let archive = archive();
    let server = RangeServer::sound(archive.all_files()).await;
    let folder = Rig::in_folder(&archive);
    let web = Rig::at(&server.base(), &archive);
    for rig in [&folder, &web] {
        for (pattern, count) in [
            ("https://example.com/00007/00003", 1),
            ("example.com/00031/about", 3),
            ("example.com/00007/*", 20),
            ("*.example.com", 604),
            ("example.com/0000*", 200),
        ] {
            let arguments = ["commoncrawl", "find", pattern, "--json", "--limit", "1000"];
            let found = rig.program.run(&arguments).await.expect_code(0);
            let lines: Vec<Value> =
                found.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(lines.len(), count, "{pattern}");
            let has_all = |line: &Value| line["urlkey"].is_string() && line["filename"].is_string();
            assert!(lines.iter().all(has_all), "{pattern}");
        }
        let none = rig.program.run(&["commoncrawl", "find", "example.org"]).await.expect_code(4);
        assert!(none.stderr.contains("no capture of example.org"), "{}", none.stderr);
        let few = rig.program.run(&["commoncrawl", "find", "*.example.com", "--limit", "5"]).await;
        assert_eq!(few.expect_code(0).stdout.lines().count(), 6, "a head and five lines");
    }
    assert!(!folder.program.file("fetchwell.db").exists(), "a look at a folder leaves nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_brought_back_in_every_format() {
    let archive = archive();
    let rig = Rig::in_folder(&archive);
    let get = async |arguments: &[&str]| {
        let all = [&["commoncrawl", "get", "example.com/00031/about"], arguments].concat();
        rig.program.run(&all).await
    };
    let markdown = get(&[]).await.expect_code(0);
    assert!(markdown.stdout.starts_with("# Page 00031/about"), "{}", markdown.stdout);
    assert!(
        markdown.stderr.contains("20240715000000"),
        "the newest sound one: {}",
        markdown.stderr
    );
    let text = get(&["--format", "text"]).await.expect_code(0);
    assert!(text.stdout.contains("This is what page 00031/about says"), "{}", text.stdout);
    let html = get(&["--format", "html"]).await.expect_code(0);
    assert!(html.stdout.starts_with("<html lang=\"en\">"), "{}", html.stdout);
    let json = get(&["--format", "json", "--timestamp", "20240712"]).await.expect_code(0);
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(document["timestamp"], json!("20240712000102"));
    assert_eq!(document["url"], json!("https://example.com/00031/about"));
    for arguments in [&["--json"][..], &["--json", "--format", "markdown"]] {
        let json = get(arguments).await.expect_code(0);
        let document: Value = serde_json::from_str(&json.stdout).unwrap();
        assert_eq!(document["url"], json!("https://example.com/00031/about"), "{arguments:?}");
    }
    let mut warc =
        rig.program.command(&["commoncrawl", "get", "example.com/00031/about", "--format", "warc"]);
    let member = warc.output().await.unwrap().stdout;
    let bytes = fetchwell_archive::gzip::inflate_member(&member, 1 << 20).unwrap();
    assert!(bytes.starts_with(b"WARC/1."));
    let none = get(&["--timestamp", "2023"]).await.expect_code(4);
    assert!(none.stderr.contains("no capture of"), "{}", none.stderr);
}

/// The first answer for each file is cut off: `cluster.idx`, the index block and the record.
#[tokio::test(flavor = "multi_thread")]
async fn a_range_that_comes_short_is_asked_for_again() {
    let archive = archive();
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let whim = {
        let seen = seen.clone();
        move |path: &str, _: usize| match seen.lock().insert(path.to_owned()) {
            true => RangeBehaviour::Part(20),
            false => RangeBehaviour::Range,
        }
    };
    let server = RangeServer::start(archive.all_files(), Arc::new(whim)).await;
    let rig = Rig::at(&server.base(), &archive);
    let page = "example.com/00031/about";
    let got = rig.program.run(&["commoncrawl", "get", page]).await.expect_code(0);
    assert!(got.stdout.starts_with("# Page 00031/about"), "{}", got.stdout);
    assert_eq!(std::mem::take(&mut *seen.lock()).len(), 3, "each file was cut off once");
    let found = rig.program.run(&["commoncrawl", "find", page, "--json"]).await.expect_code(0);
    assert_eq!(found.stdout.lines().count(), 3);
    assert_eq!(seen.lock().len(), 2);
}

/// What always comes short is given up after three attempts, and costs nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_always_comes_short_is_passed_over() {
    let archive = archive();
    let whim = |path: &str, _: usize| match path.contains("cdx-") {
        true => RangeBehaviour::Part(20),
        false => RangeBehaviour::Range,
    };
    let server = RangeServer::start(archive.all_files(), Arc::new(whim)).await;
    let rig = Rig::at(&server.base(), &archive);
    let find = ["commoncrawl", "find", "example.com/00000/00000"];
    let said = rig.program.run(&find).await.expect_code(4).stderr;
    assert!(said.contains("cannot read the block"), "{said}");
    assert!(said.contains("\": the server sent only 20 of"), "{said}");
    let asked = server.heads().iter().filter(|head| head.contains("cdx-")).count();
    assert_eq!(asked % 3, 0, "each block three times: {asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_read_by_signed_ranges_where_there_are_keys() {
    let archive = archive();
    let in_bucket = |(name, content)| (format!("cc-bucket/deep/{name}"), content);
    let files = archive.all_files().into_iter().map(in_bucket).collect();
    let server = RangeServer::sound(files).await;
    let rig = Rig::at("s3://cc-bucket/deep", &archive).with("AWS_ENDPOINT_URL", &server.base());
    let open = rig.program.run(&["commoncrawl", "get", "example.com/00031/about"]).await;
    assert!(open.expect_code(0).stdout.starts_with("# Page 00031/about"));
    assert!(server.heads().iter().all(|head| !head.contains("authorization")));
    let asked = server.heads().len();

    let rig = rig.with("AWS_ACCESS_KEY_ID", "AKIATEST").with("AWS_SECRET_ACCESS_KEY", "hush-hush");
    let keyed = rig.program.run(&["commoncrawl", "get", "example.com/00031/about"]).await;
    let keyed = keyed.expect_code(0);
    assert!(!keyed.stderr.contains("hush-hush"));
    let signature = "authorization: aws4-hmac-sha256 credential=akiatest/";
    assert!(server.heads()[asked..].iter().all(|head| head.contains(signature)));
}
