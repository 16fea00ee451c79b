//! Politeness of all processes on one file: one row per site, changed by the pure rules.

use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::politeness::{
    Politeness, RecentOrders, RobotsRecord, SiteAsk, SiteReport, Turn,
};
use fetchwell_policy::breaker::{BreakerRule, Transition};
use fetchwell_policy::chance::Chance;
use fetchwell_policy::pace::Rate;
use fetchwell_policy::site::{Permit, SiteState, Spend};
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};
use fetchwell_sqlite::db::Db;
use fetchwell_sqlite::errors::own_error;
use fetchwell_sqlite::statements::Statements;
use parking_lot::Mutex;
use rusqlite::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::clock::write_at;
use super::sites::ordered;

pub(super) const ROBOTS: &str = "SELECT record FROM robots WHERE origin = ?1";

/// Sites examined per transaction of a sweep, which keeps each transaction short.
const SWEEP_STEP: u32 = 1_000;

/// The politeness store on SQLite.
pub struct SqlitePoliteness {
    pub(super) db: Db,
    pub(super) clock: Clock,
    rule: BreakerRule,
    chance: Arc<Mutex<Chance>>,
}

impl SqlitePoliteness {
    /// Uses an open file.
    pub fn new(db: Db, clock: Clock, rule: BreakerRule, seed: u64) -> SqlitePoliteness {
        SqlitePoliteness { db, clock, rule, chance: Arc::new(Mutex::new(Chance::seeded(seed))) }
    }
}

#[async_trait]
impl Politeness for SqlitePoliteness {
    async fn turn(&self, reports: &[SiteReport], asks: &[SiteAsk]) -> Result<Turn, StoreError> {
        let reports = reports.to_vec();
        let asks = asks.to_vec();
        let rule = self.rule;
        let chance = self.chance.clone();
        write_at(&self.db, &self.clock, move |tx, now| {
            let mut turn = Turn { now, ..Turn::default() };
            for SiteReport { site, report } in &reports {
                let unit = chance.lock().unit();
                let transition =
                    change(tx, site, now, |state| state.record(report, now, &rule, unit))?;
                if transition != Transition::None {
                    turn.transitions.push((site.clone(), transition));
                }
            }
            for ask in &asks {
                let verdict = change(tx, &ask.site, now, |state| {
                    state.ask(now, ask.rate, ask.follows_robots, &rule)
                })?;
                turn.verdicts.push(verdict);
            }
            Ok(turn)
        })
        .await
    }

    async fn spend(
        &self,
        site: &Site,
        permit: &Permit,
        rate: Rate,
    ) -> Result<(Spend, Time), StoreError> {
        let site = site.clone();
        let permit = *permit;
        write_at(&self.db, &self.clock, move |tx, now| {
            let spend = change(tx, &site, now, |state| state.spend(&permit, now, rate))?;
            Ok((spend, now))
        })
        .await
    }

    async fn robots(&self, origin: &Origin) -> Result<Option<RobotsRecord>, StoreError> {
        let origin = origin.to_string();
        self.db.write(move |tx| read(tx, ROBOTS, &origin)).await
    }

    async fn keep_robots(&self, origin: &Origin, record: &RobotsRecord) -> Result<(), StoreError> {
        let origin = origin.to_string();
        let record = to_text(record)?;
        self.db
            .write(move |tx| {
                tx.run(
                    "INSERT INTO robots VALUES (?1, ?2)
                     ON CONFLICT (origin) DO UPDATE SET record = excluded.record",
                    [origin, record],
                )
            })
            .await?;
        Ok(())
    }

    async fn look(&self, site: &Site) -> Result<(Option<SiteState>, Time), StoreError> {
        let site = site.clone();
        write_at(&self.db, &self.clock, move |tx, now| Ok((state_of(tx, &site)?, now))).await
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        let mut after = String::new();
        loop {
            let step = move |tx: &Connection, now| sweep_step(tx, &after, now);
            let (last, swept) = write_at(&self.db, &self.clock, step).await?;
            forgotten += swept;
            match last {
                Some(site) => after = site,
                None => return Ok(forgotten),
            }
        }
    }

    async fn orders_since(&self, since: Time) -> Result<RecentOrders, StoreError> {
        write_at(&self.db, &self.clock, move |tx, now| {
            Ok(RecentOrders { now, sites: ordered(tx, since)? })
        })
        .await
    }
}

/// Reads the state of a site, changes it by a rule, and writes it back if it changed.
pub(super) fn change<T>(
    tx: &Connection,
    site: &Site,
    now: Time,
    rule: impl FnOnce(&mut SiteState) -> T,
) -> rusqlite::Result<T> {
    let before = state_of(tx, site)?;
    let mut state = before.clone().unwrap_or_default();
    let result = rule(&mut state);
    if before.as_ref() != Some(&state) {
        tx.run(
            "INSERT INTO site (site, state, notable) VALUES (?1, ?2, ?3)
             ON CONFLICT (site) DO UPDATE SET state = excluded.state, notable = excluded.notable",
            (site.as_str(), to_text(&state).map_err(own_error)?, state.is_notable(now)),
        )?;
    }
    Ok(result)
}

pub(super) fn state_of(tx: &Connection, site: &Site) -> rusqlite::Result<Option<SiteState>> {
    read(tx, "SELECT state FROM site WHERE site = ?1", site.as_str())
}

/// A value that cannot be read counts as missing, so that data of a newer program does not stop an older one.
pub(super) fn read<T: DeserializeOwned>(
    tx: &Connection,
    sql: &str,
    key: &str,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = tx.find(sql, [key], |row| row.get(0))?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

fn sweep_step(tx: &Connection, after: &str, now: Time) -> rusqlite::Result<(Option<String>, u64)> {
    let select = "SELECT site, state FROM site WHERE site > ?1 ORDER BY site LIMIT ?2";
    let sites: Vec<(String, String)> =
        tx.list(select, (after, SWEEP_STEP), |row| row.try_into())?;
    let mut forgotten = 0;
    for (site, state) in &sites {
        let forgettable =
            serde_json::from_str::<SiteState>(state).is_ok_and(|state| state.is_forgettable(now));
        if forgettable {
            tx.run("DELETE FROM site WHERE site = ?1", [site])?;
            forgotten += 1;
        }
    }
    Ok((sites.into_iter().next_back().map(|(site, _)| site), forgotten))
}

fn to_text(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| StoreError::bug("cannot encode the state of a site").with_source(error))
}
