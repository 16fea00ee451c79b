//! Links to redirecting services: some contain the page's URL, others must be requested to find out where they lead.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fetchwell_policy::url::WebUrl;
use url::form_urlencoded;

use crate::home::Home;

/// Services whose links contain the page's URL in a parameter: the host or its parent domain (`google.*` is Google in
/// any country), the prefix of its paths, and the parameters that may hold the URL, separated by spaces.
const REDIRECTORS: &[(&str, &str, &str)] = &[
    ("google.*", "/url", "q url"), // Alerts and search; also the old links of Google News
    ("news.google.com", "/news/url", "url"),
    ("bing.com", "/news/apiclick.aspx", "url"),
    ("bing.com", "/ck/a", "u"), // written in base64
    ("l.facebook.com", "/l.php", "u"),
    ("lm.facebook.com", "/l.php", "u"),
    ("facebook.com", "/flx/warn", "u"),
    ("l.instagram.com", "/", "u"),
    ("l.threads.net", "/", "u"),
    ("out.reddit.com", "/", "url"),
    ("youtube.com", "/redirect", "q"),
    ("linkedin.com", "/redir/redirect", "url"),
    ("linkedin.com", "/safety/go", "url"),
    ("t.umblr.com", "/redirect", "z"),
    ("vk.com", "/away.php", "to"),
    ("duckduckgo.com", "/l/", "uddg"),
    ("getpocket.com", "/redirect", "url"),
    ("slack-redir.net", "/link", "url"),
    ("safelinks.protection.outlook.com", "/", "url"),
    ("go.redirectingat.com", "/", "url"),   // Skimlinks
    ("go.skimresources.com", "/", "url"),   // the same
    ("click.linksynergy.com", "/", "murl"), // Rakuten
    ("anrdoezrs.net", "/", "url"),          // Commission Junction
];

/// Hosts that only redirect, to a target that the link does not contain.
const ASKED: &str = "
    feedproxy.google.com rss.feedsportal.com feeds.feedblitz.com t.co bit.ly j.mp amzn.to nyti.ms
    wapo.st reut.rs bbc.in cnn.it trib.al dlvr.it ift.tt ow.ly buff.ly fb.me lnkd.in flip.it
    goo.gl tinyurl.com is.gd v.gd rb.gy cutt.ly shorturl.at t.ly";

/// Whether a link of a feed must be requested to find out where it leads. Pages of the feed's own site need not be:
/// they are fetched later anyway, and their redirects are followed then. No list of redirecting services is complete,
/// so any other host may be one.
pub fn must_be_asked(link: &WebUrl, home: &Home) -> bool {
    leads_elsewhere(link) || !home.has(link)
}

/// Whether a link belongs to a service that only redirects, so that it is not a page itself.
pub fn leads_elsewhere(link: &WebUrl) -> bool {
    // FeedBurner links have this path, even on a publisher's own domain.
    ASKED.split_whitespace().any(|host| host == link.host())
        || link.path_and_query().starts_with("/~r/")
}

/// The page's URL that a link contains, if any.
pub(crate) fn page_within(link: &WebUrl) -> Option<WebUrl> {
    by_parameter(link).or_else(|| of_a_cache(link))
}

fn by_parameter(link: &WebUrl) -> Option<WebUrl> {
    let (path, query) = link.path_and_query().split_once('?')?;
    REDIRECTORS
        .iter()
        .filter(|(host, prefix, _)| is_at(link.host(), host) && path.starts_with(prefix))
        .flat_map(|(_, _, parameters)| parameters.split(' '))
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

/// Google's AMP cache has the page's URL in the path: `/amp/s/example.com/page`.
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
    // A host has a dot; without one, it is a path of Google itself.
    let host = place.split('/').next().filter(|host| host.contains('.'))?;
    WebUrl::parse(&format!("{scheme}://{place}"))
        .ok()
        .filter(|page| page.host().len() >= host.len())
}

fn is_at(host: &str, known: &str) -> bool {
    let host = host.strip_prefix("www.").unwrap_or(host);
    match known.strip_suffix(".*") {
        // `google.com`, `google.co.uk`: the name and at most two more labels.
        Some(name) => host
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|country| country.split('.').count() <= 2 && country.len() <= 6),
        None => host.strip_suffix(known).is_some_and(|sub| sub.is_empty() || sub.ends_with('.')),
    }
}
