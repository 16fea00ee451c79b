//! `feeds test`: reads a feed once and prints what would be added. Nothing is stored.

use fetchwell_doors::feeds::{FeedReading, FeedTrial};
use fetchwell_policy::url::WebUrl;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use tracing::error;

use super::{args, print, runtime};
use crate::console::exit::Exit;
use crate::console::signals::stop_on_signal;
use crate::wiring::Parts;

pub(super) async fn run(settings: &Settings, url: &str, as_json: bool) -> Result<Exit, Exit> {
    WebUrl::parse(url).map_err(|fault| Exit::Usage(format!("{url}: {fault}")))?;
    let parts = Parts::open(settings).await?;
    let trial = FeedTrial {
        rules: args::rules(&settings.values),
        clock: parts.clock.clone(),
        runtime: &|| runtime(settings, &parts, DoorName::Errand),
        stop: stop_on_signal(),
    };
    match trial.read(url).await? {
        Some(FeedReading::Read { feed, moved_to, .. }) => {
            let resolved = trial.resolve(url, &feed).await?;
            let text = print::trial(url, &feed, moved_to.as_ref(), &resolved, as_json);
            crate::console::output::print(text)
        }
        Some(reading) => Ok(refusal(url, &reading)),
        None => Ok(Exit::SomeFailed),
    }
}

fn refusal(url: &str, reading: &FeedReading) -> Exit {
    match reading {
        FeedReading::Disallowed => {
            error!("did not read {url}: robots.txt disallows it");
            Exit::Refused
        }
        FeedReading::Gone => {
            error!("{url} is gone: the server answered 410");
            Exit::SomeFailed
        }
        FeedReading::Failed { problem, .. } | FeedReading::NotReached { why: problem } => {
            error!("cannot read {url}: {problem}");
            Exit::SomeFailed
        }
        FeedReading::Read { .. } | FeedReading::Unchanged => Exit::Ok,
    }
}
