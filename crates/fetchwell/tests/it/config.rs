//! The commands that ask nobody (settings, completions, the manual page, robots.txt by a file), and which
//! settings count for those that look after all doors.

use fetchwell_testkit::crash::Program;
use serde_json::{Value, json};

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
}

#[tokio::test]
async fn the_default_file_is_written_once_and_has_no_fault() {
    let program = program();
    program.run(&["config", "init"]).await.expect_code(0);
    assert!(program.file("fetchwell.toml").exists());
    let again = program.run(&["config", "init"]).await.expect_code(2);
    assert!(again.stderr.contains("--force"), "{}", again.stderr);
    program.run(&["config", "init", "--force"]).await.expect_code(0);
    program.run(&["config", "init", "other.toml"]).await.expect_code(0);
    program.run(&["config", "check"]).await.expect_code(0);
    program.run(&["config", "check", "--config", "other.toml"]).await.expect_code(0);
}

#[tokio::test]
async fn show_names_the_origin_of_each_value_and_can_be_read_back() {
    let program = program().variable("FETCHWELL_HTTP__MAX_REDIRECTS", "3");
    std::fs::write(program.file("fetchwell.toml"), "rate = 2\n[http]\nmax_redirects = 4\n")
        .unwrap();
    let arguments = ["config", "show", "--max-in-flight", "9"];
    let text = program.run(&arguments).await.expect_code(0).stdout;
    let json = program.run(&[&arguments[..], &["--json"]].concat()).await.expect_code(0).stdout;
    let all: Value = serde_json::from_str(&json).unwrap();
    let origin = |key: &str| all[key]["origin"].as_str().unwrap_or_default();
    assert!(origin("max_in_flight").contains("--max-in-flight"), "{json}");
    assert!(origin("http.max_redirects").contains("FETCHWELL_HTTP__MAX_REDIRECTS"), "{json}");
    assert!(origin("rate").contains("fetchwell.toml line 1"), "{json}");
    assert_eq!(origin("window"), "default");

    // What it shows is TOML that holds the same.
    std::fs::write(program.file("shown.toml"), &text).unwrap();
    program.run(&["config", "check", "--config", "shown.toml"]).await.expect_code(0);
    let shown = ["config", "show", "--json", "--config", "shown.toml"];
    let again = program.run(&shown).await.expect_code(0).stdout;
    let again: Value = serde_json::from_str(&again).unwrap();
    for (key, setting) in all.as_object().unwrap() {
        assert_eq!(again[key]["value"], setting["value"], "{key}");
    }
}

/// Nobody listens at these servers: a command that accepts one says so by 5, another refuses it by 2.
#[tokio::test]
async fn the_help_of_store_says_what_each_command_accepts() {
    let program = program();
    std::fs::write(program.file("plan.yaml"), "entries:\n  - url: http://a.test/\n    every: 1h\n")
        .unwrap();
    let help = program.run(&["fetch", "--help"]).await.expect_code(0).stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let part = |from: &str, to: &str| -> Vec<String> {
        let (_, from) = help.split_once(from).unwrap_or_else(|| panic!("no {from:?} in {help}"));
        let (part, _) = from.split_once(to).unwrap_or_else(|| panic!("no {to:?} in {help}"));
        part.split([',', ' ']).map(str::to_owned).collect()
    };
    assert!(help.contains("sqlite:PATH for every command;"), "{help}");
    let postgres = part("postgres://… for ", ";");
    let redis = part("redis://… for ", ";");
    let either = part("either also for ", ", and for commoncrawl with RabbitMQ");
    for command in [
        &["fetch", "http://a.test/"][..],
        &["explain", "http://a.test/"],
        &["serve", "--listen", "127.0.0.1:0"],
        &["callers", "list"],
        &["messages", "list"],
        &["outbox", "tail"],
        &["ledger"],
        &["sites", "list"],
        &["top", "--once"],
        &["doctor"],
        &["pages", "--metrics-listen", ""],
        &["dlq", "list"],
        &["schedule", "--once", "--plan", "plan.yaml"],
        &["feeds", "list"],
        &["articles", "list"],
    ] {
        for (store, listed) in
            [("postgres://x@127.0.0.1:1/x", &postgres), ("redis://127.0.0.1:1", &redis)]
        {
            let name = command[0].to_owned();
            let is_accepted = listed.contains(&name) || either.contains(&name);
            let ended = program.run(&[&["--store", store], command].concat()).await;
            let expected = if is_accepted { 5 } else { 2 };
            assert_eq!(ended.code, Some(expected), "{command:?} on {store}: {ended:?}");
        }
    }
}

#[tokio::test]
async fn the_designs_own_names_are_shown_and_checked() {
    let program = program()
        .variable("PAGE_FETCHER_REDIS_URL", "redis://:hunter2@redis.test")
        .variable("PAGE_FETCHER_USER_AGENT", "OttoBot/1.0")
        .variable("RABBITMQ_CONNECTION_STRING_FILE", "broker");
    std::fs::write(program.file("broker"), "amqp://me:hunter2@rabbit.test/%2f\n").unwrap();
    let shown = program.run(&["config", "show", "--json"]).await.expect_code(0).stdout;
    assert!(!shown.contains("hunter2"), "{shown}");
    let all: Value = serde_json::from_str(&shown).unwrap();
    for (key, value, variable) in [
        ("store", "redis://:***@redis.test", "PAGE_FETCHER_REDIS_URL"),
        ("user_agent", "OttoBot/1.0", "PAGE_FETCHER_USER_AGENT"),
        (
            "commoncrawl.rabbitmq_url",
            "amqp://me:***@rabbit.test/%2f",
            "RABBITMQ_CONNECTION_STRING_FILE",
        ),
    ] {
        let origin = format!("environment {variable}");
        assert_eq!(all[key], json!({ "value": value, "origin": origin }), "{key}");
    }
    for wrong in
        ["amqp://me:hunter2@rabbit.test:badport", "amqp:me:hunter2@rabbit.test", "http://x"]
    {
        let program = self::program().variable("RABBITMQ_CONNECTION_STRING", wrong);
        let told = program.run(&["config", "check"]).await.expect_code(2).stderr;
        assert!(told.contains("RABBITMQ_CONNECTION_STRING") && told.contains("amqp://"), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
    let program = program.variable("PAGE_FETCHER_MAX_RETRIES", "many");
    for command in [["config", "check"], ["config", "show"]] {
        let told = program.run(&command).await.expect_code(2).stderr;
        let place = "environment PAGE_FETCHER_MAX_RETRIES: pages.max_retries: ";
        assert!(told.contains(place), "{command:?}: {told}");
    }
}

#[tokio::test]
async fn who_looks_after_the_doors_looks_at_the_store_of_pages() {
    // Nobody listens there, so whoever looks there says so.
    let program = program().variable("PAGE_FETCHER_REDIS_URL", "redis://127.0.0.1:1");
    for command in [&["ledger"][..], &["sites", "list"], &["top", "--once"]] {
        let told = program.run(command).await.expect_code(5).stderr;
        assert!(told.contains("127.0.0.1:1"), "{command:?}: {told}");
    }
    // What is typed beats it, and it is nothing to those who work for "serve".
    program.run(&["ledger", "--store", "sqlite:mine.db"]).await.expect_code(0);
    program.run(&["callers", "list"]).await.expect_code(0);
}

#[tokio::test]
async fn each_fault_is_named_by_file_line_and_key() {
    let program = program();
    let faulty = "rate = 2\nmax_in_flite = 5\n\n[http]\nconnect_timeout = \"10 parsecs\"\n";
    std::fs::write(program.file("fetchwell.toml"), faulty).unwrap();
    for command in [&["config", "check"][..], &["config", "show"], &["fetch", "http://x.test/"]] {
        let told = program.run(command).await.expect_code(2).stderr;
        for part in [
            "fetchwell.toml line 2",
            "max_in_flite",
            "max_in_flight",
            "fetchwell.toml line 5",
            "http.connect_timeout",
            "10 parsecs",
        ] {
            assert!(told.contains(part), "{command:?}: {part}: {told}");
        }
    }
    let broken = program.file("broken.toml");
    std::fs::write(&broken, "rate = \n").unwrap();
    let told = program.run(&["config", "check", "--config", "broken.toml"]).await.expect_code(2);
    assert!(told.stderr.contains("broken.toml line 1"), "{}", told.stderr);
    let told = program.run(&["config", "check", "--config", "nowhere.toml"]).await.expect_code(2);
    assert!(told.stderr.contains("nowhere.toml"), "{}", told.stderr);
}

#[tokio::test]
async fn completions_and_the_manual_page_are_printed() {
    let program = program();
    for (shell, part) in [("bash", "complete"), ("zsh", "#compdef fetchwell"), ("fish", "complete")]
    {
        let script = program.run(&["completions", shell]).await.expect_code(0).stdout;
        assert!(script.contains(part) && script.contains("give-up-after"), "{shell}: {script}");
    }
    let page = program.run(&["man"]).await.expect_code(0).stdout;
    assert!(page.contains(".TH") && page.contains("fetchwell"), "{page}");
    let version = program.run(&["--version"]).await.expect_code(0).stdout;
    assert!(version.starts_with("fetchwell "), "{version}");
    program.run(&["completions", "no-shell"]).await.expect_code(2);
    program.run(&[]).await.expect_code(2);
}

#[tokio::test]
async fn explain_judges_by_a_file_offline() {
    let program = program();
    let robots = "User-agent: *\nDisallow: /private\nCrawl-delay: 3\n\
                  User-agent: guestbot\nDisallow: /guests\n";
    std::fs::write(program.file("robots.txt"), robots).unwrap();
    let explain = ["explain", "--robots", "robots.txt", "--json"];
    for (url, agent, code) in [
        ("http://shop.test/", "anybot/1.0", 0),
        ("http://shop.test/private/1", "anybot/1.0", 3),
        ("http://shop.test/private/1", "GuestBot/2.0", 0),
        ("http://shop.test/guests", "GuestBot/2.0", 3),
    ] {
        let arguments = [&explain[..], &[url, "--user-agent", agent]].concat();
        let ended = program.run(&arguments).await.expect_code(code);
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((&told["url"], &told["allowed"]), (&url.into(), &(code == 0).into()));
        let delay = if agent == "anybot/1.0" { 3.0.into() } else { Value::Null };
        assert_eq!(told["robots"]["crawl_delay_seconds"], delay);
        assert!(told["addresses"].as_array().is_some_and(Vec::is_empty), "it asked for addresses");
    }
    for url in ["ftp://shop.test/", "http://anna@shop.test/", "http://shop.test:25/"] {
        let ended = program.run(&[&explain[..], &[url]].concat()).await.expect_code(3);
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((&told["url"], &told["allowed"]), (&url.into(), &false.into()));
        assert!(told["refused_because"].is_string(), "{told}");
        let told = program.run(&["explain", url]).await.expect_code(3).stdout;
        assert!(told.contains("may be fetched  no: "), "{told}");
    }
    program.run(&["explain", "no url"]).await.expect_code(2);
    let missing = ["explain", "http://shop.test/", "--robots", "nowhere"];
    let told = program.run(&missing).await.expect_code(2).stderr;
    assert!(told.contains("nowhere"), "{told}");
}
