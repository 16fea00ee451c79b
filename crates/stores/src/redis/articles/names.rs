//! The keys of articles.

/// SET of links that were attempted.
pub(super) const ATTEMPTED: &str = "rss:canonical_attempted";
/// ZSET of the same links: when each was attempted.
pub(super) const ATTEMPTED_AT: &str = "rss:canonical_attempted_at";
/// ZSET of articles: when each was fetched.
pub(super) const INDEX: &str = "rss:article_canonical_index";
/// ZSET of `{uid}:{CODE}`: when each last failed.
pub(super) const FAILURES: &str = "rss:canonical_failures";
/// The prefix of the keys of category SETs.
pub(super) const BY_CATEGORY: &str = "rss:articles_by_category:";

/// HASH of the fields of an article.
pub(super) fn article(uid: &str) -> String {
    format!("rss:article_canonical:{uid}")
}

/// HASH: in how many runs a link's site failed (`runs`), and when last (`at`, in microseconds).
pub(super) fn site_failures(uid: &str) -> String {
    format!("rss:canonical_site_failures:{uid}")
}

/// SET of a category's articles.
pub(super) fn category(name: &str) -> String {
    format!("{BY_CATEGORY}{name}")
}
