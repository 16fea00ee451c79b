//! Actions on several selected groups, or on several selected letters of a group.

use fetchwell_engine::ports::dead_letters::{DeadGroup, DeadLetters, Revision};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_engine::ports::oversight::{Action, MessageFilter, MessageState, Oversight};
use fetchwell_policy::digest::sha256_hex;
use fetchwell_policy::time::Time;

use super::as_of;
use super::group::moment;
use super::letters::of;
use crate::dashboard::access::Order;
use crate::dashboard::bulk::MOST_SELECTED;
use crate::dashboard::fault::{PageError, PageResult};
use crate::dashboard::words;
use crate::views::letters::site_name;

const NOTHING: &str = "Nothing was done: select at least one row.";
const GONE: &str = "Nothing was done: what was selected no longer exists.";

/// A short name for a group in a form. A reason may be long.
pub(super) fn key(reason: &str, site: &str) -> String {
    let hash = sha256_hex(format!("{reason}\0{site}").as_bytes());
    hash.chars().take(16).collect()
}

/// What was done to one group.
struct Changed {
    count: u64,
    reason: String,
    site: String,
}

/// Retries or drops the selected groups or letters, as of the time of the page.
pub(in super::super) async fn act(order: Order) -> PageResult {
    let form = &order.form;
    let (revision, done) = match form.need("what")? {
        "retry" => (Revision::Retry, "Retried"),
        "drop" => (Revision::Drop, "Dropped"),
        _ => return Err(PageError::BadRequest("unknown action")),
    };
    let letters = form.all("letter", MOST_SELECTED);
    let groups = form.all("group", MOST_SELECTED);
    let as_of = moment(form)?;
    if !letters.is_empty() {
        return act_on_letters(&order, &letters, revision, done).await;
    }
    if groups.is_empty() {
        return Ok(order.not_done(NOTHING.to_owned()));
    }
    let is_selected =
        |reason: &str, site: &str| groups.iter().any(|group| *group == key(reason, site));
    let dashboard = &order.by.dashboard;
    let (changed, verb) = match &dashboard.subject.oversight {
        Some(_) if revision == Revision::Drop => {
            return Err(PageError::BadRequest("failed messages cannot be dropped"));
        }
        Some(oversight) => {
            (retry_messages(&**oversight, as_of, is_selected).await?, "retry_messages")
        }
        None => {
            let letters = of(dashboard)?;
            let counted = dashboard.census.look(letters, &dashboard.subject.clock).await?;
            let Some(counted) = counted else {
                let text = "Nothing was done: the list is being counted. Try again in a moment.";
                return Ok(order.not_done(text.to_owned()));
            };
            let named = counted.groups.iter().map(|(group, _)| group);
            let selected = named.filter(|group| is_selected(&group.reason, &group.site));
            let changed = revise_groups(&**letters, selected, as_of, revision).await?;
            dashboard.census.is_over();
            (changed, verb(revision))
        }
    };
    let total: u64 = changed.iter().map(|one| one.count).sum();
    if total == 0 {
        return Ok(order.not_done(GONE.to_owned()));
    }
    let of_each = |one: &Changed| {
        format!("{} of {}: {}", words::count::<u64>(one.count), site_name(&one.site), one.reason)
    };
    let detail = changed.iter().map(of_each).collect::<Vec<_>>().join("; ");
    order.note(verb, format!("{detail}; as of {}", words::moment(as_of))).await?;
    let total = words::count::<u64>(total);
    let groups = match changed.len() {
        1 => "1 group".to_owned(),
        count => format!("{count} groups"),
    };
    Ok(order.told(format!("{done}: {total} in {groups} ({detail}).")))
}

/// The action in the audit log.
fn verb(revision: Revision) -> &'static str {
    match revision {
        Revision::Retry => "retry_dead_letters",
        Revision::Drop => "drop_dead_letters",
    }
}

async fn act_on_letters(order: &Order, ids: &[&str], revision: Revision, done: &str) -> PageResult {
    let dashboard = &order.by.dashboard;
    let parsed: Result<Vec<LeaseId>, _> = ids.iter().map(|id| id.parse()).collect();
    let ids = parsed.map_err(|_| PageError::BadRequest("letter is not the id of a letter"))?;
    let revised = of(dashboard)?.take_off(&ids, revision).await?;
    dashboard.census.is_over();
    if revised == 0 {
        return Ok(order.not_done(GONE.to_owned()));
    }
    let count = words::count::<usize>(revised);
    order.note(verb(revision), format!("{count} selected letters")).await?;
    let left = ids.len().saturating_sub(revised);
    let gone = if left > 0 { format!(" No longer there: {left}.") } else { String::new() };
    Ok(order.told(format!("{done}: {count}.{gone}")))
}

async fn retry_messages(
    oversight: &dyn Oversight,
    as_of: Time,
    is_selected: impl Fn(&str, &str) -> bool,
) -> Result<Vec<Changed>, PageError> {
    let mut changed = Vec::new();
    for group in oversight.failures().await?.groups {
        if !is_selected(&group.reason, &group.site) {
            continue;
        }
        let filter = MessageFilter {
            state: Some(MessageState::Failed),
            reason: Some(group.reason.clone()),
            site: Some(group.site.clone()),
            as_of: Some(as_of),
            ..MessageFilter::default()
        };
        let acted = oversight.act(Action::Retry, &filter, usize::MAX).await?;
        if acted.done > 0 {
            changed.push(Changed { count: acted.done, reason: group.reason, site: group.site });
        }
    }
    Ok(changed)
}

async fn revise_groups(
    letters: &dyn DeadLetters,
    groups: impl Iterator<Item = &DeadGroup>,
    as_of: Time,
    revision: Revision,
) -> Result<Vec<Changed>, PageError> {
    let mut changed = Vec::new();
    for group in groups {
        let count = as_of::revise(letters, group, (as_of, usize::MAX), revision).await? as u64;
        if count > 0 {
            let DeadGroup { reason, site } = group.clone();
            changed.push(Changed { count, reason, site });
        }
    }
    Ok(changed)
}
