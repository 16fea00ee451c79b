//! `fetchwell migrate` in a build without PostgreSQL.

use crate::cli::Exit;
use crate::settings::Settings;
use crate::settings::features::POSTGRES;

/// There is nowhere to move to.
pub(crate) async fn run(_: &Settings, _: &Settings, _: bool) -> Result<Exit, Exit> {
    let wrong = POSTGRES.missing();
    Err(Exit::Usage(format!("migrate {}\n    {}", wrong.problem, wrong.mend)))
}
