//! Each behaviour of a script, on made-up times.

use std::time::Duration;

use fetchwell_simweb::{
    HitKind, OutageKind, SimRequest, SimResponse, SiteScript, Truncation, World,
};
use http::Method;

const NOW: Duration = Duration::ZERO;

fn s(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn world(site: SiteScript) -> World {
    World::new([site])
}

fn shop() -> SiteScript {
    SiteScript::new("shop.test")
}

fn get(world: &World, at_s: f64, path: &str) -> SimResponse {
    world.answer(s(at_s), SimRequest::get("shop.test", path))
}

fn statuses(world: &World, at_s_and_path: &[(f64, &str)]) -> Vec<u16> {
    at_s_and_path.iter().map(|(at_s, path)| get(world, *at_s, path).status).collect()
}

#[test]
fn a_page_names_its_host_and_path_and_has_the_size_asked_for() {
    let world = world(shop().page_bytes(4_096));
    let answer = get(&world, 0.0, "/a?b=1");
    let html = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(html.contains("<title>The page shop.test/a?b=1</title>"), "{html}");
    assert!(html.contains("<a href=\"/page/"));
    assert!((4_096..4_160).contains(&html.len()));
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(answer.header("content-length"), Some(html.len().to_string().as_str()));
    assert_eq!(answer.body, get(&world, 9.0, "/a?b=1").body);
}

#[test]
fn robots_txt_is_missing_unless_the_script_says_otherwise() {
    let robots = |site| get(&world(site), 0.0, "/robots.txt");
    let text = |answer: SimResponse| String::from_utf8(answer.body.to_vec()).unwrap();
    assert_eq!(robots(shop()).status, 404);
    assert_eq!(text(robots(shop().robots("User-agent: *\nDisallow: /x\n"))).lines().count(), 2);
    assert!(text(robots(shop().crawl_delay(s(1.5)))).contains("\nCrawl-delay: 1.5\n"));
    assert!(text(robots(shop().crawl_delay(s(2.0)))).contains("\nCrawl-delay: 2\n"));
    assert_eq!(robots(shop().robots_status(503)).status, 503);
    let moved = robots(shop().robots_redirect("http://other.test/robots.txt"));
    assert_eq!(
        (moved.status, moved.header("location")),
        (302, Some("http://other.test/robots.txt"))
    );
}

#[test]
fn a_strict_limiter_counts_from_the_last_accepted_page_and_exempts_robots_txt() {
    let world = world(shop().strict_limiter(s(1.0), Some(s(1.2))));
    let seen = statuses(
        &world,
        &[
            (0.0, "/robots.txt"),
            (0.0, "/a"),
            (0.4, "/robots.txt"),
            (0.999, "/b"),
            (1.0, "/c"),
            (1.9, "/d"),
            (2.0, "/e"),
        ],
    );
    assert_eq!(seen, [404, 200, 404, 429, 200, 429, 200]);
    assert_eq!(get(&world, 2.1, "/f").header("retry-after"), Some("2"));
}

#[test]
fn an_outage_takes_everything_down_from_its_start_until_its_end() {
    let world = world(shop().outage(s(5.0)..s(9.0), OutageKind::Status503 { retry_after: None }));
    let seen = statuses(&world, &[(4.9, "/"), (5.0, "/"), (6.0, "/robots.txt"), (9.0, "/")]);
    assert_eq!(seen, [200, 503, 503, 200]);
    assert_eq!(get(&world, 5.0, "/").header("retry-after"), None);
}

#[test]
fn a_failure_shows_as_status_cut_or_stall() {
    let down = |failure| get(&world(shop().outage(NOW..s(1.0), failure)), 0.0, "/");
    let busy = down(OutageKind::Status503 { retry_after: Some(s(30.0)) });
    assert_eq!((busy.status, busy.header("retry-after")), (503, Some("30")));
    assert_eq!(down(OutageKind::Refuse).manner, Truncation::CutConnection);
    assert_eq!(down(OutageKind::Stall).manner, Truncation::Stall);
    assert_eq!(down(OutageKind::Stall).visible_status(), None);
}

#[test]
fn a_flapping_site_begins_up_and_repeats() {
    let down = OutageKind::Status503 { retry_after: None };
    let flapping = world(shop().flapping(s(2.0), s(1.0), down));
    let seen = statuses(&flapping, &[(0.0, "/"), (1.9, "/"), (2.0, "/"), (3.0, "/"), (302.5, "/")]);
    assert_eq!(seen, [200, 200, 503, 200, 503]);
    assert_eq!(get(&world(shop().flapping(NOW, NOW, down)), 1.0, "/").status, 200);
}

#[test]
fn slowness_is_told_not_slept() {
    let answer = get(&world(shop().slow(s(3.0)).trickling(s(7.0))), 0.0, "/");
    assert_eq!((answer.first_byte_after, answer.body_over), (s(3.0), s(7.0)));
}

#[test]
fn paths_redirect_fail_and_cut_by_exact_path_or_prefix() {
    let world = world(
        shop()
            .redirect("/loop", "/loop")
            .redirect("/old/*", "http://new.test/")
            .status("/missing", 404)
            .status("/boom*", 500)
            .manner("/half", Truncation::CutMidBody { after_bytes: 100 }),
    );
    assert_eq!(get(&world, 0.0, "/loop").header("location"), Some("/loop"));
    assert_eq!(get(&world, 0.0, "/old/9").header("location"), Some("http://new.test/"));
    let seen = statuses(
        &world,
        &[(0.0, "/old"), (0.0, "/missing"), (0.0, "/missing/x"), (0.0, "/boom/x?y=1")],
    );
    assert_eq!(seen, [200, 404, 200, 500]);
    let half = get(&world, 0.0, "/half");
    assert_eq!(half.manner, Truncation::CutMidBody { after_bytes: 100 });
    assert!(half.body.len() > 10_000, "the whole page is there for the cut to fall in");
}

#[test]
fn each_path_fails_its_own_first_times_then_later_rules_hold() {
    let world = world(
        shop().fails_first("/f/*", 2, 502).fails_first("/f/gone", 1, 500).status("/f/gone", 410),
    );
    let seen = statuses(
        &world,
        &[(0.0, "/f/a"), (0.0, "/f/b"), (0.0, "/f/a"), (0.0, "/f/a"), (0.0, "/f/b"), (0.0, "/g")],
    );
    assert_eq!(seen, [502, 502, 502, 200, 502, 200]);
    assert_eq!(statuses(&world, &[(0.0, "/f/gone"); 4]), [502, 502, 500, 410]);
}

#[test]
fn content_may_be_of_any_type_and_no_text_at_all() {
    let world = world(
        shop()
            .content_type("application/xhtml+xml")
            .text("/feed", "application/rss+xml", "<rss/>")
            .gzip("/map.gz", "application/gzip", "<urlset/>")
            .binary("/logo", "image/png", 64),
    );
    assert_eq!(get(&world, 0.0, "/").header("content-type"), Some("application/xhtml+xml"));
    assert_eq!(get(&world, 0.0, "/feed").body, "<rss/>");
    assert!(get(&world, 0.0, "/map.gz").body.starts_with(&[0x1f, 0x8b]));
    let logo = get(&world, 0.0, "/logo");
    assert_eq!((logo.header("content-type"), logo.body.len()), (Some("image/png"), 64));
    assert!(std::str::from_utf8(&logo.body).is_err());
}

#[test]
fn head_gets_the_head_of_the_page_without_its_body() {
    let world = world(shop());
    let request = SimRequest { method: &Method::HEAD, ..SimRequest::get("shop.test", "/a") };
    let head = world.answer(NOW, request);
    let page = get(&world, 0.0, "/a");
    assert!(head.body.is_empty());
    assert_eq!(head.headers, page.headers);
}

#[test]
fn a_status_without_a_body_has_none() {
    let empty = get(&world(shop().status("/", 204)), 0.0, "/");
    assert!(empty.body.is_empty() && empty.headers.is_empty());
}

#[test]
fn every_hit_is_recorded_with_what_was_asked_and_answered() {
    let world = World::new([
        shop().status("/gone", 410),
        SiteScript::new("Down.test").outage(NOW..s(1.0), OutageKind::Refuse),
    ]);
    let request =
        SimRequest { user_agent: "OttoBot/1.0", ..SimRequest::get("SHOP.test.:8080", "/gone") };
    world.answer(s(2.0), request);
    world.answer(s(0.5), SimRequest::get("down.test", "/robots.txt"));
    let head = SimRequest { method: &Method::HEAD, ..SimRequest::get("shop.test:80", "/") };
    world.answer(s(3.0), head);

    let seen: Vec<_> = world
        .hits()
        .into_iter()
        .map(|hit| (hit.at, hit.site.to_string(), hit.path.to_string(), hit.status, hit.kind))
        .collect();
    let expected = [
        (s(0.5), "down.test".into(), "/robots.txt".into(), None, HitKind::Robots),
        (s(2.0), "shop.test".into(), "/gone".into(), Some(410), HitKind::Page),
        (s(3.0), "shop.test".into(), "/".into(), Some(200), HitKind::Head),
    ];
    assert_eq!(seen, expected);
    assert_eq!(&*world.hits_of("shop.test")[0].user_agent, "OttoBot/1.0");
    assert_eq!(world.count(|hit| hit.kind == HitKind::Page), 1);
    assert_eq!(world.take_hits().len(), 3);
    assert!(world.hits().is_empty());
}

#[test]
fn a_host_that_is_not_there_is_a_stray() {
    let world = world(shop());
    assert_eq!(world.answer(NOW, SimRequest::get("nowhere.test", "/")).status, 421);
    let hits = world.hits();
    assert_eq!((&*hits[0].site, hits[0].kind), ("nowhere.test", HitKind::Stray));
    assert_eq!(world.count(|hit| hit.kind == HitKind::Stray), 1);
}

#[test]
fn a_name_with_a_port_answers_for_that_port_only() {
    let world = World::new([shop(), SiteScript::new("shop.test:8080").status("/*", 204)]);
    assert_eq!(world.answer(NOW, SimRequest::get("shop.test:8080", "/")).status, 204);
    assert_eq!(world.answer(NOW, SimRequest::get("shop.test:8081", "/")).status, 200);
    assert_eq!(world.hits_of("shop.test:8080").len(), 1);
}
