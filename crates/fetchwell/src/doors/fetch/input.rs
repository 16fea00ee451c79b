//! Which URLs: from the command line, from files, from standard input.

use std::collections::HashSet;
use std::io::{self, Read};

use fetchwell_engine::adapters::NewJob;
use fetchwell_engine::ports::{Job, Lane};
use fetchwell_policy::url::{Site, WebUrl};
use sha2::{Digest, Sha256};

use crate::cli::Exit;

/// URLs put into the queue in one transaction.
pub(super) const CHUNK: usize = 10_000;

/// The URLs in the order they were given, each once.
pub(crate) fn read(arguments: &[String]) -> Result<Vec<String>, Exit> {
    let (mut urls, mut seen) = (Vec::new(), HashSet::new());
    for argument in arguments {
        for url in expand(argument)? {
            if seen.insert(url.clone()) {
                urls.push(url);
            }
        }
    }
    Ok(urls)
}

/// Jobs for the queue. A URL that makes no sense gets one too: it ends with a row that says so.
pub(super) fn jobs<'a>(urls: impl IntoIterator<Item = &'a String>) -> Vec<NewJob> {
    let job = |url: &String| {
        let site = WebUrl::parse(url).ok().map(|parsed| parsed.site());
        let key = Some(key(site.as_ref(), url));
        let (lane, payload, deadline) = (Lane::default(), Vec::new(), None);
        NewJob { job: Job { url: url.clone(), site, lane, payload, deadline }, key, due: None }
    };
    urls.into_iter().map(job).collect()
}

fn expand(argument: &str) -> Result<Vec<String>, Exit> {
    let text = if argument == "-" {
        let mut text = String::new();
        io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Exit::Usage(format!("standard input could not be read: {error}")))?;
        text
    } else if let Some(path) = argument.strip_prefix('@') {
        std::fs::read_to_string(path)
            .map_err(|error| Exit::Usage(format!("the list {path} could not be read: {error}")))?
    } else {
        return Ok(vec![argument.trim().to_owned()]);
    };
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let urls = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(urls.map(str::to_owned).collect())
}

/// Tells equal URLs: 14 bytes of a SHA-256, so that two different ones never meet. Before them stand
/// two that the URLs of a site have in common: side by side in an index, a long list touches few pages.
pub(crate) fn key(site: Option<&Site>, url: &str) -> [u8; 16] {
    let common = Sha256::digest(site.map_or("", Site::as_str).as_bytes());
    let own = Sha256::digest(url.as_bytes());
    let mut key = [0; 16];
    key[..2].copy_from_slice(&common[..2]);
    key[2..].copy_from_slice(&own[..14]);
    key
}
