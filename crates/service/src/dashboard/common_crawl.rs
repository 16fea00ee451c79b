//! The progress of Common Crawl batchers and workers.

use std::collections::VecDeque;
use std::time::Duration;

use askama::Template;
use fetchwell_engine::ports::crawl_progress::{BatcherStanding, FolderStanding};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::access::Visitor;
use super::fault::{PageError, PageResult};
use super::layout::{self, Section};
use super::words;

/// The period over which the rate is computed.
const LATELY: Duration = Duration::from_secs(300);

#[derive(Template)]
#[template(path = "common_crawl.html")]
struct Page {
    batchers: Vec<BatcherStanding>,
    folder: Option<FolderStanding>,
    output: String,
    /// Documents per second; needs two samples.
    rate: Option<f64>,
}

/// The number of documents at each view of the page.
#[derive(Default)]
pub(super) struct Looks(Mutex<VecDeque<(Instant, u64)>>);

impl Looks {
    /// Documents per second since the oldest sample within the period.
    fn rate(&self, documents: u64) -> Option<f64> {
        let mut looks = self.0.lock();
        looks.retain(|(at, _)| at.elapsed() < LATELY);
        looks.push_back((Instant::now(), documents));
        let (at, before) = looks.front()?;
        let seconds = at.elapsed().as_secs_f64();
        (seconds >= 1.0).then(|| documents.saturating_sub(*before) as f64 / seconds)
    }
}

pub(super) async fn page(visitor: Visitor) -> PageResult {
    let dashboard = &visitor.dashboard;
    let progress = dashboard.subject.crawl_progress.clone();
    let output = progress.output();
    let looked = tokio::task::spawn_blocking(move || (progress.batchers(), progress.folder()));
    let (batchers, folder) =
        looked.await.map_err(|error| PageError::Internal(error.to_string()))?;
    let rate = folder.as_ref().and_then(|folder| dashboard.crawl_looks.rate(folder.documents));
    let content = Page { batchers, folder, output, rate };
    layout::page(&visitor, (Section::CommonCrawl, "Common Crawl"), &content).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_rate_needs_two_looks() {
        let looks = Looks::default();
        assert_eq!(looks.rate(100), None);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(looks.rate(150), Some(5.0));
        tokio::time::advance(LATELY).await;
        assert_eq!(looks.rate(200), None, "the first looks were too long ago");
    }
}
