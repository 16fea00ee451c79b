//! Several tokens of one caller: by command, by API, and how each of them ends.

use fetchwell_testkit::eventually::eventually;
use serde_json::{Value, json};

use super::service::Service;

async fn run(service: &Service, arguments: &[&str]) -> Value {
    let arguments = [&["--json"], arguments].concat();
    let ended = service.program.run(&arguments).await.expect_code(0);
    serde_json::from_str(ended.stdout.lines().next().unwrap_or("null")).unwrap()
}

fn token_of(added: &Value) -> &str {
    added["token"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_has_several_tokens_and_one_can_be_revoked() {
    let service = Service::start(&[]).await;
    let first = service.caller("catalogue", "caller").await;
    let add = ["callers", "tokens", "add", "catalogue", "--name", "ci", "--expires", "30d"];
    let added = run(&service, &add).await;
    assert_eq!((added["caller"].as_str(), added["name"].as_str()), (Some("catalogue"), Some("ci")));
    assert!(added["expires_at"].is_string(), "{added}");
    for token in [&*first, token_of(&added)] {
        service.get_as(token, "/outbox").await.expect(200);
    }
    let again = service.program.run(&add).await.expect_code(2);
    assert!(again.stderr.contains("has a token ci"), "{}", again.stderr);
    let unknown = ["callers", "tokens", "add", "nobody", "--name", "ci"];
    service.program.run(&unknown).await.expect_code(2);

    service
        .program
        .run(&["callers", "tokens", "revoke", "catalogue", "default"])
        .await
        .expect_code(0);
    service.get_as(&first, "/outbox").await.expect(401);
    service.get_as(token_of(&added), "/outbox").await.expect(200);
    let used = async || {
        let listed = run(&service, &["callers", "tokens", "list", "catalogue"]).await;
        listed["name"] == "ci" && listed["last_used_at"].is_string()
    };
    eventually("the last use of the token", used).await;
    service.program.run(&["callers", "revoke", "catalogue"]).await.expect_code(0);
    service.get_as(token_of(&added), "/outbox").await.expect(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_refused_when_it_has_expired() {
    let service = Service::start(&[]).await;
    let add = ["callers", "tokens", "add", "local", "--name", "short", "--expires", "3s"];
    let added = run(&service, &add).await;
    service.get_as(token_of(&added), "/outbox").await.expect(200);
    let is_refused = async || service.get_as(token_of(&added), "/outbox").await.status == 401;
    eventually("the end of the token", is_refused).await;
    service.get("/outbox").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_manages_callers_through_the_api() {
    let service = Service::start(&[]).await;
    let to_add = json!({"name": "catalogue", "role": "viewer"});
    let added = service.post("/operator/callers", &[], &to_add).await.expect(200).json();
    assert_eq!((&added["role"], &added["token_name"]), (&json!("viewer"), &json!("default")));
    assert!(added["webhook_secret"].as_str().unwrap().starts_with("whsec_"), "{added}");
    let viewer = token_of(&added);
    let taken = service.post("/operator/callers", &[], &to_add).await.expect(409).json();
    assert_eq!(taken["type"], "/docs#problem-conflict");

    let tokens = "/operator/callers/catalogue/tokens";
    let new = json!({"name": "ci", "expires_in": "30d"});
    let ci = service.post(tokens, &[], &new).await.expect(200).json();
    service.post(tokens, &[], &new).await.expect(409);
    service.post("/operator/callers/nobody/tokens", &[], &new).await.expect(404);
    for wrong in [
        json!({"name": "C I"}),
        json!({"name": "x", "expires_in": "soon"}),
        json!({"name": "x", "expires_in": "0s"}),
        json!({"name": "x", "colour": 1}),
        json!({}),
    ] {
        service.post(tokens, &[], &wrong).await.expect(422);
    }
    // A viewer sees callers and their tokens, and changes nothing.
    let listed = service.get_as(token_of(&ci), "/operator/callers").await.expect(200).json();
    let names = |caller: &Value| {
        let tokens = caller["tokens"].as_array().unwrap().iter();
        tokens.map(|token| token["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed["callers"][0]["name"], "catalogue");
    assert_eq!(names(&listed["callers"][0]), ["ci", "default"]);
    assert!(!listed.to_string().contains("fw_"), "{listed}");
    service.post_as(viewer, "/operator/callers", &[], &to_add.to_string()).await.expect(403);

    let bearer = format!("Bearer {}", service.token);
    let delete =
        async |path: &str| service.send("DELETE", path, &[("authorization", &bearer)], "").await;
    delete(&format!("{tokens}/ci")).await.expect(200);
    delete(&format!("{tokens}/ci")).await.expect(404);
    service.get_as(token_of(&ci), "/operator/callers").await.expect(401);
    service.get_as(viewer, "/operator/callers").await.expect(200);
    delete("/operator/callers/catalogue").await.expect(200);
    delete("/operator/callers/catalogue").await.expect(404);
    service.get_as(viewer, "/operator/callers").await.expect(401);
    let audit = service.get("/operator/audit").await.expect(200).json().to_string();
    for action in ["add_caller", "add_token", "revoke_token", "revoke_caller"] {
        assert!(audit.contains(action), "{action}: {audit}");
    }
    assert!(!audit.contains("fw_") && !audit.contains("whsec_"), "{audit}");
}
