//! Processor time to choose the next URL, among so many sites that have something to do.

use std::time::Duration;

use anyhow::{Context, Result};
use fetchwell_engine::ports::job::Lane;
use fetchwell_engine::web::Request;
use fetchwell_engine::workbench::{QueuedRequest, Workbench};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Site, WebUrl};

use crate::meter::own_micros;
use crate::window::url;

/// How many are chosen.
const CHOICES: u32 = 500_000;

/// Nanoseconds of processor time a choice: which site is due, its next page, and when it is due again.
pub fn nanos_per_choice(sites: usize) -> Result<f64> {
    let mut bench = Workbench::default();
    let mut now = Time::from_secs(1_000);
    for number in 0..sites {
        let site = Site::parse(&format!("site-{number}.example"))?;
        for job in 0..2 {
            let request = Request::page(WebUrl::parse(&url(number, sites))?);
            let item = QueuedRequest { job, request, since: now, is_internal: false };
            bench.site_queue(&site, now).push(item, &Lane::default(), false);
        }
        bench.ask_at(&site, now + Duration::from_nanos(number as u64 * 7_919 % 1_000_000_007));
    }
    let started = own_micros()?;
    for _ in 0..CHOICES {
        now = bench.next_due().0.context("nothing is due")?;
        let site = bench.pop_ask(now).context("no site is due")?;
        let site_queue = bench.existing(&site).context("a site without a room")?;
        let item = site_queue.pop(|_| true).context("nothing waits")?;
        site_queue.push(item, &Lane::default(), false);
        bench.ask_at(&site, now + Duration::from_secs(1));
    }
    Ok((own_micros()? - started) as f64 * 1_000.0 / f64::from(CHOICES))
}
