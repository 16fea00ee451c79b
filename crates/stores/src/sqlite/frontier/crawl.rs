//! The changes of one transaction to a crawl.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::frontier::{
    CrawlBudget, Discoveries, FoundPage, PagePlace, ParentPage,
};
use fetchwell_engine::ports::job::NewJob;
use fetchwell_policy::crawl::{
    Bound, CutReason, PageKey, crawl_sitemap_bound, page_key, plain_url,
};
use fetchwell_policy::url::WebUrl;
use fetchwell_sqlite::statements::Statements;
use rusqlite::{Connection, Row};

/// The tables of crawls, which have a column `queue`.
pub(in crate::sqlite) const CRAWL_TABLES: &[&str] = &[
    "crawl",
    "crawl_seen",
    "crawl_site",
    "crawl_parent",
    "crawl_link",
    "crawl_bucket",
    "crawl_cut",
];

/// The maximum number of unfinished jobs of a site. More would not make it faster: few sites serve so many requests at
/// once.
const MAX_OPEN_PER_SITE: u64 = 16;

/// The maximum number of further sites to look at in one step, if some of the budget is left.
const SITES_PER_LOOK: u64 = 1_024;

/// The maximum number of sites whose links are counted separately, per reason. Those to all other sites are counted
/// together, because a host farm has endless sites.
const MAX_CUT_SITES: u64 = 1_000;
/// The maximum length of a stored example of a link that is not followed.
const MAX_EXAMPLE_BYTES: usize = 2_000;
/// The row of all other sites. No link leads to a site with an empty name.
pub(super) const OTHER_SITES: &str = "";

/// Queues what a crawl may fetch.
pub(in crate::sqlite) trait Admit {
    /// Queues a page. Returns whether it did.
    fn page(&mut self, url: &str, place: &PagePlace) -> rusqlite::Result<bool>;

    /// Queues a job that is not a page. Returns whether it did.
    fn job(&mut self, job: &NewJob) -> rusqlite::Result<bool>;
}

/// A crawl in a transaction. It caches what it reads, and writes the changes at the end.
pub(in crate::sqlite) struct Crawl<'a> {
    tx: &'a Connection,
    queue: i64,
    budget: CrawlBudget,
    pages: u64,
    known: u64,
    waiting: u64,
    /// The number of sites.
    site_count: u64,
    sites: BTreeMap<String, SiteCounts>,
    buckets: BTreeMap<i64, Bucket>,
    /// The number of sites whose links are counted separately, up to the maximum.
    cut_sites: BTreeMap<&'static str, u64>,
    /// Whether sites without changes may get jobs, too.
    looks_everywhere: bool,
}

/// The counters of a site.
#[derive(Clone, Copy)]
struct SiteCounts {
    id: i64,
    pages: u64,
    open: u64,
    waiting: u64,
}

#[derive(Clone, Copy, Default)]
struct Bucket {
    pages: u64,
    is_changed: bool,
}

/// A page that waits to be queued.
struct WaitingLink {
    depth: u32,
    number: i64,
    parent: Option<i64>,
    url: String,
}

impl<'a> Crawl<'a> {
    /// `queue` is its number in the tables of crawls.
    pub(in crate::sqlite) fn read(
        tx: &'a Connection,
        queue: i64,
        budget: CrawlBudget,
    ) -> rusqlite::Result<Crawl<'a>> {
        let select = "SELECT pages, known, waiting, sites FROM crawl WHERE queue = ?1";
        let counters: Option<(u64, u64, u64, u64)> =
            tx.find(select, [queue], |row| row.try_into())?;
        let (pages, known, waiting, site_count) = counters.unwrap_or_default();
        Ok(Crawl {
            tx,
            queue,
            budget,
            pages,
            known,
            waiting,
            site_count,
            sites: BTreeMap::new(),
            buckets: BTreeMap::new(),
            cut_sites: BTreeMap::new(),
            looks_everywhere: false,
        })
    }

    /// Queues pages of all sites, not only of those that have changed: the budget may be larger than before.
    pub(in crate::sqlite) fn look_everywhere(&mut self) {
        self.looks_everywhere = true;
    }

    /// Counts the end of a page. One that must not be fetched no longer counts against the budget.
    pub(in crate::sqlite) fn settled(
        &mut self,
        site: &str,
        settlement: &Settlement,
    ) -> rusqlite::Result<()> {
        let is_skipped = match settlement {
            Settlement::Retry { .. } | Settlement::HandBack { .. } => return Ok(()),
            Settlement::Done | Settlement::Dead { .. } => false,
            Settlement::Skipped => true,
        };
        let refund = u64::from(is_skipped);
        // Other sites may have been waiting only for the budget.
        self.looks_everywhere |= is_skipped && self.left() == 0;
        if let Some(counts) = self.site(site)? {
            // A page that was dead and is retried ends twice.
            counts.open = counts.open.saturating_sub(1);
            counts.pages = counts.pages.saturating_sub(refund);
        }
        self.pages = self.pages.saturating_sub(refund);
        Ok(())
    }

    /// Stores what was found on a page.
    pub(in crate::sqlite) fn discover(
        &mut self,
        admit: &mut dyn Admit,
        found: &Discoveries,
    ) -> rusqlite::Result<()> {
        for key in &found.also_known {
            self.see(key)?;
        }
        if let Some(key) = &found.takes {
            self.take(key)?;
        }
        for job in &found.jobs {
            self.add_job(admit, job, found.job_bound.as_ref())?;
        }
        let too_common = match &found.content {
            Some(bound) => self.exceeded(std::slice::from_ref(bound))?,
            None => None,
        };
        if let Some(bound) = found.content.filter(|_| too_common.is_none()) {
            self.count(&bound)?;
        }
        let mut parent = None;
        for page in &found.pages {
            if self.has_seen(&page.key)? {
                continue;
            }
            let cut = match too_common {
                Some(reason) => Some(reason),
                None => self.exceeded(&page.bounds)?,
            };
            match cut {
                Some(reason) => {
                    self.cut(&page.url, reason)?;
                    if reason == CutReason::Unchanged {
                        // Otherwise, a link on another page would add it.
                        self.see(&page.key)?;
                    }
                }
                None => self.follow(page, found.parent.as_ref(), &mut parent)?,
            }
        }
        Ok(())
    }

    fn add_job(
        &mut self,
        admit: &mut dyn Admit,
        job: &NewJob,
        bound: Option<&Bound>,
    ) -> rusqlite::Result<()> {
        if let Some(key) = &job.key
            && self.has_seen(key)?
        {
            return Ok(());
        }
        // It could only name pages that are not followed.
        if self.knows_enough() {
            return self.cut(&job.job.url, CutReason::KnownPages);
        }
        let of_all = self.budget.sitemaps.map(crawl_sitemap_bound);
        let bounds: Vec<Bound> = bound.copied().into_iter().chain(of_all).collect();
        if let Some(reason) = self.exceeded(&bounds)? {
            return self.cut(&job.job.url, reason);
        }
        for bound in &bounds {
            self.count(bound)?;
        }
        if let Some(key) = &job.key {
            self.see(key)?;
        }
        admit.job(job)?;
        Ok(())
    }

    fn knows_enough(&self) -> bool {
        self.budget.known.is_some_and(|most| self.known >= most)
    }

    /// Adds a page to the known ones, unless its domain has too many sites. `parent` is the ID of the page or sitemap
    /// that names it, once that is stored.
    fn follow(
        &mut self,
        page: &FoundPage,
        named_by: Option<&ParentPage>,
        parent: &mut Option<i64>,
    ) -> rusqlite::Result<()> {
        if self.knows_enough() {
            return self.cut(&page.url, CutReason::KnownPages);
        }
        let site = site_of(&page.url);
        if self.site(&site)?.is_none() {
            if let Some(reason) = self.exceeded(page.site_bound.as_slice())? {
                return self.cut(&page.url, reason);
            }
            if let Some(bound) = &page.site_bound {
                self.count(bound)?;
            }
            self.add_site(&site)?;
        }
        let parent = match (named_by, *parent) {
            (None, _) => None,
            (Some(_), Some(id)) => Some(id),
            (Some(named_by), None) => {
                *parent = Some(self.add_parent(named_by)?);
                *parent
            }
        };
        self.see(&page.key)?;
        for bound in &page.bounds {
            self.count(bound)?;
        }
        self.known += 1;
        self.waiting += 1;
        let Some(counts) = self.site(&site)? else { return Ok(()) };
        counts.waiting += 1;
        let id = counts.id;
        self.tx.run(
            "INSERT INTO crawl_link (queue, site, depth, number, parent, url)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (self.queue, id, page.depth, self.known, parent, &page.url),
        )?;
        Ok(())
    }

    /// Counts a link that is not followed.
    fn cut(&mut self, url: &str, reason: CutReason) -> rusqlite::Result<()> {
        let reason = reason.word();
        let own_site = site_of(url);
        if self.count_cut(reason, &own_site)? {
            return Ok(());
        }
        let sites = self.cut_sites(reason)?;
        let site = if *sites < MAX_CUT_SITES { own_site.as_str() } else { OTHER_SITES };
        *sites += 1;
        if site == OTHER_SITES && self.count_cut(reason, site)? {
            return Ok(());
        }
        self.tx.run(
            "INSERT INTO crawl_cut (queue, reason, site, links, example) VALUES (?1, ?2, ?3, 1, ?4)",
            (self.queue, reason, site, &url[..url.floor_char_boundary(MAX_EXAMPLE_BYTES)]),
        )?;
        Ok(())
    }

    /// Counts a link in the row of this site. Returns whether there is one.
    fn count_cut(&self, reason: &str, site: &str) -> rusqlite::Result<bool> {
        let update = "UPDATE crawl_cut SET links = links + 1
             WHERE queue = ?1 AND reason = ?2 AND site = ?3";
        Ok(self.tx.run(update, (self.queue, reason, site))? == 1)
    }

    fn cut_sites(&mut self, reason: &'static str) -> rusqlite::Result<&mut u64> {
        Ok(match self.cut_sites.entry(reason) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let select = "SELECT count(*) FROM (
                         SELECT 1 FROM crawl_cut WHERE queue = ?1 AND reason = ?2 LIMIT ?3)";
                let values = (self.queue, reason, MAX_CUT_SITES);
                unknown.insert(self.tx.one(select, values, |row| row.get(0))?)
            }
        })
    }

    fn add_parent(&self, page: &ParentPage) -> rusqlite::Result<i64> {
        self.tx.one(
            "INSERT INTO crawl_parent (queue, url, root) VALUES (?1, ?2, ?3) RETURNING id",
            (self.queue, &page.url, &page.root),
            |row| row.get(0),
        )
    }

    fn has_seen(&self, key: &PageKey) -> rusqlite::Result<bool> {
        let select = "SELECT 1 FROM crawl_seen WHERE queue = ?1 AND key = ?2";
        self.tx.has(select, (self.queue, key.as_slice()))
    }

    /// Adds a key. Returns whether it is new.
    fn see(&self, key: &PageKey) -> rusqlite::Result<bool> {
        let insert = "INSERT INTO crawl_seen (queue, key) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        Ok(self.tx.run(insert, (self.queue, key.as_slice()))? == 1)
    }

    fn take(&self, key: &PageKey) -> rusqlite::Result<()> {
        let update = "UPDATE crawl_seen SET taken = 1 WHERE queue = ?1 AND key = ?2";
        self.tx.run(update, (self.queue, key.as_slice()))?;
        Ok(())
    }

    /// The reason of the first bound that is reached.
    fn exceeded(&mut self, bounds: &[Bound]) -> rusqlite::Result<Option<CutReason>> {
        for bound in bounds {
            if bound.most == 0 || self.bucket(bound.bucket)?.pages >= bound.most {
                return Ok(Some(bound.reason));
            }
        }
        Ok(None)
    }

    fn count(&mut self, bound: &Bound) -> rusqlite::Result<()> {
        let bucket = self.bucket(bound.bucket)?;
        bucket.pages += 1;
        bucket.is_changed = true;
        Ok(())
    }

    fn bucket(&mut self, bucket: i64) -> rusqlite::Result<&mut Bucket> {
        Ok(match self.buckets.entry(bucket) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let select = "SELECT pages FROM crawl_bucket WHERE queue = ?1 AND bucket = ?2";
                let pages = self.tx.find(select, (self.queue, bucket), |row| row.get(0))?;
                unknown.insert(Bucket { pages: pages.unwrap_or(0), is_changed: false })
            }
        })
    }

    /// The counters of a site, if the crawl knows it.
    fn site(&mut self, site: &str) -> rusqlite::Result<Option<&mut SiteCounts>> {
        if !self.sites.contains_key(site) {
            let select = "SELECT id, pages, open, waiting FROM crawl_site
                 WHERE queue = ?1 AND site = ?2";
            let read = self.tx.find(select, (self.queue, site), site_counts)?;
            let Some(counts) = read else { return Ok(None) };
            self.sites.insert(site.to_owned(), counts);
        }
        Ok(self.sites.get_mut(site))
    }

    fn add_site(&mut self, site: &str) -> rusqlite::Result<()> {
        let insert = "INSERT INTO crawl_site (queue, site) VALUES (?1, ?2) RETURNING id";
        let id = self.tx.one(insert, (self.queue, site), |row| row.get(0))?;
        self.sites.insert(site.to_owned(), SiteCounts { id, pages: 0, open: 0, waiting: 0 });
        self.site_count += 1;
        Ok(())
    }

    /// Queues pages of the sites that have changed and, if needed, of all others with room.
    pub(in crate::sqlite) fn queue_pages(&mut self, admit: &mut dyn Admit) -> rusqlite::Result<()> {
        let changed: Vec<String> = self.sites.keys().cloned().collect();
        for site in &changed {
            self.queue_pages_of(admit, site)?;
        }
        while self.looks_everywhere && self.left() > 0 {
            let before = self.waiting;
            for site in self.sites_with_room()? {
                self.queue_pages_of(admit, &site)?;
            }
            self.looks_everywhere = self.waiting < before;
        }
        Ok(())
    }

    /// Whether the page to which this key belongs has been queued, or another row has its content.
    pub(in crate::sqlite) fn is_taken(&self, key: &PageKey) -> rusqlite::Result<bool> {
        is_taken(self.tx, self.queue, key)
    }

    /// The known pages that are not queued.
    pub(in crate::sqlite) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Whether the budget is used up.
    pub(in crate::sqlite) fn is_budget_used(&self) -> bool {
        self.left() == 0
    }

    /// Counts pages that were queued as waiting again: the crawl ends without fetching them.
    pub(in crate::sqlite) fn put_back(&mut self, pages: u64) {
        self.pages = self.pages.saturating_sub(pages);
        self.waiting += pages;
    }

    /// What is left of the budget.
    fn left(&self) -> u64 {
        self.budget.pages.saturating_sub(self.pages)
    }

    /// How many jobs a site may have. Near the end of the budget, sites share what is left.
    fn most_open(&self) -> u64 {
        (self.left() / self.site_count.max(1)).clamp(1, MAX_OPEN_PER_SITE)
    }

    /// Sites that have waiting pages and may have more jobs, those with the fewest pages first. Adds them to `sites`.
    fn sites_with_room(&mut self) -> rusqlite::Result<Vec<String>> {
        self.write_sites()?;
        let per_site = self.budget.pages_per_site.unwrap_or(i64::MAX.unsigned_abs());
        let found = self.tx.list(
            "SELECT id, pages, open, waiting, site FROM crawl_site
             WHERE queue = ?1 AND waiting > 0 AND pages < ?2 AND open < ?3 ORDER BY pages LIMIT ?4",
            (self.queue, per_site, self.most_open(), self.left().min(SITES_PER_LOOK)),
            |row| Ok((row.get::<_, String>(4)?, site_counts(row)?)),
        )?;
        let names = found.iter().map(|(site, _)| site.clone()).collect();
        self.sites.extend(found);
        Ok(names)
    }

    fn queue_pages_of(&mut self, admit: &mut dyn Admit, site: &str) -> rusqlite::Result<()> {
        let left = self.left();
        let most_open = self.most_open();
        let per_site = self.budget.pages_per_site.unwrap_or(u64::MAX);
        let Some(counts) = self.site(site)? else { return Ok(()) };
        let counts_before = *counts;
        let room = most_open.saturating_sub(counts_before.open);
        let room = room.min(per_site.saturating_sub(counts_before.pages)).min(left);
        let room = room.min(counts_before.waiting);
        let mut queued = 0;
        let mut removed = 0;
        while queued < room {
            let links = self.first_links(counts_before.id, room - queued)?;
            if links.is_empty() {
                break;
            }
            for link in &links {
                queued += u64::from(self.queue_page(admit, link)?);
                removed += self.remove_link(counts_before.id, link)?;
            }
        }
        self.pages += queued;
        self.waiting = self.waiting.saturating_sub(removed);
        if let Some(counts) = self.site(site)? {
            counts.pages += queued;
            counts.open += queued;
            counts.waiting = counts.waiting.saturating_sub(removed);
        }
        Ok(())
    }

    /// Queues a page, unless the row of another page has its content. Returns whether it did.
    fn queue_page(&self, admit: &mut dyn Admit, link: &WaitingLink) -> rusqlite::Result<bool> {
        // No redirect leads to an invalid URL.
        if let Ok(url) = WebUrl::parse(&link.url) {
            let key = page_key(&plain_url(&url));
            if is_taken(self.tx, self.queue, &key)? {
                return Ok(false);
            }
            self.take(&key)?;
        }
        admit.page(&link.url, &self.place_of(link)?)
    }

    fn remove_link(&self, site: i64, link: &WaitingLink) -> rusqlite::Result<u64> {
        let removed = self.tx.run(
            "DELETE FROM crawl_link WHERE queue = ?1 AND site = ?2 AND depth = ?3 AND number = ?4",
            (self.queue, site, link.depth, link.number),
        )?;
        Ok(removed as u64)
    }

    /// The next waiting pages of a site: those closest to a start page first, then those that have waited longest.
    fn first_links(&self, site: i64, most: u64) -> rusqlite::Result<Vec<WaitingLink>> {
        self.tx.list(
            "SELECT depth, number, parent, url FROM crawl_link WHERE queue = ?1 AND site = ?2
             ORDER BY depth, number LIMIT ?3",
            (self.queue, site, most),
            |row| {
                let (depth, number, parent, url) = <(_, _, _, _)>::try_from(row)?;
                Ok(WaitingLink { depth, number, parent, url })
            },
        )
    }

    fn place_of(&self, link: &WaitingLink) -> rusqlite::Result<PagePlace> {
        let select = "SELECT url, root FROM crawl_parent WHERE id = ?1";
        let parent: Option<(String, Option<String>)> = match link.parent {
            Some(id) => self.tx.find(select, [id], |row| row.try_into())?,
            None => None,
        };
        let (parent, root) = parent.map_or((None, None), |(url, root)| (Some(url), root));
        Ok(PagePlace { depth: link.depth, parent, root })
    }

    /// Writes the counters.
    pub(in crate::sqlite) fn write(self) -> rusqlite::Result<()> {
        self.write_sites()?;
        for (bucket, Bucket { pages, .. }) in self.buckets.iter().filter(|(_, b)| b.is_changed) {
            self.tx.run(
                "INSERT INTO crawl_bucket (queue, bucket, pages) VALUES (?1, ?2, ?3)
                 ON CONFLICT (queue, bucket) DO UPDATE SET pages = excluded.pages",
                (self.queue, bucket, pages),
            )?;
        }
        self.tx.run(
            "INSERT INTO crawl (queue, pages, known, waiting, sites) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (queue) DO UPDATE
             SET pages = excluded.pages, known = excluded.known, waiting = excluded.waiting,
                 sites = excluded.sites",
            (self.queue, self.pages, self.known, self.waiting, self.site_count),
        )?;
        Ok(())
    }

    fn write_sites(&self) -> rusqlite::Result<()> {
        for SiteCounts { id, pages, open, waiting } in self.sites.values() {
            self.tx.run(
                "UPDATE crawl_site SET pages = ?2, open = ?3, waiting = ?4 WHERE id = ?1",
                (id, pages, open, waiting),
            )?;
        }
        Ok(())
    }
}

/// Whether a page has been queued, or the row of another page has its content.
pub(in crate::sqlite) fn is_taken(
    tx: &Connection,
    queue: i64,
    key: &PageKey,
) -> rusqlite::Result<bool> {
    let select = "SELECT 1 FROM crawl_seen WHERE queue = ?1 AND key = ?2 AND taken = 1";
    tx.has(select, (queue, key.as_slice()))
}

fn site_counts(row: &Row<'_>) -> rusqlite::Result<SiteCounts> {
    Ok(SiteCounts { id: row.get(0)?, pages: row.get(1)?, open: row.get(2)?, waiting: row.get(3)? })
}

/// The site of a URL; empty if it is invalid, as for its job.
fn site_of(url: &str) -> String {
    WebUrl::parse(url).map(|url| String::from(url.site())).unwrap_or_default()
}
