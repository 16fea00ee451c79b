//! Hostile pages that `serve` fetched, opened from its own origin in a real Chromium: `hostile_pages.py` says how.
//!
//! It needs what `browser` needs, and skips without it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use fetchwell_simweb::SiteScript;
use fetchwell_testkit::crash::{Service, TestWeb};
use fetchwell_testkit::python::python;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use super::browser::chromium;
use super::place::{program, send};

const PATIENCE: Duration = Duration::from_secs(300);

/// Whatever of it runs asks for a path with `ran=`, or changes the title.
const HTML: &str = r#"<!doctype html><html><head><title>quiet</title>
<meta http-equiv="refresh" content="0;url=/livez?ran=refresh">
<script>document.title = "ran"; fetch("/livez?ran=script")</script>
<script src="/livez?ran=source"></script><link rel="stylesheet" href="/livez?ran=style">
</head><body onload="fetch('/livez?ran=load')"><p>Some words.</p>
<img src="/livez?ran=image" onerror="fetch('/livez?ran=error')">
<svg onload="fetch('/livez?ran=svg')"></svg><iframe src="/livez?ran=frame"></iframe>
<iframe srcdoc="<script>fetch('/livez?ran=document')</script>"></iframe><object data="/livez?ran=object"></object>
<a href="javascript:fetch('/livez?ran=link')" autofocus onfocus="fetch('/livez?ran=focus')">A link</a>
<form id="form" action="/livez"><input name="ran" value="form"></form><script>document.forms.form.submit()</script>
</body></html>"#;

const SVG: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="fetch('/livez?ran=load')">
<title>quiet</title><script>fetch("/livez?ran=script")</script><image href="/livez?ran=image" width="9" height="9"/>
<set attributeName="x" onbegin="fetch('/livez?ran=begin')"/><foreignObject width="9" height="9">
<iframe xmlns="http://www.w3.org/1999/xhtml" src="/livez?ran=frame"></iframe></foreignObject></svg>"#;

/// The hostile pages, and what the site says they are.
const PAGES: [(&str, &str, &str); 7] = [
    ("/page.html", "text/html", HTML),
    ("/page.xhtml", "application/xhtml+xml", SVG),
    ("/image.svg", "image/svg+xml", SVG),
    ("/feed.xml", "text/xml", SVG),
    ("/notes.txt", "text/plain", HTML),
    ("/notes.md", "text/markdown", HTML),
    ("/data.json", "application/json", HTML),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_page_runs_nothing_on_our_origin() {
    let (Some(python), Some(chromium)) = (python(), chromium()) else { return };
    let site = SiteScript::new("evil.test");
    let site = PAGES
        .into_iter()
        .fold(site, |site, (path, content_type, text)| site.text(path, content_type, text));
    let origin = TestWeb::start([site]);
    let service = Service::start(program(&origin)).await;
    let mut pages = Vec::new();
    for (path, content_type, _) in PAGES {
        let id = send(&service, &format!("http://evil.test{path}"), path, true).await;
        let is_shown = ["text/plain", "text/markdown", "application/json"].contains(&content_type);
        pages.push(json!({"body": format!("/messages/{id}/body"), "is_shown": is_shown,
                          "read": format!("/r/http://evil.test{path}")}));
    }
    let mut command = Command::new(&python);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/dashboard/hostile_pages.py"))
        .env("CHROMIUM", chromium)
        .env("SERVE_URL", format!("http://{}", service.address))
        .env("TOKEN", &service.token)
        .env("PAGES", Value::from(pages).to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let ended = timeout(PATIENCE, command.output()).await.expect("an end in time").unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    let faults = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}\n{faults}\nthe service:\n{}", service.log());
    assert_eq!(said.lines().last(), Some("all held"), "{said}\n{faults}");
}
