//! The yardstick: a bare loop on reqwest. No robots.txt, no pace, no queue, no retry.
//!
//! Usage: peer-reqwest LIST CONCURRENCY. It fails unless every URL gives a whole page with 200.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let list = arguments.next().ok_or("which list?")?;
    let concurrency: usize = arguments.next().ok_or("how many requests at once?")?.parse()?;

    let urls: Arc<[String]> = std::fs::read_to_string(list)?.lines().map(str::to_owned).collect();
    let next = Arc::new(AtomicUsize::new(0));
    let client = reqwest::Client::builder().user_agent("bench").build()?;
    let loops: Vec<_> = (0..concurrency)
        .map(|_| tokio::spawn(fetch_on(client.clone(), urls.clone(), next.clone())))
        .collect();
    for ended in loops {
        ended.await??;
    }
    Ok(())
}

/// Fetches whatever URL is next, until there is none.
async fn fetch_on(client: reqwest::Client, urls: Arc<[String]>, next: Arc<AtomicUsize>) -> Outcome {
    while let Some(url) = urls.get(next.fetch_add(1, Ordering::Relaxed)) {
        client.get(url).send().await?.error_for_status()?.bytes().await?;
    }
    Ok(())
}
