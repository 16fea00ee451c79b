//! The yardstick: a bare loop on reqwest, without robots.txt, pace, breaker, guard or queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};

use crate::flow::Load;
use crate::origin::PAGE_BYTES;

/// Fetches all pages of a load.
pub async fn fetch_all(load: Load) -> Result<()> {
    let client = reqwest::Client::builder().user_agent("FetchwellBench/1.0").build()?;
    let next = Arc::new(AtomicUsize::new(0));
    let loops = (0..load.connections).map(|_| {
        let client = client.clone();
        let next = next.clone();
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= load.pages {
                    return anyhow::Ok(());
                }
                let answer = client.get(load.url(number)).send().await?;
                ensure!(answer.bytes().await?.len() == PAGE_BYTES, "a page is not whole");
            }
        })
    });
    for ended in futures::future::join_all(loops).await {
        ended??;
    }
    Ok(())
}
