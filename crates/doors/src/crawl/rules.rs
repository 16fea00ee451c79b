//! The rules of a crawl.

use fetchwell_policy::crawl::{Scope, ScopeKind, Sitemaps, UrlPattern};
use fetchwell_policy::time::Time;

use crate::fetch::FetchRules;

/// The rules of a crawl.
#[derive(Clone, Debug)]
pub struct CrawlRules {
    /// The rules for one page.
    pub fetch: FetchRules,
    /// Which URLs belong to the crawl.
    pub scope: Scope,
    /// If there are any, only links that match one of them are followed.
    pub include: Vec<UrlPattern>,
    /// Links that match one of them are not followed.
    pub exclude: Vec<UrlPattern>,
    /// The maximum number of links from a start page.
    pub max_depth: Option<u32>,
    pub sitemaps: Sitemaps,
    /// The depth of the pages that sitemaps list.
    pub sitemap_depth: u32,
    /// Pages and sitemaps that have not changed since then, according to a sitemap, are not fetched.
    pub since: Option<Time>,
    /// Whether to also fetch files that are not pages.
    pub with_downloads: bool,
    /// The name of the bot in robots.txt and in directives of pages.
    pub bot: String,
}

impl CrawlRules {
    /// Whether it follows links.
    pub fn follows_links(&self) -> bool {
        self.sitemaps != Sitemaps::Only && self.scope.kind() != ScopeKind::Page
    }

    /// Whether it reads sitemaps.
    pub fn reads_sitemaps(&self) -> bool {
        self.sitemaps != Sitemaps::Off && self.scope.kind() != ScopeKind::Page
    }
}
