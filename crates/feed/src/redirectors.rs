//! Links to a service that sends its visitors on: some have the page in them, others must be asked.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fetchwell_policy::url::WebUrl;
use url::form_urlencoded;

use crate::Home;

/// A service whose links have the page in a parameter.
struct Redirector {
    /// The host, or what it ends with after a dot; `google.*` is Google in any country.
    host: &'static str,
    /// How its paths begin.
    path: &'static str,
    /// Where the page stands.
    parameters: &'static [&'static str],
}

const fn redirector(
    host: &'static str,
    path: &'static str,
    parameters: &'static [&'static str],
) -> Redirector {
    Redirector { host, path, parameters }
}

const REDIRECTORS: &[Redirector] = &[
    redirector("google.*", "/url", &["q", "url"]), // Alerts and search; also the old links of Google News
    redirector("news.google.com", "/news/url", &["url"]),
    redirector("bing.com", "/news/apiclick.aspx", &["url"]),
    redirector("bing.com", "/ck/a", &["u"]), // written in base64
    redirector("l.facebook.com", "/l.php", &["u"]),
    redirector("lm.facebook.com", "/l.php", &["u"]),
    redirector("facebook.com", "/flx/warn", &["u"]),
    redirector("l.instagram.com", "/", &["u"]),
    redirector("l.threads.net", "/", &["u"]),
    redirector("out.reddit.com", "/", &["url"]),
    redirector("youtube.com", "/redirect", &["q"]),
    redirector("linkedin.com", "/redir/redirect", &["url"]),
    redirector("linkedin.com", "/safety/go", &["url"]),
    redirector("t.umblr.com", "/redirect", &["z"]),
    redirector("vk.com", "/away.php", &["to"]),
    redirector("duckduckgo.com", "/l/", &["uddg"]),
    redirector("getpocket.com", "/redirect", &["url"]),
    redirector("slack-redir.net", "/link", &["url"]),
    redirector("safelinks.protection.outlook.com", "/", &["url"]),
    redirector("go.redirectingat.com", "/", &["url"]), // Skimlinks
    redirector("go.skimresources.com", "/", &["url"]), // the same
    redirector("click.linksynergy.com", "/", &["murl"]), // Rakuten
    redirector("anrdoezrs.net", "/", &["url"]),        // Commission Junction
];

/// Hosts that do nothing but send their visitors on, to where only they know.
const ASKED: &[&str] = &[
    "feedproxy.google.com",
    "rss.feedsportal.com",
    "feeds.feedblitz.com",
    "t.co",
    "bit.ly",
    "j.mp",
    "amzn.to",
    "nyti.ms",
    "wapo.st",
    "reut.rs",
    "bbc.in",
    "cnn.it",
    "trib.al",
    "dlvr.it",
    "ift.tt",
    "ow.ly",
    "buff.ly",
    "fb.me",
    "lnkd.in",
    "flip.it",
    "goo.gl",
    "tinyurl.com",
    "is.gd",
    "v.gd",
    "rb.gy",
    "cutt.ly",
    "shorturl.at",
    "t.ly",
];

/// Whether a link of a feed must be asked where it leads. Pages of the feed's own site are not: they are
/// fetched later anyway, and a redirect of their own is followed then. Nobody knows all who send their
/// visitors on, so whoever else is linked may be one of them.
pub fn must_be_asked(link: &WebUrl, home: &Home) -> bool {
    leads_elsewhere(link) || !home.has(link)
}

/// Whether a link is one of a service that does nothing but send its visitors on: it is no page itself.
pub fn leads_elsewhere(link: &WebUrl) -> bool {
    // FeedBurner's links have this path at whatever name a publisher gave it.
    ASKED.contains(&link.host()) || link.path_and_query().starts_with("/~r/")
}

/// The page that a link has in it; none where it has none.
pub(crate) fn page_within(link: &WebUrl) -> Option<WebUrl> {
    by_parameter(link).or_else(|| of_a_cache(link))
}

fn by_parameter(link: &WebUrl) -> Option<WebUrl> {
    let (path, query) = link.path_and_query().split_once('?')?;
    REDIRECTORS
        .iter()
        .filter(|known| is_at(link.host(), known.host) && path.starts_with(known.path))
        .flat_map(|known| known.parameters)
        .find_map(|wanted| {
            let pairs = form_urlencoded::parse(query.as_bytes());
            pairs.filter(|(name, _)| name == wanted).find_map(|(_, value)| target(&value))
        })
}

fn target(value: &str) -> Option<WebUrl> {
    WebUrl::parse(value).ok().or_else(|| {
        let bytes = URL_SAFE_NO_PAD.decode(value.strip_prefix("a1")?).ok()?;
        WebUrl::parse(std::str::from_utf8(&bytes).ok()?).ok()
    })
}

/// Google keeps copies of pages; the page is in the path: `/amp/s/example.com/page`.
fn of_a_cache(link: &WebUrl) -> Option<WebUrl> {
    let path = link.path_and_query();
    let place = if is_at(link.host(), "cdn.ampproject.org") {
        path.strip_prefix("/c/").or_else(|| path.strip_prefix("/v/"))?
    } else if is_at(link.host(), "google.*") {
        path.strip_prefix("/amp/")?
    } else {
        return None;
    };
    let (scheme, place) = match place.strip_prefix("s/") {
        Some(place) => ("https", place),
        None => ("http", place),
    };
    // A host has a dot; what has none is a path of Google's own.
    let host = place.split('/').next().filter(|host| host.contains('.'))?;
    WebUrl::parse(&format!("{scheme}://{place}"))
        .ok()
        .filter(|page| page.host().len() >= host.len())
}

fn is_at(host: &str, known: &str) -> bool {
    let host = host.strip_prefix("www.").unwrap_or(host);
    match known.strip_suffix(".*") {
        // `google.com`, `google.co.uk`: the name, and no more than two labels after it.
        Some(name) => host
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|country| country.split('.').count() <= 2 && country.len() <= 6),
        None => host.strip_suffix(known).is_some_and(|sub| sub.is_empty() || sub.ends_with('.')),
    }
}
