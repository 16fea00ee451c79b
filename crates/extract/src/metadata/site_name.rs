//! Tells whether a text is the name of the site.

use url::Url;

use super::title::{plain, words};

/// The maximum number of words in a site's name.
pub(super) const MAX_SITE_WORDS: usize = 4;

/// Whether a text is the site's name, according to the page or its URL, possibly with a few words before or after it.
pub(super) fn is_site_name(text: &str, site_name: Option<&str>, url: &Url) -> bool {
    let name = plain(text);
    let begins_with_host = || {
        words(text).count() <= MAX_SITE_WORDS && labels(url).any(|label| name.starts_with(label))
    };
    is_only_site_name(text, site_name, url) || begins_with_host()
}

/// The same, but without words after it.
pub(super) fn is_only_site_name(text: &str, site_name: Option<&str>, url: &Url) -> bool {
    let name = plain(text);
    let is_named = site_name.is_some_and(|site| plain(site) == name);
    let is_host = || name.len() > 3 && plain(url.host_str().unwrap_or_default()).contains(&name);
    let ends_with_host =
        || words(text).count() <= MAX_SITE_WORDS && labels(url).any(|label| name.ends_with(label));
    !name.is_empty() && (is_named || is_host() || ends_with_host())
}

/// The parts of the host that may be the site's name.
fn labels(url: &Url) -> impl Iterator<Item = &str> {
    let labels = url.host_str().unwrap_or_default().split('.');
    labels.filter(|label| label.len() > 3 && *label != "blog")
}
