//! `fetchwell crawl`: each page of a site becomes one row, and the pages that it names are fetched, too.
//!
//! `run` builds the door and the start of a crawl. `page_plan` fetches a page, `sitemap_plan` robots.txt and sitemaps;
//! `links` judges what they name by the [`CrawlRules`]. The frontier is a port: it stores what a [`CrawlRecord`] has
//! found in the transaction that settles the lease.

mod links;
mod page_plan;
mod record;
mod rules;
mod run;
mod sitemap_plan;

pub use record::CrawlRecord;
pub use rules::{CrawlRules, Sitemaps};
pub use run::{door, starts};
