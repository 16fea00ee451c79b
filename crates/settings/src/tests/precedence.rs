use fetchwell_engine::ports::store_url::{SecretUrl, StoreUrl};
use fetchwell_policy::robots::WhenUnreachable;

use super::*;

#[test]
fn each_source_beats_the_next() {
    let with_sources = |count: usize| {
        let mut world = World::new().own_names_of(&[EnvAliasGroup::Pages]);
        if count > 0 {
            world = world.toml("# a comment\nrate = 2\n");
        }
        if count > 1 {
            world = world.variable("PAGE_FETCHER_RATE_LIMIT_PER_SECOND", "3");
        }
        if count > 2 {
            world = world.variable("FETCHWELL_RATE", "4");
        }
        if count > 3 {
            world = world.flag("rate", "--rate", "5");
        }
        world.settings()
    };
    for (count, rate, from) in [
        (0, 1.0, "default"),
        (1, 2.0, "file ./fetchwell.toml line 2"),
        (2, 3.0, "environment PAGE_FETCHER_RATE_LIMIT_PER_SECOND"),
        (3, 4.0, "environment FETCHWELL_RATE"),
        (4, 5.0, "flag --rate"),
    ] {
        let settings = with_sources(count);
        assert_eq!(settings.values.rate, rate);
        assert_eq!(origin(&settings, "rate"), from);
    }
}

#[test]
fn the_defaults() {
    let settings = World::new().settings();
    let values = &settings.values;
    assert_eq!(values.store, StoreUrl::Sqlite("fetchwell.db".into()));
    assert_eq!(values.politeness, None);
    assert_eq!(values.user_agent, None);
    assert_eq!(values.http_connect_timeout, Duration::from_secs(10));
    assert_eq!(values.http_max_body, 10 * 1024 * 1024);
    assert_eq!(values.robots_unreachable, WhenUnreachable::Defer);
    assert_eq!(values.robots_max_crawl_delay, None);
    assert_eq!(values.breaker_jitter, 0.2);
    assert_eq!(values.log_format, LogFormat::Pretty);
    assert!(values.resolve.is_empty() && settings.site_rates.is_empty());
    assert!(settings.effective.iter().all(|setting| setting.origin == ValueOrigin::Default));
}

#[test]
fn levels_are_two_underscores_apart() {
    let world = World::new().variable("FETCHWELL_HTTP__CONNECT_TIMEOUT", "1m30s");
    let settings = world.settings();
    assert_eq!(settings.values.http_connect_timeout, Duration::from_secs(90));
    let from = origin(&settings, "http.connect_timeout");
    assert_eq!(from, "environment FETCHWELL_HTTP__CONNECT_TIMEOUT");
}

#[test]
fn own_names_hold_for_their_door_only() {
    let named = || {
        World::new()
            .variable("PAGE_FETCHER_USER_AGENT", "OttoBot/1.0")
            .variable("PAGE_FETCHER_REQUEST_TIMEOUT_SECONDS", "7")
            .variable("PAGE_FETCHER_INPUT_QUEUE", "a name of another part")
    };
    let pages = named().own_names_of(&[EnvAliasGroup::Pages]).settings();
    assert_eq!(pages.values.user_agent.as_deref(), Some("OttoBot/1.0"));
    assert_eq!(pages.values.http_request_timeout, Duration::from_secs(7));
    let others = named().settings();
    assert_eq!(others.values.user_agent, None);
    assert_eq!(others.values.http_request_timeout, Duration::from_secs(30));
    let broker = "amqp://me:secret@rabbit.test/%2f";
    let named = || World::new().variable("RABBITMQ_CONNECTION_STRING", broker);
    let crawl = named().own_names_of(&[EnvAliasGroup::CommonCrawl]).settings();
    let crawl = crawl.values.commoncrawl_rabbitmq_url;
    assert_eq!(crawl.as_ref().map(SecretUrl::reveal), Some(broker));
    assert_eq!(crawl.unwrap().to_string(), "amqp://me:***@rabbit.test/%2f");
    let pages = named().own_names_of(&[EnvAliasGroup::Pages]).settings();
    assert_eq!(pages.values.commoncrawl_rabbitmq_url, None);
}

#[test]
fn the_own_names_of_all_doors_may_count_together() {
    let world = World::new()
        .toml("user_agent = \"Mine/1.0\"")
        .variable("PAGE_FETCHER_USER_AGENT", "OttoBot/1.0")
        .variable("PAGE_FETCHER_REDIS_URL", "redis://redis.test")
        .variable("RABBITMQ_CONNECTION_STRING", "amqp://rabbit.test")
        .own_names_of(EnvAliasGroup::ALL);
    let settings = world.settings();
    assert_eq!(origin(&settings, "user_agent"), "environment PAGE_FETCHER_USER_AGENT");
    assert_eq!(origin(&settings, "store"), "environment PAGE_FETCHER_REDIS_URL");
    let broker = origin(&settings, "commoncrawl.rabbitmq_url");
    assert_eq!(broker, "environment RABBITMQ_CONNECTION_STRING");
}

#[test]
fn files_are_looked_for_in_order() {
    let home = |world: World| {
        let home = world.directory.path().join("home").display().to_string();
        world.variable("HOME", &home)
    };
    let world = home(World::new().file("home/.config/fetchwell/fetchwell.toml", "rate = 2"));
    assert_eq!(world.settings().values.rate, 2.0);

    let xdg = world.directory.path().join("xdg").display().to_string();
    let world =
        world.variable("XDG_CONFIG_HOME", &xdg).file("xdg/fetchwell/fetchwell.toml", "rate = 3");
    assert_eq!(world.settings().values.rate, 3.0);

    let world = world.toml("rate = 4");
    assert_eq!(world.settings().values.rate, 4.0);

    let world = world.file("mine.toml", "\n\nrate = 5");
    let named = world.load_with(Some(Path::new("mine.toml"))).expect("good settings");
    assert_eq!(origin(&named, "rate"), "file mine.toml line 3");

    let missing = world.load_with(Some(Path::new("missing.toml"))).expect_err("no such file");
    assert!(missing.to_string().starts_with("file missing.toml: cannot be read: "), "{missing}");
}

#[test]
fn lists_come_from_anywhere() {
    let file = World::new().toml("resolve = [\"*.test=127.0.0.1:8099\", \"a.test=::1\"]");
    assert_eq!(file.settings().values.resolve.len(), 2);
    let environment = World::new().variable("FETCHWELL_ALLOW_PRIVATE", "10.0.0.0/8, 127.0.0.1");
    let networks = environment.settings().values.allow_private;
    let shown: Vec<String> = networks.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["10.0.0.0/8", "127.0.0.1/32"]);
    let flags = World::new()
        .toml("allow_private = [\"10.0.0.0/8\"]")
        .flag("allow_private", "--allow-private", "127.0.0.0/8")
        .flag("allow_private", "--allow-private", "::1/128");
    assert_eq!(flags.settings().values.allow_private.len(), 2);
}

#[test]
fn secrets_come_from_files_too() {
    let secret = "postgres://me:hunter2@host/db";
    let expect_secret = |world: World| match world.settings().values.store {
        StoreUrl::Postgres(url) => assert_eq!(url.reveal(), secret),
        other => panic!("{other}"),
    };
    for text in [secret.to_owned(), format!("{secret}\n"), format!("{secret}\r\n")] {
        expect_secret(World::new().file("secret", &text).toml("store_file = \"secret\""));
        let world = World::new().file("secret", &text).toml("store = \"sqlite:a.db\"");
        expect_secret(world.variable("FETCHWELL_STORE_FILE", "secret"));
    }
}

#[test]
fn secrets_under_a_designs_own_name_come_from_files_too() {
    let redis = "redis://:hunter2@redis.test";
    let broker = "amqp://me:hunter2@rabbit.test/%2f";
    let world = World::new()
        .file("redis", &format!("{redis}\n"))
        .file("broker", broker)
        .variable("PAGE_FETCHER_REDIS_URL_FILE", "redis")
        .variable("RABBITMQ_CONNECTION_STRING_FILE", "broker")
        // Only a secret may stand in a file; other variables of such names are somebody else's.
        .variable("PAGE_FETCHER_USER_AGENT_FILE", "missing")
        .own_names_of(EnvAliasGroup::ALL);
    let settings = world.settings();
    match &settings.values.store {
        StoreUrl::Redis(url) => assert_eq!(url.reveal(), redis),
        other => panic!("{other}"),
    }
    let told = settings.values.commoncrawl_rabbitmq_url.as_ref().map(SecretUrl::reveal);
    assert_eq!(told, Some(broker));
    assert_eq!(origin(&settings, "store"), "environment PAGE_FETCHER_REDIS_URL_FILE");
    assert_eq!(settings.values.user_agent, None);
    let stronger = world.variable("FETCHWELL_STORE", "sqlite:mine.db").settings();
    assert_eq!(stronger.values.store, StoreUrl::Sqlite("mine.db".into()));
}

#[test]
fn of_listen_and_api_port_the_stronger_source_counts() {
    const LISTEN: &str = "FETCHWELL_RETRIEVER__LISTEN";
    const PORT: &str = "FETCHWELL_RETRIEVER__API_PORT";
    let one = "[retriever]\nlisten = \"127.0.0.3:9003\"\n";
    let both = "[retriever]\nlisten = \"127.0.0.3:9003\"\napi_port = 9004\n";
    for (file, listen, port, flag, address) in [
        ("", "", "", "", "127.0.0.1:8080"),
        ("", "", "9001", "", "127.0.0.1:9001"),
        (one, "", "", "", "127.0.0.3:9003"),
        (one, "", "9001", "", "127.0.0.3:9001"),
        (both, "", "", "", "127.0.0.3:9004"),
        (both, "127.0.0.2:9002", "", "", "127.0.0.2:9002"),
        (both, "127.0.0.2:9002", "9001", "", "127.0.0.2:9001"),
        (both, "127.0.0.2:9002", "9001", "127.0.0.4:9005", "127.0.0.4:9005"),
        (both, "", "", "127.0.0.4:9005", "127.0.0.4:9005"),
    ] {
        let mut world = World::new().toml(file);
        for (name, value) in [(LISTEN, listen), (PORT, port)] {
            if !value.is_empty() {
                world = world.variable(name, value);
            }
        }
        if !flag.is_empty() {
            world = world.flag("retriever.listen", "--listen", flag);
        }
        let chosen = world.settings().retriever_address().to_string();
        assert_eq!(chosen, address, "{file:?} {listen:?} {port:?} {flag:?}");
    }
}

#[test]
fn sites_and_retailers_have_tables() {
    let world = World::new().toml(
        "[sites.\"EXAMPLE.com.\"]\nrate = 2\n[sites.\"b.test:8080\"]\nrate = 0.5\n\
         [sites.\"c.test\"]\n\
         [retailers.admhr]\nburst_size = 5\nrequest_timeout = \"3s\"\n",
    );
    let settings = world.settings();
    let rates = [("b.test:8080".to_owned(), 0.5), ("example.com".to_owned(), 2.0)];
    assert_eq!(settings.site_rates, BTreeMap::from(rates));
    assert_eq!(origin(&settings, "sites.\"example.com\".rate"), "file ./fetchwell.toml line 2");
    let retailer = &settings.retailers["admhr"];
    assert_eq!((retailer.requests_per_second, retailer.burst_size), (None, Some(5)));
    assert_eq!(retailer.request_timeout, Some(Duration::from_secs(3)));
    assert_eq!(retailer.connection_timeout, None);
}

#[test]
fn retailers_can_be_written_as_their_design_has_them() {
    for toml in [
        "retailer_rate_limits = { admhr = { requests_per_second = 2.5, burst_size = 4 } }",
        "[retailer_rate_limits.admhr]\nrequests_per_second = 2.5\nburst_size = 4",
        "[retriever]\nmax_retries = 2\n\
         retailer_rate_limits = { admhr = { requests_per_second = 2.5, burst_size = 4 } }",
        "[retriever.retailer_rate_limits.admhr]\nrequests_per_second = 2.5\nburst_size = 4",
        "[retailers.admhr]\nburst_size = 4\n[retailer_rate_limits.admhr]\nrequests_per_second = 2.5",
    ] {
        let settings = World::new().toml(toml).settings();
        let admhr = &settings.retailers["admhr"];
        assert_eq!((admhr.requests_per_second, admhr.burst_size), (Some(2.5), Some(4)), "{toml}");
        assert!(origin(&settings, "retailers.admhr.burst_size").starts_with("file "), "{toml}");
    }
}

#[test]
fn check_says_which_limit_binds() {
    let check = |toml: &str| {
        let world = World::new().toml(toml);
        config_check(&world.sources(None)).expect("no fault")
    };
    let says = |toml: &str, line: &str| {
        let told = check(toml);
        assert!(told.lines().any(|told| told.trim() == line), "{line}\n{told}");
    };
    let together = "the retailer's limit of 10 per second, burst 20, is for all its sites together";
    says("", &format!("any retailer: 1 per second (rate); {together}"));
    says("rate = 20", "any retailer: 10 per second, burst 20 (the retailer's limit)");
    says("rate = 0", "any retailer: 10 per second, burst 20 (the retailer's limit)");
    let given = "[retailers.a]\nrequests_per_second = 5\nburst_size = 7\n[retailers.b]\nburst_size = 7\n\
                 [sites.\"slow.test\"]\nrate = 2\n[sites.\"quick.test\"]\nrate = 50";
    for line in [
        "retailers.a: 5 per second, burst 7 (its own requests_per_second; rate does not count)",
        "at quick.test: 5 per second, burst 7 (the retailer's limit)",
        "at slow.test: 2 per second (the site's own rate); the retailer's limit of 5 per second, burst 7, \
         is for all its sites together",
        "retailers.b: 1 per second (rate); the retailer's limit of 10 per second, burst 7, is for all its \
         sites together",
        &format!("other retailers: 1 per second (rate); {together}"),
    ] {
        says(given, line);
    }
}

#[test]
fn retailers_have_variables_too() {
    let world = World::new()
        .toml("[retailers.admhr]\nrequests_per_second = 2\nburst_size = 4\n")
        .variable("FETCHWELL_RETAILERS__ADMHR__BURST_SIZE", "5")
        .variable("FETCHWELL_RETAILERS__BIG__SHOP-2___REQUEST_TIMEOUT", "3s");
    let settings = world.settings();
    let admhr = &settings.retailers["admhr"];
    assert_eq!((admhr.requests_per_second, admhr.burst_size), (Some(2.0), Some(5)));
    let from = origin(&settings, "retailers.admhr.burst_size");
    assert_eq!(from, "environment FETCHWELL_RETAILERS__ADMHR__BURST_SIZE");
    let from = origin(&settings, "retailers.admhr.requests_per_second");
    assert_eq!(from, "file ./fetchwell.toml line 2");
    let other = &settings.retailers["big__shop-2_"];
    assert_eq!(other.request_timeout, Some(Duration::from_secs(3)));
}
