//! Who gets in, and what they may do.

use fetchwell_testkit::crash::Service;
use fetchwell_testkit::eventually::eventually;

use super::place::{PAGES, Pages, program, serve, web};
use super::visit::{FROM_US, Visitor, csrf, text};

/// Everything that changes something, with fields that would do.
const ORDERS: [(&str, &[(&str, &str)]); 9] = [
    ("/dashboard/sites/shop.test/pause", &[]),
    ("/dashboard/sites/shop.test/resume", &[]),
    ("/dashboard/sites/shop.test/set-rate", &[("rate", "0.5")]),
    ("/dashboard/sites/shop.test/clear-rate", &[]),
    ("/dashboard/sites/shop.test/reset-breaker", &[]),
    ("/dashboard/sites/shop.test/refetch-robots", &[]),
    (
        "/dashboard/messages/act",
        &[("what", "retry"), ("state", "failed"), ("as_of", "9000000000000000")],
    ),
    (
        "/dashboard/messages/act",
        &[("what", "cancel"), ("state", "queued"), ("as_of", "9000000000000000")],
    ),
    ("/dashboard/dead-letters/revise", &[("what", "drop"), ("url", "http://shop.test/")]),
];

async fn audit(visitor: &Visitor) -> String {
    visitor.page("/dashboard/system").await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_there_is_a_login_and_nothing_else() {
    let origin = web();
    let service = serve(&origin).await;
    let stranger = Visitor::stranger(service.address);
    for path in
        PAGES.into_iter().chain(["/dashboard/sites/shop.test", "/dashboard/dead-letters/export"])
    {
        let answer = stranger.get(path).await;
        assert_eq!(answer.status, 303, "{path}");
        assert!(answer.header("location").unwrap().starts_with("/dashboard/login?to="), "{path}");
    }
    let forged = Visitor { cookie: "fetchwell_session=AAAA".to_owned(), ..stranger.clone() };
    assert_eq!(forged.get("/").await.status, 303);
    for (path, fields) in ORDERS {
        assert_eq!(stranger.post(path, fields, &[]).await.status, 403, "{path}");
        assert_eq!(stranger.post(path, fields, &[FROM_US]).await.status, 303, "{path}");
    }
    let operator = Visitor::log_in(service.address, &service.token).await;
    assert!(!audit(&operator).await.contains("pause_site"), "nothing was done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_opens_a_session_that_no_script_and_no_other_site_can_use() {
    let origin = web();
    let behind_a_proxy = program(&origin).variable("FETCHWELL_API__TRUSTED_PROXIES", "127.0.0.1");
    let service = Service::start(behind_a_proxy).await;
    let stranger = Visitor::stranger(service.address);
    let log_in = async |token: &str, headers: &[(&str, &str)]| {
        stranger
            .post("/dashboard/login", &[("token", token), ("to", "/dashboard/sites")], headers)
            .await
    };
    assert_eq!(log_in(&service.token, &[]).await.status, 303, "a program, not a browser");
    assert_eq!(log_in(&service.token, &[("origin", "http://evil.test")]).await.status, 403);
    let answer = log_in(&service.token, &[FROM_US, ("x-forwarded-proto", "https")]).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/dashboard/sites")));
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.starts_with("fetchwell_session=") && !cookie.contains(&service.token));
    for attribute in ["; HttpOnly", "; SameSite=Strict", "; Path=/", "; Secure"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    let fields = [("token", service.token.as_str()), ("to", "//evil.test/")];
    let elsewhere = stranger.post("/dashboard/login", &fields, &[FROM_US]).await;
    assert_eq!(elsewhere.header("location"), Some("/"));
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_logins_are_told_apart_from_nothing_counted_and_kept() {
    let origin = web();
    let service = serve(&origin).await;
    let caller = service.caller("shopper", "caller").await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    let stranger = Visitor::stranger(service.address);
    let log_in = async |token: &str| {
        stranger.post("/dashboard/login", &[("token", token)], &[FROM_US]).await
    };

    let answer = log_in(&caller).await;
    assert_eq!(answer.status, 403);
    assert!(
        text(&answer).contains("for viewers and operators")
            && answer.header("set-cookie").is_none()
    );

    for _ in 0..10 {
        let answer = log_in("fw_wrong").await;
        assert_eq!((answer.status, answer.header("set-cookie")), (401, None));
    }
    let answer = log_in("fw_wrong").await;
    assert_eq!(answer.status, 429, "whoever has no account waits now");
    assert!(answer.header("retry-after").is_some());
    let fields = [("token", service.token.as_str())];
    let encrypted = [FROM_US, ("x-forwarded-proto", "https")];
    let answer = stranger.post("/dashboard/login", &fields, &encrypted).await;
    assert_eq!(answer.status, 303, "and locks out nobody else at that address");
    let cookie = answer.header("set-cookie").unwrap();
    assert!(!cookie.contains("Secure"), "a stranger's word is not believed: {cookie}");
    eventually("an entry of the audit", async || {
        audit(&operator).await.contains("authentication_failed")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_sees_everything_and_changes_nothing() {
    let origin = web();
    let service = serve(&origin).await;
    let token = service.caller("looker", "viewer").await;
    let viewer = Visitor::log_in(service.address, &token).await;
    for path in PAGES.into_iter().chain(["/dashboard/sites/shop.test"]) {
        let page = viewer.page(path).await;
        for form in page.split("<form").skip(1) {
            let action =
                form.split("action=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
            let harmless = [
                "/dashboard/theme",
                "/dashboard/logout",
                "/dashboard/sites",
                "/dashboard/messages",
            ];
            assert!(harmless.contains(&action), "{path} offers {action}");
        }
    }
    let csrf = csrf(&viewer.page("/").await);
    for (path, fields) in ORDERS {
        let fields = [&[("csrf", csrf.as_str())], fields].concat();
        let answer = viewer.post(path, &fields, &[FROM_US]).await;
        assert_eq!(answer.status, 403, "{path}");
    }
    assert!(!audit(&viewer).await.contains("pause_site"), "nothing was done");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_needs_a_form_of_the_same_session_and_origin() {
    let origin = web();
    let service = serve(&origin).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    let another = Visitor::log_in(service.address, &service.token).await;
    let good = csrf(&operator.page("/dashboard/sites/shop.test").await);
    let of_another = csrf(&another.page("/").await);
    let pause = async |csrf: &str, headers: &[(&str, &str)]| {
        operator.post("/dashboard/sites/shop.test/pause", &[("csrf", csrf)], headers).await.status
    };
    assert_eq!(pause("", &[FROM_US]).await, 403);
    assert_eq!(pause(&of_another, &[FROM_US]).await, 403);
    assert_eq!(pause(&good, &[]).await, 403);
    assert_eq!(pause(&good, &[("origin", "null")]).await, 403);
    assert_eq!(pause(&good, &[FROM_US, ("sec-fetch-site", "cross-site")]).await, 403);
    assert_eq!(pause(&good, &[FROM_US, ("sec-fetch-site", "same-site")]).await, 403);
    assert!(!audit(&operator).await.contains("pause_site"), "nothing was done so far");
    assert_eq!(pause(&good, &[("sec-fetch-site", "same-origin")]).await, 303);
    assert!(audit(&operator).await.contains("pause_site"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_its_token_or_by_itself() {
    let origin = web();
    let service = serve(&origin).await;
    let token = service.caller("leaver", "operator").await;
    let leaver = Visitor::log_in(service.address, &token).await;
    leaver.page("/").await;
    service.program().run(&["callers", "revoke", "leaver"]).await.expect_code(0);
    eventually("the end of a revoked session", async || leaver.get("/").await.status == 303).await;

    let operator = Visitor::log_in(service.address, &service.token).await;
    assert_eq!(operator.post("/dashboard/logout", &[], &[]).await.status, 403);
    let csrf = csrf(&operator.page("/").await);
    let out = operator.post("/dashboard/logout", &[("csrf", &csrf)], &[FROM_US]).await;
    assert_eq!(out.status, 303);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(operator.get("/").await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_has_one_token_which_it_prints_or_is_given() {
    let origin = web();
    let pages = Pages::start(program(&origin), &[]).await;
    Visitor::log_in(pages.address, &pages.token).await.page("/dashboard/messages").await;
    drop(pages);
    let own = "0123456789abcdef0123456789abcdef";
    let pages =
        Pages::start(program(&origin).variable("FETCHWELL_DASHBOARD__TOKEN", own), &[]).await;
    assert_eq!(pages.token, "", "nothing is printed");
    let operator = Visitor::log_in(pages.address, own).await;
    let system = operator.page("/dashboard/system").await;
    assert!(system.contains("dashboard.token") && !system.contains(own));
    assert_eq!(operator.get("/nowhere").await.status, 404);
    // There is one account, and each try is a guess at its token.
    let stranger = Visitor::stranger(pages.address);
    for (token, status) in [("wrong", 401); 10].into_iter().chain([(own, 429)]) {
        let answer = stranger.post("/dashboard/login", &[("token", token)], &[FROM_US]).await;
        assert_eq!(answer.status, status, "{token}");
    }
}
