//! The parts that `find` and `get` share: a reader for the crawl of the settings, and the exit codes.

use fetchwell_commoncrawl::lookup::{CrawlReader, LookupError};
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use tracing::error;

use super::archive::OpenArchive;
use crate::console::exit::Exit;
use crate::console::signals::stop_on_signal;

impl OpenArchive {
    /// A reader for the crawl of the settings. A signal stops it.
    pub(super) fn reader<'a>(&'a self, settings: &'a Settings) -> CrawlReader<'a> {
        let values = &settings.values;
        CrawlReader {
            archive: &self.archive,
            crawl: &values.commoncrawl_crawl,
            runtime: self.runtime(settings, Some(values.fetch_give_up_after), DoorName::Errand),
            stop: stop_on_signal(),
        }
    }
}

/// Logs why a lookup failed, and returns the exit code.
pub(super) fn exit_of(settings: &Settings, error: LookupError) -> Exit {
    let base = &settings.values.commoncrawl_base;
    match error {
        LookupError::Refused(_) => {
            error!("{base}: {error}");
            Exit::Refused
        }
        LookupError::NotFetched { .. } | LookupError::BadAnswer(_) | LookupError::GivenUp(_) => {
            error!("{base}: {error}");
            Exit::SomeFailed
        }
        LookupError::Stopped => Exit::Ok,
        LookupError::Other(error) => error.into(),
    }
}
