//! `fetchwell messages`.

use fetchwell_engine::ports::inbox::MessageId;
use fetchwell_engine::ports::oversight::{
    Acted, Action, MESSAGES_PER_ACT, MESSAGES_PER_PAGE, MessageFilter, MessageSummaries, Oversight,
};
use fetchwell_service::audit::AuditLog;
use fetchwell_settings::Settings;

use super::{print as lines, which};
use crate::commands::messages::args::{MessagesCommand, MessagesListArgs, WhichMessages};
use crate::console::exit::Exit;
use crate::console::output::{Running, print};
use crate::wiring::open_retriever;

pub(crate) fn run(settings: &Settings, command: MessagesCommand, as_json: bool) -> Running<'_> {
    Box::pin(async move {
        let (store, clock) = open_retriever(settings).await?;
        let oversight = &*store.oversight;
        let audit = AuditLog::of_store(store.inbox.clone(), clock);
        match command {
            MessagesCommand::List(args) => list(oversight, &args, as_json).await,
            MessagesCommand::Show { id } => show(oversight, &id, as_json).await,
            MessagesCommand::Retry(which) => {
                act(oversight, &audit, Action::Retry, &which, as_json).await
            }
            MessagesCommand::Cancel(which) => {
                act(oversight, &audit, Action::Cancel, &which, as_json).await
            }
        }
    })
}

async fn list(
    oversight: &dyn Oversight,
    args: &MessagesListArgs,
    as_json: bool,
) -> Result<Exit, Exit> {
    if args.groups {
        let failures = oversight.failures().await?;
        return print(lines::failures(failures, as_json));
    }
    let filter = which::filter(&args.filter)?;
    if args.count {
        let count = oversight.count(&filter).await?;
        return print(lines::count(count, as_json));
    }
    let found = find(oversight, filter, args.limit).await?;
    print(lines::messages(found, as_json))
}

/// Up to `most` messages. The store returns a limited number per call, so several calls may be needed.
async fn find(
    oversight: &dyn Oversight,
    mut filter: MessageFilter,
    most: usize,
) -> Result<MessageSummaries, Exit> {
    let mut messages = Vec::new();
    let mut from = None;
    loop {
        let left = u32::try_from(most - messages.len()).unwrap_or(u32::MAX);
        let mut page = oversight.list(&filter, from, left.min(MESSAGES_PER_PAGE)).await?;
        filter.as_of = Some(page.as_of);
        messages.append(&mut page.messages);
        if page.next.is_none() || messages.len() >= most {
            return Ok(MessageSummaries { messages, ..page });
        }
        from = page.next;
    }
}

async fn show(oversight: &dyn Oversight, id: &str, as_json: bool) -> Result<Exit, Exit> {
    match oversight.detail(which::message(id)?).await? {
        Some(detail) => print(lines::detail(detail, as_json)),
        None => {
            tracing::error!("there is no message {id}; run `fetchwell messages list` to see all");
            Ok(Exit::SomeFailed)
        }
    }
}

async fn act(
    oversight: &dyn Oversight,
    audit: &AuditLog,
    act: Action,
    typed: &WhichMessages,
    as_json: bool,
) -> Result<Exit, Exit> {
    let (acted, what) = if typed.ids.is_empty() {
        let filter = which::filter(&typed.filter)?;
        let most = if typed.canary { 1 } else { usize::MAX };
        let acted = oversight.act(act, &filter, most).await?;
        (acted, format!("messages that match {filter:?}"))
    } else {
        let ids: Vec<MessageId> =
            typed.ids.iter().map(|id| which::message(id)).collect::<Result<_, _>>()?;
        (act_on_all(oversight, act, &ids).await?, typed.ids.join(" "))
    };
    audit.note_act("cli", act, &acted, &what, "command line").await?;
    print(lines::acted(act, &acted, as_json))?;
    // Nothing failed, but a user who named a message must learn that it was not changed.
    let untouched = acted.done == 0 && (acted.left_alone > 0 || !typed.ids.is_empty());
    Ok(if untouched { Exit::SomeFailed } else { Exit::Ok })
}

async fn act_on_all(
    oversight: &dyn Oversight,
    act: Action,
    ids: &[MessageId],
) -> Result<Acted, Exit> {
    let mut acted = Acted::default();
    for ids in ids.chunks(MESSAGES_PER_ACT) {
        let deeds = oversight.act_on(act, ids, None).await?;
        for (id, deed) in ids.iter().zip(deeds) {
            acted.enter(*id, deed);
        }
    }
    Ok(acted)
}
