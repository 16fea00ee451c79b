//! The names of sites and retailers that have their own tables.

use fetchwell_policy::url::Site;

use super::fault::{Wrong, quoted};

/// The canonical name of a site: lower case, IDNA, no trailing dot, no default port.
pub(super) fn site_name(text: &str) -> Result<String, Wrong> {
    canonical_site(text).ok_or_else(|| {
        Wrong::new(
            format!("{} is not a site", quoted(text)),
            r#"write a host, with its port unless that is 80 or 443, as in [sites."example.com"]"#,
        )
    })
}

/// The name that the gate uses, so that the rate applies to its site. Paths and `*` are refused, since a rate is for
/// exactly one whole site.
fn canonical_site(text: &str) -> Option<String> {
    if text.contains(['/', '?', '#', '*']) {
        return None;
    }
    Site::parse(text).ok().map(String::from)
}

/// The name of a retailer. Callers send it, so there is only one spelling.
pub(super) fn retailer_name(text: &str) -> Result<String, Wrong> {
    const MOST_BYTES: usize = 32;
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    if !text.is_empty() && text.len() <= MOST_BYTES && text.bytes().all(allowed) {
        return Ok(text.to_owned());
    }
    Err(Wrong::new(
        format!("{} is not a valid retailer name", quoted(text)),
        format!("write 1 to {MOST_BYTES} characters from a-z, 0-9, _ and -"),
    ))
}

/// The path of a named table in the file, such as `sites."example.com"`.
pub(super) fn table_path(map: &str, name: &str) -> String {
    format!("{map}.{}", toml_edit::Key::new(name).display_repr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_one_name() {
        for (text, name) in [
            ("example.com", "example.com"),
            ("EXAMPLE.com.", "example.com"),
            ("example.com:443", "example.com"),
            ("example.com:80", "example.com"),
            ("example.com:8080", "example.com:8080"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("127.0.0.1:8099", "127.0.0.1:8099"),
            ("[::1]:8099", "[::1]:8099"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(canonical_site(text).as_deref(), Some(name), "{text}");
        }
        for text in ["", ".", "a b", "http://example.com", "a/b", "a:b", "a:70000", "*.a", "u@a"] {
            assert_eq!(canonical_site(text), None, "{text}");
        }
    }

    #[test]
    fn a_retailer_is_named_in_small_letters() {
        for name in ["admhr", "a", "big_shop-2", &"x".repeat(32)] {
            assert!(retailer_name(name).is_ok(), "{name}");
        }
        for name in ["", "Admhr", "a b", "a.b", "ä", &"x".repeat(33)] {
            assert!(retailer_name(name).is_err(), "{name}");
        }
    }
}
