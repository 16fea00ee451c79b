//! `fetchwell crawl`, and crawls through the API: turns each page of a site into one row or one result, and follows its
//! links.
//!
//! `run` builds the door of the command and the start of a crawl, `by_api` the door of `serve`. `page_plan` fetches
//! pages, `sitemap_plan` robots.txt and sitemaps; `links` applies the [`CrawlRules`] to the URLs in them. `page_kind` is
//! the output for a page: `fetch_rows` makes rows, of which `rows` leaves out content that another row has;
//! `message_rows` makes results. The frontier is a port: it stores what a record has found in the transaction that
//! settles the lease.

mod by_api;
mod fetch_rows;
mod links;
mod message_rows;
mod page_kind;
mod page_plan;
mod rows;
mod rules;
mod run;
mod sitemap_plan;

use crate::fetch::FetchRow;

pub use by_api::{CrawlsRules, crawls, look_after};
pub use fetchwell_policy::crawl::Sitemaps;
pub use rules::CrawlRules;
pub use run::{door, starts};

/// The result of a page, a sitemap or a robots.txt of the command.
pub type CrawlRecord = fetchwell_engine::ports::frontier::CrawlRecord<FetchRow>;
