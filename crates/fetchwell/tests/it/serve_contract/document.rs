//! The operations of the OpenAPI document, and a request that each of them takes.

use serde_json::{Map, Value, json};

use super::place::PAGE;
use crate::client::{self, Response};

/// One method of one path.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) needs_token: bool,
    /// A body that it takes, if it takes one.
    pub(crate) body: Option<Value>,
}

impl Operation {
    /// `GET /livez`
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(crate) fn is_write(&self) -> bool {
        self.method != "GET" || self.reads_a_page()
    }

    /// Whether it fetches the page that is in its path.
    pub(crate) fn reads_a_page(&self) -> bool {
        self.path.starts_with("/r/")
    }

    /// What those who may ask for it get: a page that is to be read is refused, as its host is a loopback address, and
    /// without a page there is no body.
    pub(crate) fn good_status(&self) -> u16 {
        match &*self.path {
            "/messages/{id}/body" => 404,
            _ if self.reads_a_page() => 502,
            _ => 200,
        }
    }

    /// Whether it is for viewers and operators only.
    pub(crate) fn is_oversight(&self) -> bool {
        self.path.starts_with("/operator/") || self.path.starts_with("/sites")
    }

    /// Whether it sends messages.
    pub(crate) fn is_fetch(&self) -> bool {
        self.path.starts_with("/fetch") || self.reads_a_page()
    }

    pub(crate) fn is_about_a_crawl(&self) -> bool {
        self.path.starts_with("/crawl/")
    }

    pub(crate) fn is_about_one(&self) -> bool {
        self.path.contains("{id}")
    }

    /// Asks for it with these headers; `id`: what it is about, where it is about one thing.
    pub(crate) async fn ask(
        &self,
        to: std::net::SocketAddr,
        headers: &[(&str, &str)],
        id: &str,
    ) -> Response {
        // No message of these tests goes to that site.
        // The id of a batch of one message has the digits of that message.
        let id = match self.path.starts_with("/batches/") {
            true => id.replacen("msg_", "batch_", 1),
            false => id.to_owned(),
        };
        let path = self.path.replace("{id}", &id).replace("{site}", "steered.test");
        let path = path.replace("{url}", "http://read.test/");
        // A caller that is revoked, and one of which a token is revoked.
        let path = path.replace("/callers/{name}/", "/callers/steered/");
        let path = path.replace("{name}", "retired").replace("{token}", "default");
        let body = self.body.as_ref().map(Value::to_string).unwrap_or_default();
        let json = [("content-type", "application/json")];
        let of_body = if body.is_empty() { &[][..] } else { &json };
        let headers = [of_body, headers].concat();
        client::raw(to, &client::request(&self.method, &path, &headers, &body)).await
    }
}

/// All that the document describes.
pub(crate) fn operations(document: &Value) -> Vec<Operation> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let schema = operation.pointer("/requestBody/content/application~1json/schema");
            all.push(Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                needs_token: operation.get("security").is_some(),
                body: schema.map(|schema| sample(document, schema, "")),
            });
        }
    }
    all
}

/// Something that fits the schema: its examples, and of its fields those that must be there.
fn sample(document: &Value, schema: &Value, name: &str) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).unwrap();
        return sample(document, target, name);
    }
    match (name, schema["type"].as_str()) {
        ("url", _) => PAGE.into(),
        (_, Some("array")) if schema.get("example").is_some() => schema["example"].clone(),
        (_, Some("array")) => json!([sample(document, &schema["items"], "")]),
        (_, Some("object")) => {
            let needed = schema["required"].as_array().into_iter().flatten();
            let needed = needed.filter_map(Value::as_str);
            let field = |name: &str| {
                let value = sample(document, &schema["properties"][name], name);
                (name.to_owned(), value)
            };
            needed.map(field).collect::<Map<_, _>>().into()
        }
        _ => schema["example"].clone(),
    }
}
