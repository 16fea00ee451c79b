use super::*;

/// The faults of a file, each as its two lines in one.
fn faults_of(toml: &str) -> Vec<String> {
    World::new().toml(toml).faults()
}

#[test]
fn every_fault_is_named_with_its_line_key_and_mend() {
    let world = World::new()
        .toml("rate = \"fast\"\n\n[http]\nconnect_timeout = 10\nconect_timeout = \"10s\"\n")
        .variable("FETCHWELL_WINDOW", "-1")
        .flag("max_in_flight", "--max-in-flight", "0");
    assert_eq!(
        world.load_with(None).expect_err("faults").to_string(),
        "flag --max-in-flight: max_in_flight: \"0\" is out of range\n    \
             write a value from 1 to 100000\n\
         environment FETCHWELL_WINDOW: window: \"-1\" is not a whole number\n    \
             write a whole number from 1 to 1000000\n\
         file ./fetchwell.toml line 1: rate: \"fast\" is not a number\n    \
             write a number from 0 to 10000\n\
         file ./fetchwell.toml line 4: http.connect_timeout: \"10\" has no unit at its end\n    \
             write numbers with the units d, h, m, s, ms, the largest first, such as \"30s\" or \
             \"1h30m\"\n\
         file ./fetchwell.toml line 5: http.conect_timeout: no such setting\n    \
             did you mean http.connect_timeout?"
    );
}

#[test]
fn unknown_keys_get_a_suggestion() {
    for (toml, mend) in [
        ("raet = 1", "did you mean rate?"),
        ("connect_timeout = \"1s\"", "did you mean http.connect_timeout?"),
        ("[htpp]\nmax_body = 1", "did you mean http?"),
        ("[site.\"a.test\"]\nrate = 1", "did you mean sites?"),
        ("[sites.\"a.test\"]\nrat = 1", "did you mean sites.\"a.test\".rate?"),
        ("[retailers.a]\nburst = 1", "remove it"),
        ("colour = 1", "remove it"),
        ("http.extra_ca_file_file = 1", "did you mean http.extra_ca_file?"),
    ] {
        let faults = faults_of(toml);
        assert!(faults.len() == 1 && faults[0].contains(mend), "{toml}: {faults:?}");
    }
}

#[test]
fn unknown_variables_are_faults_but_for_those_of_tests() {
    let world = World::new()
        .variable("FETCHWELL_HTTP_CONNECT_TIMEOUT", "1s")
        .variable("FETCHWELL_rate", "1")
        .variable("FETCHWELL_COLOUR", "1")
        .variable("FETCHWELL_TEST_SEED", "1")
        .variable("PAGE_FETCHER_ANYTHING", "1");
    let faults = world.faults();
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(faults[0].starts_with("environment FETCHWELL_COLOUR"));
    assert!(faults[1].contains("did you mean FETCHWELL_HTTP__CONNECT_TIMEOUT?"));
    assert!(faults[2].contains("did you mean FETCHWELL_RATE?"));
}

#[test]
fn variables_of_tables_are_checked_by_name_and_row() {
    for (variable, told) in [
        ("FETCHWELL_RETAILERS__ADMHR__BURST", "no such setting"),
        (
            "FETCHWELL_RETAILERS__ADMHR__BURST_SIZ",
            "did you mean FETCHWELL_RETAILERS__ADMHR__BURST_SIZE?",
        ),
        (
            "FETCHWELL_RETAILERS__admhr__BURST_SIZE",
            "did you mean FETCHWELL_RETAILERS__ADMHR__BURST_SIZE?",
        ),
        ("FETCHWELL_RETAILERS__ADMHR", "no such setting"),
        ("FETCHWELL_RETAILERS__ÄMHR__BURST_SIZE", "is not a valid retailer name"),
        (
            "FETCHWELL_RETAILERS__ADMHR__BURST_SIZE",
            "retailers.admhr.burst_size: \"x\" is not a whole number",
        ),
        ("FETCHWELL_SITES__EXAMPLE.COM__RATE", "write it into the file"),
        ("FETCHWELL_CATEGORIES__NEWS__FEEDS", "write it into the file"),
    ] {
        let faults = World::new().variable(variable, "x").faults();
        assert!(faults.len() == 1 && faults[0].contains(told), "{variable}: {faults:?}");
        assert!(faults[0].starts_with(&format!("environment {variable}: ")), "{faults:?}");
    }
}

#[test]
fn values_of_the_wrong_shape() {
    for (toml, problem) in [
        ("http = 3", "line 1: http: is not a table"),
        ("sites = 3", "line 1: sites: is not a table"),
        ("[sites]\n\"a.test\" = 3", "line 2: sites.\"a.test\": is not a table"),
        ("[sites.\"a b\"]", "line 1: sites.\"a b\": \"a b\" is not a site"),
        (
            "[sites.\"a.test\"]\n[sites.\"A.test\"]",
            "line 2: sites.\"A.test\": a.test has a table already",
        ),
        ("[retailers.Big]", "line 1: retailers.Big: \"Big\" is not a valid retailer name"),
        ("retailer_rate_limits = 3", "line 1: retailer_rate_limits: is not a table"),
        (
            "[retriever.retailer_rate_limits.a]\nrate = 3",
            "line 2: retriever.retailer_rate_limits.a.rate: no such setting",
        ),
        (
            "[retailers.a]\nburst_size = 3\n[retailer_rate_limits.a]\nburst_size = 4",
            "line 4: retailer_rate_limits.a.burst_size: is already set in retailers.a",
        ),
        ("[sites.\"a.test\"]\nrate = -1", "line 2: sites.\"a.test\".rate: \"-1\" is out of range"),
        ("[rate]\na = 1", "line 1: rate: is a table"),
        ("rate = [1, 2]", "line 1: rate: has several values"),
        ("rate = nan", "line 1: rate: \"NaN\" is out of range"),
        ("rate = inf", "line 1: rate: \"inf\" is out of range"),
        ("rate = 2024-01-01", "line 1: rate: is a date or a table"),
        ("resolve = [[1]]", "line 1: resolve: is a list within a list"),
        ("i_own_these_sites = \"yes\"", "line 1: i_own_these_sites: \"yes\" is neither"),
        (
            "robots.unreachable = \"deferr\"",
            "line 1: robots.unreachable: \"deferr\" is not a known value",
        ),
        ("http.max_body = \"1PiB\"", "line 1: http.max_body: \"1PiB\" has an unknown unit"),
        ("lease.ttl = \"999d\"", "line 1: lease.ttl: \"999d\" is out of range"),
        ("user_agent = \"a\\r\\nb: c\"", "line 1: user_agent: \"a\\r\\nb: c\" is not valid in"),
        ("contact = \"nobody\"", "line 1: contact: \"nobody\" is neither"),
        (
            "allow_private = [\"10.0.0.0/99\"]",
            "line 1: allow_private: \"10.0.0.0/99\" is not a net",
        ),
        ("rate = 1\n\nrate = 2", "line 3: is not TOML"),
        ("rate =", "line 1: is not TOML"),
        ("a.b.c.d = 1", "line 1: a: no such setting"),
    ] {
        let faults = faults_of(toml);
        assert!(faults.len() == 1 && faults[0].contains(problem), "{toml}: {faults:?}");
    }
}

#[test]
fn settings_must_fit_together() {
    for (toml, problem) in [
        ("lease.heartbeat = \"10s\"", "line 1: lease.heartbeat: 10s is not less than half"),
        ("\nlease.ttl = \"9s\"", "line 2: lease.heartbeat: 5s is not less than half"),
        ("breaker.max_backoff = \"1s\"", "line 1: breaker.initial_backoff: 30s is longer"),
        ("http.body_budget = \"1MiB\"", "line 1: http.max_body: 10MiB is more than"),
    ] {
        let faults = faults_of(toml);
        assert!(faults.len() == 1 && faults[0].contains(problem), "{toml}: {faults:?}");
    }
    World::new().toml("lease.heartbeat = \"9999ms\"").settings();
}

#[test]
fn an_overridden_fault_is_still_a_fault() {
    let world = World::new().toml("rate = \"fast\"").flag("rate", "--rate", "1");
    assert_eq!(world.faults().len(), 1);
}

#[test]
fn faults_never_tell_a_secret() {
    let world = World::new()
        .toml("store = \"mysql://me:hunter2@host\"\npoliteness_file = \"secret\"")
        .file("secret", "hunter2")
        .variable("FETCHWELL_STORE", "hunter2");
    let faults = world.faults();
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(!faults.concat().contains("hunter2"), "{faults:?}");
}

#[test]
fn secret_files_that_do_not_do() {
    let both = World::new().file("s", "sqlite:a").toml("store = \"sqlite:b\"\nstore_file = \"s\"");
    assert!(both.faults()[0].contains("line 2: store_file: store is given twice"));
    let missing = World::new().variable("FETCHWELL_STORE_FILE", "missing").faults();
    assert!(missing[0].starts_with("environment FETCHWELL_STORE_FILE: store_file: cannot read"));
    let large = World::new().file("s", &"x".repeat(70_000)).toml("store_file = \"s\"").faults();
    assert!(large[0].contains("it is larger than 65536 bytes"), "{large:?}");
    assert_eq!(faults_of("rate_file = \"s\"").len(), 1, "only a secret may stand in a file");
    let both = |variable: &str| {
        let world = World::new().file("s", "sqlite:a").own_names_of(&[EnvAliasGroup::Pages]);
        world.variable(variable, "sqlite:b").variable(&format!("{variable}_FILE"), "s").faults()
    };
    for variable in ["FETCHWELL_STORE", "PAGE_FETCHER_REDIS_URL"] {
        let told = format!("environment {variable}_FILE: store_file: store is given twice");
        let faults = both(variable);
        assert!(faults.len() == 1 && faults[0].starts_with(&told), "{faults:?}");
    }
}

#[test]
fn no_file_makes_a_panic() {
    use proptest::prelude::*;
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("any.toml");
    let environment = BTreeMap::new();
    let words = "([a-z_.]{1,9}|rate|http|sites|store|\\[|\\]|=|\"|\\{|\\}|\n|[0-9]|é| ){0,30}";
    proptest!(|(text in words, bytes: Vec<u8>)| {
        for content in [text.into_bytes(), bytes] {
            fs::write(&path, content).expect("a file");
            let _result = Settings::load(&Sources {
                flags: &[],
                config_file: Some(&path),
                environment: &environment,
                working_directory: directory.path(),
                own_names_of: &[],
            });
        }
    });
}

#[test]
fn a_flag_is_checked_like_any_source() {
    let world = World::new()
        .flag("rate", "--rate", "1")
        .flag("rate", "--rate", "2")
        .flag("raet", "--raet", "1");
    let faults = world.faults();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].starts_with("flag --raet: raet: no such setting"), "{faults:?}");
    assert!(faults[1].starts_with("flag --rate: rate: has several values"), "{faults:?}");
}

#[test]
fn unknown_own_names_are_reported_and_do_no_harm() {
    let world = || {
        World::new()
            .variable("PAGE_FETCHER_RATE_LIMIT_PER_SECOND", "3")
            .variable("PAGE_FETCHER_RATE_LIMIT", "3")
            .variable("PAGE_FETCHER_USER_AGENT_FILE", "agent")
            .variable("PAGE_FETCHER_LOG_LEVEL", "INFO")
            .variable("PAGE_FETCHER_REDIS_URL_FILE", "redis")
            .file("redis", "redis://redis.test")
            // A Service of that name in Kubernetes.
            .variable("PAGE_FETCHER_SERVICE_HOST", "10.0.0.1")
            .variable("PAGE_FETCHER_PORT", "tcp://10.0.0.1:9100")
            .variable("PAGE_FETCHER_PORT_9100_TCP", "tcp://10.0.0.1:9100")
    };
    let pages = world().own_names_of(&[EnvAliasGroup::Pages]);
    let settings = pages.settings();
    assert_eq!(settings.values.rate, 3.0);
    let told: Vec<String> = settings.warnings.iter().map(ToString::to_string).collect();
    let names =
        ["PAGE_FETCHER_LOG_LEVEL", "PAGE_FETCHER_RATE_LIMIT", "PAGE_FETCHER_USER_AGENT_FILE"];
    assert_eq!(told.len(), names.len(), "{told:?}");
    for (told, name) in told.iter().zip(names) {
        assert!(told.starts_with(&format!("environment {name}: no such setting")), "{told}");
    }
    assert!(told[2].contains("did you mean PAGE_FETCHER_USER_AGENT?"), "{told:?}");
    let verdict = config_check(&pages.sources(None)).expect("good settings");
    assert!(verdict.contains("warning: environment PAGE_FETCHER_LOG_LEVEL"), "{verdict}");
    assert!(verdict.contains("No errors found"), "{verdict}");
    assert!(world().settings().warnings.is_empty(), "another command does not read them");
}
