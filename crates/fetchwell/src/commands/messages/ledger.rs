//! `fetchwell ledger`: how many jobs of every queue stand where, and whether the sum is right.

use anyhow::anyhow;
use fetchwell_engine::ports::oversight::{QueueLedger, Recount};
use fetchwell_settings::Settings;

use super::print as lines;
use crate::commands::messages::args::LedgerArgs;
use crate::console::exit::Exit;
use crate::console::output::{Running, print};
use crate::doors::retriever::open_store;

/// Does what was typed.
pub(crate) fn run<'a>(settings: &'a Settings, args: &'a LedgerArgs, as_json: bool) -> Running<'a> {
    Box::pin(run_inner(settings, args, as_json))
}

async fn run_inner(settings: &Settings, args: &LedgerArgs, as_json: bool) -> Result<Exit, Exit> {
    let queues = match &settings.values.store {
        #[cfg(feature = "redis")]
        fetchwell_engine::ports::store_url::StoreUrl::Redis(url) => {
            super::redis_ledger::read(settings, url.reveal(), args.check).await?
        }
        _ => of_database(settings, args.check).await?,
    };
    let wrong: Vec<String> = queues.iter().filter_map(wrong_with).collect();
    print(lines::ledger(queues, as_json).as_bytes())?;
    if wrong.is_empty() {
        return Ok(Exit::Ok);
    }
    Err(Exit::Internal(anyhow!(
        "the ledger does not add up: {}; keep a copy of the store, and check what else writes to \
         it",
        wrong.join("; ")
    )))
}

async fn of_database(settings: &Settings, check: bool) -> Result<Vec<Recount>, Exit> {
    let (store, _) = open_store(settings).await?;
    if check {
        return Ok(store.oversight.recount().await?);
    }
    let told = |told| Recount { told, difference: None };
    Ok(store.oversight.ledgers().await?.into_iter().map(told).collect())
}

fn wrong_with(queue: &Recount) -> Option<String> {
    let QueueLedger { queue: name, ledger } = &queue.told;
    match &queue.difference {
        Some(difference) => Some(format!("{name}: {difference}")),
        None if !ledger.balances() => {
            let stand = ledger.done
                + ledger.skipped
                + ledger.queued
                + ledger.in_flight
                + ledger.delayed
                + ledger.dead;
            Some(format!(
                "{name}: {} were accepted, but the states add up to {stand}",
                ledger.accepted
            ))
        }
        None => None,
    }
}
