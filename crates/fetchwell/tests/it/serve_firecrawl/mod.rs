//! The endpoints of Firecrawl, over HTTP and with its own clients.

mod batches;
mod guard;
mod maps;
mod refusals;
mod scrapes;
mod sdks;

use std::time::Duration;

use fetchwell_simweb::{OutageKind, SiteScript};
use fetchwell_testkit::crash::{Program, Service, TestWeb};
use serde_json::Value;

use crate::client::{self, Response};
use crate::fetch::ARTICLE;

const FOR_EVER: Duration = Duration::from_secs(86_400);

/// A page with a frame, an advertisement and links.
const HOME: &str = "<html lang=en><head><title>The shop</title><meta name=description content='All you need.'></head>\
    <body><nav class='top'><a href=/about>About us</a></nav><main><h1>The shop</h1>\
    <p id=intro>We sell <a href='/hats?size=l'>hats</a> and other things that keep the rain off your head.</p>\
    <div class='ad wide'>Buy two</div></main><footer><a href=http://blog.shop.test/>Our blog</a>, \
    <a href=http://other.test/>others</a></footer><script>alert(1)</script></body></html>";

const NOTES: &str = "# Notes\n\n* one\n";

/// The sites that the tests and the scripts of the clients name.
fn web() -> TestWeb {
    let sitemap = |paths: &[&str]| {
        let urls = paths.iter().map(|path| format!("<url><loc>http://shop.test{path}</loc></url>"));
        format!("<?xml version='1.0'?><urlset>{}</urlset>", urls.collect::<String>())
    };
    let index = "<sitemapindex><sitemap><loc>http://shop.test/maps/hats.xml</loc></sitemap>\
                 <sitemap><loc>http://shop.test/maps/coats.xml.gz</loc></sitemap></sitemapindex>";
    TestWeb::start([
        SiteScript::new("shop.test")
            .robots("User-agent: *\nDisallow: /private\nSitemap: http://shop.test/maps/index.xml\n")
            .text("/", "text/html", HOME)
            .text("/article", "text/html", ARTICLE)
            .text("/notes.md", "text/markdown", NOTES)
            .binary("/photo", "image/jpeg", 999)
            .redirect("/moved", "/article")
            .status("/missing", 404)
            .text("/maps/index.xml", "application/xml", index)
            .text("/maps/hats.xml", "application/xml", &sitemap(&["/hats/1", "/hats/2", "/about"]))
            .gzip("/maps/coats.xml.gz", "application/gzip", &sitemap(&["/coats/1"])),
        SiteScript::new("plain.test")
            .text("/", "text/html", "<title>Plain</title><a href=/one>One</a>")
            .text("/sitemap.xml", "text/xml", "<urlset><loc>http://plain.test/two</loc></urlset>"),
        // Some sites answer every path with a page.
        SiteScript::new("soft.test").text(
            "/sitemap.xml",
            "text/html",
            "<title>Oh</title><p>No such page.",
        ),
        SiteScript::new("private.test").robots("User-agent: *\nDisallow: /\n"),
        SiteScript::new("slow.test").slow(Duration::from_secs(4)),
        SiteScript::new("down.test").outage(Duration::ZERO..FOR_EVER, OutageKind::Refuse),
    ])
}

/// A service and its origin.
struct Place {
    service: Service,
    origin: TestWeb,
}

impl Place {
    async fn start() -> Place {
        Place::start_with(&[]).await
    }

    async fn start_with(variables: &[(&str, &str)]) -> Place {
        let origin = web();
        let program = Program::new(env!("CARGO_BIN_EXE_fetchwell")).on(&origin);
        let mut program = program.flags(["--rate", "0", "--i-own-these-sites"]);
        for (name, value) in [("FETCHWELL_RETRIEVER__MAX_RETRIES", "1")].iter().chain(variables) {
            program = program.variable(name, value);
        }
        Place { service: Service::start(program).await, origin }
    }

    async fn send_as(&self, token: &str, method: &str, path: &str, body: &str) -> Response {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        client::raw(self.service.address, &client::request(method, path, &headers, body)).await
    }

    async fn post(&self, path: &str, body: &Value) -> Response {
        self.send_as(&self.service.token, "POST", path, &body.to_string()).await
    }

    async fn get(&self, path: &str) -> Response {
        self.send_as(&self.service.token, "GET", path, "").await
    }

    /// The requests for this path at the origin.
    fn requests(&self, host: &str, path: &str) -> usize {
        let hits = self.origin.hits();
        hits.iter().filter(|hit| &*hit.site == host && &*hit.path == path).count()
    }
}

/// Checks that a request was refused as Firecrawl does it, and returns why.
#[track_caller]
fn refused(response: &Response, status: u16) -> (String, String) {
    let json = response.json();
    assert_eq!((response.status, &json["success"]), (status, &Value::Bool(false)), "{json}");
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
    let text = |name: &str| json[name].as_str().unwrap_or_else(|| panic!("{json}")).to_owned();
    (text("error"), text("code"))
}
