//! Settings that are text with a restricted format.

use std::path::PathBuf;

use super::fault::{Wrong, quoted};
use super::kinds::{Parsed, displayed};

/// Text that is valid in an HTTP header, so that no setting can inject a second header.
pub(super) const HEADER_TEXT: Parsed<String> = displayed(header_text);

fn header_text(text: &str) -> Result<String, Wrong> {
    const MOST_BYTES: usize = 256;
    let printable = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if !printable || text.trim().is_empty() || text.len() > MOST_BYTES {
        return Err(Wrong::new(
            format!("{} is not valid in a header", quoted(text)),
            format!("write printable ASCII, at most {MOST_BYTES} characters"),
        ));
    }
    Ok(text.trim().to_owned())
}

/// A URL or an email address of the person who runs this.
pub(super) const CONTACT: Parsed<String> = displayed(|text| {
    let text = header_text(text)?;
    let web = ["https://", "http://"]
        .iter()
        .any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
    let mail = text
        .split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !name.contains('/'));
    // It is written within the parentheses of `Fetchwell/1.0 (+CONTACT)`.
    if !(web || mail) || text.contains([' ', '(', ')']) {
        return Err(Wrong::new(
            format!("{} is neither a web nor an email address", quoted(&text)),
            r#"write an address such as "https://example.com/bot" or "bot@example.com""#,
        ));
    }
    Ok(text)
});

/// The name of a host, without a port.
pub(super) const HOST_NAME: Parsed<String> = displayed(|text| {
    const MOST_BYTES: usize = 253;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if text.is_empty() || text.len() > MOST_BYTES || !text.bytes().all(allowed) {
        return Err(Wrong::new(
            format!("{} is not a hostname", quoted(text)),
            r#"write a hostname without scheme and port, such as "fetch.example.com""#,
        ));
    }
    Ok(text.to_ascii_lowercase())
});

/// The path of a file, relative to the working directory.
pub(super) const FILE_PATH: Parsed<PathBuf> = Parsed {
    read: |text| match text {
        "" => Err(Wrong::new("is empty", "write the path of a file")),
        path => Ok(PathBuf::from(path)),
    },
    show: |value| value.to_string_lossy().into(),
};
