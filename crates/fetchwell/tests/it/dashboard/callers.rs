//! Callers and their tokens on the dashboard.

use fetchwell_testkit::plain_http::ask;

use super::place::{serve, web};
use super::visit::{Visitor, text};

const PAGE: &str = "/dashboard/callers";

/// The word of a page that begins with this.
fn word(page: &str, beginning: &str) -> String {
    let found = page.split([' ', '<', '\n']).find(|word| word.starts_with(beginning));
    found.unwrap_or_else(|| panic!("no {beginning} in {page}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_manages_callers_and_a_secret_is_shown_once() {
    let origin = web();
    let service = serve(&origin).await;
    let operator = Visitor::log_in(service.address, &service.token).await;
    let order = async |word: &str, fields: &[(&str, &str)]| {
        let answer = operator.submit(PAGE, &format!("{PAGE}/{word}"), fields).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some(PAGE)), "{word}");
        operator.page(PAGE).await
    };
    let status = async |token: &str| {
        ask(service.address, token, "GET /outbox", &[], "").await.unwrap().status
    };
    let added = order("add", &[("caller", "catalogue"), ("role", "viewer")]).await;
    let first = word(&added, "fw_");
    assert!(added.contains("whsec_") && added.contains("fetchwell callers tokens add catalogue"));
    assert!(!operator.page(PAGE).await.contains("fw_"), "it is shown once");
    let again = order("add", &[("caller", "catalogue"), ("role", "viewer")]).await;
    assert!(again.contains("the caller catalogue already exists"), "{again}");
    let ci = [("caller", "catalogue"), ("token", "ci"), ("expires", "30d")];
    let second = word(&order("add-token", &ci).await, "fw_");
    assert_eq!((status(&first).await, status(&second).await), (200, 200));
    for (word, fields) in [
        ("add", &[("caller", "Not A Name")][..]),
        ("add-token", &[("caller", "catalogue"), ("token", "")]),
        ("add-token", &[("caller", "catalogue"), ("token", "x"), ("expires", "soon")]),
        ("rotate-secret", &[("caller", "nobody")]),
    ] {
        assert!(order(word, fields).await.contains("notice bad"), "{word} {fields:?}");
    }
    let rotated = order("rotate-secret", &[("caller", "catalogue"), ("overlap", "1h")]).await;
    assert!(rotated.contains("whsec_"), "{rotated}");
    order("revoke-token", &ci).await;
    assert_eq!((status(&first).await, status(&second).await), (200, 401));

    // A viewer sees them, and has nothing to press.
    let viewer = Visitor::log_in(service.address, &first).await;
    let seen = viewer.page(PAGE).await;
    assert!(seen.contains("catalogue") && !seen.contains("Rotate webhook secret"), "{seen}");
    let refused = viewer.submit(PAGE, &format!("{PAGE}/revoke"), &[("caller", "catalogue")]).await;
    assert_eq!(refused.status, 403, "{}", text(&refused));
    assert!(order("revoke", &[("caller", "catalogue")]).await.contains("revoked"));
    assert_eq!(status(&first).await, 401);
    assert_eq!(operator.submit(PAGE, &format!("{PAGE}/explode"), &ci).await.status, 404);
    let audit = operator.page("/dashboard/system").await;
    for action in ["add_token", "rotate_webhook_secret", "revoke_token", "revoke_caller"] {
        assert!(audit.contains(action), "{action}");
    }
}
