//! A web with a known graph: what a crawl has to fetch, what it must leave alone, and where it could get lost.

use std::collections::BTreeMap;
use std::time::Duration;

use fetchwell_policy::chance::Chance;
use fetchwell_simweb::{OutageKind, SiteScript, site_name};
use serde_json::Value;

const HTML: &str = "text/html; charset=utf-8";

/// Longer than any test.
const ALWAYS: Duration = Duration::from_secs(86_400);

/// The prefixes of traps, and the maximum number of rows in each.
const TRAPS: [(&str, usize); 4] =
    [("/calendar/", 500), ("/shop?", 300), ("/grow/", 10), ("/soft/", 130)];

/// A web, and what a crawl of all its sites must report.
pub(crate) struct KnownWeb {
    pub(crate) sites: Vec<SiteScript>,
    /// The start pages, one per site.
    pub(crate) starts: Vec<String>,
    /// The outcome of each URL that is not in a trap.
    expected: BTreeMap<String, &'static str>,
}

impl KnownWeb {
    /// A web of this many sites; each has `pages` pages, and some more of every kind.
    pub(crate) fn new(seed: u64, sites: usize, pages: usize) -> KnownWeb {
        let mut web = KnownWeb { sites: Vec::new(), starts: Vec::new(), expected: BTreeMap::new() };
        let mut chance = Chance::seeded(seed);
        for rank in 1..=sites {
            let mut site = KnownSite::new(&site_name(rank), &mut web.expected);
            if rank % 5 == 0 {
                site.is_down();
            } else {
                site.add_pages(pages, &mut chance);
                site.add_special_pages(&site_name(rank % sites + 1));
                if rank % 4 == 1 {
                    site.add_traps();
                }
            }
            let script = site.finish();
            web.starts.push(format!("http://{}/", site_name(rank)));
            let is_slow = rank % 4 == 2;
            let latency = if is_slow { Duration::from_millis(200) } else { Duration::ZERO };
            web.sites.push(script.slow(latency));
        }
        web
    }

    /// Compares the rows of a crawl with what it must report.
    pub(crate) fn judge(&self, rows: &[Value]) {
        let mut trapped: BTreeMap<(String, &str), usize> = BTreeMap::new();
        let mut found = BTreeMap::new();
        for row in rows {
            let url = row["url"].as_str().unwrap();
            let (site, path) = split(url);
            match TRAPS.iter().find(|(prefix, _)| path.starts_with(prefix)) {
                Some((prefix, _)) => *trapped.entry((site.to_owned(), *prefix)).or_default() += 1,
                None => {
                    let before = found.insert(url.to_owned(), row["outcome"].as_str().unwrap());
                    assert!(before.is_none(), "{url} has two rows");
                }
            }
        }
        for ((site, prefix), count) in trapped {
            let (_, most) = TRAPS.iter().find(|(trap, _)| *trap == prefix).unwrap();
            assert!(count <= *most, "{count} rows of the trap {prefix} of {site}");
        }
        let missing: Vec<_> =
            self.expected.iter().filter(|(url, _)| !found.contains_key(*url)).collect();
        assert!(missing.is_empty(), "missing: {missing:?}");
        for (url, outcome) in &found {
            let expected = self.expected.get(url).copied();
            assert_eq!(expected, Some(*outcome), "{url}");
        }
    }
}

fn split(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    rest.split_at(rest.find('/').unwrap_or(rest.len()))
}

/// A site while it is built.
struct KnownSite<'a> {
    name: String,
    script: SiteScript,
    /// The links of its root.
    root: String,
    expected: &'a mut BTreeMap<String, &'static str>,
}

impl<'a> KnownSite<'a> {
    fn new(name: &str, expected: &'a mut BTreeMap<String, &'static str>) -> KnownSite<'a> {
        let mut site = KnownSite {
            name: name.to_owned(),
            script: SiteScript::new(name).robots("User-agent: *\nDisallow: /private/\n"),
            root: String::new(),
            expected,
        };
        site.expect("/", "fetched");
        site
    }

    fn expect(&mut self, path: &str, outcome: &'static str) {
        self.expected.insert(format!("http://{}{path}", self.name), outcome);
    }

    fn add(&mut self, path: &str, html: &str) {
        let script = std::mem::replace(&mut self.script, SiteScript::new(""));
        let subject: String = path.chars().map(spelled).collect();
        let text = format!("<!doctype html><title>{subject}</title><p>About {subject}.</p>{html}");
        self.script = script.text(path, HTML, &text);
    }

    fn with(&mut self, change: impl FnOnce(SiteScript) -> SiteScript) {
        self.script = change(std::mem::replace(&mut self.script, SiteScript::new("")));
    }

    fn is_down(&mut self) {
        self.with(|script| script.outage(Duration::ZERO..ALWAYS, OutageKind::Refuse));
        self.expect("/", "site_failure");
    }

    /// A tree of pages with links back, each of them written in some way that means the same page.
    fn add_pages(&mut self, pages: usize, chance: &mut Chance) {
        let mut draw =
            |below: usize| usize::try_from(chance.next_u64()).unwrap_or(0) % below.max(1);
        self.root.push_str("<a href=/p1>1</a>");
        for page in 1..=pages {
            let mut links = String::new();
            let below = (3 * page - 1..=3 * page + 1).filter(|below| *below <= pages);
            let back = [1 + draw(page), 1 + draw(page)];
            for to in below.chain(back) {
                let link = match draw(6) {
                    0 => format!("/p{to}?utm_source=p{page}"),
                    1 => format!("/p{to}#part{page}"),
                    2 => format!("/p{to}?PHPSESSID={page}"),
                    3 => format!("http://{}:80/p{to}", self.name.to_uppercase()),
                    4 => format!("p{to}"),
                    _ => format!("/p{to}"),
                };
                links.push_str(&format!("<li><a href='{link}'>{to}</a>"));
            }
            match page % 10 {
                3 => {
                    links.push_str(&format!("<a href=/private/{page}>private</a>"));
                    self.expect(&format!("/private/{page}"), "skipped_by_robots");
                }
                4 => links.push_str(&format!("<a rel=nofollow href=/unloved/{page}>unloved</a>")),
                5 => {
                    links.push_str(&format!("<a href=/moved/{page}>moved</a>"));
                    let target = format!("/target/{page}");
                    self.with(|script| script.redirect(&format!("/moved/{page}"), &target));
                    self.add(&target, "");
                    self.expect(&format!("/moved/{page}"), "fetched");
                }
                6 => {
                    links.push_str(&format!("<a href=/gone/{page}>gone</a>"));
                    self.with(|script| script.status(&format!("/gone/{page}"), 404));
                    self.expect(&format!("/gone/{page}"), "url_failure");
                }
                7 => links.push_str(&format!("<a href=/paper{page}.pdf>paper</a>")),
                _ => {}
            }
            self.add(&format!("/p{page}"), &links);
            self.expect(&format!("/p{page}"), "fetched");
        }
    }

    /// Sitemaps, directives and links to another site.
    fn add_special_pages(&mut self, other: &str) {
        self.root.push_str(&format!(
            "<a href=/noindex>n</a><a href=/nofollow>n</a><a href=http://{other}/p1>other</a>\
             <link rel=alternate hreflang=de href=/de>"
        ));
        // Nothing is known of a site that is down, so its page gets a row, too.
        self.expected.entry(format!("http://{other}/p1")).or_insert("site_failure");
        let entry = |path: &str| format!("<url><loc>http://{}{path}</loc></url>", self.name);
        let map = format!("<urlset>{}{}</urlset>", entry("/mapped"), entry("/private/mapped"));
        self.with(|script| script.text("/sitemap.xml", "application/xml", &map));
        self.add("/noindex", "<meta name=robots content=noindex><a href=/behind>behind</a>");
        self.add("/nofollow", "<meta name=robots content=nofollow><a href=/unloved/meta>x</a>");
        self.add("/mapped", "<a href=/below-the-map>below</a>");
        for page in ["/behind", "/de", "/below-the-map"] {
            self.add(page, "");
            self.expect(page, "fetched");
        }
        self.expect("/noindex", "noindex");
        self.expect("/nofollow", "fetched");
        self.expect("/mapped", "fetched");
        self.expect("/private/mapped", "skipped_by_robots");
    }

    fn add_traps(&mut self) {
        self.root.push_str(
            "<a href=/days>d</a><a href=/combinations>c</a><a href=/grow/>g</a><a href=/lost>l</a>",
        );
        let links = |link: fn(usize) -> String, count: usize| -> String {
            (0..count).map(|n| format!("<a href='{}'>{n}</a>", link(n))).collect()
        };
        self.add("/days", &links(|n| format!("/calendar/2031-{n}"), 600));
        self.add("/combinations", &links(|n| format!("/shop?sort=up&color={n}"), 350));
        self.add("/lost", &links(|n| format!("/soft/{n}/"), 60));
        for page in ["/days", "/combinations", "/lost"] {
            self.expect(page, "fetched");
        }
        self.with(|script| {
            let same = "<title>Sorry</title><p>There is no such page.<a href=x/>x</a>";
            let growing = "<title>More</title><p>There is always more.<a href='more/and/'>more</a>";
            script
                .text("/calendar/*", HTML, "<title>A day</title><p>Nothing happens.")
                .text("/shop*", HTML, "<title>A list</title><p>Nothing matches.")
                .text("/grow/*", HTML, growing)
                .text("/soft/*", HTML, same)
        });
    }

    fn finish(mut self) -> SiteScript {
        let root = std::mem::take(&mut self.root);
        self.add("/", &root);
        self.script
    }
}

/// Digits as capital letters: pages that differ only in digits count as the same.
fn spelled(c: char) -> char {
    const CAPITALS: [char; 10] = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J'];
    c.to_digit(10).and_then(|digit| CAPITALS.get(digit as usize)).copied().unwrap_or(c)
}
