//! Listing the sites of a server, and giving orders to them.

use crate::ports::error::StoreError;
use crate::ports::politeness::ORDERS_TOLD_FOR;
use crate::ports::sites::{KnownSite, PageInMaking, SiteQuery, Sites, SitesPage, origins_of};
use async_trait::async_trait;
use fetchwell_policy::orders::Order;
use fetchwell_policy::site::SiteState;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Origin, Site};

use super::shared::Moment;
use super::{SharedPoliteness, SiteStateStore, Texts};

#[async_trait]
impl<S: SiteStateStore> Sites for SharedPoliteness<S> {
    async fn sites(&self, query: &SiteQuery) -> Result<SitesPage, StoreError> {
        let now = self.updater.read(&[]).await?.now;
        let mut making = PageInMaking::new(query, now);
        let mut at_end = false;
        while !making.is_full() && !at_end {
            let notable = query.wants_only_notable();
            let stride = making.stride();
            let names = self.updater.site_states.names(making.after(), notable, stride).await?;
            at_end = names.len() < stride;
            self.offer(&mut making, query, names).await?;
        }
        let mut page = making.finish(at_end);
        self.add_robots(&mut page.sites).await?;
        Ok(page)
    }

    async fn site(&self, site: &Site) -> Result<(KnownSite, Time), StoreError> {
        let reading = self.updater.read(std::slice::from_ref(site)).await?;
        let state = reading.sites.first().map(Texts::state).unwrap_or_default();
        let mut known = KnownSite { site: site.clone(), state, robots: Vec::new() };
        self.add_robots(std::slice::from_mut(&mut known)).await?;
        Ok((known, reading.now))
    }

    async fn order(&self, site: &Site, order: Order, by: &str) -> Result<bool, StoreError> {
        // Delete the record first: a process that sees the order must not find it any more.
        if order == Order::ForgetRobots {
            self.updater.site_states.forget_robots(&origins_of(site)).await?;
        }
        let obey = |_, state: &mut SiteState, moment: Moment| state.obey(order, by, moment.now);
        let (changed, at) = self.updater.amend(std::slice::from_ref(site), obey).await?;
        if order.may_end_a_wait() {
            self.updater.site_states.note_order(site, at, at - ORDERS_TOLD_FOR).await?;
        }
        Ok(changed.first().copied().unwrap_or(false))
    }
}

impl<S: SiteStateStore> SharedPoliteness<S> {
    /// Adds these sites to a page. Reads only those whose names match the query.
    async fn offer(
        &self,
        making: &mut PageInMaking<'_>,
        query: &SiteQuery,
        names: Vec<String>,
    ) -> Result<(), StoreError> {
        let wanted = names.iter().filter(|name| query.wants_name(name));
        let wanted: Vec<Site> = wanted.filter_map(|name| Site::parse(name).ok()).collect();
        let mut texts = Vec::new();
        if !wanted.is_empty() {
            texts = self.updater.read(&wanted).await?.sites;
        }
        let mut read = wanted.iter().zip(&texts).peekable();
        for name in &names {
            let texts = read.next_if(|(site, _)| site.as_str() == name).map(|(_, texts)| texts);
            making.offer(name, || texts.filter(|texts| !texts.is_empty()).map(Texts::state));
        }
        Ok(())
    }

    async fn add_robots(&self, sites: &mut [KnownSite]) -> Result<(), StoreError> {
        let origins: Vec<Origin> = sites.iter().flat_map(|known| origins_of(&known.site)).collect();
        let records = self.updater.robots(&origins).await?;
        let mut records = origins.into_iter().zip(records);
        for known in sites {
            let own = records.by_ref().take(origins_of(&known.site).len());
            known.robots = own.filter_map(|(origin, record)| Some((origin, record?))).collect();
        }
        Ok(())
    }
}
