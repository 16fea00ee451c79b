//! `fetchwell migrate` in a build without PostgreSQL.

use fetchwell_settings::Settings;
use fetchwell_settings::features::POSTGRES;

use crate::console::exit::Exit;
use crate::console::output::Running;

/// Always fails: PostgreSQL is the only store that data can be migrated to.
pub(crate) fn run<'a>(_: &'a Settings, _: &'a Settings, _: bool) -> Running<'a> {
    let wrong = POSTGRES.missing();
    let text = format!("migrate {}\n    {}", wrong.problem, wrong.mend);
    Box::pin(std::future::ready(Err(Exit::Usage(text))))
}
