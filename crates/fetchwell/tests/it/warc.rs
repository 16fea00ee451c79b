//! `fetchwell fetch --format warc`: read back by our own reader, by gzip and by warcio.
//!
//! The last is another's program, so it needs `FETCHWELL_TEST_PYTHON`: the Python of an environment
//! that has warcio, such as `scripts/setup --test` makes. Without it those checks say that they skip.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fetchwell_archive::gzip::next_member;
use fetchwell_archive::warc::parse_record;
use fetchwell_policy::chance::Chance;
use fetchwell_simweb::{OutageKind, SiteScript, site_name};
use fetchwell_testkit::crash::{OutsideLedger, Program, TestWeb};
use fetchwell_testkit::eventually::eventually;
use fetchwell_testkit::replay::seed;
use fetchwell_testkit::skip::skipped;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const HELLO: &str = "<title>Hello</title><p>The quick brown fox jumps over the lazy dog.";

/// What our own reader finds in a record.
#[derive(Debug)]
struct Found {
    kind: String,
    id: String,
    uri: Option<String>,
    concurrent_to: Option<String>,
    ip: Option<String>,
    block: Vec<u8>,
}

/// The records of a file, in order; each is a gzip member, and nothing else is there.
fn records(path: &Path) -> Vec<Found> {
    let file = std::fs::read(path).unwrap();
    let mut rest = &file[..];
    let mut records = Vec::new();
    while let Some(member) = next_member(&mut rest, u64::MAX, u64::MAX).unwrap() {
        let record = parse_record(&member.content).unwrap();
        let header = |name: &str| record.headers.get(name).map(String::from);
        assert_eq!(record.version, "1.1");
        assert!(header("WARC-Date").is_some_and(|date| date.ends_with('Z')));
        assert!(member.content.ends_with(&[record.block, b"\r\n\r\n"].concat()));
        records.push(Found {
            kind: record.kind().unwrap().to_string(),
            id: header("WARC-Record-ID").unwrap(),
            uri: record.target_uri().map(String::from),
            concurrent_to: header("WARC-Concurrent-To"),
            ip: header("WARC-IP-Address"),
            block: record.block.to_vec(),
        });
    }
    records
}

/// The rows among the records, as an output of `--format json` has them.
fn rows(records: &[Found]) -> Vec<u8> {
    let rows = records.iter().filter(|record| record.kind == "metadata");
    rows.flat_map(|row| [&row.block[..], b"\n"].concat()).collect()
}

/// The status and the body of each answer to this URL.
fn answers(records: &[Found], uri: &str) -> Vec<(u16, Vec<u8>)> {
    let wanted = |record: &&Found| record.kind == "response" && record.uri.as_deref() == Some(uri);
    let answer = |record: &Found| {
        let source = [
            format!("WARC/1.1\r\nContent-Length: {}\r\n\r\n", record.block.len()).as_bytes(),
            &record.block,
        ]
        .concat();
        let record = parse_record(&source).unwrap();
        let http = record.http().unwrap();
        let length = http.raw_body.len().to_string();
        assert_eq!(http.headers.get("content-length").as_deref(), Some(length.as_str()));
        (http.status().unwrap(), http.raw_body.to_vec())
    };
    records.iter().filter(wanted).map(answer).collect()
}

/// Lets warcio check every digest and read every record; panics where it finds a fault. Returns the
/// type, the target and the body of each.
fn warcio(path: &Path) -> Option<Vec<Value>> {
    const READ: &str = "
import base64, json, sys
from warcio.archiveiterator import ArchiveIterator
for record in ArchiveIterator(open(sys.argv[1], 'rb'), check_digests='raise'):
    body = record.content_stream().read()
    print(json.dumps([record.rec_type, record.rec_headers.get_header('WARC-Target-URI'),
        record.http_headers.get_statuscode() if record.http_headers else None, len(body)]))";
    let Some(python) = std::env::var_os("FETCHWELL_TEST_PYTHON") else {
        skipped("FETCHWELL_TEST_PYTHON is not set, so warcio does not read the archive");
        return None;
    };
    let run = |arguments: &[&str]| {
        let ended = Command::new(&python).args(arguments).arg(path).output().unwrap();
        let said = [&ended.stdout[..], &ended.stderr].concat();
        assert!(ended.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
        String::from_utf8(ended.stdout).unwrap()
    };
    let checked = run(&["-m", "warcio.cli", "check", "--verbose"]);
    assert!(checked.contains("digest pass") && !checked.contains("not present"), "{checked}");
    Some(run(&["-c", READ]).lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn program(origin: &TestWeb) -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(origin).flags(["--rate", "0"])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_holds_what_was_asked_and_answered_and_a_row_for_every_url() {
    let always = Duration::ZERO..Duration::from_secs(3_600);
    let origin = TestWeb::start([
        SiteScript::new("shop.test")
            .robots("User-agent: *\nDisallow: /private\n")
            .text("/hello", "text/html", HELLO)
            .binary("/image", "image/png", 50_000)
            .redirect("/moved", "http://other.test/on")
            .status("/gone", 404),
        SiteScript::new("other.test").redirect("/on", "http://shop.test/hello"),
        SiteScript::new("dead.test").outage(always, OutageKind::Refuse),
    ]);
    let program = program(&origin).flags(["--user-agent", "Tester/1"]);
    let urls = [
        "http://SHOP.test/hello",
        "http://shop.test/image",
        "http://shop.test/moved",
        "http://shop.test/gone",
        "http://shop.test/private/1",
        "http://dead.test/",
        "no url\r\nWARC-Type: x",
    ];
    let arguments = [&["fetch", "--give-up-after", "1s", "-o", "out.warc.gz"], &urls[..]].concat();
    program.run(&arguments).await.expect_code(4);
    let path = program.file("out.warc.gz");
    let found = records(&path);

    // The file says who made it, then every URL has its row.
    assert_eq!(found[0].kind, "warcinfo");
    let info = String::from_utf8(found[0].block.clone()).unwrap();
    assert!(info.contains("software: Fetchwell/") && info.contains("Tester/1"), "{info}");
    let rows = OutsideLedger::of(urls.map(str::to_owned).to_vec()).compare(&rows(&found)).unwrap();
    let row = |url: &str| rows.iter().find(|row| row["url"] == url).unwrap();
    assert_eq!(row(urls[2])["final_url"], "http://shop.test/hello");
    assert_eq!(row(urls[4])["outcome"], "skipped_by_robots");
    assert_eq!(row(urls[5])["outcome"], "site_failure");

    // Every hop of a redirect is there, and answers that are failures too; nothing else is.
    let hello = (200, HELLO.as_bytes().to_vec());
    assert_eq!(answers(&found, "http://shop.test/hello"), [hello.clone(), hello]);
    assert_eq!(answers(&found, "http://shop.test/image")[0].1.len(), 50_000);
    for (uri, status) in [
        ("http://shop.test/moved", 302),
        ("http://other.test/on", 302),
        ("http://shop.test/gone", 404),
    ] {
        let statuses: Vec<u16> = answers(&found, uri).iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses, [status], "{uri}");
    }
    let count = |kind: &str| found.iter().filter(|record| record.kind == kind).count();
    assert_eq!((count("response"), count("request"), count("metadata")), (6, 6, 7));

    // Requests and rows name the answer that they belong to.
    for (at, record) in found.iter().enumerate().filter(|(_, record)| record.kind == "request") {
        let answer = &found[at - 1];
        let asked = String::from_utf8_lossy(&record.block);
        assert_eq!(record.concurrent_to.as_ref(), Some(&answer.id));
        assert_eq!((&record.uri, record.ip.as_deref()), (&answer.uri, Some("127.0.0.1")));
        assert!(asked.starts_with("GET /") && asked.contains("user-agent: Tester/1"), "{asked}");
        assert!(asked.contains("host: "), "{asked}");
    }
    let last = found.iter().rfind(|record| record.uri.as_deref() == Some(urls[2]));
    assert!(found.iter().any(|record| last.unwrap().concurrent_to.as_ref() == Some(&record.id)));

    // gzip and warcio see the same.
    let inflated = Command::new("gzip").args(["--decompress", "--stdout"]).arg(&path).output();
    let inflated = inflated.unwrap();
    assert!(inflated.status.success(), "{inflated:?}");
    let heads = inflated.stdout.windows(10).filter(|bytes| bytes == b"WARC/1.1\r\n").count();
    assert_eq!(heads, found.len());
    if let Some(seen) = warcio(&path) {
        let ours: Vec<_> =
            found.iter().map(|record| (&*record.kind, record.uri.as_deref())).collect();
        let theirs: Vec<_> =
            seen.iter().map(|record| (record[0].as_str().unwrap(), record[1].as_str())).collect();
        assert_eq!(theirs, ours);
    }
}

/// A site whose pages are gzipped and chunked.
async fn encoding_site() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut page = GzEncoder::new(Vec::new(), Compression::default());
    page.write_all(HELLO.as_bytes()).unwrap();
    let page = page.finish().unwrap();
    let head = "HTTP/1.1 200 Fine\r\ncontent-type: text/html\r\ncontent-encoding: gzip\r\n\
                transfer-encoding: chunked\r\nx-odd: caf\u{e9}\r\n\r\n";
    let chunk = format!("{:x}\r\n", page.len());
    let page = [head.as_bytes(), chunk.as_bytes(), &page, b"\r\n0\r\n\r\n"].concat();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 4_096];
            while let Ok(length @ 1..) = stream.read(&mut asked).await {
                let missing = b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n".as_slice();
                let is_robots = asked[..length].starts_with(b"GET /robots.txt ");
                stream.write_all(if is_robots { missing } else { &page }).await.unwrap();
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encoded_page_is_archived_decoded_and_its_headers_agree() {
    let address = encoding_site().await;
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell"));
    let resolve = format!("enc.test={address}");
    let arguments =
        ["--resolve", &resolve, "--allow-private", "127.0.0.0/8", "fetch", "http://enc.test/"];
    program.run(&[&arguments[..], &["-o", "out.warc.gz"]].concat()).await.expect_code(0);
    let path = program.file("out.warc.gz");
    let found = records(&path);
    assert_eq!(answers(&found, "http://enc.test/"), [(200, HELLO.as_bytes().to_vec())]);
    let response = found.iter().find(|record| record.kind == "response").unwrap();
    let head = String::from_utf8_lossy(&response.block).to_ascii_lowercase();
    assert!(
        !head.contains("\ncontent-encoding") && !head.contains("\ntransfer-encoding"),
        "{head}"
    );
    for kept in ["x-crawler-content-encoding: gzip", "x-crawler-transfer-encoding: chunked"] {
        assert!(head.contains(kept), "{head}");
    }
    // A value that is no ASCII is written as it came.
    assert!(response.block.windows(7).any(|bytes| bytes == "caf\u{e9}\r\n".as_bytes()));
    if let Some(seen) = warcio(&path) {
        let page = seen.iter().find(|record| record[0] == "response").unwrap();
        assert_eq!((&page[2], &page[3]), (&"200".into(), &HELLO.len().into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_and_resumed_every_url_has_one_answer_and_one_row() {
    const SITES: usize = 20;
    const RESUME: [&str; 5] = ["fetch", "@list", "--output", "out.warc.gz", "--resume"];
    let mut chance = Chance::seeded(seed());
    let site = |rank| SiteScript::new(&site_name(rank)).slow(Duration::from_millis(50));
    let origin = TestWeb::start((1..=SITES).map(site));
    let program = Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(&origin).flags(["--rate", "10"]);
    let url = |page: usize| format!("http://{}/{page}", site_name(page % SITES + 1));
    let ledger = OutsideLedger::of((0..SITES * 10).map(url).collect());
    ledger.write_list(&program.file("list"));
    let path = program.file("out.warc.gz");
    for kill in 0..3 {
        let process = program.start(&RESUME);
        tokio::time::sleep(Duration::from_millis(100 + chance.next_u64() % 300)).await;
        if kill == 1 {
            let has_begun = async || path.metadata().is_ok_and(|file| file.len() > 0);
            eventually("the archive has a record", has_begun).await;
        }
        process.kill().await;
        if kill == 1 {
            // As a write that the crash cut off would leave it.
            let mut torn = std::fs::read(&path).unwrap();
            torn.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0]);
            std::fs::write(&path, torn).unwrap();
        }
    }
    program.run(&RESUME).await.expect_code(0);
    let balanced = |found: &[Found]| {
        ledger.compare(&rows(found)).unwrap_or_else(|wrong| panic!("{wrong}"));
        for url in ledger.urls() {
            let answers = answers(found, url);
            assert!(matches!(&answers[..], [(200, body)] if !body.is_empty()), "{url}");
        }
        assert_eq!(found.iter().filter(|record| record.kind == "warcinfo").count(), 1);
        assert_eq!(found.len(), 1 + 3 * ledger.urls().len());
    };
    balanced(&records(&path));
    if let Some(seen) = warcio(&path) {
        let answers = seen.iter().filter(|record| record[0] == "response").count();
        assert_eq!(answers, ledger.urls().len());
    }

    // Without the store, the file alone says what is there.
    let whole = std::fs::read(&path).unwrap();
    for entry in std::fs::read_dir(program.folder()).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with("fetchwell.db") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let before = origin.page_hits();
    program.run(&RESUME).await.expect_code(0);
    balanced(&records(&path));
    assert!(origin.page_hits() - before <= ledger.urls().len() / 2 + 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_needs_a_file_and_a_file_keeps_its_format() {
    let origin = TestWeb::start([SiteScript::new("shop.test")]);
    let program = program(&origin);
    let url = "http://shop.test/";
    for arguments in [
        &["fetch", url, "--format", "warc"][..],
        &["fetch", url, "--format", "warc", "--json", "--output", "x.warc.gz"],
    ] {
        let ended = program.run(arguments).await.expect_code(2);
        assert!(ended.stdout.is_empty() && !ended.stderr.is_empty(), "{arguments:?}: {ended:?}");
    }
    program.run(&["fetch", url, "-o", "rows", "--format", "json"]).await.expect_code(0);
    program.run(&["fetch", url, "-o", "archive", "--format", "warc"]).await.expect_code(0);
    let foreign = [&records_of_another(), &b"more"[..]].concat();
    std::fs::write(program.file("foreign"), &foreign).unwrap();
    for (file, format) in [("rows", "warc"), ("archive", "json"), ("foreign", "warc")] {
        let before = std::fs::read(program.file(file)).unwrap();
        let again = ["fetch", url, "-o", file, "--format", format, "--resume"];
        let refused = program.run(&again).await.expect_code(2);
        assert!(refused.stderr.contains("--format"), "{}", refused.stderr);
        assert_eq!(std::fs::read(program.file(file)).unwrap(), before, "{file}");
    }
    assert_eq!(origin.page_hits(), 2);
}

/// The beginning of an archive that another program made.
fn records_of_another() -> Vec<u8> {
    let block = "software: another/1\r\n";
    let mut member = GzEncoder::new(Vec::new(), Compression::default());
    let length = block.len();
    write!(
        member,
        "WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: {length}\r\n\r\n{block}\r\n\r\n"
    )
    .unwrap();
    member.finish().unwrap()
}
