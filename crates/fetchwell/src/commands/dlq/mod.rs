//! `fetchwell dlq`: lists the URLs that `pages` gave up, and retries, drops or exports them.

pub(crate) mod args;
mod export;
mod print;
mod which;

use fetchwell_engine::ports::dead_letters::{
    DeadGroup, DeadLetter, DeadLetters, GroupSize, LETTERS_PER_PAGE, Letters, Revision,
};
use fetchwell_service::views::letters::site_name;
use fetchwell_settings::Settings;
use serde_json::json;

use crate::commands::dlq::args::{DlqCommand, ListArgs, Which};
use crate::console::exit::Exit;
use crate::console::output::{Running, print, print_either};
use crate::wiring::open_list;

pub(crate) fn run(settings: &Settings, command: DlqCommand, as_json: bool) -> Running<'_> {
    Box::pin(async move {
        // Nothing is fetched here, so the store is not bound to a politeness store.
        let queue = open_list(settings, false).await?;
        let letters: &dyn DeadLetters = &*queue;
        match command {
            DlqCommand::List(args) => list(letters, &args, as_json).await,
            DlqCommand::Show { url } => show(letters, &url, as_json).await,
            DlqCommand::Retry(which) => revise(letters, &which, Revision::Retry, as_json).await,
            DlqCommand::Drop(which) => revise(letters, &which, Revision::Drop, as_json).await,
            DlqCommand::Export { file: Some(path) } => export::to_file(letters, &path).await,
            DlqCommand::Export { file: None } => export::to_standard_output(letters).await,
        }
    })
}

async fn list(letters: &dyn DeadLetters, args: &ListArgs, as_json: bool) -> Result<Exit, Exit> {
    let site = args.site.as_deref().map(which::site).transpose()?;
    let is_meant = |group: &DeadGroup| {
        args.reason.as_ref().is_none_or(|text| group.reason.contains(text))
            && site.as_ref().is_none_or(|site| group.site == *site)
    };
    if args.groups || (args.reason.is_none() && args.site.is_none()) {
        let mut groups: Vec<(DeadGroup, GroupSize)> =
            letters.dead_groups().await?.into_iter().filter(|(group, _)| is_meant(group)).collect();
        groups.sort_by_key(|(_, size)| std::cmp::Reverse(size.letters));
        return print(print::groups(&groups, args.limit, as_json));
    }
    let found = find(letters, args.limit, |letter| is_meant(&letter.group)).await?;
    print(print::letters(&found, as_json))
}

async fn find(
    letters: &dyn DeadLetters,
    most: usize,
    is_meant: impl Fn(&DeadLetter) -> bool,
) -> Result<Vec<DeadLetter>, Exit> {
    let mut found = Vec::new();
    let mut from = None;
    loop {
        let page = letters.dead_letters(from.as_deref(), LETTERS_PER_PAGE).await?;
        found.extend(page.letters.into_iter().filter(&is_meant));
        from = page.next;
        if from.is_none() || found.len() >= most {
            found.truncate(most);
            return Ok(found);
        }
    }
}

async fn show(letters: &dyn DeadLetters, url: &str, as_json: bool) -> Result<Exit, Exit> {
    let found = letters.dead_letters_of(url).await?;
    if found.is_empty() {
        return Ok(nothing_there(&Letters::OfUrl(url.to_owned())));
    }
    print(print::in_full(&found, as_json))
}

async fn revise(
    letters: &dyn DeadLetters,
    which: &Which,
    revision: Revision,
    as_json: bool,
) -> Result<Exit, Exit> {
    let meant = which::letters(which)?;
    let revised = letters.revise(&meant, revision).await?;
    if revised == 0 && !matches!(meant, Letters::All) {
        return Ok(nothing_there(&meant));
    }
    let done = match revision {
        Revision::Retry => "retried",
        Revision::Drop => "dropped",
    };
    print_either(as_json, json!({ done: revised }), format!("{done} {revised}\n"))
}

/// Nothing failed, but a user who named something must learn that it does not exist.
fn nothing_there(meant: &Letters) -> Exit {
    let what = match meant {
        Letters::OfUrl(url) => format!("for {}", url.escape_debug()),
        Letters::OfGroup { group: DeadGroup { reason, site }, .. } => {
            format!("of {} for the reason {reason:?}", site_name(site))
        }
        Letters::All => "at all".to_owned(),
    };
    tracing::error!("there is no dead letter {what}; run `fetchwell dlq list` to see all");
    Exit::SomeFailed
}
