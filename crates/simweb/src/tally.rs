use std::collections::BTreeMap;
use std::time::Duration;

use crate::hit::Hit;
use crate::judge::by_site;

/// The maximum number of hits of each site within any period of this length: with a window of one second, its highest
/// rate.
pub fn busiest_window(hits: &[Hit], window: Duration) -> BTreeMap<String, usize> {
    let busiest = |hits: &[&Hit]| {
        let mut first = 0;
        let mut most = 0;
        for (last, hit) in hits.iter().enumerate() {
            while first < last && hit.at.saturating_sub(hits[first].at) >= window {
                first += 1;
            }
            most = most.max(last - first + 1);
        }
        most
    };
    by_site(hits).into_iter().map(|(site, hits)| (site.to_owned(), busiest(&hits))).collect()
}

/// How many hits were answered with this status.
pub fn count_status(hits: &[Hit], status: u16) -> usize {
    hits.iter().filter(|hit| hit.status == Some(status)).count()
}
