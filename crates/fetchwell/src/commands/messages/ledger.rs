//! `fetchwell ledger`: counts the jobs of every queue by state, and checks the sum.

use anyhow::anyhow;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::oversight::{Oversight, QueueLedger, Recount};
use fetchwell_settings::Settings;

use super::print as lines;
use crate::commands::messages::args::LedgerArgs;
use crate::console::exit::Exit;
use crate::console::output::{Running, print};
use crate::wiring::{open_queues, open_retriever_if_any};

pub(crate) fn run<'a>(settings: &'a Settings, args: &'a LedgerArgs, as_json: bool) -> Running<'a> {
    Box::pin(async move {
        let queues = match open_retriever_if_any(settings).await? {
            Some((store, _)) => of_database(&*store.oversight, args.check).await?,
            None => of_queues(settings, args.check).await?,
        };
        let wrong: Vec<String> = queues.iter().filter_map(wrong_with).collect();
        print(lines::ledger(queues, as_json))?;
        if wrong.is_empty() {
            return Ok(Exit::Ok);
        }
        Err(Exit::Internal(anyhow!(
            "the ledger does not add up: {}; keep a copy of the store, and check what else writes to \
             it",
            wrong.join("; ")
        )))
    })
}

async fn of_database(oversight: &dyn Oversight, check: bool) -> Result<Vec<Recount>, StoreError> {
    if check {
        return oversight.recount().await;
    }
    let told = |told| Recount { told, difference: None };
    Ok(oversight.ledgers().await?.into_iter().map(told).collect())
}

/// The queues of `pages` and `articles`, in a store that has no list of its queues.
async fn of_queues(settings: &Settings, check: bool) -> Result<Vec<Recount>, Exit> {
    let mut recounts = Vec::new();
    for (name, queue) in open_queues(settings).await? {
        // Letters that another client removed from the list no longer count as dead.
        queue.follow_dead_list().await?;
        let told = QueueLedger { queue: name, ledger: queue.ledger().await? };
        let mismatch = queue.audit().await?.err().filter(|_| check);
        let difference = mismatch.map(|mismatch| mismatch.to_string());
        recounts.push(Recount { told, difference });
    }
    Ok(recounts)
}

fn wrong_with(queue: &Recount) -> Option<String> {
    let QueueLedger { queue: name, ledger } = &queue.told;
    let wrong = queue.difference.clone().or_else(|| ledger.imbalance())?;
    Some(format!("{name}: {wrong}"))
}
