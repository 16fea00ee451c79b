//! Every command in README.md and docs/ is run, page by page, and does and prints what its page says.
//!
//! A page is read as a person would: from its beginning, in an empty folder, in one shell. The hosts of
//! the examples are simulated, and the program finds them by settings in the environment, so that the
//! pages show plain commands.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on may panic")]

mod archive;
mod links;
mod markdown;
mod metrics;
mod places;
mod session;
mod web;
mod wildcard;

use std::collections::BTreeMap;
use std::path::PathBuf;

use markdown::{Block, Manner, blocks};
use places::Places;
use session::Session;
use web::Web;

/// The pages with commands, each of which has a test below.
const PAGES: [&str; 17] = [
    "README.md",
    "docs/articles.md",
    "docs/commoncrawl.md",
    "docs/crawl.md",
    "docs/extract.md",
    "docs/faq.md",
    "docs/fetch.md",
    "docs/firecrawl.md",
    "docs/mcp.md",
    "docs/operations.md",
    "docs/pages.md",
    "docs/quickstart.md",
    "docs/scale.md",
    "docs/schedule.md",
    "docs/security.md",
    "docs/serve.md",
    "docs/settings.md",
];

/// Blocks that no test runs, by page and reason. Whoever adds one says so here.
const NOT_RUN: [(&str, &str); 14] = [
    ("README.md", "it installs a package"),
    ("README.md", "it needs Docker"),
    ("README.md", "it installs and compiles"),
    ("README.md", "it installs, compiles and tests"),
    ("docs/commoncrawl.md", "it asks Common Crawl itself"),
    ("docs/faq.md", "it compiles another program"),
    ("docs/faq.md", "it needs that program"),
    ("docs/operations.md", "what it finds depends on the machine"),
    ("docs/pages.md", "another instance has the port for metrics on this machine"),
    ("docs/quickstart.md", "it clones, installs and compiles"),
    ("docs/quickstart.md", "it takes several minutes to compile"),
    ("docs/quickstart.md", "it needs a build without Redis"),
    ("docs/quickstart.md", "it takes a minute of a terminal"),
    ("docs/serve.md", "the store of a service on this machine"),
];

#[tokio::test]
async fn readme() {
    check("README.md").await;
}

#[tokio::test]
async fn articles() {
    check("docs/articles.md").await;
}

#[tokio::test]
async fn commoncrawl() {
    check("docs/commoncrawl.md").await;
}

#[tokio::test]
async fn crawl() {
    check("docs/crawl.md").await;
}

#[tokio::test]
async fn extract() {
    check("docs/extract.md").await;
}

#[tokio::test]
async fn faq() {
    check("docs/faq.md").await;
}

#[tokio::test]
async fn fetch() {
    check("docs/fetch.md").await;
}

#[tokio::test]
async fn firecrawl() {
    check("docs/firecrawl.md").await;
}

#[tokio::test]
async fn mcp() {
    check("docs/mcp.md").await;
}

#[tokio::test]
async fn operations() {
    check("docs/operations.md").await;
}

#[tokio::test]
async fn pages() {
    check("docs/pages.md").await;
}

#[tokio::test]
async fn quickstart() {
    check("docs/quickstart.md").await;
}

#[tokio::test]
async fn scale() {
    check("docs/scale.md").await;
}

#[tokio::test]
async fn schedule() {
    check("docs/schedule.md").await;
}

#[tokio::test]
async fn security() {
    check("docs/security.md").await;
}

#[tokio::test]
async fn serve() {
    check("docs/serve.md").await;
}

#[tokio::test]
async fn settings() {
    check("docs/settings.md").await;
}

#[test]
fn every_page_with_commands_is_run() {
    let with_commands = |name: &String| !blocks(&read(name)).is_empty();
    let found: Vec<String> = all_pages().into_iter().filter(with_commands).collect();
    assert_eq!(found, PAGES);
}

#[test]
fn what_is_not_run_is_known() {
    let mut found = BTreeMap::<_, usize>::new();
    for page in PAGES {
        for block in blocks(&read(page)) {
            if let Manner::NotAtAll { reason } = block.manner {
                *found.entry((page, reason)).or_default() += 1;
            }
        }
    }
    let mut known = BTreeMap::<_, usize>::new();
    for (page, reason) in NOT_RUN {
        *known.entry((page, reason.to_owned())).or_default() += 1;
    }
    assert_eq!(found, known);
}

/// README.md and every page in docs/, by name.
fn all_pages() -> Vec<String> {
    let mut pages: Vec<String> = std::fs::read_dir(root().join("docs"))
        .expect("there are docs")
        .map(|entry| format!("docs/{}", entry.expect("a file").file_name().display()))
        .filter(|name| name.ends_with(".md"))
        .chain(["README.md".to_owned()])
        .collect();
    pages.sort();
    pages
}

/// Runs a page from its beginning to its end.
async fn check(name: &str) {
    let page = read(name);
    let web = Web::start().await;
    let places = Places::of(&page).await;
    let archive = archive::folder();
    let mut variables = [web.variables(), places.variables.clone()].concat();
    let base = archive.path().display().to_string();
    variables.push(("FETCHWELL_COMMONCRAWL__BASE".to_owned(), base));
    let mut session = Session::begin(&variables);
    archive::put_index(session.folder());
    let mut fault = None;
    for block in blocks(&page) {
        let Some(here) = translated(&block, &places) else { continue };
        if let Err(what) = session.run(&here).await {
            fault = Some(format!(
                "{name} line {}: {what}\n--- commands\n{}",
                block.line, here.commands
            ));
            break;
        }
    }
    session.end().await;
    if let Some(fault) = fault {
        panic!("{fault}");
    }
}

/// `None`: it needs a server that is not there, which was said aloud.
fn translated(block: &Block, places: &Places) -> Option<Block> {
    let shown = |text: &Option<String>| match text {
        Some(text) => places.translate(text).map(Some),
        None => Some(None),
    };
    Some(Block {
        line: block.line,
        commands: places.translate(&block.commands)?,
        manner: block.manner.clone(),
        output: shown(&block.output)?,
        log: shown(&block.log)?,
    })
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
