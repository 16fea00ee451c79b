//! `fetchwell health`, as an image without a shell uses it.

use fetchwell_testkit::closed_port::ClosedPort;
use fetchwell_testkit::crash::Service;

use super::program;

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_answers_is_healthy_and_one_that_does_not_is_not() {
    let service = Service::start(program()).await;
    let nobody = ClosedPort::bind().unwrap();
    let at = |path: &str| format!("http://{}{path}", service.address);
    for (url, code) in [
        (at("/readyz"), 0),
        (at("/livez"), 0),
        (at(""), 0),
        (at("/"), 0),
        (format!("http://{}", nobody.address()), 5),
        (at("/nothing-here"), 5),
        (format!("http://{}/readyz", nobody.address()), 5),
        ("127.0.0.1:8080".to_owned(), 2),
    ] {
        let ended = service.program().run(&["health", &url]).await.expect_code(code);
        assert_eq!(ended.stdout, "", "{url}");
        assert_eq!(ended.stderr.is_empty(), code == 0, "{url}: {}", ended.stderr);
    }
}
