//! What may be wrong with settings, told so that it can be mended.

use std::fmt;
use std::mem::discriminant;
use std::path::PathBuf;

use fetchwell_engine::ports::links::NameError;
use fetchwell_policy::units::UnitError;
pub(super) use fetchwell_policy::units::quoted;

/// Every fault that was found, not only the first.
#[derive(Clone, Debug)]
pub struct SettingsFaults {
    faults: Vec<Fault>,
}

impl SettingsFaults {
    pub(super) fn new(mut faults: Vec<Fault>) -> SettingsFaults {
        faults.sort_by(|a, b| a.origin.cmp(&b.origin));
        SettingsFaults { faults }
    }

    /// The faults, by origin and line.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for SettingsFaults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            write!(out, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingsFaults {}

/// One thing that is wrong, with its place and its mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where the value stands.
    pub origin: Origin,
    /// The setting's key; empty when the whole file is at fault.
    pub key: String,
    /// What is wrong with it.
    pub wrong: Wrong,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: ", self.origin)?;
        if !self.key.is_empty() {
            write!(out, "{}: ", self.key)?;
        }
        write!(out, "{}\n    {}", self.wrong.problem, self.wrong.mend)
    }
}

/// A problem and its mend, before it is known where the value stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {mend}")]
pub struct Wrong {
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
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

/// Where a value came from, the strongest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A flag of the command line, such as `--rate`.
    Flag(String),
    /// A variable of the environment that begins with `FETCHWELL_`.
    Environment(String),
    /// A variable of the environment that a design had for the setting.
    OwnName(String),
    /// A settings file.
    File {
        /// The file, as its user would name it.
        path: PathBuf,
        /// The line, from 1; none when the whole file is meant.
        line: Option<usize>,
    },
    /// The built-in default.
    Default,
}

impl Origin {
    /// Whether a value from here beats one from there. Two of one source, such as two lines of a
    /// file, are equals.
    pub(super) fn is_stronger_than(&self, other: &Origin) -> bool {
        self < other && discriminant(self) != discriminant(other)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(name) => write!(out, "flag {name}"),
            Origin::Environment(name) | Origin::OwnName(name) => write!(out, "environment {name}"),
            Origin::File { path, line: Some(line) } => {
                write!(out, "file {} line {line}", path.display())
            }
            Origin::File { path, line: None } => write!(out, "file {}", path.display()),
            Origin::Default => write!(out, "default"),
        }
    }
}
