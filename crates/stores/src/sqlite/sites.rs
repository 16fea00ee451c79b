//! Listing the sites of a file, and giving orders to them.

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::politeness::{ORDERS_AT_ONCE, ORDERS_TOLD_FOR, RobotsRecord};
use fetchwell_engine::ports::sites::{
    KnownSite, PageInMaking, SiteQuery, Sites, SitesPage, origins_of,
};
use fetchwell_policy::orders::Order;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use fetchwell_sqlite::statements::Statements;
use rusqlite::Connection;

use super::SqlitePoliteness;
use super::clock::write_at;
use super::politeness::{ROBOTS, change, read, state_of};

const SITES: &str = "SELECT site, state FROM site WHERE site > ?1 ORDER BY site";
const NOTABLE_SITES: &str =
    "SELECT site, state FROM site WHERE site > ?1 AND notable = 1 ORDER BY site";

#[async_trait]
impl Sites for SqlitePoliteness {
    async fn sites(&self, query: &SiteQuery) -> Result<SitesPage, StoreError> {
        let query = query.clone();
        write_at(&self.db, &self.clock, move |tx, now| page(tx, &query, now)).await
    }

    async fn site(&self, site: &Site) -> Result<(KnownSite, Time), StoreError> {
        let site = site.clone();
        write_at(&self.db, &self.clock, move |tx, now| {
            let state = state_of(tx, &site)?.unwrap_or_default();
            let robots = robots_of(tx, &site)?;
            Ok((KnownSite { site, state, robots }, now))
        })
        .await
    }

    async fn order(&self, site: &Site, order: Order, by: &str) -> Result<bool, StoreError> {
        let site = site.clone();
        let by = by.to_owned();
        write_at(&self.db, &self.clock, move |tx, now| {
            if order == Order::ForgetRobots {
                for origin in origins_of(&site) {
                    tx.run("DELETE FROM robots WHERE origin = ?1", [origin.to_string()])?;
                }
            }
            if order.may_end_a_wait() {
                note_order(tx, &site, now)?;
            }
            change(tx, &site, now, |state| state.obey(order, &by, now))
        })
        .await
    }
}

/// The sites that were given orders at `since` or later.
pub(super) fn ordered(tx: &Connection, since: Time) -> rusqlite::Result<Vec<(Site, Time)>> {
    let select =
        "SELECT site, given_at FROM site_order WHERE given_at >= ?1 ORDER BY given_at LIMIT ?2";
    let ordered = tx.list(select, (since.as_micros(), ORDERS_AT_ONCE), |row| {
        let site = Site::parse(row.get_ref(0)?.as_str()?).ok();
        let given_at = Time::from_micros(row.get(1)?);
        Ok(site.map(|site| (site, given_at)))
    })?;
    Ok(ordered.into_iter().flatten().collect())
}

fn note_order(tx: &Connection, site: &Site, now: Time) -> rusqlite::Result<()> {
    let forget_before = (now - ORDERS_TOLD_FOR).as_micros();
    tx.run("DELETE FROM site_order WHERE given_at < ?1", [forget_before])?;
    tx.run(
        "INSERT INTO site_order VALUES (?1, ?2)
         ON CONFLICT (site) DO UPDATE SET given_at = excluded.given_at",
        (site.as_str(), now.as_micros()),
    )?;
    Ok(())
}

fn page(tx: &Connection, query: &SiteQuery, now: Time) -> rusqlite::Result<SitesPage> {
    let mut making = PageInMaking::new(query, now);
    let sql = if query.wants_only_notable() { NOTABLE_SITES } else { SITES };
    let mut statement = tx.prepare_cached(sql)?;
    let mut rows = statement.query([making.after()])?;
    let mut at_end = false;
    while !making.is_full() && !at_end {
        match rows.next()? {
            Some(row) => {
                let site = row.get_ref(0)?.as_str()?;
                let state = row.get_ref(1)?.as_str()?;
                making.offer(site, || serde_json::from_str(state).ok());
            }
            None => at_end = true,
        }
    }
    let mut page = making.finish(at_end);
    for known in &mut page.sites {
        known.robots = robots_of(tx, &known.site)?;
    }
    Ok(page)
}

fn robots_of(tx: &Connection, site: &Site) -> rusqlite::Result<Vec<(Origin, RobotsRecord)>> {
    let mut known = Vec::new();
    for origin in origins_of(site) {
        if let Some(record) = read(tx, ROBOTS, &origin.to_string())? {
            known.push((origin, record));
        }
    }
    Ok(known)
}
