//! What a site answers to those who were there before.

use std::time::Duration;

use fetchwell_simweb::{SimRequest, SiteScript, World};

fn world() -> World {
    let site = SiteScript::new("news.test")
        .tagged("/rss", "application/rss+xml", "<rss/>", "\"v1\"")
        .moved("/old", "/rss")
        .busy("/busy", 503, Duration::from_secs(90));
    World::new([site])
}

#[test]
fn whoever_has_the_text_gets_304_and_all_others_get_the_text() {
    for (if_none_match, status, body) in
        [("", 200, "<rss/>"), ("\"v0\"", 200, "<rss/>"), ("\"v1\"", 304, "")]
    {
        let request = SimRequest { if_none_match, ..SimRequest::get("news.test", "/rss") };
        let answer = world().answer(Duration::ZERO, request);
        assert_eq!((answer.status, answer.header("etag")), (status, Some("\"v1\"")));
        assert_eq!(answer.body, body);
    }
}

#[test]
fn what_has_moved_and_what_is_busy_say_so() {
    let moved = world().answer(Duration::ZERO, SimRequest::get("news.test", "/old"));
    assert_eq!((moved.status, moved.header("location")), (301, Some("/rss")));
    let busy = world().answer(Duration::ZERO, SimRequest::get("news.test", "/busy"));
    assert_eq!((busy.status, busy.header("retry-after")), (503, Some("90")));
}
