//! `articles list`, `show` and `stats`.

use fetchwell_doors::articles::uid;
use fetchwell_engine::ports::articles::{Status, Wanted};
use fetchwell_settings::Settings;
use tracing::error;

use super::print;
use crate::commands::articles::args::{ArticleStatus, ArticlesListArgs};
use crate::console::exit::Exit;
use crate::console::output::print;
use crate::wiring::open_articles;

/// `fetchwell articles list`.
pub(super) async fn list(
    settings: &Settings,
    args: ArticlesListArgs,
    as_json: bool,
) -> Result<Exit, Exit> {
    let status = args.status.map(|status| match status {
        ArticleStatus::Success => Status::Success,
        ArticleStatus::Failure => Status::Failure,
    });
    let wanted = Wanted { category: args.category, status, most: args.limit, text: None };
    let found = open_articles(settings).await?.articles.list(&wanted).await?;
    print(print::list(&found, as_json))
}

/// `fetchwell articles show`.
pub(super) async fn show(
    settings: &Settings,
    article: &str,
    markdown: bool,
    as_json: bool,
) -> Result<Exit, Exit> {
    let uid = if is_uid(article) { article.to_owned() } else { uid(article) };
    match open_articles(settings).await?.articles.find(&uid).await? {
        Some(fields) if as_json => print(print::line(&fields)),
        Some(fields) if markdown => print(print::markdown(&fields)),
        Some(fields) => print(print::in_full(&fields)),
        None => {
            let article = article.escape_debug();
            error!("there is no article {article}; run `fetchwell articles list` to see all");
            Ok(Exit::SomeFailed)
        }
    }
}

/// `fetchwell articles stats`.
pub(super) async fn stats(settings: &Settings, as_json: bool) -> Result<Exit, Exit> {
    let ports = open_articles(settings).await?;
    // Otherwise expired entries would be counted.
    ports.articles.trim().await?;
    let counts = ports.articles.count().await?;
    let links = ports.links.snapshot().await?;
    print(print::stats(&counts, &links, as_json))
}

fn is_uid(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
