//! The ledgers of a Redis server: the list of `pages`, and what `articles` claimed.

use fetchwell_engine::ports::oversight::{QueueLedger, Recount};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_settings::Settings;

use crate::console::exit::Exit;
use crate::doors::articles::CLAIMS;
use crate::doors::redis_queues::{open_claims, open_list};

/// Reads both ledgers; `check`: and counts what is there.
pub(super) async fn read(
    settings: &Settings,
    url: &str,
    check: bool,
) -> Result<Vec<Recount>, Exit> {
    let pages = open_list(settings, url).await?;
    let claims = open_claims(settings, url).await?;
    // What others took off the list of dead letters is dead no more.
    pages.follow_dead_list().await?;
    let both = [
        (settings.values.pages_input_queue.as_str(), pages.ledger().await?, pages.audit().await?),
        (CLAIMS, claims.ledger().await?, claims.audit().await?),
    ];
    let recount = |(name, ledger, audit): (&str, Ledger, Result<Ledger, String>)| Recount {
        told: QueueLedger { queue: name.to_owned(), ledger },
        difference: audit.err().filter(|_| check),
    };
    Ok(both.into_iter().map(recount).collect())
}
