//! The documentation for people: made from the OpenAPI document, on the server, without JavaScript.

mod objects;

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa::openapi::OpenApi;

use super::problem::Kind;
use objects::{schema_name, write_objects};

const STYLE: &str = include_str!("docs/style.css");
const BEGINNING: &str = include_str!("docs/beginning.html");
const METHODS: [&str; 2] = ["get", "post"];

/// The page, and what it may load: its own style, and nothing else.
#[derive(Clone)]
pub(super) struct Page {
    pub(super) html: Arc<str>,
    pub(super) policy: Arc<str>,
}

impl Page {
    /// The page of this document.
    pub(super) fn of(document: &OpenApi) -> Page {
        let document = serde_json::to_value(document).unwrap_or_default();
        let hash = STANDARD.encode(Sha256::digest(STYLE));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        );
        Page { html: html(&document).into(), policy: policy.into() }
    }
}

fn html(document: &Value) -> String {
    let mut page = BEGINNING.replace("{style}", STYLE);
    page = page.replace("{description}", &escape(text(&document["info"]["description"])));
    let operations = operations(document);
    page = page.replace("{contents}", &contents(&operations));
    for operation in &operations {
        write_operation(&mut page, operation);
    }
    write_objects(&mut page, &document["components"]["schemas"]);
    write_problems(&mut page);
    page.push_str("</main></body></html>\n");
    page
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
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, item)| {
        METHODS
            .into_iter()
            .filter_map(move |method| Some(Operation { method, path, body: item.get(method)? }))
    });
    let mut all: Vec<_> = all.collect();
    let tags = ["Messages", "Outbox", "Operations"];
    all.sort_by_key(|one| tags.iter().position(|tag| text(&one.body["tags"][0]) == *tag));
    all
}

fn contents(operations: &[Operation<'_>]) -> String {
    let line = |one: &Operation<'_>| {
        let (method, path) = (one.method.to_uppercase(), escape(one.path));
        let (anchor, summary) = (one.anchor(), escape(text(&one.body["summary"])));
        format!("<li><a href=\"#{anchor}\"><b>{method}</b> <code>{path}</code></a> {summary}</li>")
    };
    operations.iter().map(line).collect()
}

fn write_operation(page: &mut String, operation: &Operation<'_>) {
    let Operation { method, path, body } = operation;
    let (upper, anchor) = (method.to_uppercase(), operation.anchor());
    push(
        page,
        format_args!(
            "<section id=\"{anchor}\"><h2><b>{upper}</b> <code>{}</code></h2><p><strong>{}.</strong> {}</p>\n",
            escape(path),
            escape(text(&body["summary"])),
            prose(text(&body["description"])),
        ),
    );
    if let Some(parameters) = body["parameters"].as_array() {
        page.push_str("<h3>Parameters</h3><table><tr><th>name</th><th>in</th><th></th></tr>");
        for one in parameters {
            let (name, place) = (escape(text(&one["name"])), escape(text(&one["in"])));
            let about = prose(text(&one["description"]));
            push(
                page,
                format_args!(
                    "<tr><td><code>{name}</code></td><td>{place}</td><td>{about}</td></tr>"
                ),
            );
        }
        page.push_str("</table>\n");
    }
    push(
        page,
        format_args!("<h3>Try it</h3><pre><code>{}</code></pre>\n", escape(&curl(operation))),
    );
    page.push_str("<h3>Answers</h3><table><tr><th>status</th><th></th><th>body</th></tr>");
    for (status, answer) in body["responses"].as_object().into_iter().flatten() {
        let about = prose(text(&answer["description"]));
        push(
            page,
            format_args!("<tr><td>{status}</td><td>{about}</td><td>{}</td></tr>", body_of(answer)),
        );
    }
    page.push_str("</table></section>\n");
}

/// A command that can be pasted.
fn curl(operation: &Operation<'_>) -> String {
    let path = operation.path.replace("{id}", "MESSAGE_ID");
    let mut lines = vec![format!("curl \"$FETCHWELL{path}\"")];
    if operation.body.get("security").is_some() {
        lines.push("-H \"Authorization: Bearer $FETCHWELL_TOKEN\"".to_owned());
    }
    if operation.method == "post" {
        const MESSAGE: &str =
            r#"{"url": "https://example.com/", "retailer": "admhr", "correlation_id": "my-1"}"#;
        let is_batch = path.ends_with("/batch");
        let body =
            if is_batch { format!("{{\"messages\": [{MESSAGE}]}}") } else { MESSAGE.to_owned() };
        lines.push("-H \"Content-Type: application/json\"".to_owned());
        lines.push(format!("-d '{body}'"));
    }
    lines.join(" \\\n  ")
}

fn body_of(answer: &Value) -> String {
    let Some((content_type, body)) =
        answer["content"].as_object().and_then(|all| all.iter().next())
    else {
        return String::new();
    };
    match schema_name(&body["schema"]) {
        Some(name) => format!("<a href=\"#schema-{0}\">{0}</a>", escape(name)),
        None => escape(content_type),
    }
}

fn write_problems(page: &mut String) {
    page.push_str(
        "<h2 id=\"problems\">Problems</h2><p>Every error is a problem by RFC 9457 \
         (<code>application/problem+json</code>). Its <code>type</code> leads here and never changes.</p>\n",
    );
    for kind in Kind::ALL {
        push(
            page,
            format_args!(
                "<section id=\"problem-{}\"><h3>{} {}</h3><p>{}</p></section>\n",
                kind.name(),
                kind.status().as_u16(),
                escape(kind.title()),
                prose(kind.mend()),
            ),
        );
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    page.push_str(&text.to_string());
}

/// Text whose `code` stands between back-ticks.
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

    #[test]
    fn code_is_marked_and_nothing_else_is_markup() {
        assert_eq!(prose("use `a<b>` & go"), "use <code>a&lt;b&gt;</code> &amp; go");
    }
}
