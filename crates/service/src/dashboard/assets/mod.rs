//! Style, script and icon of the pages: embedded in the binary and cached by browsers under a hash of the content.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use fetchwell_policy::digest::sha256_hex;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("live.js");
const ICON: &str = include_str!("icon.svg");

/// The URLs of the assets.
pub(super) struct Assets {
    pub(super) style: String,
    pub(super) script: String,
    pub(super) icon: String,
}

pub(super) static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets {
    style: path("style.css", STYLE),
    script: path("live.js", SCRIPT),
    icon: path("icon.svg", ICON),
});

/// The URL includes a hash of the content, so browsers may cache the file forever.
fn path(name: &str, content: &str) -> String {
    format!("/dashboard/assets/{name}?{}", &sha256_hex(content.as_bytes())[..16])
}

/// The asset of this name.
pub(super) fn asset(name: &str) -> Option<Response> {
    let (kind, content) = match name {
        "style.css" => ("text/css; charset=utf-8", STYLE),
        "live.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "icon.svg" => ("image/svg+xml", ICON),
        _ => return None,
    };
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, "public, max-age=31536000, immutable")];
    Some((headers, content).into_response())
}
