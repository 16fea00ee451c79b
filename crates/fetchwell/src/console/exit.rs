//! Exit codes, and the errors that lead to them.

use std::fmt;
use std::process::ExitCode;

use fetchwell_commoncrawl::CommonCrawlError;
use fetchwell_doors::schedule::PlanFileError;
use fetchwell_engine::http::ClientError;
use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
use fetchwell_service::auth::RandomError;
use fetchwell_settings::SettingsFaults;
use fetchwell_stores::open::OpenError;
use fetchwell_telemetry::traces::TracesError;

/// How the program ends.
#[derive(Debug)]
pub(crate) enum Exit {
    Ok,
    Internal(anyhow::Error),
    /// The command line or the settings are wrong.
    Usage(String),
    /// Refused by policy: robots.txt or the address guard.
    Refused,
    SomeFailed,
    /// A required store or server is not reachable.
    Unreachable(String),
    /// A signal stopped it before its work was done.
    Interrupted,
}

impl Exit {
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.number())
    }

    fn number(&self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Internal(_) => 1,
            Exit::Usage(_) => 2,
            Exit::Refused => 3,
            Exit::SomeFailed => 4,
            Exit::Unreachable(_) => 5,
            Exit::Interrupted => 130, // The same as after a second signal, see `signals::AT_ONCE`.
        }
    }
}

/// The final error message; empty if everything was already printed.
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Internal(error) => f.write_str(&with_causes(error)),
            Exit::Usage(text) | Exit::Unreachable(text) => f.write_str(text),
            Exit::Ok | Exit::Refused | Exit::SomeFailed | Exit::Interrupted => Ok(()),
        }
    }
}

/// An error and its causes. Skips causes whose text a driver already included in its own message.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

impl From<anyhow::Error> for Exit {
    fn from(error: anyhow::Error) -> Exit {
        Exit::Internal(error)
    }
}

impl From<std::io::Error> for Exit {
    fn from(error: std::io::Error) -> Exit {
        Exit::Internal(error.into())
    }
}

impl From<StoreError> for Exit {
    fn from(fault: StoreError) -> Exit {
        match fault.kind() {
            // A Redis Cluster, changed tables, missing privileges: use another store, or set this one up differently.
            StoreErrorKind::Incompatible => Exit::Usage(fault.to_string()),
            StoreErrorKind::Transient => Exit::Unreachable(fault.to_string()),
            StoreErrorKind::Corrupt | StoreErrorKind::TooLarge | StoreErrorKind::Bug => {
                Exit::Internal(fault.into())
            }
        }
    }
}

impl From<RandomError> for Exit {
    fn from(error: RandomError) -> Exit {
        Exit::Internal(error.into())
    }
}

impl From<OpenError> for Exit {
    fn from(error: OpenError) -> Exit {
        match error {
            OpenError::Store(fault) => fault.into(),
            OpenError::Path(error) => error.into(),
            refused => Exit::Usage(refused.to_string()),
        }
    }
}

impl From<SettingsFaults> for Exit {
    fn from(faults: SettingsFaults) -> Exit {
        Exit::Usage(faults.to_string())
    }
}

impl From<ClientError> for Exit {
    fn from(error: ClientError) -> Exit {
        Exit::Usage(error.to_string())
    }
}

impl From<PlanFileError> for Exit {
    fn from(error: PlanFileError) -> Exit {
        Exit::Usage(error.to_string())
    }
}

impl From<CommonCrawlError> for Exit {
    fn from(error: CommonCrawlError) -> Exit {
        match error {
            CommonCrawlError::Store(fault) => fault.into(),
            CommonCrawlError::File(error) => error.into(),
            refused => Exit::Usage(refused.to_string()),
        }
    }
}

impl From<TracesError> for Exit {
    fn from(error: TracesError) -> Exit {
        match error {
            TracesError::Endpoint { .. } => Exit::Usage(error.to_string()),
            TracesError::Client(error) => error.into(),
            TracesError::Start(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_store_error_has_its_code_and_says_its_cause_once() {
        for (kind, number) in [
            (StoreErrorKind::Transient, 5),
            (StoreErrorKind::Incompatible, 2),
            (StoreErrorKind::Corrupt, 1),
            (StoreErrorKind::TooLarge, 1),
            (StoreErrorKind::Bug, 1),
        ] {
            let cause = std::io::Error::other("the cause");
            let fault = StoreError::new(kind, "SQLite file x.db").with_source(cause);
            let said = fault.to_string();
            let exit = Exit::from(fault);
            assert_eq!((exit.number(), exit.to_string()), (number, said), "{kind:?}");
        }
        let error = anyhow::Error::new(std::io::Error::other("the cause")).context("the context");
        assert_eq!(Exit::Internal(error).to_string(), "the context: the cause");
    }

    #[test]
    fn each_error_of_commoncrawl_has_its_code_and_text() {
        let in_use = CommonCrawlError::CheckpointInUse("a.checkpoint".into());
        let cut_off = CommonCrawlError::File(std::io::Error::other("the file is cut off"));
        let away = CommonCrawlError::Store(StoreError::transient("the broker"));
        for (error, number) in [(in_use, 2), (cut_off, 1), (away, 5)] {
            let said = error.to_string();
            let exit = Exit::from(error);
            assert_eq!((exit.number(), exit.to_string()), (number, said));
        }
    }

    #[test]
    fn the_page_of_errors_lists_them() {
        let all = [
            Exit::Ok,
            Exit::Internal(anyhow::anyhow!("x")),
            Exit::Usage(String::new()),
            Exit::Refused,
            Exit::SomeFailed,
            Exit::Unreachable(String::new()),
            Exit::Interrupted,
        ];
        let numbers = all.iter().map(|exit| exit.number().to_string());
        fetchwell_testkit::documented::lists_exactly("Exit codes", numbers);
        assert_eq!(i32::from(Exit::Interrupted.number()), crate::console::signals::AT_ONCE);
    }
}
