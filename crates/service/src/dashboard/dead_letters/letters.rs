//! The dead letters of a list of URLs.

use std::sync::Arc;

use askama::Template;
use axum::body::Bytes;
use fetchwell_engine::ports::dead_letters::{CANARIES, DeadLetters, LETTERS_PER_PAGE};
use futures::StreamExt;
use futures::stream::try_unfold;

use super::bulk::key;
use super::census::Counted;
use super::group::which;
use super::{BULK, Lines};
use crate::dashboard::Dashboard;
use crate::dashboard::access::Visitor;
use crate::dashboard::bulk::{self, Bulk};
use crate::dashboard::fault::{PageError, PageResult};
use crate::dashboard::layout::{self, Section};
use crate::dashboard::words;
use crate::views::letters::{letter_line, site_name};

#[derive(Template)]
#[template(path = "letters.html")]
struct Page<'a> {
    visitor: &'a Visitor,
    counted: Option<Arc<Counted>>,
    bulk: Option<Bulk>,
}

/// The largest groups.
pub(super) async fn page(visitor: &Visitor, letters: &Arc<dyn DeadLetters>) -> PageResult {
    let Dashboard { census, subject, .. } = &*visitor.dashboard;
    let counted = census.look(letters, &subject.clock).await?;
    let as_of = counted.as_ref().map(|counted| counted.as_of.as_micros());
    let buttons = vec![bulk::RETRY, bulk::DROP];
    let bulk = as_of.and_then(|as_of| Bulk::of(visitor, BULK, as_of, buttons));
    let content = Page { visitor, counted, bulk };
    layout::page(visitor, (Section::DeadLetters, "Dead letters"), &content).await
}

/// Every letter as a line of JSON, page by page.
pub(super) fn lines(letters: Arc<dyn DeadLetters>) -> Lines {
    try_unfold(Some(None), move |from: Option<Option<Vec<u8>>>| {
        let letters = letters.clone();
        async move {
            let Some(from) = from else { return Ok(None) };
            let page = letters.dead_letters(from.as_deref(), LETTERS_PER_PAGE).await?;
            let lines: String = page.letters.iter().map(letter_line).collect();
            Ok(Some((Bytes::from(lines), page.next.map(Some))))
        }
    })
    .boxed()
}

/// The dead letters of this process.
pub(super) fn of(dashboard: &Dashboard) -> Result<&Arc<dyn DeadLetters>, PageError> {
    dashboard
        .subject
        .dead_letters
        .as_ref()
        .ok_or(PageError::NotFound("this process has no list of dead letters"))
}
