//! Processor time of this thread, page by page: unlike the time on a clock it does not grow with
//! what else the machine does.

use std::hint::black_box;

use anyhow::Result;
use fetchwell_extract::{count_nodes, decode, extract, extract_text};
use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::pages::Page;

/// Goes through all pages once for each kind of work; returns the seconds of each.
pub(crate) fn measure(pages: &[Page]) -> Result<Value> {
    // Once before it counts, so that memory is there and the caches are warm for all kinds alike.
    pages.iter().for_each(|page| {
        black_box(count_nodes(&decode(&page.body, None).text));
    });
    let parsing = seconds_for(pages, |page| {
        black_box(count_nodes(&decode(&page.body, None).text));
    })?;
    let text = seconds_for(pages, |page| {
        black_box(extract_text(&decode(&page.body, None).text, &page.url));
    })?;
    let all_fields = seconds_for(pages, |page| {
        black_box(extract(&decode(&page.body, None).text, &page.url));
    })?;
    Ok(json!({ "parsing": parsing, "text": text, "all_fields": all_fields }))
}

fn seconds_for(pages: &[Page], work: impl Fn(&Page)) -> Result<f64> {
    let before = thread_seconds()?;
    pages.iter().for_each(work);
    Ok(thread_seconds()? - before)
}

fn thread_seconds() -> Result<f64> {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(now.tv_sec() as f64 + now.tv_nsec() as f64 / 1e9)
}
