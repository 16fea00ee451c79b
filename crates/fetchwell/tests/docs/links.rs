//! Links between the pages lead somewhere.

use std::collections::BTreeSet;

use crate::{read, root};

#[test]
fn every_link_leads_somewhere() {
    let pages: Vec<String> = crate::all_pages();
    assert!(pages.len() > 10, "{pages:?}");
    for page in &pages {
        let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
        for link in links(&read(page)) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path {
                "" => root().join(page),
                path => root().join(folder).join(path),
            };
            assert!(target.exists(), "{page}: there is no {link}");
            if !anchor.is_empty() {
                let text = std::fs::read_to_string(&target).expect("a page is text");
                assert!(anchors(&text).contains(anchor), "{page}: {link} has no such heading");
            }
        }
    }
}

/// What stands in `](…)`, but for other sites.
fn links(page: &str) -> Vec<String> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let targets = targets.map(|(target, _)| target.to_owned());
    targets.filter(|target| !target.contains("://")).collect()
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(page: &str) -> BTreeSet<String> {
    let heading = |line: &str| {
        line.starts_with('#').then(|| line.trim_start_matches('#').trim().to_lowercase())
    };
    let slug = |text: String| -> String {
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    page.lines().filter_map(heading).map(slug).collect()
}

#[test]
fn anchors_are_githubs() {
    let page = "# Errors\n## Problems of the API\n### [sites.\"x\"] `y`\ntext # no\n";
    let expected = ["errors", "problems-of-the-api", "sitesx-y"];
    assert_eq!(anchors(page), expected.map(str::to_owned).into());
}
