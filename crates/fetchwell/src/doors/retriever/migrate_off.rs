//! `fetchwell migrate` in a build without PostgreSQL.

use crate::cli::{Exit, Running};
use crate::settings::Settings;
use crate::settings::features::POSTGRES;

/// Always fails: PostgreSQL is the only store that data can be migrated to.
pub(crate) fn run<'a>(_: &'a Settings, _: &'a Settings, _: bool) -> Running<'a> {
    let wrong = POSTGRES.missing();
    let text = format!("migrate {}\n    {}", wrong.problem, wrong.mend);
    Box::pin(std::future::ready(Err(Exit::Usage(text))))
}
