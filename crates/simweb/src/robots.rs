use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::exchange::SimResponse;

/// A site's response for `/robots.txt`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SimRobots {
    /// There is none: 404.
    #[default]
    Missing,
    Text(String),
    /// Everything is allowed, with this Crawl-delay.
    #[serde(rename = "crawl_delay_s", with = "crate::seconds")]
    CrawlDelay(Duration),
    Status(u16),
    Redirect(String),
}

impl SimRobots {
    pub(crate) fn answer(&self) -> SimResponse {
        match self {
            SimRobots::Missing => SimResponse::of_status(404),
            SimRobots::Text(text) => robots_txt(text.clone()),
            SimRobots::CrawlDelay(delay) => robots_txt(format!(
                "User-agent: *\nCrawl-delay: {}\nDisallow:\n",
                delay.as_secs_f64()
            )),
            SimRobots::Status(status) => SimResponse::of_status(*status),
            SimRobots::Redirect(location) => SimResponse::redirect(302, location),
        }
    }
}

fn robots_txt(text: String) -> SimResponse {
    SimResponse::new(200, "text/plain; charset=utf-8", text)
}
