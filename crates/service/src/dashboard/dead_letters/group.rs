//! One group of dead letters, and the actions on it.

use askama::Template;
use fetchwell_engine::ports::dead_letters::{
    CANARIES, DeadGroup, DeadLetter, DeadLetters, GroupSize, LETTERS_PER_PAGE, Letters, Revision,
};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_policy::time::Time;
use serde_json::Value;

use super::letters::of;
use super::{BULK, as_of};
use crate::dashboard::access::{Form, Order, Visitor};
use crate::dashboard::bulk::{self, Bulk};
use crate::dashboard::fault::{PageError, PageResult};
use crate::dashboard::layout::{self, Section};
use crate::dashboard::offer::{Mood, Offer};
use crate::dashboard::words::{self, shell};
use crate::views::letters::{details_of, site_name};

/// The maximum number of letters shown for a group, and of pages read to find them.
const MOST_SHOWN: usize = 20;
const PAGES_EXAMINED: usize = 20;

#[derive(Template)]
#[template(path = "letter_group.html")]
struct GroupPage<'a> {
    visitor: &'a Visitor,
    group: DeadGroup,
    found: u64,
    as_of: Time,
    letters: Vec<(DeadLetter, Vec<(String, String)>)>,
    offers: Vec<Offer>,
    bulk: Option<Bulk>,
}

/// One group, with some of its letters.
pub(in super::super) async fn page(visitor: Visitor) -> PageResult {
    let dashboard = &visitor.dashboard;
    let letters = of(dashboard)?;
    let group = named(&visitor.query())?;
    let counted = dashboard.census.look(letters, &dashboard.subject.clock).await?;
    let size = counted.as_ref().and_then(|counted| {
        counted.groups.iter().find(|(found, _)| *found == group).map(|(_, size)| size.clone())
    });
    let shown = sample(&**letters, &group, size.as_ref()).await?;
    let as_of = counted.map_or(dashboard.subject.clock.wall(), |counted| counted.as_of);
    let found = size.map_or(shown.len() as u64, |size| size.letters);
    let with_details = |letter: DeadLetter| {
        let details = details(&letter);
        (letter, details)
    };
    let content = GroupPage {
        visitor: &visitor,
        found,
        as_of,
        letters: shown.into_iter().map(with_details).collect(),
        offers: offers(&group, found, as_of),
        bulk: Bulk::of(&visitor, BULK, as_of.as_micros(), vec![bulk::RETRY, bulk::DROP]),
        group,
    };
    layout::page(&visitor, (Section::DeadLetters, "Dead letters"), &content).await
}

/// The actions on a group as of a time.
fn offers(group: &DeadGroup, found: u64, as_of: Time) -> Vec<Offer> {
    if found == 0 {
        return Vec::new();
    }
    let all = words::count::<u64>(found);
    let which = which(group);
    let offer = |what: &str, label: String, about, mood, canary: bool| {
        let mut fields = vec![
            ("what", what.to_owned()),
            ("reason", group.reason.clone()),
            ("site", group.site.clone()),
            ("as_of", as_of.as_micros().to_string()),
        ];
        let mut command = format!("fetchwell dlq {what} {which}");
        if canary {
            fields.push(("canary", "1".to_owned()));
            command.push_str(" --canary");
        }
        let action = "/dashboard/dead-letters/revise".to_owned();
        Offer { action, label, about, command, mood, fields, asks: None }
    };
    let few = "Retries the first ones with a fresh attempt count, as a test.";
    let retry = "They are queued again, each at the pace of its site. Newer dead letters are not \
                 affected.";
    let drop = "Permanent: they count as skipped from then on. Newer dead letters are not \
                affected.";
    vec![
        offer("retry", format!("Retry {CANARIES}"), few, Mood::First, true),
        offer("retry", format!("Retry all {all}"), retry, Mood::Plain, false),
        offer("drop", format!("Drop all {all}"), drop, Mood::Grave, false),
    ]
}

/// The flags of commands for a group.
pub(super) fn which(group: &DeadGroup) -> String {
    format!("--reason {} --site {}", shell(&group.reason), shell(site_name(&group.site)))
}

/// Some letters of a group, found by a bounded search; at least the sample of the count.
async fn sample(
    letters: &dyn DeadLetters,
    group: &DeadGroup,
    size: Option<&GroupSize>,
) -> Result<Vec<DeadLetter>, StoreError> {
    let mut found = Vec::new();
    let mut from = None;
    for _ in 0..PAGES_EXAMINED {
        let page = letters.dead_letters(from.as_deref(), LETTERS_PER_PAGE).await?;
        found.extend(page.letters.into_iter().filter(|letter| letter.group == *group));
        found.truncate(MOST_SHOWN);
        from = page.next;
        if from.is_none() || found.len() >= MOST_SHOWN {
            break;
        }
    }
    if let (true, Some(size)) = (found.is_empty(), size) {
        found = letters.dead_letters_of(&size.sample_url).await?;
        found.retain(|letter| letter.group == *group);
    }
    Ok(found)
}

/// The details that the command stored with a letter, by name.
fn details(letter: &DeadLetter) -> Vec<(String, String)> {
    let Value::Object(fields) = details_of(letter) else { return Vec::new() };
    let shown = fields.into_iter().filter(|(name, _)| name != "reason" && name != "failure");
    let plain = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    shown.map(|(name, value)| (name.replace('_', " "), plain(value))).collect()
}

/// Retries or drops the letters of a URL, or of a group as of a time.
pub(in super::super) async fn revise(order: Order) -> PageResult {
    let dashboard = &order.by.dashboard;
    let letters = of(dashboard)?;
    let form = &order.form;
    let (revision, verb, done) = match form.need("what")? {
        "retry" => (Revision::Retry, "retry_dead_letters", "Retried"),
        "drop" => (Revision::Drop, "drop_dead_letters", "Dropped"),
        _ => return Err(PageError::BadRequest("unknown action")),
    };
    let (revised, detail) = if let Some(url) = form.text("url") {
        (letters.revise(&Letters::OfUrl(url.to_owned()), revision).await?, url.to_owned())
    } else {
        let group = named(form)?;
        let as_of = moment(form)?;
        let most = if form.text("canary").is_some() { CANARIES } else { usize::MAX };
        let revised = as_of::revise(&**letters, &group, (as_of, most), revision).await?;
        let detail = format!(
            "{revised} of {}: {}, as of {}",
            site_name(&group.site),
            group.reason,
            words::moment(as_of)
        );
        (revised, detail)
    };
    dashboard.census.is_over();
    if revised == 0 {
        let why = "Nothing was done: the dead letter no longer exists.".to_owned();
        return Ok(order.not_done(why));
    }
    let text = format!("{done}: {}.", words::count::<usize>(revised));
    order.note(verb, detail).await?;
    Ok(order.told(text))
}

fn named(form: &Form) -> Result<DeadGroup, PageError> {
    let site = form.text("site").filter(|site| *site != site_name("")).unwrap_or_default();
    Ok(DeadGroup { reason: form.need("reason")?.to_owned(), site: site.to_owned() })
}

/// The time of the page that a form was on.
pub(super) fn moment(form: &Form) -> Result<Time, PageError> {
    form.time("as_of")?.ok_or(PageError::BadRequest("the form lacks as_of"))
}
