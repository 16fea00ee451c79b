//! Any bytes are a feed or none, within the bounds; what is clean stays so; and a list that is written can be read.

#![no_main]

use fetchwell_feed::opml::{self, Outline};
use fetchwell_feed::{MAX_ENTRIES, clean, read};
use fetchwell_policy::url::WebUrl;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let found_at = WebUrl::parse("http://a.test/feed").unwrap();
    if let Ok(feed) = read(body, None, &found_at) {
        assert!(feed.entries.len() <= MAX_ENTRIES);
        for entry in &feed.entries {
            let page = clean(&entry.link);
            assert_eq!(clean(&page), page);
        }
    }
    if let Some(list) = opml::read(&String::from_utf8_lossy(body)) {
        let again = opml::read(&opml::write("x", &list.outlines)).unwrap();
        let urls = |outlines: &[Outline]| {
            let mut urls: Vec<String> = outlines.iter().map(|outline| outline.url.clone()).collect();
            urls.sort_unstable();
            urls
        };
        assert_eq!(urls(&again.outlines), urls(&list.outlines));
    }
});
