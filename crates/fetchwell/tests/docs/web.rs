//! The sites that the examples speak of, simulated, with TLS in front of them.

use std::time::Duration;

use fetchwell_simweb::{OutageKind, Server, SiteScript, World};
use fetchwell_testkit::tls_front::TlsFront;

const HTML: &str = "text/html; charset=utf-8";
/// A day is longer than any test.
const ALWAYS: Duration = Duration::from_secs(86_400);
/// The certificate is for these, and the program finds these here.
const NAMES: [&str; 6] =
    ["example.com", "example.org", "docs.example", "news.example", "shop.example", "down.example"];

/// The examples' web, as long as it is held.
pub(crate) struct Web {
    front: TlsFront,
    _server: Server,
}

impl Web {
    pub(crate) async fn start() -> Web {
        let listen = ([127, 0, 0, 1], 0).into();
        let server = Server::start(World::new(sites()).into(), listen).expect("a simulated web");
        let front = TlsFront::open(&NAMES, server.addr()).await.expect("TLS in front of it");
        Web { front, _server: server }
    }

    /// The settings by which the program finds it, so that the pages need not say so.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let address = self.front.address();
        let resolve = NAMES.map(|name| format!("{name}={address}")).join(",");
        let authority = self.front.authority_file().display().to_string();
        [
            ("FETCHWELL_RESOLVE", resolve),
            ("FETCHWELL_ALLOW_PRIVATE", "127.0.0.0/8".to_owned()),
            ("FETCHWELL_HTTP__EXTRA_CA_FILE", authority),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }
}

fn sites() -> Vec<SiteScript> {
    let example = SiteScript::new("example.com")
        .robots("User-agent: *\nDisallow: /private/\n")
        .text("/", HTML, &page("Example Domain", "This domain is for use in documentation."))
        .text("/sitemap.xml", "application/xml", SITEMAP)
        .redirect("/old", "https://example.com/")
        .status("/gone", 404)
        .status("/broken", 500);
    let news = SiteScript::new("news.example")
        .robots("User-agent: *\nDisallow: /private/\nCrawl-delay: 2\n")
        .text("/feed.xml", "application/rss+xml", FEED)
        .text("/otters", HTML, &page("Otters return", OTTERS))
        .text("/map", HTML, "<p>Soon.</p>");
    let shop = SiteScript::new("shop.example").status("/sold-out/*", 404);
    let docs = SiteScript::new("docs.example")
        .robots("User-agent: *\nDisallow: /drafts/\n")
        .text("/", HTML, &page("Documentation", DOCS))
        .text("/install", HTML, &page("Install", "Unpack it, and you are <a href=/>done</a>."))
        .text("/guide", HTML, &page("Guide", "First <a href=/install>install</a> it."))
        .status("/sitemap.xml", 404);
    let down = SiteScript::new("down.example").outage(Duration::ZERO..ALWAYS, OutageKind::Refuse);
    vec![example, SiteScript::new("example.org"), docs, news, shop, down]
}

fn page(title: &str, text: &str) -> String {
    format!(
        "<!doctype html><html lang=en><title>{title}</title><nav><a href=/>Home</a></nav>\
         <article><h1>{title}</h1><p>{text}</p></article></html>"
    )
}

const OTTERS: &str = "After forty years they are <b>back</b>: a family of otters was seen on the \
    river twice this week. Nobody had expected them before the water was clean again, and \
    fishermen say that it is. The <a href=/map>map</a> shows where to look for them at dusk.";

const DOCS: &str = "Read how to <a href=/install>install</a> it, then the <a href=/guide>guide</a>. \
    The <a href=/drafts/>drafts</a> are not ready. There is a <a href=/manual.pdf>manual</a>, too.";

const SITEMAP: &str = "<?xml version=\"1.0\"?><urlset>\
    <url><loc>https://example.com/a</loc></url><url><loc>https://example.com/b</loc></url></urlset>";

const FEED: &str = "<rss version=\"2.0\"><channel><title>News</title>\
    <item><title>Otters return</title><link>https://news.example/otters?utm_source=rss</link></item>\
    <item><title>The map</title><link>https://news.example/map</link></item></channel></rss>";
