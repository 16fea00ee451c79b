//! Prints messages, failures and ledgers, as text or JSON.

use fetchwell_engine::ports::oversight::{
    Acted, Action, Count, Failures, MessageDetail, MessageSummaries, MessageSummary, Recount,
};
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_service::views::oversight::{
    ActedView, CountView, FailuresView, MessageDetailView, MessageSummaryView,
};
use fetchwell_service::views::standing::QueueView;
use serde_json::json;

use crate::console::output::json_line;
use crate::console::table::{plain, table};

/// A list of messages, one line each.
pub(super) fn messages(found: MessageSummaries, as_json: bool) -> String {
    let as_of = rfc3339(found.as_of);
    if as_json {
        return found
            .messages
            .into_iter()
            .map(|seen| json_line(MessageSummaryView::from(seen)))
            .collect();
    }
    if found.messages.is_empty() {
        return format!("no matching messages as of {as_of}\n");
    }
    let row = |seen: &MessageSummary| {
        let state = match &seen.reason {
            Some(reason) => format!("{}: {reason}", seen.state.as_str()),
            None => seen.state.as_str().to_owned(),
        };
        [
            seen.id.to_string(),
            rfc3339(seen.created_at),
            plain(&seen.caller),
            plain(&state),
            seen.attempts.to_string(),
            plain(&seen.url),
        ]
    };
    let rows: Vec<_> = found.messages.iter().map(row).collect();
    let mut text = table(["message", "accepted", "caller", "state", "requests", "url"], &rows);
    let more = if found.next.is_some() { "; there may be more: use --limit" } else { "" };
    text.push_str(&format!("as of {as_of}{more}\n"));
    text
}

pub(super) fn count(count: Count, as_json: bool) -> String {
    if as_json {
        return json_line(CountView::from(count));
    }
    let at_least = if count.is_exact { "" } else { "at least " };
    format!("{at_least}{} as of {}\n", count.found, rfc3339(count.as_of))
}

/// The failures, grouped by reason and site.
pub(super) fn failures(failures: Failures, as_json: bool) -> String {
    let view = FailuresView::from(failures);
    if as_json {
        return view.groups.iter().map(json_line).collect();
    }
    if view.groups.is_empty() {
        return format!("no failed messages as of {}\n", view.as_of);
    }
    let rows = view.groups.iter().map(|group| {
        let reason = plain(&group.reason);
        let site = plain(&group.site);
        [group.messages.to_string(), site, reason, group.sample.id.clone()]
    });
    let mut text = table(["messages", "site", "reason", "example"], &rows.collect::<Vec<_>>());
    let part = if view.exact { "" } else { "; these are the newest, there are more" };
    text.push_str(&format!("as of {}{part}\n", view.as_of));
    text
}

/// All details of a message.
pub(super) fn detail(detail: MessageDetail, as_json: bool) -> String {
    let view = MessageDetailView::from(detail);
    if as_json {
        return json_line(view);
    }
    let seen = &view.message;
    let mut text = format!("{}\n", seen.id);
    let mut say = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            text.push_str(&format!("  {name:<14} {}\n", value.escape_debug()));
        }
    };
    say("state", Some(seen.state));
    say("reason", seen.reason.as_deref());
    say("url", Some(&seen.url));
    say("site", Some(&seen.site));
    say("retailer", Some(&seen.retailer));
    say("correlation id", Some(&seen.correlation_id));
    say("caller", Some(&seen.caller_id));
    say("accepted", Some(&seen.created_at));
    say("due", seen.due_at.as_deref());
    say("deadline", view.deadline.as_deref());
    say("ended", seen.ended_at.as_deref());
    say("requests", Some(&seen.attempts.to_string()));
    say("follows", view.follows.as_deref());
    say("retry of", seen.retry_of.as_deref());
    say("retried as", seen.retried_as.as_deref());
    say("callback", view.callback_url.as_deref());
    if let Some(outbox) = &view.outbox {
        say("result", Some(&outbox.status));
        say("error", outbox.error.as_deref());
    }
    if !view.timeline.is_empty() {
        text.push_str("  timeline\n");
    }
    for stage in &view.timeline {
        text.push_str(&format!(
            "    {:<12} {:>10.1} ms  {}\n",
            stage.stage, stage.took_ms, stage.at
        ));
    }
    if !view.last_attempts.is_empty() {
        text.push_str("  last attempts\n");
    }
    for attempt in &view.last_attempts {
        text.push_str(&format!("    {}  {}\n", attempt.at, attempt.what.escape_debug()));
    }
    text
}

/// The result of an action on messages.
pub(super) fn acted(act: Action, acted: &Acted, as_json: bool) -> String {
    if as_json {
        return json_line(json!(ActedView::from(acted)));
    }
    let mut text = String::new();
    for (id, deed) in &acted.deeds {
        text.push_str(&format!("{id} {}\n", deed.told()));
    }
    let done = match act {
        Action::Retry => "retried",
        Action::Cancel => "cancelled",
    };
    text.push_str(&format!("{done} {}, unchanged {}\n", acted.done, acted.left_alone));
    text
}

/// The ledgers of all queues.
pub(super) fn ledger(queues: Vec<Recount>, as_json: bool) -> String {
    if as_json {
        return queues.into_iter().map(|queue| json_line(QueueView::from(queue.told))).collect();
    }
    let rows = queues.iter().map(|Recount { told, .. }| {
        let [accepted, done, skipped, queued, in_flight, delayed, dead] =
            told.ledger.states().map(|(_, count)| count.to_string());
        [plain(&told.queue), accepted, done, skipped, queued, in_flight, delayed, dead]
    });
    let head = [
        "queue",
        "accepted",
        "= done",
        "+ skipped",
        "+ queued",
        "+ in flight",
        "+ delayed",
        "+ dead",
    ];
    table(head, &rows.collect::<Vec<_>>())
}
