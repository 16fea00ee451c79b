//! `fetchwell fetch` and `fetchwell explain` as their users meet them: the built program, on a
//! simulated web.

use std::process::Stdio;
use std::time::Duration;

use fetchwell_simweb::{HitKind, OutageKind, SiteScript};
use fetchwell_testkit::DEADLINE;
use fetchwell_testkit::crash::{ProcessEnd, Program, TestWeb};
use fetchwell_testkit::dns::{DnsServer, Script};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

const HELLO: &str = "<html lang=en><head><title>Hello</title></head><body><article>\
    <h1>Hello</h1><p>The quick brown fox jumps over the lazy dog, day after day.</p>\
    <p>The dog does not mind, and goes on sleeping in the sun.</p></article></body></html>";

/// A page with all the metadata that is read, and with links.
pub(crate) const ARTICLE: &str = "<html lang=en><head><title>Bees return</title>\
    <meta name=author content='Ada Keeper'><meta name=author content='Ben Mason'>\
    <meta property=article:published_time content=2024-05-17T08:30:00+02:00>\
    <meta property=og:site_name content='The Hive'>\
    <meta property=og:description content='A town gets its bees back.'>\
    <meta property=og:image content=/bee.jpg>\
    <link rel=canonical href=/bees></head><body><nav><a href=/>Home</a></nav><article>\
    <h1>Bees return</h1><p>The bees are back in the town, and they fly from garden to garden all day.\
    </p><p>Read <a href=more#top>more</a> and <a href='http://other.test/hives'>hives</a>, then \
    <a href=more>more</a>.</p></article></body></html>";

/// A shop with a page of each kind, and the program at a pace that holds up no test.
fn shop() -> (TestWeb, Program) {
    let shop = SiteScript::new("shop.test")
        .robots("# ours\nUser-agent: *\nDisallow: /private\nAllow: /\n")
        .text("/hello", "text/html; charset=utf-8", HELLO)
        .text("/article", "text/html; charset=utf-8", ARTICLE)
        .text("/bare", "text/html; charset=utf-8", "<p>Nothing much.</p>")
        .text("/plain", "text/plain", "just text\n")
        .redirect("/moved", "/hello")
        .status("/gone", 404)
        .status("/broken", 500);
    on([shop, SiteScript::new("other.test")])
}

fn on(sites: impl IntoIterator<Item = SiteScript>) -> (TestWeb, Program) {
    let origin = TestWeb::start(sites);
    let program = program().on(&origin).variable("FETCHWELL_RATE", "0");
    (origin, program)
}

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
}

/// Standard output as rows, by their URLs.
fn rows(ended: &ProcessEnd) -> Vec<Value> {
    let mut rows: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no row: {line}")))
        .collect();
    rows.sort_by_key(|row| row["url"].to_string());
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn one_url_is_printed_as_markdown_unless_another_format_is_asked_for() {
    let (_origin, program) = shop();
    let url = "http://shop.test/hello";
    for (arguments, beginning, contained) in [
        (vec![], "# Hello\n", "The quick brown fox"),
        (vec!["--format", "markdown"], "# Hello\n", "The quick brown fox"),
        (vec!["--format", "text"], "", "The quick brown fox"),
        (vec!["--format", "html"], "<html lang=en>", "<p>The quick brown fox"),
        (vec!["--format", "json"], "{\"url\":\"http://shop.test/hello\"", "\"fetched\""),
        (vec!["--json"], "{\"url\":\"http://shop.test/hello\"", "\"fetched\""),
    ] {
        let ended = program.run(&[&["fetch", url], &arguments[..]].concat()).await.expect_code(0);
        let page = ended.stdout;
        assert!(page.starts_with(beginning) && page.contains(contained), "{arguments:?}: {page}");
        assert!(page.ends_with('\n') && !page.ends_with("\n\n"), "{arguments:?}: {page:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_urls_are_printed_as_rows_with_the_contracts_fields() {
    let (_origin, program) = shop();
    let urls = ["http://shop.test/hello", "http://SHOP.test:80/moved", "http://shop.test/plain"];
    let ended = program.run(&[&["fetch"], &urls[..]].concat()).await.expect_code(0);
    let rows = rows(&ended);
    assert_eq!(rows.len(), 3);
    let moved = &rows[0];
    let hello = &rows[1];
    let plain = &rows[2];
    assert_eq!(hello["final_url"], "http://shop.test/hello");
    assert_eq!((&hello["outcome"], &hello["status"]), (&"fetched".into(), &200.into()));
    assert_eq!(hello["content_type"], "text/html; charset=utf-8");
    assert_eq!(hello["content_length"], HELLO.len());
    assert_eq!(hello["content_hash"].as_str().map(str::len), Some(64));
    assert_eq!((&hello["title"], &hello["lang"]), (&"Hello".into(), &"en".into()));
    assert_eq!((&hello["attempts"], &hello["reason"]), (&1.into(), &Value::Null));
    assert_eq!(hello["why"]["breaker"], "closed");
    assert_eq!(hello["why"]["robots"], "line 4: Allow: /");
    // The field `url` is what was typed, whatever it leads to.
    assert_eq!(moved["url"], urls[1]);
    assert_eq!(moved["final_url"], "http://shop.test/hello");
    assert_eq!(moved["content_hash"], hello["content_hash"]);
    assert_eq!(plain["text"], "just text\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_has_the_metadata_of_its_page_and_its_links_if_asked_for() {
    let (_origin, program) = shop();
    let metadata = async |arguments: &[&str]| {
        let ended = program.run(&[&["fetch", "--json"], arguments].concat()).await;
        let row = ended.stdout.split_once("\"image\":").map(|(_, row)| row);
        let row = row.unwrap_or_else(|| panic!("no row: {ended:?}"));
        row.split_once(",\"reason\":").unwrap().0.to_owned()
    };
    let all = r#""http://shop.test/bee.jpg","lang":"en","author":"Ada Keeper, Ben Mason","authors":["Ada Keeper","Ben Mason"],"published":"2024-05-17T08:30:00+02:00","site_name":"The Hive","description":"A town gets its bees back.","canonical_url":"http://shop.test/bees""#;
    let links =
        r#","links":["http://shop.test/","http://shop.test/more","http://other.test/hives"]"#;
    let article = "http://shop.test/article";
    assert_eq!(metadata(&[article]).await, all);
    assert_eq!(metadata(&[article, "--links"]).await, format!("{all}{links}"));
    let none = r#"null,"lang":null,"author":null,"authors":[],"published":null,"site_name":null,"description":null,"canonical_url":null"#;
    for path in ["bare", "plain", "gone", "private/1"] {
        let url = &*format!("http://shop.test/{path}");
        assert_eq!(metadata(&[url]).await, none, "{path}");
        assert_eq!(metadata(&[url, "--links"]).await, format!("{none},\"links\":[]"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn links_need_json_and_the_error_says_so() {
    let (origin, program) = shop();
    let url = "http://shop.test/article";
    for arguments in
        [&[][..], &["--format", "text"], &["-o", "page.html"], &["-o", "pages.warc.gz", "--resume"]]
    {
        let arguments = [&["fetch", "--links", url], arguments].concat();
        let refused = program.run(&arguments).await.expect_code(2);
        let told = &refused.stderr;
        assert!(told.contains("--links needs --format json"), "{arguments:?}: {told}");
    }
    assert_eq!(origin.page_hits(), 0);
}

/// A row as it was before rows had metadata.
#[tokio::test(flavor = "multi_thread")]
async fn the_output_of_an_earlier_version_is_resumed() {
    let (origin, program) = shop();
    let earlier = concat!(
        r#"{"url":"http://shop.test/hello","final_url":"http://shop.test/hello","outcome":"fetched","#,
        r#""status":200,"content_type":"text/html","content_length":9,"content_hash":"00","#,
        r#""fetched_at":"2024-05-17T08:30:00Z","attempts":1,"waited_ms":0,"elapsed_ms":1,"#,
        r#""title":"Hello","text":"Hello","markdown":"Hello","image":null,"lang":"en","#,
        r#""reason":null,"why":null}"#,
        "\n",
    );
    std::fs::write(program.file("rows.jsonl"), earlier).unwrap();
    let urls = ["http://shop.test/hello", "http://shop.test/article"];
    let resume = ["fetch", "--links", "-o", "rows.jsonl", "--resume", urls[0], urls[1]];
    program.run(&resume).await.expect_code(0);
    let written = std::fs::read_to_string(program.file("rows.jsonl")).unwrap();
    let added: Value = serde_json::from_str(written.strip_prefix(earlier).unwrap()).unwrap();
    assert_eq!((&added["url"], &added["site_name"]), (&urls[1].into(), &"The Hive".into()));
    assert_eq!(added["links"].as_array().map(Vec::len), Some(3));
    assert_eq!(origin.page_hits(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_come_from_files_and_standard_input_and_each_url_counts_once() {
    let (origin, program) = shop();
    let list = "\u{feff}# a comment\n\nhttp://other.test/1\r\n  http://other.test/2  \n\
                http://other.test/1\n";
    std::fs::write(program.file("list"), list).unwrap();
    let from_file = program.run(&["fetch", "@list", "http://other.test/2"]).await.expect_code(0);
    let expected = ["http://other.test/1", "http://other.test/2"];
    assert_eq!(rows(&from_file).iter().map(|row| &row["url"]).collect::<Vec<_>>(), expected);
    assert_eq!(origin.page_hits(), 2);
    let from_pipe = program.run_with_input(&["fetch", "-"], list).await.expect_code(0);
    assert_eq!(rows(&from_pipe).len(), 2);
    let missing = program.run(&["fetch", "@nowhere"]).await.expect_code(2);
    assert!(missing.stderr.contains("nowhere"), "{}", missing.stderr);
    program.run_with_input(&["fetch", "-"], "# nothing\n").await.expect_code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_list_a_comment_may_follow_a_url_and_a_fragment_is_none() {
    let (origin, program) = shop();
    let list = "http://other.test/1 # the first\nhttp://other.test/2#part\t# the second\n # none\n";
    let ended = program.run_with_input(&["fetch", "-"], list).await.expect_code(0);
    let rows = rows(&ended);
    let urls: Vec<&Value> = rows.iter().map(|row| &row["url"]).collect();
    assert_eq!(urls, ["http://other.test/1", "http://other.test/2#part"]);
    let paths: Vec<String> = origin.hits().iter().map(|hit| hit.path.to_string()).collect();
    assert!(paths.contains(&"/1".to_owned()) && paths.contains(&"/2".to_owned()), "{paths:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_a_file_is_answered_with_how_a_list_is_named() {
    let (origin, program) = shop();
    std::fs::write(program.file("urls.txt"), "http://shop.test/hello\n").unwrap();
    for command in [&["fetch"][..], &["pages", "add"], &["feeds", "add"]] {
        let ended = program.run(&[command, &["urls.txt"]].concat()).await.expect_code(2);
        assert!(ended.stderr.contains("write @urls.txt"), "{command:?}: {}", ended.stderr);
    }
    assert_eq!(origin.page_hits(), 0);
    program.run(&["fetch", "@urls.txt"]).await.expect_code(0);
}

/// The site does not speak TLS, so the URL fails; a bare number of seconds says how soon.
#[tokio::test(flavor = "multi_thread")]
async fn a_url_without_a_scheme_means_https_and_a_duration_without_a_unit_seconds() {
    let (origin, program) = shop();
    let arguments = ["fetch", "--json", "--give-up-after", "2", "shop.test/hello"];
    let ended = program.run(&arguments).await.expect_code(4);
    assert_eq!(rows(&ended)[0]["url"], "https://shop.test/hello");
    let reason = rows(&ended)[0]["reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("the site stayed down: the TLS handshake failed"), "{reason}");
    assert_eq!(origin.page_hits(), 0, "it was asked for without TLS");
    // If `2` meant minutes, this would take 120 s.
    assert!(ended.took < Duration::from_secs(100), "it took {:?}", ended.took);
    std::fs::write(program.file("robots.txt"), "User-agent: *\n").unwrap();
    let explain = ["explain", "--json", "--robots", "robots.txt", "shop.test:8443/hello"];
    let explained = program.run(&explain).await.expect_code(0);
    assert_eq!(rows(&explained)[0]["url"], "https://shop.test:8443/hello");
    let unknown = ["fetch", "--give-up-after", "ten", "shop.test/hello"];
    let refused = program.run(&unknown).await.expect_code(2);
    assert!(refused.stderr.contains("--give-up-after"), "{}", refused.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_the_output_says_what_is_written() {
    let (_origin, program) = shop();
    let urls = ["http://shop.test/hello", "http://shop.test/plain"];
    for (file, beginning, other) in [
        ("page.md", "<!-- http://shop.test/", "# Hello\n"),
        ("page.TXT", "==> http://shop.test/", "The quick brown fox"),
        ("page.html", "<!-- http://shop.test/", "<html lang=en>"),
        ("page.json", "{\"url\":\"http://shop.test/", "\"fetched\""),
        ("page.jsonl", "{\"url\":\"http://shop.test/", "\"fetched\""),
        ("page", "{\"url\":\"http://shop.test/", "\"fetched\""),
    ] {
        program.run(&[&["fetch", "-o", file], &urls[..]].concat()).await.expect_code(0);
        let written = std::fs::read_to_string(program.file(file)).unwrap();
        assert!(written.starts_with(beginning) && written.contains(other), "{file}: {written}");
    }
    let as_json = ["fetch", "--json", "-o", "other.md", urls[0]];
    program.run(&as_json).await.expect_code(0);
    let written = std::fs::read_to_string(program.file("other.md")).unwrap();
    assert!(written.starts_with('{'), "what is asked for holds: {written}");
    let resumed = ["fetch", "-o", "page.md", "--resume", urls[0]];
    let refused = program.run(&resumed).await.expect_code(2);
    assert!(refused.stderr.contains("--format json"), "{}", refused.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_obeys_nothing_that_stands_in_a_url() {
    let (_origin, program) = on([SiteScript::new("shop.test").status("/*", 404)]);
    // Clears the screen, sets the title, and writes over the line.
    let url = "http://shop.test/gone?\u{1b}[2J\u{1b}]0;x\u{7}\rfake";
    let is_safe = |text: &str| !text.replace('\n', "").contains(char::is_control);
    let failed = program.run(&["fetch", url]).await.expect_code(4);
    assert!(is_safe(&failed.stderr), "{:?}", failed.stderr);
    assert!(failed.stderr.contains(r"gone?\u{1b}[2J"), "{:?}", failed.stderr);
    let explained = program.run(&["explain", url]).await.expect_code(0);
    assert!(is_safe(&explained.stdout), "{:?}", explained.stdout);
    for arguments in [&["explain", "no \u{1b}[2J url"][..], &["pages", "show", url]] {
        let ended = program.run(arguments).await;
        assert!(!ended.stderr.is_empty() && is_safe(&ended.stderr), "{:?}", ended.stderr);
    }
}

/// What stands on a terminal, which `script` makes.
#[tokio::test(flavor = "multi_thread")]
async fn a_progress_bar_ends_at_100_percent_and_stays() {
    let (_origin, program) = shop();
    let urls = ["http://shop.test/hello", "http://shop.test/gone", "http://shop.test/private/1"];
    let fetch = program.command(&[&["fetch", "-o", "rows.jsonl"], &urls[..]].concat());
    let words = [fetch.as_std().get_program()].into_iter().chain(fetch.as_std().get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let variables = fetch.as_std().get_envs().filter_map(|(name, value)| Some((name, value?)));
    let shown = tokio::process::Command::new("script")
        .args(["--quiet", "--return", "--command", &words.join(" "), "/dev/null"])
        .envs(variables)
        .env("TERM", "xterm")
        .current_dir(program.folder())
        .stdin(Stdio::null())
        .output();
    let shown = timeout(DEADLINE, shown).await.unwrap().unwrap();
    let screen = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert_eq!(shown.status.code(), Some(4), "{screen}");
    let last = screen.rsplit_once("100%  3/3 URLs").map(|(_, last)| last);
    let last = last.unwrap_or_else(|| panic!("the bar did not end full: {screen:?}"));
    assert!(last.contains("1 failed"), "{screen:?}");
    assert!(!last.contains("\u{1b}[2K"), "the bar was taken away: {screen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_outcome_has_its_row_and_its_exit_code() {
    let (origin, program) = shop();
    let hello = "http://shop.test/hello";
    let gone = "http://shop.test/gone";
    let private = "http://shop.test/private/1";
    for (urls, code, outcomes) in [
        (vec![hello], 0, vec!["fetched"]),
        (vec![gone], 4, vec!["url_failure"]),
        (vec![private], 3, vec!["skipped_by_robots"]),
        (vec![hello, private], 3, vec!["fetched", "skipped_by_robots"]),
        (vec![gone, private], 4, vec!["url_failure", "skipped_by_robots"]),
        (vec!["no url"], 3, vec!["refused"]),
        (vec!["ftp://shop.test/"], 3, vec!["refused"]),
        (vec!["http://me:secret@shop.test/"], 3, vec!["refused"]),
        (vec!["http://shop.test:25/"], 3, vec!["refused"]),
        (vec!["http://10.0.0.1/"], 3, vec!["refused"]),
        (vec!["http://shop.test/broken"], 4, vec!["url_failure"]),
    ] {
        let arguments = [&["fetch", "--json"], &urls[..]].concat();
        let ended = program.run(&arguments).await.expect_code(code);
        let rows = rows(&ended);
        let found: Vec<&Value> = rows.iter().map(|row| &row["outcome"]).collect();
        assert_eq!(found, outcomes, "{urls:?}: {}", ended.stdout);
        assert!(rows.iter().all(|row| row["reason"].is_null() == (row["outcome"] == "fetched")));
    }
    // A server error is tried three times, a refusal of robots.txt never.
    let hits = |path: &str| origin.hits().iter().filter(|hit| &*hit.path == path).count();
    assert_eq!((hits("/broken"), hits("/gone"), hits("/private/1")), (3, 2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_usage_is_2_and_a_store_out_of_reach_5() {
    let (origin, program) = shop();
    let url = "http://shop.test/hello";
    for arguments in [
        &["fetch"][..],
        &["fetch", url, "--no-such-flag"],
        &["fetch", url, "--resume"],
        &["fetch", url, "--json", "--format", "text"],
        &["fetch", url, "--rate", "fast"],
        &["fetch", url, "--resolve", "nonsense"],
        &["fetch", url, "--give-up-after", "soon"],
        &["fetch", url, "--output", "no/such/folder/rows"],
        &["fetch", url, "--format", "text", "--output", "rows", "--resume"],
        &["explain", "no url"],
    ] {
        let ended = program.run(arguments).await.expect_code(2);
        assert!(ended.stdout.is_empty() && !ended.stderr.is_empty(), "{arguments:?}: {ended:?}");
    }
    let store = ["fetch", url, "--store", "sqlite:no/such/folder/x.db"];
    let ended = program.run(&store).await.expect_code(5);
    assert!(ended.stderr.contains("no/such/folder/x.db"), "{}", ended.stderr);
    assert_eq!(origin.page_hits(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_refused_unless_allowed() {
    let origin = TestWeb::start([SiteScript::new("shop.test")]);
    let [resolve, rule, ..] = origin.flags();
    let program = program().flags([&resolve, &rule]);
    let ended = program.run(&["fetch", "--json", "http://shop.test/"]).await.expect_code(3);
    assert_eq!(rows(&ended)[0]["outcome"], "refused");
    let explained = program.run(&["explain", "--json", "http://shop.test/"]).await.expect_code(3);
    assert!(rows(&explained)[0]["refused_because"].is_string(), "{}", explained.stdout);
    assert!(origin.hits().is_empty(), "{:?}", origin.hits());
}

#[tokio::test(flavor = "multi_thread")]
async fn resolve_leads_a_host_astray_and_keeps_its_name() {
    let (origin, program) = on([SiteScript::new("news.example")]);
    let address = origin.flags()[1].replace("*.test=", "news.example=");
    let url = "http://news.example/today";
    program.run(&["fetch", url, "--resolve", &address]).await.expect_code(0);
    assert!(origin.hits().iter().all(|hit| &*hit.site == "news.example"));
    assert_eq!(origin.page_hits(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_stays_down_is_given_up() {
    let always = Duration::ZERO..Duration::from_secs(3_600);
    let (_origin, program) = on([
        SiteScript::new("dead.test").outage(always, OutageKind::Refuse),
        SiteScript::new("shop.test"),
    ]);
    let urls = ["http://dead.test/1", "http://dead.test/2", "http://shop.test/"];
    let arguments = [&["fetch", "--give-up-after", "5s"], &urls[..]].concat();
    let ended = program.run(&arguments).await.expect_code(4);
    let rows = rows(&ended);
    let outcomes: Vec<&Value> = rows.iter().map(|row| &row["outcome"]).collect();
    assert_eq!(outcomes, ["site_failure", "site_failure", "fetched"], "{}", ended.stdout);
    assert!(ended.took >= Duration::from_secs(5), "it took {:?}", ended.took);
    // The healthy site's row did not wait for the dead one.
    assert!(ended.stdout.starts_with("{\"url\":\"http://shop.test/\""), "{}", ended.stdout);
}

/// What is waited for is told, and none of it for ever.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_host_that_does_not_exist_fail_together() {
    let server = DnsServer::start([("nosuch.test", Script::NoSuchName(None))]).await.unwrap();
    let program = program().variable("FETCHWELL_DNS__SERVERS", &server.address.to_string());
    let urls: Vec<String> = (0..200).map(|page| format!("http://nosuch.test/{page}")).collect();
    std::fs::write(program.file("list"), urls.join("\n")).unwrap();
    // One by one, they would exceed `DEADLINE`.
    let ended = program.run(&["fetch", "--json", "@list"]).await.expect_code(4);
    let rows = rows(&ended);
    assert_eq!(rows.len(), 200);
    for row in &rows {
        assert_eq!(row["outcome"], "url_failure", "{row}");
        assert!(row["reason"].as_str().unwrap().contains("it does not exist"), "{row}");
    }
    assert!(ended.took >= Duration::from_secs(4), "it took {:?}", ended.took);
    assert!(ended.stderr.contains("200 URLs in ") && ended.stderr.contains(": 200 failed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_asks_for_too_long_a_wait_is_given_up_and_the_row_says_why() {
    let hour = Duration::from_secs(3_600);
    let (_origin, program) = on([
        SiteScript::new("busy.test").busy("/*", 503, hour),
        SiteScript::new("limited.test").busy("/*", 429, hour),
        SiteScript::new("slow.test").crawl_delay(Duration::from_secs(150)),
        SiteScript::new("slower.test").crawl_delay(hour),
    ]);
    // A page follows its robots.txt at once only if reading that takes less than half of the interval.
    let program = program.flags(["--rate", "0.1"]);
    let urls = [
        "http://busy.test/1",
        "http://busy.test/2",
        "http://limited.test/1",
        "http://slow.test/1",
        "http://slow.test/2",
        "http://slower.test/1",
    ];
    let arguments = [&["fetch", "--json", "--give-up-after", "100s"], &urls[..]].concat();
    let ended = program.run(&arguments).await.expect_code(4);
    let rows = rows(&ended);
    let found: Vec<&Value> = rows.iter().map(|row| &row["outcome"]).collect();
    let expected =
        ["site_failure", "site_failure", "rate_limited", "fetched", "site_failure", "refused"];
    assert_eq!(found, expected, "{}", ended.stdout);
    let reason = |row: usize| rows[row]["reason"].as_str().unwrap();
    for row in [0, 1, 2] {
        assert!(reason(row).contains("Retry-After") && reason(row).contains("100 s"), "{row}");
    }
    assert!(reason(4).contains("Crawl-delay"), "{}", reason(4));
    // Five minutes are the most that "fetch" puts up with, whatever it waits for.
    assert!(reason(5).contains("robots.max_crawl_delay (300 s)"), "{}", reason(5));
    // Shorter than --give-up-after: no URL waits that long.
    assert!(ended.took < Duration::from_secs(90), "it took {:?}", ended.took);
    let told = "6 URLs in ";
    assert!(ended.stderr.contains(told) && ended.stderr.contains("1 fetched"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_429_with_retry_after_closes_the_site_for_that_long() {
    let wait = Duration::from_secs(2);
    let (origin, program) =
        on([SiteScript::new("shop.test").strict_limiter(Duration::from_secs(1), Some(wait))]);
    let program = program.flags(["--rate", "10"]);
    let urls = ["http://shop.test/1", "http://shop.test/2", "http://shop.test/3"];
    let ended = program.run(&[&["fetch"], &urls[..]].concat()).await.expect_code(0);
    assert_eq!(rows(&ended).len(), 3);
    let hits: Vec<_> = origin.hits().into_iter().filter(|hit| hit.kind == HitKind::Page).collect();
    let told: Vec<usize> = (0..hits.len()).filter(|at| hits[*at].status == Some(429)).collect();
    assert!(!told.is_empty());
    for at in told {
        let gap = hits[at + 1].at - hits[at].at;
        assert!(gap + Duration::from_millis(5) >= wait, "came back after {gap:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn data_goes_to_standard_output_and_all_else_to_standard_error() {
    let (_origin, program) = shop();
    let program = program.variable("NO_COLOR", "1");
    let urls = ["http://shop.test/hello", "http://shop.test/gone"];
    let chatty = program.run(&[&["-vv", "fetch"], &urls[..]].concat()).await.expect_code(4);
    assert_eq!(rows(&chatty).len(), 2);
    assert!(!chatty.stderr.is_empty() && !chatty.stderr.contains('\u{1b}'), "{}", chatty.stderr);
    let quiet = program.run(&[&["fetch", "--quiet"], &urls[..]].concat()).await.expect_code(4);
    assert_eq!((rows(&quiet).len(), quiet.stderr.as_str()), (2, ""));
    // In a format without rows, a failure is told beside the data.
    let page = program.run(&["fetch", urls[1]]).await.expect_code(4);
    assert!(page.stdout.is_empty() && page.stderr.contains("404"), "{page:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_had_enough_ends_it_quietly() {
    let (origin, program) = on([SiteScript::new("shop.test")]);
    let program = program.flags(["--rate", "5"]);
    let urls: String = (0..300).map(|page| format!("http://shop.test/{page}\n")).collect();
    std::fs::write(program.file("list"), urls).unwrap();
    let mut command = program.command(&["fetch", "@list"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // As `| head -1` does it.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next_line().await.unwrap().is_some());
    let hits_before = origin.page_hits();
    drop(lines);
    let ended = timeout(DEADLINE, child.wait_with_output())
        .await
        .expect("fetch exits when its output is closed")
        .unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("panic") && !stderr.contains("pipe"), "{stderr}");
    assert!(
        origin.page_hits() < hits_before + 50,
        "{} pages, some after the reader had left",
        origin.page_hits()
    );
}

/// Also when it is longer than pages are held for their turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_wait_is_told() {
    let (origin, program) = shop();
    let program = program.flags(["--rate", "0.005"]);
    let mut process = program.start(&["fetch", "http://shop.test/hello", "http://shop.test/other"]);
    let is_told = |said: &str| said.contains("before request to shop.test").then_some(());
    let told = process.until_said("the log line about the wait", is_told);
    // Half of the 200 s wait: a line that is logged only at its end would miss this.
    timeout(Duration::from_secs(100), told).await.expect("the wait is logged while it lasts");
    assert!(origin.page_hits() < 2, "the wait was logged only after it ended");
    process.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_says_what_would_happen_and_fetches_no_page() {
    let (origin, program) = shop();
    let program = program.flags(["--rate", "2"]);
    let url = "http://shop.test/private/1";
    let ended = program.run(&["explain", url]).await.expect_code(3);
    for part in ["may be fetched  no", "line 3", "Disallow: /private", "0.5 s", "127.0.0.1"] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    let ended = program.run(&["explain", "--json", url]).await.expect_code(3);
    let told = &rows(&ended)[0];
    assert_eq!((&told["url"], &told["site"]), (&url.into(), &"shop.test".into()));
    assert_eq!((&told["allowed"], &told["refused_because"]), (&false.into(), &Value::Null));
    assert_eq!(
        (&told["robots"]["line"], &told["robots"]["rule"]),
        (&3.into(), &"Disallow: /private".into())
    );
    assert_eq!(told["robots"]["status"], 200);
    assert!(told["robots"]["age_seconds"].is_number());
    assert!(told["robots"]["crawl_delay_seconds"].is_null());
    assert_eq!(told["pace"]["interval_seconds"], 0.5);
    assert!(told["pace"]["source"].is_string() && told["next_slot_in_seconds"].is_number());
    assert_eq!(told["breaker"]["state"], "closed");
    assert_eq!(told["addresses"][0], "127.0.0.1");
    program.run(&["explain", "http://shop.test/hello"]).await.expect_code(0);
    // The second and third question went by what the first had learnt.
    assert_eq!((origin.page_hits(), origin.hits().len()), (0, 1));
}
