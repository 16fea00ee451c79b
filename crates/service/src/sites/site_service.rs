//! Lists sites and carries out orders, for commands, the API and the dashboard.

use std::sync::Arc;

use fetchwell_engine::clock::Clock;
use fetchwell_engine::gate::GateRules;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::sites::{KnownSite, SiteOrder, SiteQuery, SiteRank, Sites, Waiting};
use fetchwell_policy::orders::{MAX_ORDERED_INTERVAL, Order};
use fetchwell_policy::pace::Rate;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use serde::Serialize;
use utoipa::ToSchema;

use super::row::SiteRow;
use crate::audit::AuditLog;

/// The limit when counting the waiting URLs of a site in a list…
const MOST_COUNTED_IN_A_LIST: u32 = 1_000;
/// …and of a single site.
const MOST_COUNTED_ALONE: u32 = 1_000_000;

/// The highest rate that can be ordered, in requests per second.
const FASTEST: f64 = 10_000.0;

/// The name and the address of an operator, for the order and the audit log.
#[derive(Clone, Debug)]
pub struct Operator {
    pub name: String,
    pub from: String,
}

/// A page of sites, sorted by name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sites)]
pub struct RowsPage {
    /// The sites; a page may have fewer than requested, or none, and still a `next`.
    #[serde(rename = "sites")]
    pub rows: Vec<SiteRow>,
    /// The name after which to continue; null at the end.
    pub next: Option<String>,
}

/// The outcome of an order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SiteOrdered)]
pub struct Obeyed {
    /// Whether it changed anything: the site may have been in that state already.
    pub changed: bool,
    /// The new state of the site.
    #[serde(rename = "site")]
    pub row: SiteRow,
}

/// Reads the state of sites and carries out orders.
pub struct SiteService {
    sites: Arc<dyn Sites>,
    /// Counts the waiting URLs of a site, if the store has queues that can.
    waiting: Arc<dyn Waiting>,
    /// Records orders, if there is an audit log.
    audit: Option<AuditLog>,
    rules: GateRules,
    clock: Clock,
    may_unpace: bool,
}

impl SiteService {
    /// `rules` are those of this process. Only `may_unpace` allows a rate of 0, which disables pacing.
    pub fn new(
        sites: Arc<dyn Sites>,
        waiting: Arc<dyn Waiting>,
        audit: Option<AuditLog>,
        rules: GateRules,
        clock: Clock,
        may_unpace: bool,
    ) -> SiteService {
        SiteService { sites, waiting, audit, rules, clock, may_unpace }
    }

    /// A page of sites.
    pub async fn page(&self, query: &SiteQuery) -> Result<RowsPage, StoreError> {
        let page = self.sites.sites(query).await?;
        let rows = self.rows(&page.sites, MOST_COUNTED_IN_A_LIST, page.now).await?;
        Ok(RowsPage { rows, next: page.next })
    }

    /// A page of all sites: those with a rank first, highest first, then the others by name. The `next` of a page
    /// continues in this order only.
    pub async fn ranked_page(
        &self,
        query: &SiteQuery,
        rank: SiteRank,
    ) -> Result<RowsPage, StoreError> {
        /// Before the `after` of a page in the part without rank. No name of a site begins with it.
        const UNRANKED: char = '=';
        let after = query.after.as_deref().unwrap_or_default();
        let mut now = None;
        let mut sites = Vec::new();
        let mut next = None;
        let unranked_after = match after.strip_prefix(UNRANKED) {
            Some(after) => Some(after),
            None => {
                let order = SiteOrder::Ranked(rank);
                let page = self.sites.sites(&SiteQuery { order, ..query.clone() }).await?;
                now = Some(page.now);
                sites = page.sites;
                next = page.next;
                next.is_none().then_some("")
            }
        };
        let room = query.most().saturating_sub(sites.len());
        if let Some(after) = unranked_after {
            if room == 0 {
                next = Some(UNRANKED.to_string());
            } else {
                let order = SiteOrder::Unranked(rank);
                let after = Some(after.to_owned()).filter(|after| !after.is_empty());
                let rest = SiteQuery { order, after, most: room, ..query.clone() };
                let page = self.sites.sites(&rest).await?;
                now = now.or(Some(page.now));
                sites.extend(page.sites);
                next = page.next.map(|next| format!("{UNRANKED}{next}"));
            }
        }
        let rows = self.rows(&sites, MOST_COUNTED_IN_A_LIST, now.unwrap_or_default()).await?;
        Ok(RowsPage { rows, next })
    }

    /// One site without the number of its waiting URLs, which may take long to count.
    pub async fn row_uncounted(&self, site: &Site) -> Result<SiteRow, StoreError> {
        let (known, store_now) = self.sites.site(site).await?;
        Ok(SiteRow::of(&known, 0, &self.rules, (store_now, self.clock.now())))
    }

    /// The first sites in this order, without the numbers of their waiting URLs.
    pub async fn worst(&self, rank: SiteRank, most: usize) -> Result<Vec<SiteRow>, StoreError> {
        let order = SiteOrder::Ranked(rank);
        let page = self.sites.sites(&SiteQuery { order, most, ..SiteQuery::default() }).await?;
        let times = (page.now, self.clock.now());
        Ok(page.sites.iter().map(|known| SiteRow::of(known, 0, &self.rules, times)).collect())
    }

    /// One site, even if it was never fetched from.
    pub async fn row(&self, site: &Site) -> Result<SiteRow, StoreError> {
        let (known, now) = self.sites.site(site).await?;
        let rows = self.rows(&[known], MOST_COUNTED_ALONE, now).await?;
        let row = rows.into_iter().next();
        row.ok_or_else(|| StoreError::bug(format!("the store returned no row for {site}")))
    }

    /// What the store knows about a site, with the store's time.
    pub(crate) async fn known_site(&self, site: &Site) -> Result<(KnownSite, Time), StoreError> {
        self.sites.site(site).await
    }

    /// How many URLs wait for each of these sites, each counted up to `most`.
    pub(crate) async fn waiting_for(
        &self,
        sites: &[Site],
        most: u32,
    ) -> Result<Vec<u64>, StoreError> {
        self.waiting.waiting_for(sites, most).await
    }

    /// Whether the store knows anything about a site, or has URLs waiting for it.
    pub async fn is_known(&self, site: &Site) -> Result<bool, StoreError> {
        let (state, _) = self.sites.look(site).await?;
        if state.is_some() {
            return Ok(true);
        }
        let (known, _) = self.sites.site(site).await?;
        let waiting = self.waiting.waiting_for(std::slice::from_ref(site), 1).await?;
        Ok(!known.robots.is_empty() || waiting.iter().any(|urls| *urls > 0))
    }

    /// Carries out an order, which is in effect when this returns, and records it in the audit log.
    pub async fn order(
        &self,
        site: &Site,
        order: Order,
        operator: &Operator,
    ) -> Result<Obeyed, StoreError> {
        let changed = self.sites.order(site, order, &operator.name).await?;
        if let Some(audit) = &self.audit {
            let detail = detail(site, order, changed);
            audit.note(&operator.name, action(order), detail, &operator.from).await?;
        }
        Ok(Obeyed { changed, row: self.row(site).await? })
    }

    /// The order that sets this rate, in requests per second. `Err` says why the rate is invalid.
    pub fn order_of_rate(&self, per_second: f64) -> Result<Order, String> {
        let slowest = 1.0 / MAX_ORDERED_INTERVAL.as_secs_f64();
        if per_second == 0.0 && !self.may_unpace {
            return Err("0 disables pacing, which is only for sites that you own: set \
                        i_own_these_sites, or use a rate above 0"
                .to_owned());
        }
        if per_second != 0.0 && !(slowest..=FASTEST).contains(&per_second) {
            return Err(format!(
                "must be 0, or from one request per day ({slowest:.6}) to {FASTEST} per second; to \
                 send even fewer, pause the site"
            ));
        }
        Ok(Order::SetInterval(Rate::per_second(per_second, 1).interval))
    }

    async fn rows(
        &self,
        sites: &[KnownSite],
        most: u32,
        store_now: Time,
    ) -> Result<Vec<SiteRow>, StoreError> {
        let names: Vec<Site> = sites.iter().map(|known| known.site.clone()).collect();
        let waiting = self.waiting.waiting_for(&names, most).await?;
        let times = (store_now, self.clock.now());
        let row =
            |(known, waiting): (&KnownSite, u64)| SiteRow::of(known, waiting, &self.rules, times);
        Ok(sites.iter().zip(waiting).map(row).collect())
    }
}

/// The action in the audit log.
fn action(order: Order) -> &'static str {
    match order {
        Order::Pause => "pause_site",
        Order::Resume => "resume_site",
        Order::SetInterval(_) => "set_site_rate",
        Order::ClearInterval => "clear_site_rate",
        Order::ResetBreaker => "reset_site_breaker",
        Order::ForgetRobots => "refetch_site_robots",
    }
}

/// The detail in the audit log.
fn detail(site: &Site, order: Order, changed: bool) -> String {
    let what = match order {
        Order::SetInterval(interval) => {
            format!("{site}: one request every {} s", interval.as_secs_f64())
        }
        _ => site.to_string(),
    };
    if changed { what } else { format!("{what} (no change)") }
}
