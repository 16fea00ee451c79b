//! spider on a list of URLs: one `Website` a host, whose pages are given to it as links that are already known.
//!
//! Usage: peer-spider LIST CONCURRENCY DELAY_MS. Without a delay, that many hosts at a time with one request each;
//! with a delay, all hosts at a time. It fails unless every URL gives a page with 200.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use spider::CaseInsensitiveString;
use spider::page::Page;
use spider::website::Website;
use tokio::sync::Semaphore;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let list = std::fs::read_to_string(arguments.next().ok_or("which list?")?)?;
    let concurrency: usize = arguments.next().ok_or("how many requests at once?")?.parse()?;
    let delay_ms: u64 = arguments.next().ok_or("which delay?")?.parse()?;

    let hosts = by_host(&list);
    let at_once = if delay_ms == 0 { concurrency } else { hosts.len() };
    let permits = Arc::new(Semaphore::new(at_once));
    let mut crawls = JoinSet::new();
    for (home, urls) in hosts {
        let permits = permits.clone();
        crawls.spawn(async move {
            let permit = permits.acquire_owned().await;
            let fetched = crawl(&home, urls, delay_ms).await;
            drop(permit);
            fetched
        });
    }
    let fetched: usize = crawls.join_all().await.into_iter().sum();
    match list.lines().count() {
        all if all == fetched => Ok(()),
        all => Err(format!("{fetched} of {all} URLs were fetched").into()),
    }
}

/// The URLs of each host, under the host's own URL.
fn by_host(list: &str) -> BTreeMap<String, Vec<String>> {
    let mut hosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for url in list.lines() {
        let home = url.split('/').take(3).collect::<Vec<_>>().join("/");
        hosts.entry(home).or_default().push(url.to_owned());
    }
    hosts
}

/// How many pages of this host came with 200.
async fn crawl(home: &str, urls: Vec<String>, delay_ms: u64) -> usize {
    // A limit of one page means the first page, whatever links are known.
    let mut website = Website::new(if urls.len() == 1 { &urls[0] } else { home });
    website
        .with_user_agent(Some("bench"))
        .with_respect_robots_txt(true)
        .with_concurrency_limit(Some(1))
        .with_delay(delay_ms)
        // It follows the links that it finds; the limit ends that when the list is done.
        .with_limit(urls.len() as u32);
    if urls.len() > 1 {
        website.set_extra_links(urls.iter().map(|url| CaseInsensitiveString::new(url)).collect());
    }
    let counting = tokio::spawn(count(website.subscribe(PAGES_KEPT)));
    website.crawl().await;
    website.unsubscribe();
    drop(website);
    counting.await.unwrap_or(0)
}

/// spider keeps this many of the last pages.
const PAGES_KEPT: usize = 16;

async fn count(mut pages: Receiver<Page>) -> usize {
    let mut fetched = 0;
    loop {
        match pages.recv().await {
            Ok(page) => {
                let is_whole =
                    page.status_code.is_success() && !page.get_html_bytes_u8().is_empty();
                fetched += usize::from(is_whole);
            }
            // These were overwritten before they could be read; the origin knows whether they were sent.
            Err(RecvError::Lagged(missed)) => fetched += missed as usize,
            Err(RecvError::Closed) => return fetched,
        }
    }
}
