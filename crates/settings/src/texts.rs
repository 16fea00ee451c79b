//! Settings that are text with a restricted format.

use std::path::PathBuf;

use serde_json::Value as Json;

use super::fault::{Wrong, quoted};
use super::kinds::Kind;
use super::layer::Raw;

/// Text that is valid in an HTTP header, so that no setting can inject a second header.
pub(super) struct HeaderText;

impl Kind for HeaderText {
    type Value = String;

    fn read(&self, raw: &Raw) -> Result<String, Wrong> {
        const MOST_BYTES: usize = 256;
        let text = raw.one()?;
        let printable = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if !printable || text.trim().is_empty() || text.len() > MOST_BYTES {
            return Err(Wrong::new(
                format!("{} is not valid in a header", quoted(text)),
                format!("write printable ASCII, at most {MOST_BYTES} characters"),
            ));
        }
        Ok(text.trim().to_owned())
    }

    fn show(&self, value: &String) -> Json {
        value.as_str().into()
    }
}

/// A URL or an email address of the person who runs this.
pub(super) struct Contact;

impl Kind for Contact {
    type Value = String;

    fn read(&self, raw: &Raw) -> Result<String, Wrong> {
        let text = HeaderText.read(raw)?;
        let web = ["https://", "http://"]
            .iter()
            .any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
        let mail = text.split_once('@').is_some_and(|(name, host)| {
            !name.is_empty() && !host.is_empty() && !name.contains('/')
        });
        // It is written within the parentheses of `Fetchwell/1.0 (+CONTACT)`.
        if !(web || mail) || text.contains([' ', '(', ')']) {
            return Err(Wrong::new(
                format!("{} is neither a web nor an email address", quoted(&text)),
                r#"write an address such as "https://example.com/bot" or "bot@example.com""#,
            ));
        }
        Ok(text)
    }

    fn show(&self, value: &String) -> Json {
        value.as_str().into()
    }
}

/// The path of a file, relative to the working directory.
pub(super) struct FilePath;

impl Kind for FilePath {
    type Value = PathBuf;

    fn read(&self, raw: &Raw) -> Result<PathBuf, Wrong> {
        match raw.one()? {
            "" => Err(Wrong::new("is empty", "write the path of a file")),
            path => Ok(PathBuf::from(path)),
        }
    }

    fn show(&self, value: &PathBuf) -> Json {
        value.to_string_lossy().into()
    }
}
