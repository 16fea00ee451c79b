//! `fetchwell extract`: the articles of files and archives, without a network.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use fetchwell_archive::message::{request, response};
use fetchwell_archive::warc::RecordKind;
use fetchwell_archive::warc_writer::{Block, NewRecord};
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::Program;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
}

/// A page with a menu, and an article that links to `next`.
fn page(title: &str) -> String {
    format!(
        "<!doctype html><html lang=en><head><title>{title}</title>\
         <meta name=author content=\"Ada Keeper\"></head><body><nav><a href=/home>Home</a></nav>\
         <article><h1>{title}</h1><p>The otters of {title} came back to the river this spring, and \
         the <a href=next>next page</a> says how many of them there are.</p></article></body></html>"
    )
}

fn write(program: &Program, name: &str, content: impl AsRef<[u8]>) {
    let path = program.file(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn rows(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn titles(stdout: &str) -> Vec<String> {
    rows(stdout).iter().map(|row| row["title"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The records of a WARC file, each a gzip member: a page, its request, an image, an error and another page.
fn warc_records() -> Vec<Vec<u8>> {
    let answer = |url: &str, status: u16, kind: &str, body: &str| {
        let message = response(status, "OK", [("content-type", kind.as_bytes())], body.as_bytes());
        member(RecordKind::Response, url, "application/http;msgtype=response", &message)
    };
    let asked = request("GET", "/one", [("host", b"a.test".as_slice())]);
    vec![
        answer("http://a.test/one", 200, "text/html", &page("One")),
        member(
            RecordKind::Request,
            "http://a.test/one",
            "application/http;msgtype=request",
            &asked,
        ),
        answer("http://a.test/image", 200, "image/png", "\u{1}\u{2}"),
        answer("http://a.test/gone", 404, "text/html", &page("Gone")),
        answer("http://a.test/two", 200, "text/html; charset=utf-8", &page("Two")),
    ]
}

fn member(
    kind: RecordKind,
    url: &str,
    content_type: &str,
    message: &fetchwell_archive::message::MessageBlock,
) -> Vec<u8> {
    let block = Block::Http(message);
    let mut record = NewRecord::new(kind, "2024-01-01T00:00:00Z", content_type, block);
    record.target_uri = Some(url);
    let mut bytes = Vec::new();
    record.write(&mut bytes).unwrap();
    bytes
}

fn arc_record(url: &str, block: &str) -> Vec<u8> {
    let length = block.len();
    format!("{url} 192.0.2.1 20010101000000 text/html {length}\n{block}\n").into_bytes()
}

fn arc_records() -> Vec<Vec<u8>> {
    let description = "1 0 Archive\nURL IP-address Archive-date Content-type Archive-length\n";
    let http = |body: &str| format!("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
    vec![
        arc_record("filedesc://a.arc", description),
        arc_record("dns:a.test", "20010101000000\na.test. 1 IN A 192.0.2.1\n"),
        arc_record("http://a.test/old", &http(&page("Old"))),
        arc_record("http://a.test/older", &http(&page("Older"))),
    ]
}

#[tokio::test]
async fn one_page_is_printed_as_markdown_and_in_each_format() {
    let program = program();
    write(&program, "otters.html", page("Otters"));
    let markdown = program.run(&["extract", "otters.html"]).await.expect_code(0);
    assert!(markdown.stdout.starts_with("# Otters\n\nThe otters of"), "{}", markdown.stdout);
    assert!(!markdown.stdout.contains("Home"), "{}", markdown.stdout);
    assert!(markdown.stderr.contains("1 page in "), "{}", markdown.stderr);
    let same = program.run(&["extract", "otters.html", "--format", "markdown", "-q"]).await;
    assert_eq!((same.stdout, same.stderr), (markdown.stdout, String::new()));
    let text = program.run(&["extract", "--format", "text", "otters.html"]).await.expect_code(0);
    assert!(text.stdout.starts_with("The otters of Otters"), "{}", text.stdout);
    let json = program.run(&["extract", "--format", "json", "otters.html"]).await.expect_code(0);
    let short = program.run(&["--json", "extract", "otters.html"]).await.expect_code(0);
    assert_eq!(json.stdout, short.stdout);
    let row = &rows(&json.stdout)[0];
    let url = format!("file://{}", program.file("otters.html").canonicalize().unwrap().display());
    let fields = "author authors canonical_url description file image lang markdown offset published \
                  site_name text title url";
    let mut found: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    found.sort_unstable();
    assert_eq!(found.join(" "), fields);
    assert_eq!(row["url"], url);
    assert_eq!([&row["file"], &row["offset"]], [&json!("otters.html"), &Value::Null]);
    assert_eq!([&row["author"], &row["authors"]], [&json!("Ada Keeper"), &json!(["Ada Keeper"])]);

    // The name of the output decides, as with `fetch`.
    program.run(&["extract", "otters.html", "--output", "a.jsonl"]).await.expect_code(0);
    assert_eq!(std::fs::read_to_string(program.file("a.jsonl")).unwrap(), json.stdout);
    assert!(!program.file("fetchwell.db").exists(), "it needs no store");
}

#[tokio::test]
async fn the_files_of_a_folder_are_read_in_the_order_of_their_names() {
    let program = program();
    for name in ["pages/b.html", "pages/a/z.HTM", "pages/c.xhtml", "pages/a.html", "pages/a/x.txt"]
    {
        write(&program, name, page(name));
    }
    write(&program, "pages/d.warc.gz", warc_records().concat());
    write(&program, "pages/e.html.gz", gzip(page("E").as_bytes()));
    // A link to a folder could lead in a circle; a link to a file cannot.
    std::os::unix::fs::symlink("..", program.file("pages/a/up")).unwrap();
    std::os::unix::fs::symlink("b.html", program.file("pages/link.html")).unwrap();
    let ended = program.run(&["extract", "pages"]).await.expect_code(0);
    let files: Vec<Value> = rows(&ended.stdout).iter().map(|row| row["file"].clone()).collect();
    let wanted = [
        "pages/a/z.HTM",
        "pages/a.html",
        "pages/b.html",
        "pages/c.xhtml",
        "pages/d.warc.gz",
        "pages/d.warc.gz",
        "pages/e.html.gz",
        "pages/link.html",
    ];
    assert_eq!(files, wanted);
    assert!(ended.stderr.contains("8 pages, 3 records skipped in"), "{}", ended.stderr);
    let several = ["extract", "pages/b.html", "pages/a.html", "--format", "text"];
    let several = program.run(&several).await.expect_code(0).stdout;
    let headed = |name: &str| format!("==> file://{} <==\n", program.file(name).display());
    let places = ["pages/b.html", "pages/a.html"].map(|name| several.find(&headed(name)));
    assert!(places[0] == Some(0) && places[1] > places[0], "{several}");
    let empty = ["extract", "pages/a/up/a/nothing"];
    std::fs::create_dir(program.file("pages/a/nothing")).unwrap();
    let empty = program.run(&empty).await.expect_code(2);
    let text = "no HTML, WARC or ARC files found in pages/a/up/a/nothing; ";
    assert!(empty.stderr.contains(text), "{}", empty.stderr);
}

#[tokio::test]
async fn standard_input_may_be_a_page_or_an_archive_compressed_or_not() {
    let program = program();
    let html = page("Otters");
    let ended = program.run_with_input(&["extract", "-"], &html).await.expect_code(0);
    assert!(ended.stdout.starts_with("# Otters\n"), "{}", ended.stdout);
    for (input, wanted) in [
        (gzip(html.as_bytes()), vec!["Otters"]),
        (html.as_bytes().chunks(9).flat_map(gzip).collect(), vec!["Otters"]),
        (warc_records().concat(), vec!["One", "Two"]),
        (arc_records().concat(), vec!["Old", "Older"]),
        (arc_records().iter().flat_map(|record| gzip(record)).collect(), vec!["Old", "Older"]),
    ] {
        let ended = with_input(&program, &["extract", "--json", "-"], &input).await;
        assert_eq!(titles(&ended), wanted);
    }
    let twice = program.run(&["extract", "-", "-"]).await.expect_code(2);
    assert!(twice.stderr.contains("only once"), "{}", twice.stderr);
}

async fn with_input(program: &Program, arguments: &[&str], input: &[u8]) -> String {
    let mut command = program.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input).await.unwrap();
    drop(stdin);
    let ended = child.wait_with_output().await.unwrap();
    assert!(ended.status.success());
    String::from_utf8(ended.stdout).unwrap()
}

#[tokio::test]
async fn archives_are_known_by_their_content_and_offsets_lead_to_their_records() {
    let program = program();
    let records = warc_records();
    write(&program, "archive.bin", records.concat());
    let ended = program.run(&["extract", "archive.bin"]).await.expect_code(0);
    assert!(ended.stderr.contains("2 pages, 3 records skipped in"), "{}", ended.stderr);
    let found = rows(&ended.stdout);
    let offset = records[..4].concat().len();
    let facts = |row: &Value| [row["url"].clone(), row["offset"].clone(), row["file"].clone()];
    assert_eq!(facts(&found[0]), [json!("http://a.test/one"), json!(0), json!("archive.bin")]);
    assert_eq!(facts(&found[1]), [json!("http://a.test/two"), json!(offset), json!("archive.bin")]);
    let markdown = found[0]["markdown"].as_str().unwrap();
    assert!(markdown.contains("(http://a.test/next)"), "{markdown}");

    write(&program, "old.arc", arc_records().concat());
    write(
        &program,
        "old.arc.gz",
        arc_records().iter().flat_map(|one| gzip(one)).collect::<Vec<u8>>(),
    );
    for name in ["old.arc", "old.arc.gz"] {
        let ended = program.run(&["extract", name]).await.expect_code(0);
        assert_eq!(titles(&ended.stdout), ["Old", "Older"]);
        assert!(ended.stderr.contains("2 pages, 1 record skipped in"), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn relative_links_are_resolved_against_the_url_of_the_page() {
    let program = program();
    write(&program, "a.html", page("A"));
    let json = ["--json", "extract", "--links", "a.html"];
    let none = rows(&program.run(&json).await.expect_code(0).stdout);
    assert_eq!(none[0]["links"], json!([]), "a file has no web address");
    let given = [&json[..], &["--url", "https://a.test/b/c"]].concat();
    let given = rows(&program.run(&given).await.expect_code(0).stdout);
    assert_eq!(given[0]["url"], "https://a.test/b/c");
    assert_eq!(given[0]["links"], json!(["https://a.test/home", "https://a.test/b/next"]));
    let declared =
        page("A").replace("</head>", "<meta property=og:url content=https://b.test/x/y></head>");
    write(&program, "a.html", declared);
    let declared = rows(&program.run(&json).await.expect_code(0).stdout);
    assert_eq!(declared[0]["url"], "https://b.test/x/y");
    assert_eq!(declared[0]["links"], json!(["https://b.test/home", "https://b.test/x/next"]));

    write(&program, "a.warc.gz", warc_records().concat());
    for arguments in [
        &["--url", "https://a.test/", "a.html", "a.html"][..],
        &["--url", "https://a.test/", "a.warc.gz"],
        &["--url", "https://a.test/", "."],
        &["--url", "a.test", "a.html"],
        &["--format", "warc", "a.html"],
        &["--output", "out.html", "a.html"],
        &["--output", "./a.html", "--format", "text", "a.html"],
        &["--jobs", "0", "a.html"],
        &["--links", "a.html"],
        &[],
    ] {
        let ended = program.run(&[&["extract"], arguments].concat()).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{arguments:?}");
    }
    assert!(std::fs::read_to_string(program.file("a.html")).unwrap().contains("og:url"));
}

#[tokio::test]
async fn what_is_broken_is_reported_and_costs_no_other_page() {
    let program = program();
    write(&program, "pages/1.html", page("First"));
    write(&program, "pages/2.html", b"\x89PNG\r\n\x1a\n\0\0\0\x01");
    let mut records = warc_records();
    let middle = records[0].len() / 2;
    records[0][middle] ^= 0xff;
    write(&program, "pages/3.warc.gz", records.concat());
    write(&program, "pages/4.arc", &arc_records().concat()[..700]);
    write(&program, "pages/5.html", page("Last"));
    write(&program, "pages/6.html", "");
    let url = "https://a.test/one";
    let ended = program.run(&["extract", "missing.html", url, "pages"]).await.expect_code(4);
    assert_eq!(titles(&ended.stdout), ["First", "Two", "Old", "Last"], "{}", ended.stderr);
    for part in [
        "could not extract missing.html: No such file",
        "could not extract https://a.test/one: No such file or directory (os error 2); \
         to get the article of a page on the web, use fetchwell fetch",
        "could not extract pages/2.html: it is not HTML",
        "could not extract the record at offset 0 of pages/3.warc.gz: ",
        " of pages/4.arc: the block is cut off: ",
        "could not extract pages/6.html: it is empty; ",
        "4 pages, 4 records skipped, 6 failed in",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    for (input, why) in [
        ("", "standard input: it is empty; "),
        ("no page", "standard input: it is not HTML, "),
        ("WARC/1.0\r\n", "the record at offset 0 of standard input: "),
    ] {
        let ended = program.run_with_input(&["extract", "-"], input).await.expect_code(4);
        assert!(ended.stderr.contains(&format!("could not extract {why}")), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn a_page_over_the_limits_is_refused() {
    let program = program().variable("FETCHWELL_HTTP__MAX_BODY", "10KiB");
    let large = page(&"Otters ".repeat(2_000));
    write(&program, "a.html", &large);
    write(&program, "b.html", gzip(large.as_bytes()));
    write(&program, "c.html", page("Small"));
    let message =
        response(200, "OK", [("content-type", b"text/html".as_slice())], large.as_bytes());
    let record = member(RecordKind::Response, "http://a.test/", "application/http", &message);
    write(&program, "d.warc.gz", [record, warc_records().concat()].concat());
    let ended = program.run(&["extract", "."]).await.expect_code(4);
    assert_eq!(titles(&ended.stdout), ["Small", "One", "Two"]);
    let refused =
        ended.stderr.matches("the page is larger than 10KiB; raise http.max_body").count();
    assert_eq!(refused, 3, "{}", ended.stderr);

    let program = program.variable("FETCHWELL_HTTP__MAX_BODY", "10MiB");
    let program = program.variable("FETCHWELL_EXTRACT__MAX_TIME", "1ms");
    write(&program, "a.html", "<p>Words.".repeat(500_000));
    let slow = program.run(&["extract", "a.html"]).await.expect_code(4);
    assert!(slow.stderr.contains("took too long; raise extract.max_time (1ms)"), "{}", slow.stderr);
}

#[tokio::test]
async fn the_output_is_the_same_for_any_number_of_jobs() {
    let program = program();
    for number in 0..60 {
        let words = "<p>Some more words about otters.</p>".repeat(number * 37 % 500);
        let html =
            page(&format!("Page {number}")).replace("</article>", &format!("{words}</article>"));
        write(&program, &format!("pages/{number:02}.html"), html);
    }
    write(&program, "pages/z.warc.gz", warc_records().concat());
    let one = program.run(&["extract", "pages", "--jobs", "1"]).await.expect_code(0).stdout;
    let wanted: Vec<String> = (0..60).map(|number| format!("Page {number}")).collect();
    assert_eq!(titles(&one)[..60], wanted);
    let eight = program.run(&["extract", "pages", "--jobs", "8"]).await.expect_code(0).stdout;
    assert!(one == eight, "the order or the content differs");
}

#[tokio::test]
async fn a_closed_pipe_ends_it_quietly() {
    let program = program();
    let record = |number: usize| {
        arc_record(
            &format!("http://a.test/{number}"),
            &format!("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n{}", page("A")),
        )
    };
    // More than a pipe holds.
    write(&program, "a.arc", (0..500).flat_map(record).collect::<Vec<u8>>());
    let mut command = program.command(&["extract", "a.arc"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next_line().await.unwrap().is_some());
    drop(lines);
    let ended = tokio::time::timeout(DEADLINE, child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

#[tokio::test]
async fn a_signal_ends_it_at_once() {
    let program = program();
    let mut command = program.command(&["extract", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than is read to detect the format. The input does not end.
    for record in warc_records().iter().cycle().take(500) {
        stdin.write_all(record).await.unwrap();
    }
    stdin.flush().await.unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next_line().await.unwrap().is_some());
    let id = child.id().unwrap().to_string();
    let sent = std::process::Command::new("kill").args(["-s", "INT", &id]).status().unwrap();
    assert!(sent.success());
    let ended = tokio::time::timeout(DEADLINE, child.wait()).await.unwrap().unwrap();
    assert_eq!(ended.signal(), Some(2), "{ended}");
}
