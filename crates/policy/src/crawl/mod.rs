//! The rules of a crawl: which links to follow, which URLs are the same page, and what is a trap.
//!
//! [`Scope`] and [`UrlPattern`] decide which URLs belong to a crawl, [`plain_url`] and [`page_key`] which of them are
//! the same page, [`is_download`] which are not pages, [`bounds()`] how many URLs of one kind a crawl follows, and
//! [`Directives`] what a page allows.

mod bounds;
mod canonical;
mod directives;
mod downloads;
mod pattern;
mod scope;
mod sitemaps;

pub use bounds::{
    Bound, CutReason, bounds, content_bound, crawl_sitemap_bound, site_bound, sitemap_bound,
};
pub use canonical::{PageKey, page_key, plain_url};
pub use directives::Directives;
pub use downloads::is_download;
pub use pattern::{PatternFault, UrlPattern};
pub use scope::{Scope, ScopeKind};
pub use sitemaps::{SITEMAP_DEPTH, Sitemaps};
