//! robots.txt by RFC 9309: what a site allows us to fetch, and which line decides.

mod matcher;
mod parse;

use std::cmp::Reverse;
use std::time::Duration;

use matcher::Pattern;
use parse::{File, Key, Line};

/// How much of a robots.txt is read. RFC 9309 requires at least 500 KiB.
pub const MAX_ROBOTS_BYTES: usize = 512 * 1024;

/// The longest pause between two requests that a Crawl-delay can request.
pub const MAX_CRAWL_DELAY: Duration = Duration::from_hours(24);

const MAX_SITEMAPS: usize = 1_000;
const MAX_SITEMAP_BYTES: usize = 2_048;

/// A verdict is attached to every URL of the site, so a very long line is truncated.
const MAX_SHOWN_RULE_BYTES: usize = 2_048;

/// The rules of a robots.txt for our bot. Those for other bots are not kept.
#[derive(Clone, Debug)]
pub struct Robots {
    /// The most specific rule comes first, so that the first match decides.
    rules: Vec<Rule>,
    allowed_without_rule: bool,
    crawl_delay: Option<CrawlDelay>,
    sitemaps: Vec<String>,
}

/// Whether a path may be fetched, and which line decided, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotsVerdict {
    /// Whether the path may be fetched.
    pub allowed: bool,
    /// The number of the deciding line; the first line is 1.
    pub line: Option<u32>,
    /// That line as written, without its comment: `Disallow: /private/`.
    pub rule: Option<String>,
}

impl Robots {
    /// Parses a robots.txt for the bot that sends `user_agent`, given as the whole header or only its product token.
    /// Any bytes are accepted; invalid lines are skipped.
    ///
    /// Bytes after the first [`MAX_ROBOTS_BYTES`] are ignored, and so is a line that is cut in two there. To detect
    /// that, `body` must contain at least one byte more than the limit.
    pub fn parse(body: &[u8], user_agent: &str) -> Robots {
        let file = File::read(body, product_token(user_agent));
        let mut robots = Robots::allow_all();
        for group in file.groups_for_us() {
            robots.rules.extend(group.rules.iter().filter_map(Rule::read));
            group.crawl_delays.iter().for_each(|line| robots.slow_down(line));
        }
        file.sitemaps.iter().for_each(|sitemap| robots.add_sitemap(sitemap));
        // The longest pattern decides, and at the same length "allow" does (RFC 9309, 2.2.2).
        robots.rules.sort_by_key(|rule| (Reverse(rule.pattern.specificity()), !rule.allow));
        robots
    }

    /// Allows everything: for a site without a robots.txt.
    pub fn allow_all() -> Robots {
        Robots {
            rules: Vec::new(),
            allowed_without_rule: true,
            crawl_delay: None,
            sitemaps: Vec::new(),
        }
    }

    /// Disallows everything: for a site whose robots.txt cannot be reached, if that is to be treated as a disallow.
    pub fn disallow_all() -> Robots {
        Robots { allowed_without_rule: false, ..Robots::allow_all() }
    }

    /// Checks a URL by its path and query, such as `/search?q=rust`.
    pub fn verdict(&self, path_and_query: &str) -> RobotsVerdict {
        let path = matcher::normal_path(path_and_query);
        if path == "/robots.txt" {
            return RobotsVerdict { allowed: true, line: None, rule: None };
        }
        match self.rules.iter().find(|rule| rule.pattern.matches(&path)) {
            Some(rule) => RobotsVerdict {
                allowed: rule.allow,
                line: Some(rule.line),
                rule: Some(rule.text.to_string()),
            },
            None => RobotsVerdict { allowed: self.allowed_without_rule, line: None, rule: None },
        }
    }

    /// The pause between requests that the site requests; the longest, if there are several.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay.map(|delay| delay.pause)
    }

    /// The number of the line of [`Robots::crawl_delay`]; the first line is 1.
    pub fn crawl_delay_line(&self) -> Option<u32> {
        self.crawl_delay.map(|delay| delay.line)
    }

    /// The sitemaps as written, which may not be valid URLs. They are the same for every bot.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }

    fn slow_down(&mut self, line: &Line<'_>) {
        let Some(pause) = pause(line.value) else { return };
        if self.crawl_delay().is_none_or(|longest| longest < pause) {
            self.crawl_delay = Some(CrawlDelay { pause, line: line.number });
        }
    }

    fn add_sitemap(&mut self, value: &[u8]) {
        let fits = self.sitemaps.len() < MAX_SITEMAPS && value.len() <= MAX_SITEMAP_BYTES;
        if let Ok(sitemap) = str::from_utf8(value)
            && fits
            && !sitemap.is_empty()
        {
            self.sitemaps.push(sitemap.to_owned());
        }
    }
}

/// The name of a bot in robots.txt: `OttoBot` for `OttoBot/1.0 (+contact)`.
///
/// RFC 9309 allows letters, `_` and `-`; digits are accepted, too, for bots with names like `bot2`.
pub fn product_token(user_agent: &str) -> &str {
    let user_agent = user_agent.trim_start();
    let is_token_char = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let end = user_agent.find(|c| !is_token_char(c)).unwrap_or(user_agent.len());
    &user_agent[..end]
}

#[derive(Clone, Debug)]
struct Rule {
    allow: bool,
    pattern: Pattern,
    line: u32,
    text: Box<str>,
}

impl Rule {
    /// An empty `Disallow:` forbids nothing, so it is not a rule.
    fn read(line: &Line<'_>) -> Option<Rule> {
        let shown = line.text.get(..MAX_SHOWN_RULE_BYTES).unwrap_or(line.text);
        (!line.value.is_empty()).then(|| Rule {
            allow: line.key == Key::Allow,
            pattern: Pattern::new(line.value),
            line: line.number,
            text: String::from_utf8_lossy(shown).into(),
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct CrawlDelay {
    pause: Duration,
    line: u32,
}

/// Parses seconds, with or without decimals. Signs, exponents, `nan` and `inf` are invalid.
fn pause(value: &[u8]) -> Option<Duration> {
    let is_decimal = value.iter().all(|octet| octet.is_ascii_digit() || *octet == b'.');
    let seconds: f64 = str::from_utf8(value).ok().filter(|_| is_decimal)?.parse().ok()?;
    Duration::try_from_secs_f64(seconds.min(MAX_CRAWL_DELAY.as_secs_f64())).ok()
}

/// What to do while a robots.txt cannot be reached and there is no copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenUnreachable {
    /// The URL waits, and no page is fetched.
    Defer,
    /// Everything is allowed.
    Allow,
    /// Nothing is allowed.
    Disallow,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn for_everyone(lines: &str) -> Robots {
        Robots::parse(format!("User-agent: *\n{lines}").as_bytes(), "OttoBot/1.0")
    }

    /// The lines stand below `User-agent: *`, so the first of them is line 2.
    #[test]
    fn the_longest_rule_decides() {
        let cases = [
            ("Disallow: /", "/x", false, Some(2)),
            ("Disallow:", "/x", true, None),
            ("Allow:", "/x", true, None),
            ("Disallow: /y", "/x", true, None),
            ("Allow: /p\nDisallow: /", "/page", true, Some(2)),
            ("Disallow: /\nAllow: /p", "/page", true, Some(3)),
            ("Disallow: /\nAllow: /p", "/x", false, Some(2)),
            ("Allow: /folder\nDisallow: /folder", "/folder/page", true, Some(2)),
            ("Disallow: /folder\nAllow: /folder", "/folder/page", true, Some(3)),
            ("Disallow: /b\nAllow: /%62", "/b", true, Some(3)),
            ("Allow: /page\nDisallow: /*.htm", "/page.htm", false, Some(3)),
            ("Disallow: /*.ph\nAllow: /page", "/page.php5", true, Some(3)),
            ("Allow: /$\nDisallow: /", "/", true, Some(2)),
            ("Allow: /$\nDisallow: /", "/page.htm", false, Some(3)),
            ("Allow: /a\nDisallow: /a*", "/ab", false, Some(3)),
            ("Allow: /a*\nDisallow: /a**", "/ab", true, Some(2)),
            ("Disallow: *\nAllow: /a", "/a", true, Some(3)),
            ("Disallow: *\nAllow: /a", "/b", false, Some(2)),
            ("Disallow: /x\nDisallow: /x", "/x", false, Some(2)),
            ("Disallow: /\nAllow: /a/b\nDisallow: /a/b/c", "/a/b/c", false, Some(4)),
            ("Disallow: /", "/robots.txt", true, None),
            ("Disallow: /robots.txt$", "/robots.txt", true, None),
            ("Disallow: /", "/%72obots.txt", true, None),
            ("Disallow: /", "/robots.txt.bak", false, Some(2)),
            ("Disallow: /", "/a/robots.txt", false, Some(2)),
        ];
        for (lines, path, allowed, line) in cases {
            let verdict = for_everyone(lines).verdict(path);
            assert_eq!((verdict.allowed, verdict.line), (allowed, line), "{lines} {path}");
        }
    }

    #[test]
    fn a_rule_is_shown_as_written() {
        let shown = |line: &str| for_everyone(line).verdict("/private/x").rule;
        assert_eq!(shown("Disallow: /private/").as_deref(), Some("Disallow: /private/"));
        assert_eq!(shown("  DISALLOW :/%70r # no").as_deref(), Some("DISALLOW :/%70r"));
        assert_eq!(shown("Disallow: /other"), None);
        let long = format!("Disallow: /private/{}", "*".repeat(5_000));
        assert_eq!(shown(&long).map(|rule| rule.len()), Some(MAX_SHOWN_RULE_BYTES));
    }

    #[test]
    fn a_file_we_do_not_have() {
        assert!(Robots::allow_all().verdict("/x").allowed);
        assert!(Robots::disallow_all().verdict("/robots.txt").allowed);
        let refused = RobotsVerdict { allowed: false, line: None, rule: None };
        assert_eq!(Robots::disallow_all().verdict("/x"), refused);
    }

    #[test]
    fn product_tokens() {
        let cases = [
            ("OttoBot/1.0", "OttoBot"),
            ("Fetchwell/0.1 (+contact)", "Fetchwell"),
            (" my_own-bot2 x", "my_own-bot2"),
            ("plain", "plain"),
            ("föö", "f"),
            ("*", ""),
            ("", ""),
        ];
        for (user_agent, token) in cases {
            assert_eq!(product_token(user_agent), token);
        }
    }

    #[test]
    fn a_bot_may_have_digits_or_no_name() {
        let body = b"User-agent: bot2\nDisallow: /2\n\nUser-agent: *\nDisallow: /all";
        assert!(!Robots::parse(body, "bot2/1.0").verdict("/2").allowed);
        assert!(!Robots::parse(body, "bot").verdict("/all").allowed);
        assert!(!Robots::parse(body, "(nameless)").verdict("/all").allowed);
    }

    #[test]
    fn crawl_delays() {
        let cases = [
            ("", None),
            ("Crawl-delay: 10", Some((10.0, 2))),
            ("crawl-DELAY:2.5", Some((2.5, 2))),
            ("Crawl-delay: .5", Some((0.5, 2))),
            ("Crawl-delay: 0", Some((0.0, 2))),
            ("Crawl-delay: 1\nCrawl-delay: 3\nCrawl-delay: 2", Some((3.0, 3))),
            ("Disallow: /\nCrawl-delay: 1 # second", Some((1.0, 3))),
            ("Crawl-delay: 1\nUser-agent: b\nDisallow:\nCrawl-delay: 2", Some((2.0, 5))),
            ("Disallow:\nUser-agent: b\nCrawl-delay: 2", None),
            ("Crawl-delay: 86401", Some((86_400.0, 2))),
            ("Crawl-delay: 99999999999999999999999999", Some((86_400.0, 2))),
            ("Crawl-delay:", None),
            ("Crawl-delay: .", None),
            ("Crawl-delay: -1", None),
            ("Crawl-delay: +1", None),
            ("Crawl-delay: 1e3", None),
            ("Crawl-delay: 1.2.3", None),
            ("Crawl-delay: 10s", None),
            ("Crawl-delay: NaN", None),
            ("Crawl-delay: inf", None),
        ];
        for (lines, expected) in cases {
            let robots = for_everyone(lines);
            let pause = expected.map(|(seconds, _)| Duration::from_secs_f64(seconds));
            assert_eq!(robots.crawl_delay(), pause, "{lines}");
            assert_eq!(robots.crawl_delay_line(), expected.map(|(_, line)| line), "{lines}");
        }
        let endless = for_everyone(&format!("Crawl-delay: {}", "9".repeat(1_000)));
        assert_eq!(endless.crawl_delay(), Some(MAX_CRAWL_DELAY));
    }

    #[test]
    fn sitemaps_are_for_every_bot_and_bounded() {
        let body = b"Sitemap: https://a/1\nUser-agent: x\nSITEMAP: /2\nDisallow: /\n\
            Sitemap:\nSitemap: \xFF\nSitemap: https://a/3 # last";
        let robots = Robots::parse(body, "OttoBot");
        assert_eq!(robots.sitemaps(), ["https://a/1", "/2", "https://a/3"]);

        let longest = "s".repeat(MAX_SITEMAP_BYTES);
        let robots = for_everyone(&format!("Sitemap: {longest}s\nSitemap: {longest}"));
        assert_eq!(robots.sitemaps(), [longest]);
        assert_eq!(for_everyone(&"Sitemap: /s\n".repeat(2_000)).sitemaps().len(), MAX_SITEMAPS);
    }

    /// A file full of the worst rules, and a long path that each of them nearly matches.
    #[test]
    fn a_hostile_file_ends() {
        let rule = format!("Disallow: /{}b\n", "*a".repeat(2_000));
        let robots = for_everyone(&rule.repeat(MAX_ROBOTS_BYTES / rule.len()));
        assert!(robots.verdict(&format!("/{}", "a".repeat(32 * 1024))).allowed);
    }

    /// Tries everything, with patterns and paths in normal form.
    fn naive_match(pattern: &str, path: &str) -> bool {
        if pattern.is_empty() || (pattern == "$" && path.is_empty()) {
            return true;
        }
        let next = path.chars().next();
        if let Some(after) = pattern.strip_prefix('*') {
            return naive_match(after, path)
                || (next.is_some() && naive_match(pattern, &path[1..]));
        }
        next.is_some() && pattern.chars().next() == next && naive_match(&pattern[1..], &path[1..])
    }

    /// The normal form of what `written()` yields, by replacing text.
    fn naive_normal(written: &str) -> String {
        written.replace("%61", "a").replace("%2f", "%2F").replace('$', "%24")
    }

    fn naive_pattern(written: &str) -> String {
        let (path, anchor) = written.strip_suffix('$').map_or((written, ""), |path| (path, "$"));
        let root = if path.starts_with(['/', '*']) { "" } else { "/" };
        let mut pattern = format!("{root}{}{anchor}", naive_normal(path));
        while pattern.contains("**") {
            pattern = pattern.replace("**", "*");
        }
        pattern
    }

    fn naive_verdict(rules: &[(bool, String)], path: &str) -> bool {
        let path = naive_normal(path).replace('*', "%2A");
        let matching = rules.iter().map(|(allow, written)| (naive_pattern(written), *allow));
        let matching = matching.filter(|(pattern, _)| naive_match(pattern, &path));
        matching.max_by_key(|(pattern, allow)| (pattern.len(), *allow)).is_none_or(|(_, a)| a)
    }

    /// Few and short, so that many rules match and many of them tie.
    fn written() -> impl Strategy<Value = String> {
        const ATOMS: [&str; 8] = ["a", "/", "*", "$", "%2A", "%24", "%61", "%2f"];
        proptest::collection::vec(proptest::sample::select(ATOMS.to_vec()), 1..5)
            .prop_map(|atoms| atoms.concat())
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(body: Vec<u8>, user_agent: String, path: String) {
            let robots = Robots::parse(&body, &user_agent);
            robots.verdict(&path);
        }

        #[test]
        fn no_rule_makes_it_panic(value: Vec<u8>, path: String) {
            let head = b"User-agent: *\nCrawl-delay: 1\nSitemap: a\nDisallow: /".as_slice();
            Robots::parse(&[head, &value].concat(), "OttoBot").verdict(&path);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn it_agrees_with_a_naive_matcher(
            rules in proptest::collection::vec((any::<bool>(), written()), 0..8),
            path in written(),
        ) {
            let path = format!("/{path}");
            let key = |allow| if allow { "Allow" } else { "Disallow" };
            let lines: Vec<String> =
                rules.iter().map(|(allow, value)| format!("{}: {value}", key(*allow))).collect();
            let verdict = for_everyone(&lines.join("\n")).verdict(&path);
            prop_assert_eq!(verdict.allowed, naive_verdict(&rules, &path));
        }
    }
}
