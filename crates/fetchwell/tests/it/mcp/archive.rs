//! `find_in_archive` on an archive that is reached over the network: it shares what the service has.

use std::net::{SocketAddr, TcpListener};

use fetchwell_testkit::crash::{Program, Service};
use fetchwell_testkit::plain_http::ask;
use fetchwell_testkit::range_server::RangeServer;
use serde_json::json;

use super::{ToolAnswer, use_tool};
use crate::commoncrawl_batch::archive::{CRAWL, TestArchive};

fn program(base: &str) -> Program {
    Program::new(env!("CARGO_BIN_EXE_fetchwell"))
        .flags(["--allow-private", "127.0.0.0/8"])
        .variable("FETCHWELL_COMMONCRAWL__BASE", base)
        .variable("FETCHWELL_COMMONCRAWL__CRAWL", CRAWL)
}

async fn find(service: &Service) -> ToolAnswer {
    let arguments = json!({"url": "example.com/*"});
    use_tool(service.address, &service.token, "find_in_archive", &arguments).await
}

#[tokio::test(flavor = "multi_thread")]
async fn its_requests_are_counted_with_those_of_the_service() {
    let server = RangeServer::sound(TestArchive::of(1, 3).all_files()).await;
    let service = Service::start(program(&server.base())).await;
    assert!(!find(&service).await.is_error);
    let metrics = ask(service.address, &service.token, "GET /metrics", &[], "").await.unwrap();
    let metrics = String::from_utf8(metrics.body).unwrap();
    let requests = server.requests();
    let counted = format!(
        r#"fetchwell_requests_total{{door="errand",kind="page",status_class="2xx"}} {requests}"#
    );
    assert!(requests > 0 && metrics.contains(&counted), "{counted}: {metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_itself_is_no_archive() {
    let address = free_address();
    let service = Service::start_at(program(&format!("http://{address}")), address).await;
    find(&service).await.expect_error("this program itself listens");
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
