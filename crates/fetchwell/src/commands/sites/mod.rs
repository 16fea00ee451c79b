//! `fetchwell sites`: lists the known sites with their state, and changes it. No server needs to run.

pub(crate) mod args;
mod print;

use fetchwell_engine::ports::sites::{Condition, SITES_PER_PAGE, SiteQuery};
use fetchwell_policy::orders::Order;
use fetchwell_policy::url::Site;
use fetchwell_service::audit::AuditLog;
use fetchwell_service::sites::{Operator, SiteService};
use fetchwell_settings::Settings;
use tracing::warn;

use crate::commands::sites::args::{SitesCommand, SitesListArgs};
use crate::console::exit::Exit;
use crate::console::output::{Running, print};
use crate::wiring::{open_politeness, open_retriever_if_any, open_sites, store_clock};

pub(crate) fn run(settings: &Settings, command: SitesCommand, as_json: bool) -> Running<'_> {
    Box::pin(async move {
        let service = open(settings).await?;
        let (site, wanted) = match command {
            SitesCommand::List(args) => return list(&service, &args, as_json).await,
            SitesCommand::Show { site } => {
                let row = service.row(&named(&site)?).await?;
                return print(print::in_full(&row, as_json));
            }
            SitesCommand::Pause { site } => (site, Order::Pause),
            SitesCommand::Resume { site } => (site, Order::Resume),
            SitesCommand::SetRate { site, per_second: Some(rate), .. } => {
                let wanted = service.order_of_rate(rate).map_err(|why| {
                    Exit::Usage(format!("cannot set {rate} requests per second: {why}"))
                })?;
                (site, wanted)
            }
            SitesCommand::SetRate { site, per_second: None, .. } => (site, Order::ClearInterval),
            SitesCommand::ResetBreaker { site } => (site, Order::ResetBreaker),
            SitesCommand::RefetchRobots { site } => (site, Order::ForgetRobots),
        };
        order(&service, &site, wanted, as_json).await
    })
}

async fn open(settings: &Settings) -> Result<SiteService, Exit> {
    let (audit, clock) = match open_retriever_if_any(settings).await? {
        Some((store, clock)) => (Some(AuditLog::of_store(store.inbox, clock.clone())), clock),
        None => (None, store_clock(settings).await?),
    };
    open_sites(settings, open_politeness(settings).await?, audit, clock).await
}

async fn list(service: &SiteService, args: &SitesListArgs, as_json: bool) -> Result<Exit, Exit> {
    let mut query = SiteQuery {
        after: args.after.clone(),
        text: args.text.as_ref().map(|text| text.to_lowercase()),
        condition: args.condition.as_deref().and_then(Condition::parse),
        most: 0,
        ..SiteQuery::default()
    };
    let mut rows = Vec::new();
    loop {
        query.most = (args.limit - rows.len()).min(SITES_PER_PAGE);
        let page = service.page(&query).await?;
        rows.extend(page.rows);
        query.after = page.next;
        if query.after.is_none() || rows.len() >= args.limit {
            break;
        }
    }
    print(print::list(&rows, query.after.as_deref(), as_json))
}

async fn order(
    service: &SiteService,
    site: &str,
    order: Order,
    as_json: bool,
) -> Result<Exit, Exit> {
    let site = named(site)?;
    if !service.is_known(&site).await? {
        warn!(
            "{site} is unknown: no recent request, no robots.txt and no waiting URL. The change is \
             stored anyway; check the name (`fetchwell sites list` shows the known sites)"
        );
    }
    let operator = Operator { name: "cli".to_owned(), from: "command line".to_owned() };
    let obeyed = service.order(&site, order, &operator).await?;
    print(print::obeyed(order, &obeyed, as_json))
}

fn named(site: &str) -> Result<Site, Exit> {
    Site::parse(site).map_err(|fault| Exit::Usage(format!("{site:?} is not a site: {fault}")))
}
