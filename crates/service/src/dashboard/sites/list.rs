//! The list of sites.

use askama::Template;
use fetchwell_engine::ports::sites::{Condition, SiteQuery};
use url::form_urlencoded::Serializer;

use super::{interval, maybe_seconds, robots_age, standing};
use crate::dashboard::access::Visitor;
use crate::dashboard::fault::PageResult;
use crate::dashboard::layout::{self, Section};
use crate::dashboard::tabs::Tab;
use crate::dashboard::words;
use crate::sites::SiteRow;

/// The maximum number of sites on a page.
const MOST: usize = 50;

#[derive(Template)]
#[template(path = "sites.html")]
struct Page {
    text: String,
    tabs: Vec<Tab>,
    rows: Vec<SiteRow>,
    next: Option<String>,
}

pub(in super::super) async fn page(visitor: Visitor) -> PageResult {
    let form = visitor.query();
    let query = SiteQuery {
        after: form.text("after").map(str::to_owned),
        text: form.text("text").map(str::to_lowercase),
        condition: form.text("is").and_then(Condition::parse),
        most: MOST,
    };
    let found = visitor.dashboard.subject.sites.page(&query).await?;
    let content = Page {
        text: query.text.clone().unwrap_or_default(),
        tabs: tabs(&query),
        rows: found.rows,
        next: found.next.map(|next| path(&query, query.condition, Some(&next))),
    };
    layout::page(&visitor, (Section::Sites, "Sites"), &content)
}

fn tabs(query: &SiteQuery) -> Vec<Tab> {
    let path = |condition| path(query, condition, None);
    Tab::all(Condition::ALL, query.condition, name, path)
}

fn name(condition: Condition) -> &'static str {
    match condition {
        Condition::Paused => "paused",
        Condition::Rated => "rate override",
        Condition::BreakerOpen => "down",
        Condition::Resting => "resting",
        Condition::LimitedLately => "recent 429",
        Condition::FailedLately => "recent failures",
    }
}

fn path(query: &SiteQuery, condition: Option<Condition>, after: Option<&str>) -> String {
    let mut pairs = Serializer::new(String::new());
    let fields = [
        ("is", condition.map(Condition::as_str)),
        ("text", query.text.as_deref()),
        ("after", after),
    ];
    pairs.extend_pairs(fields.into_iter().filter_map(|(name, value)| Some((name, value?))));
    match pairs.finish() {
        query if query.is_empty() => "/dashboard/sites".to_owned(),
        query => format!("/dashboard/sites?{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_stand_in_the_address() {
        let query = SiteQuery { text: Some("a&b".to_owned()), ..SiteQuery::default() };
        let condition = Some(Condition::BreakerOpen);
        assert_eq!(
            path(&query, condition, Some("x.test")),
            "/dashboard/sites?is=breaker-open&text=a%26b&after=x.test"
        );
        assert_eq!(path(&SiteQuery::default(), None, None), "/dashboard/sites");
        assert!(tabs(&query)[0].is_current);
    }
}
