//! Prints articles, as tables or JSON.

use std::collections::BTreeMap;

use fetchwell_engine::ports::articles::{Counts, Fields};
use fetchwell_engine::ports::links::CategorySet;
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_policy::time::Time;
use serde_json::{Map, Value, json};

use crate::console::output::json_line;
use crate::console::table::{plain, table};

/// Fields that are numbers, although the store keeps them as text.
const NUMBERS: [&str; 3] = ["raw_len", "text_len", "fetched_ts"];
/// The fields printed above the text of an article, if known.
const ABOUT: [&str; 9] =
    ["url", "final_url", "author", "published", "lang", "category", "site", "image", "uid"];

/// A list of articles, one line each.
pub(super) fn list(found: &[Fields], as_json: bool) -> String {
    if as_json {
        return found.iter().map(line).collect();
    }
    if found.is_empty() {
        return "no matching articles\n".to_owned();
    }
    let rows = found.iter().map(|fields| {
        let what = match field(fields, "status") {
            "success" => field(fields, "title"),
            _ => field(fields, "reason"),
        };
        let uid = field(fields, "uid");
        let category = field(fields, "category");
        let url = field(fields, "url");
        [fetched(fields), plain(uid), plain(category), plain(what), plain(url)]
    });
    table(["fetched", "uid", "category", "title", "url"], &rows.collect::<Vec<_>>())
}

/// All fields of an article, as a line of JSON.
pub(super) fn line(fields: &Fields) -> String {
    let value = |(name, text): (&String, &String)| {
        let number = NUMBERS.contains(&name.as_str()).then(|| text.parse::<i64>().ok()).flatten();
        (name.clone(), number.map_or_else(|| json!(text), |number| json!(number)))
    };
    json_line(fields.iter().map(value).collect::<Map<String, Value>>())
}

/// An article for reading: its fields, then its text.
pub(super) fn in_full(fields: &Fields) -> String {
    let mut text = String::new();
    if !field(fields, "title").is_empty() {
        text.push_str(&format!("{}\n\n", plain_text(field(fields, "title"))));
    }
    let mut about = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("  {name:<10} {}\n", plain_text(value)));
        }
    };
    for name in ABOUT {
        about(name, field(fields, name));
    }
    about("fetched", &fetched(fields));
    about("failed", field(fields, "reason"));
    if !field(fields, "clean_text").is_empty() {
        text.push_str(&format!("\n{}\n", plain_text(field(fields, "clean_text"))));
    }
    text
}

/// The text as Markdown.
pub(super) fn markdown(fields: &Fields) -> String {
    format!("{}\n", plain_text(field(fields, "markdown")).trim_end())
}

/// The counts by category and by failure code.
pub(super) fn stats(counts: &Counts, links: &[CategorySet], as_json: bool) -> String {
    let mut categories: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for set in links {
        categories.entry(&set.category).or_default().0 = set.urls.len() as u64;
    }
    for (category, articles) in &counts.by_category {
        categories.entry(category).or_default().1 = *articles;
    }
    if as_json {
        let categories: Map<String, Value> = categories
            .into_iter()
            .map(|(name, (links, articles))| {
                (name.to_owned(), json!({"links": links, "articles": articles}))
            })
            .collect();
        return json_line(json!({
            "articles": counts.articles, "attempted": counts.attempted,
            "categories": categories, "failures": counts.failures,
        }));
    }
    let mut text = format!("articles   {}\nattempted  {}\n", counts.articles, counts.attempted);
    let rows: Vec<_> = categories
        .into_iter()
        .map(|(name, (links, articles))| [plain(name), links.to_string(), articles.to_string()])
        .collect();
    if !rows.is_empty() {
        text.push_str(&format!("\n{}", table(["category", "links", "articles"], &rows)));
    }
    let rows: Vec<_> =
        counts.failures.iter().map(|(code, links)| [plain(code), links.to_string()]).collect();
    if !rows.is_empty() {
        text.push_str(&format!("\n{}", table(["failure", "links"], &rows)));
    }
    text
}

fn field<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).map_or("", String::as_str)
}

fn fetched(fields: &Fields) -> String {
    let secs = field(fields, "fetched_ts").parse();
    secs.map(|secs| rfc3339(Time::from_secs(secs))).unwrap_or_default()
}

/// Removes control characters, which a terminal would act on.
fn plain_text(text: &str) -> String {
    text.chars().filter(|c| *c == '\n' || !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn article() -> Fields {
        fields(&[
            ("uid", "0123456789abcdef"),
            ("url", "http://a.test/1"),
            ("category", "news"),
            ("title", "A\u{1b}[2J title"),
            ("fetched_ts", "1700000000"),
            ("status", "success"),
            ("text_len", "11"),
            ("author", ""),
            ("clean_text", "One.\n\nTwo.\u{7}"),
            ("markdown", "# A title\n\nOne.\n\nTwo.\n"),
        ])
    }

    #[test]
    fn a_list_is_a_table_that_no_terminal_obeys() {
        let failure = fields(&[("uid", "f"), ("status", "failure"), ("reason", "FAIL_HTTP")]);
        let expected = "\
            fetched               uid               category  title             url\n\
            2023-11-14T22:13:20Z  0123456789abcdef  news      A\\u{1b}[2J title  http://a.test/1\n\
            \x20                     f                           FAIL_HTTP\n";
        assert_eq!(list(&[article(), failure], false), expected);
        assert_eq!(list(&[], false), "no matching articles\n");
        assert_eq!(list(&[], true), "");
    }

    #[test]
    fn one_reads_like_an_article() {
        let text = in_full(&article());
        assert!(text.starts_with("A[2J title\n\n  url        http://a.test/1\n"), "{text}");
        assert!(text.ends_with("  fetched    2023-11-14T22:13:20Z\n\nOne.\n\nTwo.\n"), "{text}");
        assert!(!text.contains("author"), "{text}");
        assert_eq!(markdown(&article()), "# A title\n\nOne.\n\nTwo.\n");
    }

    #[test]
    fn json_has_every_field_and_numbers_where_they_are() {
        let line: Value = serde_json::from_str(&line(&article())).unwrap();
        assert_eq!((&line["text_len"], &line["author"]), (&json!(11), &json!("")));
        assert_eq!(line["title"], "A\u{1b}[2J title");
    }

    #[test]
    fn stats_name_every_category_that_has_anything() {
        let counts = Counts {
            articles: 2,
            attempted: 5,
            by_category: [("news".to_owned(), 2)].into(),
            failures: [("FAIL_HTTP".to_owned(), 3)].into(),
        };
        let urls = ["u".to_owned()].into();
        let links = [CategorySet { category: "jobs".to_owned(), urls }];
        let expected = "articles   2\nattempted  5\n\n\
                        category  links  articles\njobs      1      0\nnews      0      2\n\n\
                        failure    links\nFAIL_HTTP  3\n";
        assert_eq!(stats(&counts, &links, false), expected);
        let line: Value = serde_json::from_str(&stats(&counts, &links, true)).unwrap();
        assert_eq!(line["categories"]["jobs"], json!({"links": 1, "articles": 0}));
    }
}
