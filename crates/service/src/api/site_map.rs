//! The pages of a site: the links of one of its pages, and the URLs in its sitemaps.
//!
//! Everything is read through messages, so that robots.txt, the pace of the site, the address guard and the audit log
//! apply as to any page.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use fetchwell_engine::ports::inbox::FetchResult;
use fetchwell_engine::ports::inbox::details::FetchDetails;
use fetchwell_engine::ports::inbox::options::{Extracted, ExtractedArticle};
use fetchwell_policy::robots::Robots;
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use super::Api;
use super::fields::{DEFAULT_RETAILER, FetchRequest};
use super::identity::Identity;
use super::json::Json;
use super::memory::Held;
use super::pages::PageResult;
use super::values;
use crate::problem::{FieldError, Problem};

/// The maximum number of sitemaps that one map reads. Each takes a request to the site.
const MAX_SITEMAPS: usize = 50;

/// How deep sitemap indexes may be nested.
const MAX_NESTING: u32 = 2;

/// The maximum number of links of a map, and of bytes of its URLs.
pub(super) const MAX_MAPPED: usize = 100_000;
const MAX_MAPPED_BYTES: u64 = 16 << 20;

/// The maximum size of the words that links are searched for: each link is compared with each word.
pub(super) const MAX_SEARCH_BYTES: usize = 256;

/// Memory for a map is reserved in pieces of this size, as it grows.
const PIECE_BYTES: u64 = 1 << 20;

/// A page or a sitemap that was stored this recently is not fetched again by default.
pub(super) const DEFAULT_MAX_AGE: Duration = Duration::from_secs(3_600);

/// What to map.
pub(super) struct MapRequest {
    /// A page of the site.
    pub(super) url: String,
    /// Words that a link must contain, all of them: in its URL, its title or its description.
    pub(super) search: Option<String>,
    /// The maximum number of links.
    pub(super) limit: usize,
    /// Whether to include links to subdomains of the site's host.
    pub(super) include_subdomains: bool,
    /// What to do with the sitemaps of the site.
    pub(super) sitemaps: Sitemaps,
    /// Whether to leave out URLs with a query.
    pub(super) leave_out_queries: bool,
    /// How old a stored page or sitemap may be. Zero: each is fetched.
    pub(super) max_age: Duration,
    /// How long to wait. Links that were found by then are returned.
    pub(super) wait: Duration,
}

/// What to do with the sitemaps of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sitemaps {
    /// Read them and the page.
    #[default]
    Include,
    /// Read the page only.
    Skip,
    /// Read the sitemaps only.
    Only,
}

/// A page of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MappedLink {
    pub(super) url: String,
    /// Its title, if the page was read.
    pub(super) title: Option<String>,
    /// Its description, if the page was read and has one.
    pub(super) description: Option<String>,
}

impl Api {
    /// The pages of a site, or a problem if nothing could be read.
    pub(super) async fn map_site(
        &self,
        identity: &Identity,
        request: MapRequest,
    ) -> Result<Vec<MappedLink>, Problem> {
        let url = self.url_to_map(&request.url)?;
        let until = Instant::now() + request.wait;
        let reader = Reader { api: self, identity, until, max_age: request.max_age };
        let mut map = Map::new(&url, &request);
        let mut page_problem = None;
        let mut sitemap_problem = None;
        if request.sitemaps != Sitemaps::Only {
            match reader.read(&url, MapSource::Page).await? {
                Ok(page) => map.add_page(&url, &page.outbox.result),
                Err(problem) if problem.is_not_in_time() => return Err(problem),
                Err(problem) => page_problem = Some(problem),
            }
            map.reserve(self).await?;
        }
        if request.sitemaps != Sitemaps::Skip {
            sitemap_problem = reader.read_sitemaps(&url, &mut map).await?;
        }
        if map.links.is_empty()
            && let Some(problem) = page_problem
        {
            return Err(problem);
        }
        match sitemap_problem {
            Some(problem) if !map.has_read => Err(problem),
            _ => Ok(map.links),
        }
    }

    fn url_to_map(&self, text: &str) -> Result<Url, Problem> {
        let bad = |fault: String| Problem::invalid(vec![FieldError::at("/url", fault)]);
        let (url, _) =
            values::web_url(&Json::Text(Cow::Borrowed(text)), &self.on.guard).map_err(bad)?;
        Url::parse(url.trim()).map_err(|fault| bad(fault.to_string()))
    }
}

/// What a map is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapSource {
    /// A page: its title, its description and its links.
    Page,
    /// The URLs that a sitemap lists.
    Sitemap,
    /// The text of robots.txt.
    Robots,
}

/// Reads pages for one map.
struct Reader<'a> {
    api: &'a Api,
    identity: &'a Identity,
    until: Instant,
    /// How old a stored page may be. Zero: each is fetched.
    max_age: Duration,
}

impl Reader<'_> {
    /// Reads a page. The outer error ends the map; the inner one is about this page alone.
    async fn read(
        &self,
        url: &Url,
        source: MapSource,
    ) -> Result<Result<PageResult, Problem>, Problem> {
        let text = Json::Text(Cow::Borrowed(url.as_str()));
        let (url, site) = match values::web_url(&text, &self.api.on.guard) {
            Ok(checked) => checked,
            Err(fault) => return Ok(Err(Problem::invalid(vec![FieldError::at("/url", fault)]))),
        };
        self.api.charge_more(&self.identity.caller, 1);
        let left = self.until.saturating_duration_since(Instant::now());
        let message = FetchRequest {
            url,
            site,
            retailer: DEFAULT_RETAILER.to_owned(),
            correlation_id: None,
            callback_url: None,
            max_age: Some(self.max_age).filter(|age| !age.is_zero()),
            deadline: self.api.rules.default_deadline,
            headers: Vec::new(),
            extract: source == MapSource::Page,
            links: source != MapSource::Robots,
            document: None,
        };
        match self.api.read_page(self.identity, message, left).await {
            Ok(page) => Ok(match page.outbox.result.is_success() {
                true => Ok(page),
                false => Err(Problem::no_page(page.outbox)),
            }),
            Err(problem) if problem.is_not_in_time() => Ok(Err(problem)),
            Err(problem) => Err(problem),
        }
    }

    /// Reads the sitemaps that robots.txt names, else `/sitemap.xml`, and what they refer to, until there are enough
    /// links or the time is over. Returns the first problem.
    async fn read_sitemaps(
        &self,
        url: &Url,
        map: &mut Map<'_>,
    ) -> Result<Option<Problem>, Problem> {
        if !map.wants_more(self.until) {
            return Ok(None);
        }
        let named = match self.named_sitemaps(url).await? {
            Ok(named) => named,
            Err(problem) => return Ok(Some(problem)),
        };
        let mut first_problem = None;
        let mut seen: HashSet<Url> = HashSet::new();
        let named = named.into_iter().filter(|sitemap| seen.insert(sitemap.clone()));
        let mut waiting: VecDeque<(Url, u32)> = named.map(|sitemap| (sitemap, 0)).collect();
        for _ in 0..MAX_SITEMAPS {
            if !map.wants_more(self.until) {
                break;
            }
            let Some((sitemap, nesting)) = waiting.pop_front() else { break };
            let page = match self.read(&sitemap, MapSource::Sitemap).await? {
                Ok(page) => page,
                Err(problem) => {
                    let is_over = problem.is_not_in_time();
                    first_problem.get_or_insert(problem);
                    if is_over {
                        break;
                    }
                    continue;
                }
            };
            map.has_read = true;
            let extracted = extracted(&page.outbox.result);
            // A request that waits for memory must not hold memory that others wait for.
            drop(page);
            let listed = extracted.links.unwrap_or_default();
            if !extracted.is_sitemap_index {
                listed.iter().for_each(|link| map.add(link, None));
                map.reserve(self.api).await?;
            } else if nesting < MAX_NESTING {
                // More than these are never read.
                let room = MAX_SITEMAPS.saturating_sub(waiting.len());
                let inner = listed.iter().filter_map(|link| Url::parse(link).ok());
                let inner = inner.filter(|sitemap| seen.insert(sitemap.clone())).take(room);
                waiting.extend(inner.map(|sitemap| (sitemap, nesting + 1)));
            }
        }
        Ok(first_problem)
    }

    /// The sitemaps that robots.txt names; `/sitemap.xml` if it names none.
    async fn named_sitemaps(&self, url: &Url) -> Result<Result<Vec<Url>, Problem>, Problem> {
        let at = |path: &str| url.join(path).ok();
        let Some(robots) = at("/robots.txt") else { return Ok(Ok(Vec::new())) };
        let text = match self.read(&robots, MapSource::Robots).await? {
            Ok(page) => page.outbox.result.content.unwrap_or_default(),
            Err(problem) if problem.is_not_in_time() => return Ok(Err(problem)),
            Err(_) => String::new(),
        };
        let robots = Robots::parse(text.as_bytes(), "");
        let named = robots.sitemaps().iter().filter_map(|sitemap| url.join(sitemap).ok());
        let mut named: Vec<Url> = named.take(MAX_SITEMAPS).collect();
        if named.is_empty() {
            named.extend(at("/sitemap.xml"));
        }
        Ok(Ok(named))
    }
}

fn extracted(result: &FetchResult) -> Extracted {
    let json = result.extracted.as_deref();
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// The links found so far.
struct Map<'a> {
    request: &'a MapRequest,
    /// The hosts of the site, without `www.`: that of the request, and that of the page if it was redirected.
    hosts: Vec<String>,
    words: Vec<String>,
    seen: HashSet<String>,
    links: Vec<MappedLink>,
    /// Bytes of the URLs.
    bytes: u64,
    shares: Vec<Held>,
    /// Whether a page or a sitemap was read.
    has_read: bool,
}

impl<'a> Map<'a> {
    fn new(url: &Url, request: &'a MapRequest) -> Map<'a> {
        let search = request.search.as_deref().unwrap_or_default().to_lowercase();
        Map {
            request,
            hosts: vec![bare_host(url).to_owned()],
            words: search.split_whitespace().map(str::to_owned).collect(),
            seen: HashSet::new(),
            links: Vec::new(),
            bytes: 0,
            shares: Vec::new(),
            has_read: false,
        }
    }

    fn is_full(&self) -> bool {
        self.links.len() >= self.request.limit.min(MAX_MAPPED) || self.bytes >= MAX_MAPPED_BYTES
    }

    /// Whether to read more. Each read is a message, which costs the site a request even if nobody waits for its
    /// result. So once the time is over, only a map that has nothing reads on: for the problem that it returns.
    fn wants_more(&self, until: Instant) -> bool {
        let has_time = Instant::now() < until;
        !self.is_full() && (has_time || !self.has_read)
    }

    /// Reserves the memory for the links so far. Each URL is in memory twice.
    async fn reserve(&mut self, api: &Api) -> Result<(), Problem> {
        while (self.shares.len() as u64) * PIECE_BYTES < 2 * self.bytes {
            self.shares.push(api.memory.take(PIECE_BYTES).await?);
        }
        Ok(())
    }

    /// Adds the page that was read, and what it links to.
    fn add_page(&mut self, url: &Url, result: &FetchResult) {
        self.has_read = true;
        let details = result.details.as_deref();
        let details: Option<FetchDetails> =
            details.and_then(|json| serde_json::from_str(json).ok());
        let found_at = details.and_then(|details| Url::parse(&details.final_url).ok());
        self.hosts.extend(found_at.map(|url| bare_host(&url).to_owned()));
        let Extracted { article, links, .. } = extracted(result);
        self.add(url.as_str(), article);
        links.unwrap_or_default().iter().for_each(|link| self.add(link, None));
    }

    fn add(&mut self, link: &str, article: Option<ExtractedArticle>) {
        let Ok(mut url) = Url::parse(link) else { return };
        url.set_fragment(None);
        if self.is_full() || !self.belongs(&url) || self.seen.contains(url.as_str()) {
            return;
        }
        let title = article.as_ref().map(|article| article.title.clone());
        let title = title.filter(|title| !title.is_empty());
        let description = article.and_then(|article| article.description);
        let texts = [Some(url.as_str()), title.as_deref(), description.as_deref()];
        let texts: Vec<String> = texts.into_iter().flatten().map(str::to_lowercase).collect();
        if !self.words.iter().all(|word| texts.iter().any(|text| text.contains(word))) {
            return;
        }
        self.bytes += url.as_str().len() as u64;
        self.seen.insert(url.to_string());
        self.links.push(MappedLink { url: url.into(), title, description });
    }

    fn belongs(&self, url: &Url) -> bool {
        let host = bare_host(url);
        let is_of_site = self.hosts.iter().any(|own| {
            let before = host.strip_suffix(&**own);
            before.is_some_and(|before| {
                before.is_empty() || (self.request.include_subdomains && before.ends_with('.'))
            })
        });
        let is_allowed = !self.request.leave_out_queries || url.query().is_none();
        matches!(url.scheme(), "http" | "https") && is_of_site && is_allowed
    }
}

fn bare_host(url: &Url) -> &str {
    let host = url.host_str().unwrap_or_default();
    host.strip_prefix("www.").unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(change: impl FnOnce(&mut MapRequest)) -> MapRequest {
        let mut request = MapRequest {
            url: "http://www.shop.test/".to_owned(),
            search: None,
            limit: 100,
            include_subdomains: false,
            sitemaps: Sitemaps::Include,
            leave_out_queries: false,
            max_age: DEFAULT_MAX_AGE,
            wait: Duration::ZERO,
        };
        change(&mut request);
        request
    }

    fn mapped(request: &MapRequest) -> Vec<String> {
        let url = Url::parse(&request.url).unwrap();
        let mut map = Map::new(&url, request);
        for link in [
            "http://shop.test/a#top",
            "http://shop.test/a",
            "https://www.shop.test/Blue%20Shoes",
            "http://blog.shop.test/?page=2",
            "http://othershop.test/",
            "http://shop.test.evil.test/",
            "mailto:a@shop.test",
            "nonsense",
        ] {
            map.add(link, None);
        }
        map.links.into_iter().map(|link| link.url).collect()
    }

    #[test]
    fn a_map_has_each_page_of_the_site_once() {
        let plain = ["http://shop.test/a", "https://www.shop.test/Blue%20Shoes"];
        assert_eq!(mapped(&request(|_| {})), plain);
        let blog = "http://blog.shop.test/?page=2";
        let wide = request(|request| request.include_subdomains = true);
        assert_eq!(mapped(&wide), [plain[0], plain[1], blog]);
        let plain_urls = MapRequest { leave_out_queries: true, ..wide };
        assert_eq!(mapped(&plain_urls), plain);
        let short = request(|request| request.limit = 1);
        assert_eq!(mapped(&short), plain[..1]);
    }

    #[test]
    fn a_map_reads_on_while_it_has_room_and_time() {
        let now = Instant::now();
        let later = now + Duration::from_secs(3_600);
        let url = Url::parse("http://shop.test/").unwrap();
        let short = request(|request| request.limit = 1);
        let mut map = Map::new(&url, &short);
        assert!(map.wants_more(later) && map.wants_more(now), "it has nothing yet");
        map.has_read = true;
        assert!(map.wants_more(later) && !map.wants_more(now));
        map.add("http://shop.test/a", None);
        assert!(!map.wants_more(later), "it is full");
    }

    #[test]
    fn a_search_keeps_the_links_with_all_of_its_words() {
        for (search, count) in [("shoes BLUE", 1), ("shoes red", 0), (" ", 2), ("shop", 2)] {
            let request = request(|request| request.search = Some(search.to_owned()));
            assert_eq!(mapped(&request).len(), count, "{search}");
        }
    }
}
