//! Reads URLs from the command line, from files and from standard input.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::Path;

use fetchwell_policy::url::WebUrl;

use crate::console::exit::Exit;

/// The URLs exactly as given, in order, without duplicates.
pub(crate) fn read(arguments: &[String]) -> Result<Vec<String>, Exit> {
    read_as(arguments, str::to_owned)
}

/// The same for `fetch`, where a URL without a scheme means https.
pub(crate) fn read_pages(arguments: &[String]) -> Result<Vec<String>, Exit> {
    read_as(arguments, assume_https)
}

fn read_as(arguments: &[String], as_url: fn(&str) -> String) -> Result<Vec<String>, Exit> {
    let mut urls = Vec::new();
    let mut seen = HashSet::new();
    for argument in arguments {
        for url in expand(argument)? {
            let url = as_url(&url);
            if seen.insert(url.clone()) {
                urls.push(url);
            }
        }
    }
    Ok(urls)
}

/// Adds a missing scheme: `example.com/a` becomes `https://example.com/a`. Text that is not a URL either way stays
/// unchanged, so that the error message quotes what the user typed.
pub(crate) fn assume_https(text: &str) -> String {
    if has_scheme(text) {
        return text.to_owned();
    }
    let assumed = format!("https://{}", text.strip_prefix("//").unwrap_or(text));
    if WebUrl::parse(&assumed).is_ok() { assumed } else { text.to_owned() }
}

/// Whether a text has a scheme. `example.com:8080` does not: its colon is followed by a port.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let port = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_scheme && !is_port
}

fn expand(argument: &str) -> Result<Vec<String>, Exit> {
    let text = if argument == "-" {
        let mut text = String::new();
        io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Exit::Usage(format!("could not read standard input: {error}")))?;
        text
    } else if let Some(path) = argument.strip_prefix('@') {
        std::fs::read_to_string(path)
            .map_err(|error| Exit::Usage(format!("could not read the list {path}: {error}")))?
    } else {
        let url = argument.trim();
        refuse_file_name(url)?;
        return Ok(vec![url.to_owned()]);
    };
    let lines = text.trim_start_matches('\u{feff}').lines().map(without_comment);
    Ok(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// `fetch urls.txt` is probably meant as a list, although it could be a host.
fn refuse_file_name(argument: &str) -> Result<(), Exit> {
    if has_scheme(argument) || !Path::new(argument).is_file() {
        return Ok(());
    }
    Err(Exit::Usage(format!(
        "{argument} is a file, not a URL. To read the URLs in it, write @{argument}. If you mean a \
         web page of that name, write https://{argument}"
    )))
}

/// A line of a list without its comment. A comment starts with `#` at the start of the line or after white space; any
/// other `#` is part of the URL.
fn without_comment(line: &str) -> &str {
    let is_comment = |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
    let comment = line.match_indices('#').map(|(at, _)| at).find(is_comment);
    line[..comment.unwrap_or(line.len())].trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_scheme_means_https() {
        for (typed, expected) in [
            ("example.com/a", "https://example.com/a"),
            ("example.com", "https://example.com"),
            ("example.com:8080/a?b#c", "https://example.com:8080/a?b#c"),
            ("localhost:8080", "https://localhost:8080"),
            ("//example.com/a", "https://example.com/a"),
            ("192.0.2.1/a", "https://192.0.2.1/a"),
            ("[2001:db8::1]/a", "https://[2001:db8::1]/a"),
            ("example.com/a:b", "https://example.com/a:b"),
            ("http://example.com/", "http://example.com/"),
            ("HTTPS://example.com/", "HTTPS://example.com/"),
            ("ftp://example.com/", "ftp://example.com/"),
            ("mailto:me@example.com", "mailto:me@example.com"),
            ("javascript:alert(1)", "javascript:alert(1)"),
            ("no url", "no url"),
            ("/etc/passwd", "/etc/passwd"),
            ("", ""),
        ] {
            assert_eq!(assume_https(typed), expected, "{typed}");
        }
    }

    #[test]
    fn a_comment_begins_after_white_space_and_a_fragment_is_none() {
        for (line, expected) in [
            ("http://a.test/1 # the first", "http://a.test/1"),
            ("http://a.test/1\t#the first # and only", "http://a.test/1"),
            ("http://a.test/1#part", "http://a.test/1#part"),
            ("http://a.test/1#part # with a part", "http://a.test/1#part"),
            ("  http://a.test/a b  ", "http://a.test/a b"),
            ("# nothing", ""),
            ("  # nothing", ""),
            ("#", ""),
            ("", ""),
            ("http://a.test/ä\u{a0}# after a space that is no ASCII", "http://a.test/ä"),
        ] {
            assert_eq!(without_comment(line), expected, "{line}");
        }
    }

    #[test]
    fn a_file_is_not_taken_for_a_url() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("urls.txt");
        std::fs::write(&list, "example.com/a\nhttps://example.com/a\n").unwrap();
        let list = list.display().to_string();
        let refused = read_pages(std::slice::from_ref(&list)).unwrap_err().to_string();
        assert!(refused.contains(&format!("@{list}")), "{refused}");
        // Both lines mean the same page.
        assert_eq!(read_pages(&[format!("@{list}")]).unwrap(), ["https://example.com/a"]);
        assert_eq!(
            read(&[format!("@{list}")]).unwrap(),
            ["example.com/a", "https://example.com/a"]
        );
        // A folder of that name is no list: programs that mirror a site make one.
        let folder = folder.path().display().to_string();
        assert_eq!(read_pages(std::slice::from_ref(&folder)).unwrap(), [folder]);
    }
}
