//! The tools in a network where every address answers: they reach what may be reached, and nothing else.

use std::net::IpAddr;

use fetchwell_testkit::crash::Service;
use fetchwell_testkit::namespace;
use serde_json::json;

use super::use_tool;
use crate::guard::{CASES, HOME, program_in, trap};
use crate::serve_contract::URLS as BAD_URLS;

#[test]
fn no_tool_reaches_a_refused_address() {
    if namespace::is_inside("mcp::guard::no_tool_reaches_a_refused_address") {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(use_every_tool_and_judge());
    }
}

async fn use_every_tool_and_judge() {
    let (canary, server) = trap().await;
    let program = program_in(&server).variable("FETCHWELL_RETRIEVER__DEFAULT_RATE_LIMIT", "1000");
    let service = Service::start(program).await;
    let refused =
        CASES.iter().filter(|(_, outcome, _)| *outcome == "refused").map(|(url, ..)| *url);
    let refused: Vec<&str> = refused.chain(BAD_URLS.iter().copied()).collect();
    assert!(refused.len() > 97, "{}", refused.len());
    for tool in ["fetch", "map"] {
        for url in &refused {
            let answer =
                use_tool(service.address, &service.token, tool, &json!({"url": url})).await;
            assert!(answer.is_error, "{tool} {url}: {answer:?}");
        }
    }
    for url in &refused {
        // An explanation does not follow redirects, so it cannot always say why not.
        use_tool(service.address, &service.token, "explain", &json!({"url": url})).await;
    }
    let fetched = CASES.iter().filter(|(_, outcome, _)| *outcome == "fetched");
    for (url, ..) in fetched {
        let answer = use_tool(service.address, &service.token, "fetch", &json!({"url": url})).await;
        assert!(!answer.is_error, "{url}: {answer:?}\n{}", service.log());
    }
    let dialled = canary.connections().await.expect("the canary's count");
    let home: IpAddr = HOME.parse().expect("an address");
    assert_eq!(Vec::from_iter(dialled.into_keys()), [home]);
}
