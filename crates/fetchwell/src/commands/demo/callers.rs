//! The invented callers of the demo, which send messages as callers of `serve` would.

use std::time::Duration;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::inbox::options::Options;
use fetchwell_engine::ports::inbox::{
    Caller, Inbox, MessageId, NewMessage, Role, Submission, Submitted,
};
use fetchwell_policy::url::WebUrl;
use fetchwell_service::audit::AuditLog;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use crate::commands::serve::add_caller;
use crate::console::exit::Exit;

/// The callers that send messages.
pub(super) const CALLERS: [&str; 3] = ["price-watch", "news-desk", "link-check"];
/// The retailers of their messages.
const RETAILERS: [&str; 4] = ["harbour", "meadow", "summit", "valley"];
/// The origin of their requests, as recorded in the audit log.
const FROM: &str = "demo";

/// How long they keep sending, in batches, so that there is always something new to see.
const SENDING_TAKES: Duration = Duration::from_secs(10);
const BATCHES: u32 = 40;

/// Adds the callers.
pub(super) async fn introduce(inbox: &dyn Inbox, audit: &AuditLog) -> Result<(), Exit> {
    for name in CALLERS {
        let caller = Caller { name: name.to_owned(), role: Role::Caller };
        add_caller(inbox, audit, &caller, FROM).await?;
    }
    Ok(())
}

/// Sends a message for each URL, taking turns among the callers, until all are sent or `stop`. Returns the accepted
/// messages.
pub(super) async fn send(
    inbox: &dyn Inbox,
    clock: &Clock,
    urls: &[String],
    deadline_in: Duration,
    stop: &CancellationToken,
) -> Result<Vec<MessageId>, Exit> {
    let mut accepted = Vec::with_capacity(urls.len());
    let mut turns = CALLERS.into_iter().cycle();
    let mut tick = interval(SENDING_TAKES / BATCHES);
    for batch in urls.chunks(urls.len().div_ceil(BATCHES as usize).max(1)) {
        if stop.run_until_cancelled(tick.tick()).await.is_none() {
            break;
        }
        let caller = turns.next().unwrap_or_default();
        let first = accepted.len();
        let numbered = batch.iter().zip(first..);
        let messages =
            numbered.map(|(url, number)| message(url, number, caller, clock, deadline_in));
        let submission = Submission {
            caller: caller.to_owned(),
            from: FROM.to_owned(),
            idempotency: None,
            messages: messages.collect::<Result<_, _>>()?,
            batch: None,
        };
        match inbox.submit(submission).await? {
            Submitted::Accepted { ids, .. } => accepted.extend(ids),
            Submitted::KeyUsedOtherwise => {
                return Err(anyhow::anyhow!("an idempotency key was used, but none was set").into());
            }
        }
    }
    Ok(accepted)
}

fn message(
    url: &str,
    number: usize,
    caller: &str,
    clock: &Clock,
    deadline_in: Duration,
) -> Result<NewMessage, Exit> {
    let site = WebUrl::parse(url).map_err(|fault| Exit::Internal(fault.into()))?.site();
    let mut chance = [0; 16];
    getrandom::fill(&mut chance).map_err(|error| Exit::Internal(error.into()))?;
    let options = Options::default().to_payload();
    let id = MessageId::new(clock.wall(), u128::from_be_bytes(chance));
    Ok(NewMessage {
        retailer: RETAILERS[number % RETAILERS.len()].to_owned(),
        correlation_id: format!("{caller}-{number}"),
        kind: fetchwell_engine::ports::inbox::options::kind(caller, url, &options),
        options: options.into(),
        ..NewMessage::new(id, url.to_owned(), site, deadline_in)
    })
}
