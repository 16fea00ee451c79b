//! `fetchwell crawl`: turns each page of a site into one row, and follows its links.
//!
//! `run` builds the door and the start of a crawl. `page_plan` fetches pages, `sitemap_plan` robots.txt and sitemaps;
//! `links` applies the [`CrawlRules`] to the URLs in them, `rows` leaves out content that another row has. The frontier is a port: it stores what a [`CrawlRecord`] has
//! found in the transaction that settles the lease.

mod links;
mod page_plan;
mod record;
mod rows;
mod rules;
mod run;
mod sitemap_plan;

pub use record::CrawlRecord;
pub use rules::{CrawlRules, Sitemaps};
pub use run::{door, starts};
