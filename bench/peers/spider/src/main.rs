//! spider on a list of URLs: one `Website` a host, whose pages are given to it as links that are already known.
//!
//! Usage: peer-spider LIST CONCURRENCY DELAY_MS. Without a delay, that many hosts at a time with one request each;
//! with a delay, all hosts at a time. It fails unless every URL gives a page with 200.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use spider::CaseInsensitiveString;
use spider::website::Website;
use tokio::sync::Semaphore;
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
    let mut website = Website::new(home);
    website
        .with_user_agent(Some("bench"))
        .with_respect_robots_txt(true)
        .with_concurrency_limit(Some(1))
        .with_delay(delay_ms)
        // It follows the links that it finds; the limit ends that when the list is done.
        .with_limit(urls.len() as u32);
    website.set_extra_links(urls.iter().map(|url| CaseInsensitiveString::new(url)).collect());
    let mut pages = website.subscribe(urls.len());
    website.crawl().await;
    drop(website);
    let mut fetched = 0;
    while let Ok(page) = pages.try_recv() {
        fetched +=
            usize::from(page.status_code.as_u16() == 200 && page.get_html_bytes_u8().len() > 0);
    }
    fetched
}
