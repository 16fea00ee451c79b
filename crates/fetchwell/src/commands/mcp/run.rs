//! Serves one client until its input ends or a signal arrives.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_doors::retriever::{flow, prune};
use fetchwell_engine::ports::inbox::{Caller, Role};
use fetchwell_service::api::mcp::{Grace, StreamRules, serve_streams};
use fetchwell_service::audit::AuthFailures;
use fetchwell_settings::Settings;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::standard_streams;
use crate::commands::serve::args::retention;
use crate::commands::serve::{self, ApiStore};
use crate::console::exit::Exit;
use crate::console::output::Running;
use crate::console::signals::stop_on_signal;
use crate::wiring::open_sites;

/// The caller on whose behalf pages are fetched: its messages and its cache are those of all clients of a store.
const CALLER: &str = "mcp";

/// The origin of the caller in the audit log.
const FROM: &str = "mcp";

pub(crate) fn run(settings: &Settings) -> Running<'_> {
    Box::pin(async move {
        let stop = stop_on_signal();
        let opened = ApiStore::open(settings).await?;
        let ApiStore { store, parts, audit, .. } = &opened;
        let caller = Caller { name: CALLER.to_owned(), role: Role::Caller };
        // The token is discarded: only this command acts as this caller.
        serve::add_caller(&*store.inbox, audit, &caller, FROM).await?;

        let politeness = parts.politeness.clone();
        let sites =
            open_sites(settings, politeness, Some(audit.clone()), parts.clock.clone()).await?;
        let auth_failures = Arc::new(AuthFailures::new(parts.clock.clone()));
        let api = opened.api(settings, &Arc::new(sites), &auth_failures, &stop);
        let values = &settings.values;
        let grace = Grace::new(values.shutdown_grace);
        let rules = StreamRules { caller, grace: grace.clone(), stop: stop.clone() };
        let (input, mut input_failure) = standard_streams::input()?;
        let (output, written) = standard_streams::output()?;
        info!("serving MCP on standard input and output; the store is {}", values.store);

        let client_ended = CancellationToken::new();
        let serving = async {
            let served = serve_streams(&api, rules, input, output).await;
            // Write the last answers before exiting, unless nobody reads them.
            drop(tokio::time::timeout_at(grace.ends_at(), written).await);
            client_ended.cancel();
            stop.cancel();
            served
        };
        let (door, mut runtime) =
            serve::messages(settings, parts, store, opened.on_result(), Arc::new(|_| {}));
        // After the last answer nobody waits for a page, and the calls may have used up the grace period.
        runtime.limits.shutdown_grace = Duration::ZERO;
        let (served, fetched, (), ()) = tokio::join!(
            serving,
            serve::ending_all(&stop, flow(door, runtime, stop.clone())),
            api.keep_audit(&client_ended),
            prune(store, retention(values), &parts.health, &stop),
        );
        fetched?;
        if let Ok(error) = input_failure.try_recv() {
            return Err(Exit::Usage(format!(
                "could not read standard input: {error}; an MCP client must be connected to it"
            )));
        }
        served.map_err(|error| Exit::Usage(format!("cannot serve this client: {error}")))?;
        Ok(Exit::Ok)
    })
}
