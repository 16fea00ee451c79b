//! The results of `fetch`: the rows in its file.

use std::path::Path;

use fetchwell_settings::Settings;
use serde::Deserialize;

use super::account::{Account, Outcome};
use crate::commands::fetch;
use crate::console::exit::Exit;

#[derive(Deserialize)]
struct Row {
    url: String,
    outcome: String,
}

/// The account of these URLs, and the outcome of each row.
pub(super) async fn account(
    settings: &Settings,
    path: &Path,
    urls: &[String],
) -> Result<(Account, Vec<Outcome>), Exit> {
    let rows = std::fs::read_to_string(path)?;
    let outcome = |line: &str| {
        let row: Row = serde_json::from_str(line).map_err(|error| Exit::Internal(error.into()))?;
        Ok(Outcome { key: row.url.clone(), url: row.url, word: row.outcome })
    };
    let outcomes = rows.lines().map(outcome).collect::<Result<Vec<Outcome>, Exit>>()?;
    let audit = match fetch::audit(settings, path).await? {
        Ok(ledger) => (ledger, None),
        Err(mismatch) => (Default::default(), Some(mismatch.to_string())),
    };
    Ok((Account::of(urls, &outcomes, audit), outcomes))
}
