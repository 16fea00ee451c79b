//! Logs what a crawl left out, and why.

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::frontier::{CrawlCounts, CutOff, Frontier};
use fetchwell_policy::crawl::CutReason;
use fetchwell_policy::units::quantity;
use tracing::info;

use super::args::CrawlArgs;

/// The maximum number of lines about links that were not followed.
const MAX_LINES: usize = 20;

/// Logs which known pages were not fetched, and which links were not followed. `has_room`: the crawl ended within
/// --limit, and was not stopped.
pub(super) async fn tell(
    frontier: &impl Frontier,
    counts: &CrawlCounts,
    args: &CrawlArgs,
    has_room: bool,
) -> Result<(), StoreError> {
    if counts.waiting > 0 {
        let pages = quantity(counts.waiting, "known page was", "known pages were");
        match args.limit_per_site {
            Some(limit) if has_room => info!("{pages} not fetched: --limit-per-site is {limit}"),
            _ if counts.admitted >= args.limit => {
                info!("{pages} not fetched: --limit is {}", args.limit);
            }
            _ => info!("{pages} not fetched yet"),
        }
    }
    tell_cut_off(frontier).await
}

/// Logs which links were not followed, and why.
pub(super) async fn tell_cut_off(frontier: &impl Frontier) -> Result<(), StoreError> {
    let cut_off = frontier.cut_off(MAX_LINES + 1).await?;
    for cut in cut_off.iter().take(MAX_LINES) {
        info!("{}", line(cut));
    }
    if cut_off.len() > MAX_LINES {
        info!("links to more sites were not followed");
    }
    Ok(())
}

fn line(cut: &CutOff) -> String {
    let CutOff { reason, site, links, example } = cut;
    let links = quantity(*links, "link", "links");
    let site = site.as_deref().unwrap_or("other sites");
    let why = CutReason::named(reason).map_or_else(|| reason.clone(), CutReason::in_words);
    format!("{links} to {site} not followed: {why}, such as {example}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_many_where_and_why() {
        let cut = |reason: &str, links| CutOff {
            reason: reason.to_owned(),
            site: Some("a.test".to_owned()),
            links,
            example: "http://a.test/x".to_owned(),
        };
        assert_eq!(
            line(&cut("calendar", 2)),
            "2 links to a.test not followed: a calendar with more than 500 pages, such as \
             http://a.test/x"
        );
        assert_eq!(
            line(&CutOff { site: None, ..cut("depth", 7) }),
            "7 links to other sites not followed: deeper than --depth, such as http://a.test/x"
        );
        // A newer version may have stored a reason that this one does not know.
        assert_eq!(
            line(&cut("else", 1)),
            "1 link to a.test not followed: else, such as http://a.test/x"
        );
    }
}
