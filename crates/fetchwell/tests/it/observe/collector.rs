//! A small collector of traces: it takes what comes by OTLP, and keeps it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::HeaderMap;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpListener;

/// A collector at work, until the test ends.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    taken: Taken,
}

type Taken = Arc<Mutex<Vec<Value>>>;

/// A span, with its attributes by name: numbers as the text that OTLP makes of them.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: i64,
    pub(crate) began_ns: u128,
    pub(crate) ended_ns: u128,
    pub(crate) failed: bool,
    pub(crate) attributes: HashMap<String, String>,
}

impl Collector {
    pub(crate) async fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let taken = Taken::default();
        let router = Router::new().route("/v1/traces", post(take)).with_state(taken.clone());
        tokio::spawn(async move {
            let service = router.into_make_service();
            hyper_serve(listener, service).await;
        });
        Collector { address, taken }
    }

    /// All spans so far, the earliest first.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let requests = self.taken.lock().clone();
        let each = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
        let mut spans: Vec<Span> = requests
            .iter()
            .flat_map(|request| each(request, "resourceSpans"))
            .flat_map(|resource| each(&resource, "scopeSpans"))
            .flat_map(|scope| each(&scope, "spans"))
            .map(|span| read(&span))
            .collect();
        spans.sort_by_key(|span| span.began_ns);
        spans
    }

    /// What the service calls itself in each request.
    pub(crate) fn services(&self) -> Vec<String> {
        let requests = self.taken.lock();
        let resources = requests.iter().map(|request| &request["resourceSpans"][0]["resource"]);
        resources.map(|resource| attributes(resource)["service.name"].clone()).collect()
    }
}

async fn hyper_serve(listener: TcpListener, mut service: axum::routing::IntoMakeService<Router>) {
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use hyper_util::server::conn::auto::Builder;
    use hyper_util::service::TowerToHyperService;
    use tower::Service;
    while let Ok((stream, from)) = listener.accept().await {
        let router = service.call(from).await.unwrap();
        tokio::spawn(async move {
            let service = TowerToHyperService::new(router);
            let builder = Builder::new(TokioExecutor::new());
            // A program that ends drops its connection: that is no fault of the test.
            drop(builder.serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn take(State(taken): State<Taken>, headers: HeaderMap, body: Bytes) -> &'static str {
    assert_eq!(headers["content-type"], "application/json");
    taken.lock().push(serde_json::from_slice(&body).unwrap());
    "{}"
}

fn read(span: &Value) -> Span {
    let text = |name: &str| span[name].as_str().unwrap_or_else(|| panic!("{name}: {span}"));
    Span {
        trace: text("traceId").to_owned(),
        id: text("spanId").to_owned(),
        parent: span["parentSpanId"].as_str().map(str::to_owned),
        name: text("name").to_owned(),
        kind: span["kind"].as_i64().unwrap(),
        began_ns: text("startTimeUnixNano").parse().unwrap(),
        ended_ns: text("endTimeUnixNano").parse().unwrap(),
        failed: span["status"]["code"] == 2,
        attributes: attributes(span),
    }
}

fn attributes(of: &Value) -> HashMap<String, String> {
    let text = |value: &Value| {
        let text = value["stringValue"].as_str().or(value["intValue"].as_str());
        text.unwrap_or_else(|| panic!("neither text nor number: {value}")).to_owned()
    };
    let attributes = of["attributes"].as_array().cloned().unwrap_or_default();
    attributes
        .iter()
        .map(|pair| (pair["key"].as_str().unwrap().to_owned(), text(&pair["value"])))
        .collect()
}
