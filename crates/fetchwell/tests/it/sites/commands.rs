//! `fetchwell sites`, on each store, without a server of ours.

use fetchwell_simweb::{OutageKind, SiteScript};
use fetchwell_testkit::conformance::servers::{server_url, unique};
use fetchwell_testkit::crash::{ProcessEnd, Program, TestWeb};
use serde_json::Value;

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
}

fn lines(ended: ProcessEnd) -> Vec<Value> {
    let stdout = ended.expect_code(0).stdout;
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn show(program: &Program, site: &str) -> Value {
    lines(program.run(&["--json", "sites", "show", site]).await).remove(0)
}

/// What every store must do. The name is one that nobody else on the server has.
async fn orders_stand_on(program: Program, site: &str) {
    program.run(&["sites", "pause", &site.to_uppercase()]).await.expect_code(0);
    let row = show(&program, site).await;
    assert_eq!((&row["held_up_by"], &row["paused"]["by"]), (&"paused".into(), &"cli".into()));
    assert_eq!(row["next_slot_in_seconds"], Value::Null);
    let again = lines(program.run(&["--json", "sites", "pause", site]).await);
    assert_eq!(again[0]["changed"], false);

    program.run(&["sites", "set-rate", site, "0.25"]).await.expect_code(0);
    let pace = &show(&program, site).await["pace"];
    assert_eq!((&pace["interval_seconds"], &pace["source"]), (&4.0.into(), &"operator".into()));
    assert_eq!(pace["detail"], "by cli");
    let refused = program.run(&["sites", "set-rate", site, "0"]).await.expect_code(2);
    assert!(refused.stderr.contains("i_own_these_sites"), "{}", refused.stderr);
    let owned = ["--i-own-these-sites", "sites", "set-rate", site, "0"];
    program.run(&owned).await.expect_code(0);
    assert_eq!(show(&program, site).await["pace"]["interval_seconds"], 0.0);

    let label = site.split('.').next().unwrap();
    for condition in ["paused", "rated"] {
        let list = ["--json", "sites", "list", label, "--condition", condition];
        let listed = lines(program.run(&list).await);
        assert_eq!(listed.len(), 1, "{condition}: {listed:?}");
        assert_eq!(listed[0]["site"], site);
    }
    let open = ["--json", "sites", "list", label, "--condition", "breaker-open"];
    assert!(lines(program.run(&open).await).is_empty());

    program.run(&["sites", "resume", site]).await.expect_code(0);
    program.run(&["sites", "set-rate", site, "--clear"]).await.expect_code(0);
    program.run(&["sites", "reset-breaker", site]).await.expect_code(0);
    program.run(&["sites", "refetch-robots", site]).await.expect_code(0);
    let row = show(&program, site).await;
    assert_eq!((&row["held_up_by"], &row["paused"]), (&Value::Null, &Value::Null));
    assert_eq!(row["pace"]["source"], "default rate");
}

/// A name that was mistyped would else never be noticed.
async fn an_unknown_site_is_warned_about_on(program: Program, site: &str) {
    const WARNING: &str = "is unknown: no recent request";
    let paused = program.run(&["sites", "pause", site]).await.expect_code(0);
    assert!(paused.stderr.contains(&format!("{site} {WARNING}")), "{}", paused.stderr);
    assert!(paused.stdout.contains("is paused"), "the order stands: {}", paused.stdout);
    let resumed = program.run(&["sites", "resume", site]).await.expect_code(0);
    assert!(!resumed.stderr.contains(WARNING), "it is known by its order: {}", resumed.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_to_an_unknown_site_warns() {
    an_unknown_site_is_warned_about_on(program(), "shop.test").await;
    for variable in ["FETCHWELL_TEST_REDIS_URL", "FETCHWELL_TEST_POSTGRES_URL"] {
        let Some(url) = server_url(variable) else { continue };
        let site = format!("shop{}.test", unique());
        an_unknown_site_is_warned_about_on(program().flags(["--store", &url]), &site).await;
    }
    // One that was asked for is known, and one whose URLs wait, too.
    let origin = TestWeb::start([SiteScript::new("asked.test")]);
    let program = program().on(&origin);
    program.run(&["fetch", "http://asked.test/"]).await.expect_code(0);
    program.run(&["pages", "add", "http://waits.test/"]).await.expect_code(0);
    for site in ["asked.test", "waits.test"] {
        let paused = program.run(&["sites", "pause", site]).await.expect_code(0);
        assert_eq!(paused.stderr, "", "{site}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_stand_in_a_file() {
    orders_stand_on(program(), "shop.test").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_stand_on_servers() {
    for variable in ["FETCHWELL_TEST_REDIS_URL", "FETCHWELL_TEST_POSTGRES_URL"] {
        let Some(url) = server_url(variable) else { continue };
        let site = format!("shop{}.test", unique());
        orders_stand_on(program().flags(["--store", &url]), &site).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_learnt_of_a_site_is_told_with_its_source() {
    let slow = SiteScript::new("slow.test").robots("User-agent: *\nCrawl-delay: 2\nDisallow: /no");
    let origin = TestWeb::start([slow, SiteScript::new("gone.test").status("/", 500)]);
    let program = program().on(&origin);
    program.run(&["fetch", "http://slow.test/page"]).await.expect_code(0);
    let row = show(&program, "slow.test").await;
    assert_eq!(row["pace"]["source"], "Crawl-delay");
    assert_eq!(row["pace"]["detail"], "line 2 of http://slow.test/robots.txt");
    assert_eq!(
        (&row["robots"][0]["status"], &row["robots"][0]["crawl_delay_seconds"]),
        (&200.into(), &2.0.into())
    );
    assert!(row["last_request_seconds_ago"].as_f64().unwrap() < 60.0, "{row}");
    // An order may be slower than a Crawl-delay, and never faster.
    for (rate, interval, source) in [("10", 2.0, "Crawl-delay"), ("0.1", 10.0, "operator")] {
        program.run(&["sites", "set-rate", "slow.test", rate]).await.expect_code(0);
        let pace = &show(&program, "slow.test").await["pace"];
        assert_eq!(
            (&pace["interval_seconds"], &pace["source"]),
            (&interval.into(), &source.into())
        );
    }
    let words = program.run(&["sites", "show", "slow.test"]).await.expect_code(0).stdout;
    assert!(
        words.contains("10 s (operator), by cli") && words.contains("Crawl-delay 2 s"),
        "{words}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_tells_of_orders_and_does_not_wait_for_a_paused_site() {
    let origin = TestWeb::start([SiteScript::new("a.test")]);
    let program = program().on(&origin);
    program.run(&["sites", "pause", "a.test"]).await.expect_code(0);
    program.run(&["sites", "set-rate", "a.test", "0.2"]).await.expect_code(0);
    let explained = program.run(&["--json", "explain", "http://a.test/x"]).await.expect_code(3);
    let explained: Value = serde_json::from_str(&explained.stdout).unwrap();
    assert_eq!(explained["paused"]["by"], "cli");
    assert_eq!(
        (&explained["pace"]["interval_seconds"], &explained["pace"]["source"]),
        (&5.0.into(), &"operator".into())
    );
    assert_eq!(origin.hits().len(), 0, "nothing is asked of a paused site");
    let words = program.run(&["explain", "http://a.test/x"]).await.expect_code(3).stdout;
    assert!(words.contains("paused          by cli"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_names_no_site_is_refused_with_its_mend() {
    let program = program();
    for (arguments, says) in [
        (&["sites", "show", "http://"][..], "is not a site"),
        (&["sites", "set-rate", "a.test"], "<RATE>"),
        (&["sites", "set-rate", "a.test", "-1"], "-1"),
        (&["sites", "set-rate", "a.test", "20000"], "cannot set 20000 requests per second"),
        (&["sites", "list", "--condition", "tired"], "breaker-open"),
    ] {
        let refused = program.run(arguments).await.expect_code(2);
        assert!(refused.stderr.contains(says), "{arguments:?}: {}", refused.stderr);
    }
}

/// What a page waits for, as each that tells it says it.
#[tokio::test(flavor = "multi_thread")]
async fn explain_and_sites_show_agree_on_what_is_waited_for() {
    let hour = std::time::Duration::from_secs(3_600);
    let down =
        SiteScript::new("down.test").outage(std::time::Duration::ZERO..hour, OutageKind::Refuse);
    let origin = TestWeb::start([down]);
    let program = program().on(&origin);
    let url = "http://down.test/page";
    program.run(&["fetch", url, "--give-up-after", "1s"]).await.expect_code(4);
    // Where its time has come meanwhile, robots.txt is tried again, and waits for twice as long.
    let told = program.run(&["--json", "explain", url]).await.expect_code(3);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let row = show(&program, "down.test").await;
    assert_eq!((&told["held_up_by"], &row["held_up_by"]), (&"robots".into(), &"robots".into()));
    let because = told["refused_because"].as_str().unwrap();
    assert!(because.contains("robots.txt is unreachable"), "{because}");
    assert!(row["next_slot_in_seconds"].as_f64().unwrap() > 0.0, "{row}");
    assert!(row["robots"][0]["next_try_in_seconds"].as_f64().unwrap() > 0.0, "{row}");
    let text = program.run(&["sites", "show", "down.test"]).await.expect_code(0).stdout;
    assert!(text.contains("waiting for robots.txt"), "{text}");

    let reset = program.run(&["sites", "reset-breaker", "down.test"]).await.expect_code(0);
    assert!(reset.stdout.contains("robots.txt is read before its next page"), "{}", reset.stdout);
    let row = show(&program, "down.test").await;
    assert_ne!(row["held_up_by"], "robots");
    assert_eq!(row["robots"][0]["next_try_in_seconds"], 0.0);
}
