use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::exchange::Truncation;
use crate::outage::{Flapping, Outage, OutageKind};
use crate::path_rule::{PathAction, PathRule};
use crate::robots::SimRobots;

/// How one site behaves. Everything can be combined; the first that applies in this order decides: outages and
/// flapping, robots.txt, the limiter, the rules for paths in the order in which they were added, and finally a page
/// generated from the path.
///
/// A path that ends in `*` matches all paths with that prefix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteScript {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) robots: SimRobots,
    #[serde(default)]
    pub(crate) strict_limiter: Option<StrictLimiter>,
    #[serde(default)]
    pub(crate) outages: Vec<Outage>,
    #[serde(default)]
    pub(crate) flapping: Option<Flapping>,
    #[serde(rename = "first_byte_after_s", default, with = "crate::seconds")]
    pub(crate) first_byte_after: Duration,
    #[serde(rename = "body_over_s", default, with = "crate::seconds")]
    pub(crate) body_over: Duration,
    #[serde(default = "default_page_bytes")]
    pub(crate) page_bytes: usize,
    #[serde(default = "default_content_type")]
    pub(crate) content_type: String,
    #[serde(default)]
    pub(crate) paths: Vec<PathRule>,
}

impl SiteScript {
    /// A healthy site: no robots.txt, and a page of 10 KiB at every path.
    ///
    /// A name with a port (`shop.test:8080`) answers for that port only, one without for all.
    pub fn new(name: &str) -> SiteScript {
        SiteScript {
            name: name.to_owned(),
            robots: SimRobots::default(),
            strict_limiter: None,
            outages: Vec::new(),
            flapping: None,
            first_byte_after: Duration::ZERO,
            body_over: Duration::ZERO,
            page_bytes: default_page_bytes(),
            content_type: default_content_type(),
            paths: Vec::new(),
        }
    }

    /// The site's name, as in its hits.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Serves this robots.txt.
    pub fn robots(mut self, text: &str) -> Self {
        self.robots = SimRobots::Text(text.to_owned());
        self
    }

    /// Serves a robots.txt that allows everything with this Crawl-delay.
    pub fn crawl_delay(mut self, delay: Duration) -> Self {
        self.robots = SimRobots::CrawlDelay(delay);
        self
    }

    /// Answers robots.txt with this status.
    pub fn robots_status(mut self, status: u16) -> Self {
        self.robots = SimRobots::Status(status);
        self
    }

    /// Redirects robots.txt.
    pub fn robots_redirect(mut self, location: &str) -> Self {
        self.robots = SimRobots::Redirect(location.to_owned());
        self
    }

    /// Answers 429 to requests that come sooner than `min_interval` after the last accepted one. Requests for
    /// robots.txt are exempt and do not count.
    pub fn strict_limiter(mut self, min_interval: Duration, retry_after: Option<Duration>) -> Self {
        self.strict_limiter = Some(StrictLimiter { min_interval, retry_after });
        self
    }

    /// Makes the site unavailable during this period, including robots.txt.
    pub fn outage(mut self, during: Range<Duration>, failure: OutageKind) -> Self {
        self.outages.push(Outage { from: during.start, to: during.end, failure });
        self
    }

    /// Makes the site alternate between up and down, for ever.
    pub fn flapping(mut self, up_for: Duration, down_for: Duration, failure: OutageKind) -> Self {
        self.flapping = Some(Flapping { up_for, down_for, failure });
        self
    }

    /// Delays the first byte of each response by this long.
    pub fn slow(mut self, first_byte_after: Duration) -> Self {
        self.first_byte_after = first_byte_after;
        self
    }

    /// Spreads each body over this time.
    pub fn trickling(mut self, body_over: Duration) -> Self {
        self.body_over = body_over;
        self
    }

    /// Generates pages of about this size.
    pub fn page_bytes(mut self, size_bytes: usize) -> Self {
        self.page_bytes = size_bytes;
        self
    }

    /// Serves the generated pages as this content type.
    pub fn content_type(mut self, content_type: &str) -> Self {
        self.content_type = content_type.to_owned();
        self
    }

    /// Redirects a path to a location on this or another site.
    pub fn redirect(self, path: &str, location: &str) -> Self {
        self.rule(path, PathAction::Redirect(location.to_owned()))
    }

    /// Redirects a path permanently.
    pub fn moved(self, path: &str, location: &str) -> Self {
        self.rule(path, PathAction::Moved(location.to_owned()))
    }

    /// Answers a path with this status.
    pub fn status(self, path: &str, status: u16) -> Self {
        self.rule(path, PathAction::Status(status))
    }

    /// Answers a path with this status and a Retry-After header.
    pub fn busy(self, path: &str, status: u16, retry_after: Duration) -> Self {
        self.rule(path, PathAction::Busy { status, retry_after })
    }

    /// Answers each matching path this many times with this status; after that the later rules apply.
    pub fn fails_first(self, path: &str, times: u32, status: u16) -> Self {
        self.rule(path, PathAction::FailsFirst { times, status })
    }

    /// Serves this text at a path: for example a feed, a sitemap, or a page with a trap.
    pub fn text(self, path: &str, content_type: &str, text: &str) -> Self {
        let content_type = content_type.to_owned();
        let text = text.to_owned();
        self.rule(path, PathAction::Text { content_type, text })
    }

    /// Serves this text at a path with an ETag, and 304 to a client that has it.
    pub fn tagged(self, path: &str, content_type: &str, text: &str, etag: &str) -> Self {
        let content_type = content_type.to_owned();
        let text = text.to_owned();
        self.rule(path, PathAction::Tagged { content_type, text, etag: etag.to_owned() })
    }

    /// Serves this text at a path as a gzip file, such as `sitemap.xml.gz`.
    pub fn gzip(self, path: &str, content_type: &str, text: &str) -> Self {
        let content_type = content_type.to_owned();
        let text = text.to_owned();
        self.rule(path, PathAction::Gzip { content_type, text })
    }

    /// Serves generated bytes at a path that are not text in any encoding.
    pub fn binary(self, path: &str, content_type: &str, size_bytes: usize) -> Self {
        self.rule(path, PathAction::Binary { content_type: content_type.to_owned(), size_bytes })
    }

    /// Serves the generated page of a path in this manner.
    pub fn manner(self, path: &str, manner: Truncation) -> Self {
        self.rule(path, PathAction::Manner(manner))
    }

    fn rule(mut self, path: &str, act: PathAction) -> Self {
        self.paths.push(PathRule { path: path.to_owned(), act });
        self
    }

    pub(crate) fn failure_at(&self, at: Duration) -> Option<OutageKind> {
        let in_outage = self.outages.iter().find_map(|outage| outage.failure_at(at));
        in_outage.or_else(|| self.flapping.as_ref()?.failure_at(at))
    }
}

/// How often a site accepts requests, and what it answers to those that come sooner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StrictLimiter {
    #[serde(rename = "min_interval_s", with = "crate::seconds")]
    pub(crate) min_interval: Duration,
    #[serde(rename = "retry_after_s", default, with = "crate::seconds::optional")]
    pub(crate) retry_after: Option<Duration>,
}

fn default_page_bytes() -> usize {
    10 * 1024
}

fn default_content_type() -> String {
    "text/html; charset=utf-8".to_owned()
}
