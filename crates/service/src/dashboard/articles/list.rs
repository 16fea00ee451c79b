//! The newest articles of a category.

use askama::Template;
use fetchwell_engine::ports::articles::{ARTICLES_EXAMINED, Counts, Fields, Status, Wanted};
use fetchwell_policy::time::Time;

use super::field;
use crate::dashboard::access::Visitor;
use crate::dashboard::fault::PageResult;
use crate::dashboard::layout::{self, Section};
use crate::dashboard::words;

/// The maximum number of articles on the page.
const MOST: usize = 60;
/// The maximum number of categories with a tab; others can be reached by URL.
const MOST_TABS: usize = 40;

#[derive(Template)]
#[template(path = "articles.html")]
struct Page {
    found: Option<Found>,
}

struct Found {
    counts: Counts,
    tabs: Vec<(String, u64)>,
    category: Option<String>,
    failures: bool,
    text: String,
    stories: Vec<Story>,
}

/// An article in the list, or a link whose fetch failed.
struct Story {
    uid: String,
    title: String,
    about: String,
    site: String,
    category: String,
    fetched: String,
    is_article: bool,
}

pub(in super::super) async fn page(visitor: Visitor) -> PageResult {
    let title = (Section::Articles, "Articles");
    let Some(articles) = &visitor.dashboard.subject.articles else {
        return layout::page(&visitor, title, &Page { found: None }).await;
    };
    let query = visitor.query();
    let category = query.text("category").map(str::to_owned);
    let failures = query.text("show") == Some("failures");
    let status = Some(if failures { Status::Failure } else { Status::Success });
    let text = query.text("text").map(str::to_owned);
    let wanted = Wanted { category: category.clone(), status, text: text.clone(), most: MOST };
    let counts = articles.count().await?;
    let mut tabs: Vec<(String, u64)> = counts.by_category.clone().into_iter().collect();
    tabs.sort_by_key(|(_, articles)| std::cmp::Reverse(*articles));
    tabs.truncate(MOST_TABS);
    let stories = articles.list(&wanted).await?.iter().map(Story::of).collect();
    let text = text.unwrap_or_default();
    let found = Some(Found { counts, tabs, category, failures, text, stories });
    layout::page(&visitor, title, &Page { found }).await
}

impl Story {
    fn of(fields: &Fields) -> Story {
        let text = |name: &str| field(fields, name).to_owned();
        let is_article = field(fields, "status") == Status::Success.as_str();
        let title = [text("title"), text("url")].into_iter().find(|title| !title.is_empty());
        Story {
            uid: text("uid"),
            title: title.unwrap_or_default(),
            about: text(if is_article { "abstract" } else { "reason" }),
            site: text("site"),
            category: text("category"),
            fetched: fetched(fields),
            is_article,
        }
    }
}

fn fetched(fields: &Fields) -> String {
    let seconds = field(fields, "fetched_ts").parse();
    seconds.map(|seconds| words::moment(Time::from_secs(seconds))).unwrap_or_default()
}
