//! The pages to measure on: a folder with `truth.json` and a page in each `ID.html.gz`.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use serde_json::Value;
use url::Url;

/// A page as it came from its site.
pub(crate) struct Page {
    pub(crate) id: String,
    pub(crate) url: Url,
    pub(crate) body: Vec<u8>,
}

/// Reads all pages that `truth.json` names, in its order.
pub(crate) fn read(folder: &Path) -> Result<Vec<Page>> {
    let path = folder.join("truth.json");
    let text = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
    let truth: serde_json::Map<String, Value> = serde_json::from_str(&text)?;
    truth.iter().map(|(id, truth)| read_page(folder, id, truth)).collect()
}

fn read_page(folder: &Path, id: &str, truth: &Value) -> Result<Page> {
    let path = folder.join(format!("{id}.html.gz"));
    let file = fs::File::open(&path).with_context(|| format!("no {}", path.display()))?;
    let mut body = Vec::new();
    GzDecoder::new(file).read_to_end(&mut body).with_context(|| format!("{}", path.display()))?;
    let address = truth.get("url").and_then(Value::as_str).unwrap_or_default();
    // Some have no scheme; nothing is fetched, so any will do.
    let url = Url::parse(address).or_else(|_| Url::parse(&format!("https://{address}")));
    let url = url.or_else(|_| Url::parse("https://page.test/"))?;
    Ok(Page { id: id.to_owned(), url, body })
}
