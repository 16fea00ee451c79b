//! Errors in settings, each with its location and how to fix it.

use std::fmt;
use std::mem::discriminant;
use std::path::PathBuf;

use fetchwell_engine::ports::links::NameError;
use fetchwell_policy::units::UnitError;
pub(super) use fetchwell_policy::units::quoted;

/// All faults that were found, not only the first.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SettingsFaults {
    faults: Vec<SettingError>,
}

impl SettingsFaults {
    pub(super) fn new(mut faults: Vec<SettingError>) -> SettingsFaults {
        faults.sort_by(|a, b| a.origin.cmp(&b.origin));
        SettingsFaults { faults }
    }

    /// The faults, sorted by origin and line.
    pub fn faults(&self) -> &[SettingError] {
        &self.faults
    }
}

/// One fault, with its location and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// Where the value was set.
    pub origin: ValueOrigin,
    /// The key of the setting; empty if the fault concerns the whole file.
    pub key: String,
    pub wrong: Wrong,
}

impl fmt::Display for SettingError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: ", self.origin)?;
        if !self.key.is_empty() {
            write!(out, "{}: ", self.key)?;
        }
        write!(out, "{}\n    {}", self.wrong.problem, self.wrong.mend)
    }
}

/// A problem and how to fix it, without the location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {mend}")]
pub struct Wrong {
    pub problem: String,
    /// How to fix it.
    pub mend: String,
}

impl Wrong {
    pub(super) fn new(problem: impl Into<String>, mend: impl Into<String>) -> Wrong {
        Wrong { problem: problem.into(), mend: mend.into() }
    }
}

impl From<UnitError> for Wrong {
    fn from(error: UnitError) -> Wrong {
        Wrong::new(error.problem, error.fix)
    }
}

impl From<NameError> for Wrong {
    fn from(error: NameError) -> Wrong {
        Wrong::new(error.problem, error.fix)
    }
}

/// The source of a value, in descending precedence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueOrigin {
    /// A command-line flag, such as `--rate`.
    Flag(String),
    /// An environment variable that begins with `FETCHWELL_`.
    Environment(String),
    /// An environment variable that a design defines.
    OwnName(String),
    /// A settings file.
    File {
        /// The file, as the user would name it.
        path: PathBuf,
        /// The line, counted from 1; `None` for the whole file.
        line: Option<usize>,
    },
    /// The built-in default.
    Default,
}

impl ValueOrigin {
    /// Whether a value from this source takes precedence over one from the other. Two values of one source, such as two
    /// lines of a file, have the same precedence.
    pub(super) fn is_stronger_than(&self, other: &ValueOrigin) -> bool {
        self < other && discriminant(self) != discriminant(other)
    }
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueOrigin::Flag(name) => write!(out, "flag {name}"),
            ValueOrigin::Environment(name) | ValueOrigin::OwnName(name) => {
                write!(out, "environment {name}")
            }
            ValueOrigin::File { path, line: Some(line) } => {
                write!(out, "file {} line {line}", path.display())
            }
            ValueOrigin::File { path, line: None } => write!(out, "file {}", path.display()),
            ValueOrigin::Default => write!(out, "default"),
        }
    }
}
