//! Which URLs belong to a crawl.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::url::WebUrl;

/// How far a crawl goes from its start pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeKind {
    /// The start pages only.
    Page,
    /// The folders of the start pages, with everything below them.
    Path,
    /// The hosts of the start pages.
    Host,
    /// The hosts of the start pages without a leading `www.`, and their subdomains.
    Domain,
    /// Every site.
    Any,
}

impl ScopeKind {
    /// All kinds, the narrowest first.
    pub const ALL: [ScopeKind; 5] =
        [ScopeKind::Page, ScopeKind::Path, ScopeKind::Host, ScopeKind::Domain, ScopeKind::Any];

    /// The name that users write.
    pub fn word(self) -> &'static str {
        match self {
            ScopeKind::Page => "page",
            ScopeKind::Path => "path",
            ScopeKind::Host => "host",
            ScopeKind::Domain => "domain",
            ScopeKind::Any => "any",
        }
    }

    /// The part of the web that this start page adds: its folder, site or domain. `None` if that does not depend on the
    /// start page.
    pub fn part(self, start: &WebUrl) -> Option<String> {
        match self {
            ScopeKind::Page | ScopeKind::Any => None,
            ScopeKind::Path => Some(format!("{}{}", start.site(), folder(path(start)))),
            ScopeKind::Host => Some(String::from(start.site())),
            ScopeKind::Domain => Some(own_domain(start.host()).to_owned()),
        }
    }
}

/// The URLs that belong to a crawl. The time of a lookup depends only on the length of the URL, not on the number of
/// start pages.
#[derive(Clone, Debug)]
pub struct Scope {
    kind: ScopeKind,
    /// Folders, sites or hosts, by kind.
    names: HashSet<String>,
    /// The length of the longest of them.
    longest_bytes: usize,
}

impl Scope {
    /// The scope of these start pages.
    pub fn new<'a>(kind: ScopeKind, starts: impl IntoIterator<Item = &'a WebUrl>) -> Scope {
        let names: HashSet<String> =
            starts.into_iter().filter_map(|start| kind.part(start)).collect();
        let longest_bytes = names.iter().map(String::len).max().unwrap_or(0);
        Scope { kind, names, longest_bytes }
    }

    /// How far it goes.
    pub fn kind(&self) -> ScopeKind {
        self.kind
    }

    /// Whether a linked URL belongs to the crawl.
    pub fn contains(&self, url: &WebUrl) -> bool {
        match self.kind {
            ScopeKind::Page => false,
            ScopeKind::Any => true,
            ScopeKind::Host => self.names.contains(url.site().as_str()),
            ScopeKind::Path => {
                let mut folder = String::from(url.site());
                path(url).split_inclusive('/').any(|segment| {
                    folder.push_str(segment);
                    folder.len() <= self.longest_bytes && self.names.contains(&folder)
                })
            }
            ScopeKind::Domain if url.host_ip().is_some() => self.names.contains(url.host()),
            ScopeKind::Domain => {
                let host = url.host();
                let below = host.match_indices('.').filter_map(|(dot, _)| host.get(dot + 1..));
                std::iter::once(host).chain(below).any(|domain| self.names.contains(domain))
            }
        }
    }
}

fn own_domain(host: &str) -> &str {
    host.strip_prefix("www.").filter(|rest| rest.contains('.')).unwrap_or(host)
}

/// The path of a URL without its query.
fn path(url: &WebUrl) -> &str {
    let path = url.path_and_query();
    path.split_once('?').map_or(path, |(path, _)| path)
}

/// A path up to its last slash.
fn folder(path: &str) -> &str {
    path.rfind('/').and_then(|at| path.get(..=at)).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn url(text: &str) -> WebUrl {
        WebUrl::parse(text).unwrap()
    }

    fn contains(kind: ScopeKind, start: &str, link: &str) -> bool {
        Scope::new(kind, [&url(start)]).contains(&url(link))
    }

    #[test]
    fn a_link_is_in_scope_or_not() {
        use ScopeKind::*;
        for (kind, start, link, expected) in [
            (Page, "http://a.test/", "http://a.test/", false),
            (Any, "http://a.test/", "https://b.test:8443/x", true),
            (Host, "http://a.test/x", "https://a.test/y", true),
            (Host, "http://a.test/x", "http://a.test:8080/y", false),
            (Host, "http://a.test/x", "http://www.a.test/", false),
            (Path, "http://a.test/docs/start?x=/", "http://a.test/docs/", true),
            (Path, "http://a.test/docs/start", "https://a.test/docs/more/deep?q=1", true),
            (Path, "http://a.test/docs/start", "http://a.test/docs", false),
            (Path, "http://a.test/docs/start", "http://a.test/docs2/x", false),
            (Path, "http://a.test/docs/start", "http://a.test/x?y=/docs/", false),
            (Path, "http://a.test/docs/start", "http://b.test/docs/", false),
            (Path, "http://a.test", "http://a.test/anything/else", true),
            (Domain, "http://a.test/", "http://b.a.test/", true),
            (Domain, "http://www.a.test/", "https://x.y.a.test:81/", true),
            (Domain, "http://b.a.test/", "http://a.test/", false),
            (Domain, "http://a.test/", "http://ba.test/", false),
            (Domain, "http://www.test/", "http://other.test/", false),
            (Domain, "http://127.0.0.1/", "http://127.0.0.1:81/", true),
            (Domain, "http://0.0.1/", "http://127.0.0.1/", false),
        ] {
            assert_eq!(contains(kind, start, link), expected, "{kind:?} {start} {link}");
        }
    }

    #[test]
    fn every_start_page_adds_to_the_scope() {
        let starts = [url("http://a.test/"), url("http://b.test/")];
        let scope = Scope::new(ScopeKind::Host, &starts);
        let within = |link| scope.contains(&url(link));
        assert!(
            within("http://a.test/x") && within("http://b.test/x") && !within("http://c.test/")
        );
    }

    proptest! {
        #[test]
        fn each_kind_is_wider_than_the_one_before(
            start in "http://(www\\.)?(a|b)\\.test(:81)?/(x/|y)?(z|x/)?",
            link in "https?://(www\\.|c\\.)?(a|b)\\.test(:81)?/(x/|y)?(z|x/)?(\\?q)?",
        ) {
            use ScopeKind::*;
            let kinds = [Page, Path, Host, Domain, Any];
            let within: Vec<bool> = kinds.iter().map(|kind| contains(*kind, &start, &link)).collect();
            prop_assert!(within.is_sorted(), "{start} {link}: {within:?}");
        }
    }
}
