//! Lets messages for the same page share one result.

use std::collections::{BTreeSet, HashMap};

use fetchwell_engine::ports::inbox::NewMessage;
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::time::Time;

use super::moves::Moves;
use crate::shared::job_state::sql;

/// What messages of one kind can share.
#[derive(Default)]
pub(super) struct Shared {
    /// The newest page, with the time when it was stored.
    pub(super) page: Option<(LeaseId, Time)>,
    /// A message that has not ended and follows no other.
    pub(super) leader: Option<LeaseId>,
}

type Kind = [u8; 16];

/// What can be shared of each kind. Locks the leaders, so that they do not end before our commit and see their
/// followers, and the pages, so that they are not deleted. Looks for leaders first: one that ends meanwhile has a page.
pub(super) async fn what_is_shared(
    moves: &mut Moves<'_>,
    messages: &[(&NewMessage, &str)],
) -> sqlx::Result<HashMap<Kind, Shared>> {
    let kinds: BTreeSet<Kind> = messages
        .iter()
        .filter(|(message, _)| message.max_age.is_some())
        .map(|(message, _)| message.kind)
        .collect();
    let mut shared: HashMap<Kind, Shared> = HashMap::new();
    if kinds.is_empty() {
        return Ok(shared);
    }
    let kinds: Vec<Vec<u8>> = kinds.iter().map(|kind| kind.to_vec()).collect();
    let query = sqlx::query(sql!(
        "SELECT kind, id FROM fetchwell_job
         WHERE kind = ANY($1) AND shares AND state < {dead} AND follows IS NULL
         ORDER BY id FOR SHARE"
    ));
    for (kind, id) in moves.tx.fetch_as(query.bind(&kinds)).await? {
        shared.entry(kind).or_default().leader.get_or_insert(id);
    }
    let query = sqlx::query(
        "SELECT page.kind, page.job, page.stored_at
         FROM unnest($1::BYTEA[]) AS wanted (kind)
         CROSS JOIN LATERAL (
             SELECT kind, job, stored_at FROM fetchwell_outbox AS outbox
             WHERE outbox.kind = wanted.kind AND outbox.status = 'success'
             ORDER BY outbox.stored_at DESC LIMIT 1 FOR KEY SHARE) AS page",
    );
    for (kind, job, stored_at) in moves.tx.fetch_as(query.bind(&kinds)).await? {
        shared.entry(kind).or_default().page = Some((job, Time::from_micros(stored_at)));
    }
    Ok(shared)
}
