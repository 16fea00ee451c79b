//! Opens the service that manages sites.

use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::sites::Sites;
use fetchwell_service::audit::AuditLog;
use fetchwell_service::sites::SiteService;
use fetchwell_settings::Settings;

use crate::console::exit::Exit;
use crate::wiring::{gate_rules, open_waiting};

/// Opens it on a politeness store and the queues of the settings.
pub(crate) async fn open_sites(
    settings: &Settings,
    sites: Arc<dyn Sites>,
    audit: Option<AuditLog>,
    clock: Clock,
) -> Result<SiteService, Exit> {
    let waiting = open_waiting(settings).await?;
    let rules = gate_rules(settings, None);
    let may_unpace = settings.values.i_own_these_sites;
    Ok(SiteService::new(sites, waiting, audit, rules, clock, may_unpace))
}
