//! `fetchwell commoncrawl retry-errors`: publishes the pages of `errors.jsonl` again.

use fetchwell_commoncrawl::work::{ErrorFile, RetriedErrors, RetryRules, retry_errors};
use fetchwell_engine::clock::Clock;
use fetchwell_policy::units::quantity;
use fetchwell_settings::Settings;
use serde_json::json;
use tracing::info;

use super::archive::open_bounded;
use super::args::RetryErrorsArgs;
use crate::console::exit::Exit;
use crate::console::output::{Running, print_either};
use crate::console::signals::stop_on_signal;

pub(super) fn run(settings: &Settings, args: RetryErrorsArgs, as_json: bool) -> Running<'_> {
    Box::pin(async move {
        let mut file = ErrorFile::open(&settings.values.commoncrawl_output)?;
        let outlet = open_bounded(settings, &Clock::system()).await?;
        let rules = RetryRules { kinds: args.kind, batch_size: args.batch_size };
        let retried = retry_errors(&mut file, &rules, &outlet, &stop_on_signal()).await?;
        if retried.is_interrupted {
            info!("stopped; run the same command to start over: it publishes under the same ids");
        }
        tell(&retried, as_json)?;
        Ok(if retried.is_interrupted { Exit::Interrupted } else { Exit::Ok })
    })
}

fn tell(retried: &RetriedErrors, as_json: bool) -> Result<Exit, Exit> {
    let RetriedErrors { batches, pages, read, lasting, nowhere, garbage, .. } = retried;
    let told = json!({
        "batches": batches, "pages": pages, "already_read": read, "only_by_kind": lasting,
        "without_a_place": nowhere, "unreadable_lines": garbage,
    });
    let mut text = format!(
        "published {} in {}\n",
        quantity(*pages, "page", "pages"),
        quantity(*batches, "batch", "batches")
    );
    for (count, what) in [
        (read, "already have a document"),
        (lasting, "would fail again or were filtered out; --kind publishes them anyway"),
        (nowhere, "have no record that could be read"),
        (garbage, "were not written by this program"),
    ] {
        if *count > 0 {
            text.push_str(&format!("{count} {what}\n"));
        }
    }
    print_either(as_json, told, text)
}
