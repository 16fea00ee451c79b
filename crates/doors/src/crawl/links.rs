//! Decides which links belong to a crawl, and which bounds apply to them.

use fetchwell_engine::ports::frontier::FoundPage;
use fetchwell_policy::crawl::{
    Bound, CutReason, Scope, bounds, is_download, page_key, plain_url, site_bound,
};
use fetchwell_policy::url::WebUrl;

use super::rules::CrawlRules;

/// Where links were found.
pub(super) struct LinkContext<'a> {
    pub(super) rules: &'a CrawlRules,
    /// An additional scope, if a start page redirects out of the scope of the crawl.
    pub(super) root: Option<Scope>,
    /// The depth of the linked pages.
    pub(super) depth: u32,
}

impl<'a> LinkContext<'a> {
    pub(super) fn new(rules: &'a CrawlRules, root: Option<&str>, depth: u32) -> LinkContext<'a> {
        let root = root.and_then(|root| WebUrl::parse(root).ok());
        let root = root.map(|root| Scope::new(rules.scope.kind(), [&root]));
        LinkContext { rules, root, depth }
    }

    /// Whether the URL is in scope.
    pub(super) fn is_in_scope(&self, url: &WebUrl) -> bool {
        self.rules.scope.contains(url) || self.root.as_ref().is_some_and(|root| root.contains(url))
    }

    /// The page that a link leads to; `None` if it does not belong to the crawl.
    pub(super) fn page(&self, link: &WebUrl) -> Option<FoundPage> {
        let url = plain_url(link);
        let rules = self.rules;
        let is_wanted = self.is_in_scope(&url)
            && (rules.include.is_empty() || rules.include.iter().any(|one| one.matches(&url)))
            && !rules.exclude.iter().any(|one| one.matches(&url));
        is_wanted.then(|| FoundPage {
            key: page_key(&url),
            depth: self.depth,
            bounds: self.bounds(&url),
            site_bound: site_bound(&url),
            url: url.as_str().to_owned(),
        })
    }

    fn bounds(&self, url: &WebUrl) -> Vec<Bound> {
        if self.rules.max_depth.is_some_and(|most| self.depth > most) {
            return vec![Bound::never(CutReason::Depth)];
        }
        if !self.rules.with_downloads && is_download(url) {
            return vec![Bound::never(CutReason::Download)];
        }
        bounds(url)
    }
}
