//! The arguments of `fetchwell crawl`, and the rules of its door.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fetchwell_doors::crawl::{CrawlRules, Sitemaps};
use fetchwell_doors::fetch::{FetchRules, OutputFormat};
use fetchwell_engine::ports::frontier::CrawlBudget;
use fetchwell_feed::read_date;
use fetchwell_policy::crawl::{SITEMAP_DEPTH, Scope, ScopeKind, UrlPattern};
use fetchwell_policy::time::Time;
use fetchwell_policy::units::{parse_duration, with_unit};
use fetchwell_policy::url::WebUrl;
use fetchwell_settings::Flag;

use crate::commands::args::{given, one_of, output_format};

const SCOPES: &[(&str, &str, ScopeKind)] = &[
    ("page", "only the start pages", ScopeKind::Page),
    ("path", "the folders of the start pages and everything below them", ScopeKind::Path),
    ("host", "the hosts of the start pages", ScopeKind::Host),
    ("domain", "these hosts without \"www.\", and their subdomains", ScopeKind::Domain),
    ("any", "every site; limit it with --limit-per-site", ScopeKind::Any),
];

const SITEMAPS: &[(&str, &str, Sitemaps)] = &[
    ("auto", "follow links and the sitemaps of the start pages' hosts", Sitemaps::Auto),
    ("only", "follow sitemaps, but no links", Sitemaps::Only),
    ("off", "follow links only", Sitemaps::Off),
];

/// More pages than anyone has, and few enough for every store.
const MOST_PAGES: u64 = 1_000_000_000_000;

/// `fetchwell crawl`.
#[derive(Debug, Args)]
pub(crate) struct CrawlArgs {
    /// Start pages; https if there is no scheme. @FILE reads a list of them, one per line (# starts
    /// a comment); - reads standard input
    #[arg(required = true, value_name = "URL|@FILE|-")]
    pub(crate) urls: Vec<String>,
    /// Which links to follow
    #[arg(long, value_parser = one_of(SCOPES), default_value = "host")]
    pub(crate) scope: ScopeKind,
    /// Follow only links that match, such as "/blog/*"; * is any text. Compared with path and query,
    /// or with the whole URL if it contains "://". Repeatable: one must match
    #[arg(long, value_name = "PATTERN")]
    pub(crate) include: Vec<UrlPattern>,
    /// Do not follow links that match; repeatable
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<UrlPattern>,
    /// Maximum number of links from a start page [default: no limit]
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<u32>,
    /// Maximum number of pages
    #[arg(long, value_name = "PAGES", default_value = "10000",
        value_parser = clap::value_parser!(u64).range(1..=MOST_PAGES))]
    pub(crate) limit: u64,
    /// Maximum number of pages per site [default: no limit]
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u64).range(1..=MOST_PAGES))]
    pub(crate) limit_per_site: Option<u64>,
    /// Stop after this time, such as 2h; a bare number is seconds. --resume continues
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
    pub(crate) max_time: Duration,
    /// Whether to read sitemaps
    #[arg(long, value_parser = one_of(SITEMAPS), default_value = "auto")]
    pub(crate) sitemaps: Sitemaps,
    /// Skip pages that, according to a sitemap, have not changed since this time: 2026-05-31,
    /// 2026-05-31T12:00:00Z, or a duration such as 7d
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub(crate) since: Option<Since>,
    /// Also fetch links to archives, images, documents and other files that are not pages
    #[arg(long)]
    pub(crate) downloads: bool,
    /// Fetch only robots.txt and sitemaps, and print the number of known pages and the minimum time to
    /// fetch them
    #[arg(long, conflicts_with_all = ["output", "resume", "format"])]
    pub(crate) plan: bool,
    /// Output format [default: by the extension of --output, else json]
    #[arg(long, value_parser = output_format(&OutputFormat::ALL))]
    pub(crate) format: Option<OutputFormat>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Continue where an earlier crawl with the same --output stopped
    #[arg(long, requires = "output")]
    pub(crate) resume: bool,
    /// Maximum wait for a site that is down or asks us to wait, such as 30s; a bare number is seconds
    /// [default: 10m]
    #[arg(long, value_name = "DURATION")]
    pub(crate) give_up_after: Option<String>,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(&with_unit(text, "s")).map_err(|error| error.to_string())
}

/// The value of `--since`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    At(Time),
    /// This long before the start.
    Ago(Duration),
}

fn since(text: &str) -> Result<Since, String> {
    let is_date = text.starts_with(|c: char| c.is_ascii_digit()) && text.contains('-');
    if is_date {
        let wrong = || "write it as 2026-05-31 or 2026-05-31T12:00:00Z".to_owned();
        return read_date(text).map(Since::At).ok_or_else(wrong);
    }
    let wrong = |error| format!("{error}; or write a date, such as 2026-05-31");
    parse_duration(text).map(Since::Ago).map_err(wrong)
}

impl CrawlArgs {
    /// The flags that override settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        let after = self.give_up_after.as_ref().map(|after| with_unit(after, "s"));
        given([("fetch.give_up_after", "--give-up-after", &after)])
    }

    pub(super) fn budget(&self) -> CrawlBudget {
        CrawlBudget {
            pages: self.limit,
            pages_per_site: self.limit_per_site,
            known: None,
            sitemaps: None,
        }
    }

    /// The rules of the door. `starts` are the start pages, `bot` is our name in robots.txt, and `now` is the time
    /// from which `--since 7d` counts back.
    pub(super) fn rules(
        &self,
        starts: &[String],
        fetch: FetchRules,
        bot: &str,
        now: Time,
    ) -> CrawlRules {
        let starts: Vec<WebUrl> =
            starts.iter().filter_map(|start| WebUrl::parse(start).ok()).collect();
        CrawlRules {
            fetch,
            scope: Scope::new(self.scope, &starts),
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            max_depth: self.depth,
            sitemaps: self.sitemaps,
            sitemap_depth: SITEMAP_DEPTH,
            since: self.since.map(|since| match since {
                Since::At(time) => time,
                Since::Ago(duration) => now - duration,
            }),
            with_downloads: self.downloads,
            bot: bot.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_date_a_time_or_a_duration() {
        let noon = Since::At(Time::from_secs(1_700_049_600));
        let midnight = Since::At(Time::from_secs(1_700_006_400));
        for (text, expected) in [
            ("2023-11-15", Some(midnight)),
            ("2023-11-15T12:00:00Z", Some(noon)),
            ("2023-11-15T13:00:00+01:00", Some(noon)),
            ("7d", Some(Since::Ago(Duration::from_secs(7 * 86_400)))),
            ("2023-15-11", None),
            ("yesterday", None),
            ("7", None),
        ] {
            assert_eq!(since(text).ok(), expected, "{text}");
        }
    }
}
