//! The list of sites.

use askama::Template;
use fetchwell_engine::ports::sites::{Condition, SiteQuery, SiteRank};
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
    sort: Sort,
    tabs: Vec<Tab>,
    columns: Vec<Column>,
    rows: Vec<SiteRow>,
    /// Whether the page shows everything that the store knows, from the beginning.
    is_unfiltered: bool,
    next: Option<String>,
}

/// What the list is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sort {
    /// Trouble first, then by name.
    #[default]
    Trouble,
    Name,
    Limited,
    Failed,
}

impl Sort {
    const ALL: [(Sort, &'static str); 4] = [
        (Sort::Trouble, "trouble"),
        (Sort::Name, "name"),
        (Sort::Limited, "limited"),
        (Sort::Failed, "failed"),
    ];

    fn parse(word: &str) -> Sort {
        let found = Sort::ALL.into_iter().find(|(_, known)| *known == word);
        found.map(|(sort, _)| sort).unwrap_or_default()
    }

    fn as_str(self) -> &'static str {
        Sort::ALL.into_iter().find(|(sort, _)| *sort == self).map_or("", |(_, word)| word)
    }

    /// The rank that sorts the sites; none for the order of their names.
    fn rank(self) -> Option<SiteRank> {
        match self {
            Sort::Trouble => Some(SiteRank::Trouble),
            Sort::Name => None,
            Sort::Limited => Some(SiteRank::Limited),
            Sort::Failed => Some(SiteRank::Failed),
        }
    }

    /// The value of `aria-sort` of a column that is sorted like this: names from A, numbers and trouble from the top.
    fn direction(self) -> &'static str {
        if self == Sort::Name { "ascending" } else { "descending" }
    }
}

/// The head of a column.
struct Column {
    name: &'static str,
    /// An explanation for a short name.
    title: &'static str,
    is_number: bool,
    /// The path that sorts by this column, and how it is sorted then.
    sorted: Option<(String, Sort)>,
}

pub(in super::super) async fn page(visitor: Visitor) -> PageResult {
    let form = visitor.query();
    let sort = form.text("sort").map(Sort::parse).unwrap_or_default();
    let query = SiteQuery {
        after: form.text("after").map(str::to_owned),
        text: form.text("text").map(str::to_lowercase),
        condition: form.text("is").and_then(Condition::parse),
        most: MOST,
        ..SiteQuery::default()
    };
    let sites = &visitor.dashboard.subject.sites;
    let found = match sort.rank() {
        Some(rank) => sites.ranked_page(&query, rank).await?,
        None => sites.page(&query).await?,
    };
    let content = Page {
        text: query.text.clone().unwrap_or_default(),
        sort,
        tabs: tabs(&query, sort),
        columns: columns(&query),
        rows: found.rows,
        is_unfiltered: query.text.is_none() && query.condition.is_none() && query.after.is_none(),
        next: found.next.map(|next| path(&query, query.condition, sort, Some(&next))),
    };
    layout::page(&visitor, (Section::Sites, "Sites"), &content).await
}

fn tabs(query: &SiteQuery, sort: Sort) -> Vec<Tab> {
    let path = |condition| path(query, condition, sort, None);
    Tab::all(Condition::ALL, query.condition, name, path)
}

/// The columns; those that can be sorted are sorted in the store, however many sites there are. For the others it would
/// have to read every site.
fn columns(query: &SiteQuery) -> Vec<Column> {
    let column = |name, title, is_number, sort: Option<Sort>| {
        let sorted = sort.map(|sort| (path(query, query.condition, sort, None), sort));
        Column { name, title, is_number, sorted }
    };
    vec![
        column("Site", "", false, Some(Sort::Name)),
        column("Status", "", false, Some(Sort::Trouble)),
        column("Pace", "", false, None),
        column("Next slot in", "", true, None),
        column("Waiting", "", true, None),
        column("429, 1 h", "Responses with status 429 in the last hour", true, Some(Sort::Limited)),
        column("Failed, 1 h", "Failures in the last hour", true, Some(Sort::Failed)),
        column("robots.txt age", "", true, None),
    ]
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

fn path(
    query: &SiteQuery,
    condition: Option<Condition>,
    sort: Sort,
    after: Option<&str>,
) -> String {
    let mut pairs = Serializer::new(String::new());
    let fields = [
        ("is", condition.map(Condition::as_str)),
        ("text", query.text.as_deref()),
        ("sort", Some(sort.as_str()).filter(|_| sort != Sort::default())),
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
            path(&query, condition, Sort::Name, Some("x.test")),
            "/dashboard/sites?is=breaker-open&text=a%26b&sort=name&after=x.test"
        );
        assert_eq!(path(&SiteQuery::default(), None, Sort::Trouble, None), "/dashboard/sites");
        assert!(tabs(&query, Sort::Trouble)[0].is_current);
        for (sort, word) in Sort::ALL {
            assert_eq!(Sort::parse(word), sort);
        }
    }
}
