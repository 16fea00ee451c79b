//! The human-readable documentation, rendered on the server from the OpenAPI document. It is complete without
//! JavaScript; a script of its own lets readers try the calls with a token that they paste.

mod objects;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use askama::Template;
use axum::body::{Body, Bytes};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::stream;
use http::header::{CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HOST};
use http::request::Parts;
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa::openapi::OpenApi;

use crate::problem::ProblemKind;
use crate::server::Peer;
use objects::{fields, schema_name, type_of};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("try.js");
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
/// The call that most readers come for.
const FIRST: (&str, &str) = ("post", "/fetch");
/// Placeholder for the address of this server, which is taken from the request for the page.
const ADDRESS: &str = "{address}";
/// The order of the sections, by how often readers need them.
const TAGS: [&str; 8] =
    ["Messages", "Batches", "Outbox", "Webhooks", "Sites", "Oversight", "Callers", "Operations"];

/// The page, and its content security policy: it has its own style and script, loads nothing, and its script may send
/// requests to this server only.
#[derive(Clone)]
pub(super) struct Page {
    /// The HTML before and after the server's address. All responses share these bytes.
    before: Bytes,
    after: Bytes,
    policy: Arc<str>,
    listens_on: SocketAddr,
}

impl Page {
    /// Renders the page for this OpenAPI document.
    pub(super) fn of(document: &OpenApi, listens_on: SocketAddr) -> Page {
        let document = serde_json::to_value(document).unwrap_or_default();
        let style = STANDARD.encode(Sha256::digest(STYLE));
        let script = STANDARD.encode(Sha256::digest(SCRIPT));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        let html = html(&document);
        let (before, after) = html.split_once(ADDRESS).unwrap_or((html.as_str(), ""));
        let before = Bytes::copy_from_slice(before.as_bytes());
        let after = Bytes::copy_from_slice(after.as_bytes());
        Page { before, after, policy: policy.into(), listens_on }
    }

    /// The response to this request. The examples use the address under which the reader found the page.
    pub(super) fn read_by(&self, reader: &Parts) -> Response {
        let scheme = if Peer::of(reader).is_encrypted { "https" } else { "http" };
        let host = host(reader).map_or_else(|| self.listens_on.to_string(), str::to_owned);
        let address = Bytes::from(format!("{scheme}://{}", escape(&host)));
        let parts = [self.before.clone(), address, self.after.clone()];
        let length: usize = parts.iter().map(Bytes::len).sum();
        let headers = [
            (CONTENT_LENGTH, length.to_string()),
            (CONTENT_SECURITY_POLICY, self.policy.to_string()),
        ];
        let body = Body::from_stream(stream::iter(parts.map(Ok::<_, Infallible>)));
        (headers, Html(body)).into_response()
    }
}

/// The requested host, if it can be pasted into a shell safely.
fn host(reader: &Parts) -> Option<&str> {
    let target = reader.uri.authority().map(http::uri::Authority::as_str);
    let host = target.or_else(|| reader.headers.get(HOST)?.to_str().ok())?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    (!host.is_empty() && host.bytes().all(is_plain)).then_some(host)
}

/// The HTML, with [`ADDRESS`] in place of the address.
#[derive(Template)]
#[template(path = "docs.html")]
struct Documentation<'a> {
    description: &'a str,
    groups: Vec<Group<'a>>,
    webhooks: &'a Value,
    schemas: &'a Value,
}

/// The operations with the same tag.
struct Group<'a> {
    name: &'a str,
    operations: Vec<Operation<'a>>,
}

fn groups(document: &Value) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for operation in operations(document) {
        let name = text(&operation.body["tags"][0]);
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.operations.push(operation),
            None => groups.push(Group { name, operations: vec![operation] }),
        }
    }
    groups
}

fn in_order<'a, 'b>(groups: &'b [Group<'a>]) -> impl Iterator<Item = &'b Operation<'a>> {
    groups.iter().flat_map(|group| &group.operations)
}

fn html(document: &Value) -> String {
    let description = text(&document["info"]["description"]);
    let schemas = &document["components"]["schemas"];
    let webhooks = &document["webhooks"];
    let page = Documentation { description, groups: groups(document), webhooks, schemas };
    page.render().unwrap_or_default()
}

/// One method of one path.
struct Operation<'a> {
    method: &'static str,
    path: &'a str,
    body: &'a Value,
}

impl Operation<'_> {
    fn anchor(&self) -> String {
        let path: String =
            self.path.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '/').collect();
        format!("{}{}", self.method, path.replace('/', "-"))
    }

    fn needs_token(&self) -> bool {
        self.body.get("security").is_some()
    }
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let all = entries(&document["paths"]).flat_map(|(path, item)| {
        METHODS
            .into_iter()
            .filter_map(move |method| Some(Operation { method, path, body: item.get(method)? }))
    });
    let mut all: Vec<_> = all.collect();
    let place = |tag: &str| TAGS.iter().position(|known| *known == tag).unwrap_or(TAGS.len());
    all.sort_by_key(|one| (place(text(&one.body["tags"][0])), (one.method, one.path) != FIRST));
    all
}

/// An example command to paste into a shell.
fn curl(operation: &Operation<'_>) -> String {
    let id = match operation.path {
        path if path.starts_with("/batches/") => "BATCH_ID",
        path if path.starts_with("/crawl/") => "CRAWL_ID",
        _ => "MESSAGE_ID",
    };
    let path = operation.path.replace("{id}", id).replace("{site}", "example.com");
    let body = example_body(operation.method, operation.path);
    // With a body, curl sends a POST anyway.
    let method = match (operation.method, &body) {
        ("get", _) | ("post", Some(_)) => String::new(),
        (method, _) => format!("-X {} ", method.to_uppercase()),
    };
    let mut lines = vec![format!("curl {method}\"$FETCHWELL{path}\"")];
    if operation.needs_token() {
        lines.push("-H \"Authorization: Bearer $FETCHWELL_TOKEN\"".to_owned());
    }
    if let Some(body) = body {
        lines.push("-H \"Content-Type: application/json\"".to_owned());
        lines.push(format!("-d '{body}'"));
    }
    lines.join(" \\\n  ")
}

/// The body of the example for this path, if its operation takes one.
fn example_body(method: &str, path: &str) -> Option<String> {
    if method != "post" {
        return None;
    }
    const MESSAGE: &str =
        r#"{"url": "https://example.com/", "retailer": "admhr", "correlation_id": "my-1"}"#;
    let body = match path {
        "/fetch" => MESSAGE,
        "/fetch/batch" => return Some(format!("{{\"messages\": [{MESSAGE}]}}")),
        "/crawl" => r#"{"urls": ["https://example.com/"], "limit": 100}"#,
        "/sites/{site}/set-rate" => r#"{"rate": 0.5}"#,
        "/operator/messages/retry" | "/operator/messages/cancel" => {
            r#"{"ids": ["msg_018bcfe56800ffffffffffffffffffff"]}"#
        }
        "/operator/messages/retry-matching" => {
            r#"{"filter": {"state": "failed"}, "as_of": "2026-01-01T00:00:00Z", "most": 1}"#
        }
        "/operator/messages/cancel-matching" => {
            r#"{"filter": {"state": "queued"}, "as_of": "2026-01-01T00:00:00Z", "most": 1}"#
        }
        "/operator/callers" => r#"{"name": "catalogue", "role": "caller"}"#,
        "/operator/callers/{name}/tokens" => r#"{"name": "ci", "expires_in": "30d"}"#,
        "/operator/callers/{name}/webhook-secret" | "/webhooks/secret" => r#"{"overlap": "24h"}"#,
        "/webhooks/deliveries/replay" => {
            r#"{"since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}"#
        }
        _ => return None,
    };
    Some(body.to_owned())
}

/// The example value of a parameter of a path.
fn example_of(parameter: &Value) -> &str {
    match text(&parameter["name"]) {
        "site" => "example.com",
        _ => "",
    }
}

fn body_of(answer: &Value) -> String {
    let Some((content_type, body)) = entries(&answer["content"]).next() else {
        return String::new();
    };
    match schema_name(&body["schema"]) {
        Some(name) => format!("<a href=\"#schema-{0}\">{0}</a>", escape(name)),
        None => escape(content_type),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The elements of an array; none if it is something else.
fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The fields of an object; none if it is something else.
fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Renders text with `code` in backticks as HTML.
fn prose(text: &str) -> String {
    let pieces = escape(text);
    let tagged = |(index, piece): (usize, &str)| match index % 2 {
        1 => format!("<code>{piece}</code>"),
        _ => piece.to_owned(),
    };
    pieces.split('`').enumerate().map(tagged).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::routes::documented;

    fn document() -> Value {
        let operation = |tag: &str| serde_json::json!({"tags": [tag], "summary": "x"});
        serde_json::json!({"paths": {
            "/aaa": {"get": operation("Unheard of")},
            "/fetch": {"post": operation("Messages")},
            "/livez": {"get": operation("Operations")},
            "/operator/ledger": {"get": operation("Oversight")},
            "/outbox": {"get": operation("Outbox")},
            "/sites": {"get": operation("Sites")},
        }})
    }

    #[test]
    fn what_most_come_for_is_first() {
        let document = document();
        let paths: Vec<&str> = operations(&document).iter().map(|one| one.path).collect();
        assert_eq!(paths, ["/fetch", "/outbox", "/sites", "/operator/ledger", "/livez", "/aaa"]);
    }

    #[test]
    fn examples_lead_to_where_the_page_was_found() {
        let asked = |uri: &str, hosts: &[&str]| {
            let mut request = http::Request::builder().uri(uri).body(()).unwrap();
            for host in hosts {
                request.headers_mut().append(HOST, host.parse().unwrap());
            }
            host(&request.into_parts().0).map(str::to_owned)
        };
        assert_eq!(asked("/docs", &["a.test:9000"]).as_deref(), Some("a.test:9000"));
        assert_eq!(asked("/docs", &["[::1]:9000"]).as_deref(), Some("[::1]:9000"));
        assert_eq!(asked("http://b.test/docs", &["a.test"]).as_deref(), Some("b.test"));
        assert_eq!(asked("/docs", &["a.test;ls"]), None);
        assert_eq!(asked("/docs", &[]), None);
    }

    #[test]
    fn the_body_of_each_example_has_the_fields_of_its_schema() {
        let (_, document) = documented().split_for_parts();
        let document = serde_json::to_value(document).unwrap();
        let mut with_body = 0;
        for Operation { method, path, body, .. } in operations(&document) {
            let schema = &body["requestBody"]["content"]["application/json"]["schema"];
            let Some(name) = schema_name(schema) else {
                assert_eq!(example_body(method, path), None, "{path}");
                continue;
            };
            with_body += 1;
            let schema = &document["components"]["schemas"][name];
            let example = example_body(method, path);
            let example = example.unwrap_or_else(|| panic!("no example for {path}"));
            let example: Value = serde_json::from_str(&example).unwrap();
            for field in example.as_object().unwrap().keys() {
                assert!(schema["properties"].get(field).is_some(), "{path}: {field} is unknown");
            }
            for field in list(&schema["required"]) {
                assert!(example.get(text(field)).is_some(), "{path}: {field} is missing");
            }
        }
        assert_eq!(with_body, 13);
    }

    #[test]
    fn an_example_without_a_body_names_its_method() {
        let body = serde_json::json!({});
        let of = |method, path| curl(&Operation { method, path, body: &body });
        let pause = of("post", "/sites/{site}/pause");
        assert_eq!(pause, "curl -X POST \"$FETCHWELL/sites/example.com/pause\"");
        assert_eq!(of("get", "/sites"), "curl \"$FETCHWELL/sites\"");
        let cancel = of("delete", "/messages/{id}");
        assert_eq!(cancel, "curl -X DELETE \"$FETCHWELL/messages/MESSAGE_ID\"");
        let cancel = of("delete", "/batches/{id}");
        assert_eq!(cancel, "curl -X DELETE \"$FETCHWELL/batches/BATCH_ID\"");
        let cancel = of("delete", "/crawl/{id}");
        assert_eq!(cancel, "curl -X DELETE \"$FETCHWELL/crawl/CRAWL_ID\"");
    }

    #[test]
    fn the_contents_name_each_operation_once_in_the_order_of_the_page() {
        let (_, document) = documented().split_for_parts();
        let page = html(&serde_json::to_value(document).unwrap());
        let contents = page.split("</nav>").next().unwrap();
        let linked: Vec<&str> =
            contents.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let linked: Vec<&str> = linked.into_iter().filter(|anchor| anchor.contains('-')).collect();
        let sections: Vec<&str> = page
            .split("<section id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let sections: Vec<&str> = sections
            .into_iter()
            .filter(|id| METHODS.iter().any(|method| id.starts_with(&format!("{method}-"))))
            .collect();
        assert_eq!(linked.first(), Some(&"post-fetch"));
        assert_eq!(linked, sections);
    }

    #[test]
    fn every_webhook_is_on_the_page_with_its_body_and_headers() {
        let (_, document) = documented().split_for_parts();
        let page = html(&serde_json::to_value(document).unwrap());
        let (_, section) = page.split_once("<section id=\"webhooks\">").unwrap();
        let section = section.split("</section>").next().unwrap();
        for (name, body) in [
            ("batch.completed", "BatchCompleted"),
            ("fetch.completed", "FetchCompleted"),
            ("fetch.failed", "FetchFailed"),
        ] {
            assert!(section.contains(&format!("<code>{name}</code>")), "{section}");
            assert!(section.contains(&format!("<a href=\"#schema-{body}\">")), "{section}");
        }
        assert_eq!(section.matches("<code>webhook-signature</code>").count(), 1, "{section}");
    }

    #[test]
    fn the_script_cannot_end_its_element_early() {
        assert!(!SCRIPT.contains("</") && !SCRIPT.contains("<!--"));
        assert!(!SCRIPT.contains("localStorage") && !SCRIPT.contains("innerHTML"));
    }

    #[test]
    fn code_is_marked_and_nothing_else_is_markup() {
        assert_eq!(prose("use `a<b>` & go"), "use <code>a&lt;b&gt;</code> &amp; go");
    }
}
