use super::*;

/// The default file with every setting switched on: `#key = …` and `#[table]`, but not `# prose`.
fn uncommented() -> String {
    let lines = default_file();
    let switch_on = |line: &'_ str| match line.strip_prefix('#') {
        Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    lines.lines().map(switch_on).collect()
}

#[test]
fn the_default_file_changes_nothing() {
    let settings = World::new().toml(&default_file()).settings();
    assert_eq!(settings.effective, World::new().settings().effective);
}

#[test]
fn the_default_file_says_the_defaults() {
    let world = World::new().toml(&uncommented());
    let settings = world.settings();
    assert_eq!(settings.values, World::new().settings().values);
    let from_file = |setting: &&Effective| setting.origin != ValueOrigin::Default;
    let rows = Values::KEYS.len() + Site::KEYS.len() + Retailer::KEYS.len() + Category::KEYS.len();
    assert_eq!(settings.effective.iter().filter(from_file).count(), rows);
}

#[test]
fn each_line_of_the_default_file_can_be_switched_on_alone() {
    for key in Values::KEYS {
        let (group, name) = match key.path.split_once('.') {
            Some((group, name)) => (format!("[{group}]"), name),
            None => (String::new(), key.path),
        };
        let mut group_now = String::new();
        let mut found = false;
        let mut text = String::new();
        for line in default_file().lines() {
            if line.starts_with('[') {
                group_now = line.to_owned();
            }
            let is_it = group_now == group && line.starts_with(&format!("#{name} = ")) && !found;
            found |= is_it;
            text.push_str(if is_it { &line[1..] } else { line });
            text.push('\n');
        }
        let settings = World::new().toml(&text).settings();
        assert!(origin(&settings, key.path).starts_with("file "), "{}", key.path);
    }
}

#[test]
fn the_file_in_the_repository_is_the_one_in_the_binary() {
    assert_eq!(include_str!("../../../fetchwell/fetchwell.example.toml"), default_file());
}

#[test]
fn the_page_in_the_repository_is_the_one_in_the_binary() {
    let page = include_str!("../../../../docs/settings.md");
    assert!(page == reference(), "make it anew: fetchwell config reference > docs/settings.md");
}

#[test]
fn the_table_is_in_order() {
    let mut paths: Vec<&str> = Values::KEYS.iter().map(|key| key.path).collect();
    let mut groups: Vec<_> = Values::KEYS.iter().map(group_of).collect();
    groups.dedup();
    let count = groups.len();
    assert_eq!(groups[0], None, "settings without a table stand before those with one");
    groups.sort_unstable();
    groups.dedup();
    assert_eq!(groups.len(), count, "the settings of a table stand together");
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), Values::KEYS.len(), "no setting stands there twice");
}

#[test]
fn init_writes_over_nothing_unless_forced() {
    let world = World::new().toml("mine");
    let path = world.directory.path().join("fetchwell.toml");
    let refused = config_init(&path, false).expect_err("the file is there");
    assert!(refused.to_string().ends_with("already exists; use --force to overwrite it"));
    assert_eq!(fs::read_to_string(&path).expect("the file"), "mine");
    config_init(&path, true).expect("written");
    assert_eq!(fs::read_to_string(&path).expect("the file"), default_file());
    config_init(&world.directory.path().join("new.toml"), false).expect("written");
}

fn shown(settings: &Settings, json: bool) -> String {
    let mut out = Vec::new();
    config_show(settings, json, &mut out).expect("written");
    String::from_utf8(out).expect("text")
}

#[test]
fn show_tells_values_and_origins_but_no_secret() {
    let world = World::new()
        .toml("store = \"postgres://me:hunter2@host/db\"\n[sites.\"a.test\"]\nrate = 2")
        .flag("rate", "--rate", "0.5");
    let text = shown(&world.settings(), false);
    for line in [
        "store = \"postgres://me:***@host/db\"                     # file ./fetchwell.toml line 1",
        "rate = 0.5                                              # flag --rate",
        "http.connect_timeout = \"10s\"                            # default",
        "sites.\"a.test\".rate = 2.0                               # file ./fetchwell.toml line 3",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&shown(&world.settings(), true)).expect("JSON");
    assert_eq!(json["rate"], serde_json::json!({ "value": 0.5, "origin": "flag --rate" }));
    assert!(!(text + &json.to_string() + &format!("{:?}", world.settings())).contains("hunter2"));
}

#[test]
fn what_show_prints_is_a_settings_file() {
    let world = World::new().toml("rate = 3\nresolve = [\"a=::1\"]\n[sites.\"a.test\"]\nrate = 2");
    let settings = world.settings();
    let again = World::new().toml(&shown(&settings, false)).settings();
    assert_eq!(again.values, settings.values);
    assert_eq!(again.site_rates, settings.site_rates);
}

#[test]
fn check_says_what_it_looked_at() {
    let world = World::new().toml("rate = 3");
    let said = config_check(&world.sources(None)).expect("no fault");
    assert!(said.starts_with("No errors found; settings given: 1, "), "{said}");
    let world = World::new().toml("rate = -3");
    assert!(config_check(&world.sources(None)).is_err());
}
