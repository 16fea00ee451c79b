//! Any bytes are a sitemap or none, within the bounds; and the URLs that were read can be written and read again.

#![no_main]

use fetchwell_feed::sitemap;
use fetchwell_policy::url::Site;
use libfuzzer_sys::fuzz_target;

const MAX_URLS: usize = 100;

fuzz_target!(|body: &[u8]| {
    let sites = [Site::parse("a.test").unwrap()];
    let Ok(found) = sitemap::read(body, None, &sites, MAX_URLS) else { return };
    assert!(found.urls.len() <= MAX_URLS);
    let numbered = |url: &String| -> String {
        let characters: String = url.chars().map(|c| format!("&#{};", u32::from(c))).collect();
        format!("<url><loc>{characters}</loc></url>")
    };
    let entries: String = found.urls.iter().map(numbered).collect();
    let written = format!("<urlset>{entries}</urlset>");
    let again = sitemap::read(written.as_bytes(), None, &sites, MAX_URLS).unwrap();
    assert_eq!(again.urls, found.urls);
});
