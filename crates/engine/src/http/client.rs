//! One request, from the pool or a new connection to an answer in memory.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_policy::outcome::{AnswerFault, Happened, NetworkFault, Phase};
use fetchwell_policy::url::{Scheme, WebUrl};
use http::header::{ACCEPT, ACCEPT_ENCODING, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Uri, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use rustls::ClientConfig;
use tokio::time::Instant;

use super::HttpSettings;
use super::budget::{Budget, Share};
use super::connect::{connect, tls_config};
use super::decode::read_body;
use super::dns::{Resolve, SystemResolver, vetted_addresses};
use super::pool::{Pool, RequestBody, Sender};
use crate::web::{Answer, Exchange, Leave, Method, Phases, Request, Web};

/// The HTTP client. There is one in a process.
pub struct Client {
    settings: HttpSettings,
    user_agent: HeaderValue,
    tls: Arc<ClientConfig>,
    resolver: Box<dyn Resolve>,
    pool: Pool,
    budget: Budget,
}

/// What became of sending on a connection.
enum Sent {
    Answered(http::Response<Incoming>),
    /// A kept connection was dead: the request must ask anew.
    KeptConnectionWasDead,
    Failed(Happened),
}

impl Client {
    /// A client that looks names up by the system's name servers.
    pub fn new(settings: HttpSettings) -> io::Result<Client> {
        Client::with_resolver(settings, Box::new(SystemResolver::new()))
    }

    /// A client with a resolver of its own.
    pub fn with_resolver(settings: HttpSettings, resolver: Box<dyn Resolve>) -> io::Result<Client> {
        let user_agent = HeaderValue::from_str(&settings.user_agent).map_err(|_| {
            io::Error::other("the user agent holds characters that a header can't; mend user_agent")
        })?;
        Ok(Client {
            user_agent,
            tls: tls_config(settings.extra_ca_file.as_deref())?,
            resolver,
            pool: Pool::default(),
            budget: Budget::of_bytes(settings.limits.body_budget_bytes),
            settings,
        })
    }

    /// The vetted addresses of a URL, as a request would find them.
    pub async fn addresses(&self, url: &WebUrl) -> Result<Vec<std::net::SocketAddr>, Happened> {
        let HttpSettings { resolve, guard, private_only, .. } = &self.settings;
        let private_only = private_only(&url.site());
        vetted_addresses(url, resolve, self.resolver.as_ref(), guard, private_only).await
    }

    async fn try_exchange(
        &self,
        request: &Request,
        leave: &mut dyn Leave,
        phases: &mut Phases,
    ) -> Result<Exchange, Happened> {
        let (origin, started) = (request.url.origin(), Instant::now());
        let kept = self.pool.take(&origin);
        let was_kept = kept.is_some();
        let mut sender = match kept {
            Some(sender) => sender,
            None => self.connect(&request.url).await?,
        };
        phases.connect = started.elapsed();
        if !leave.to_write().await {
            self.pool.keep(&origin, sender, self.settings.limits.max_idle_connections);
            return Ok(Exchange::NotSent);
        }
        let written = Instant::now();
        phases.slot += written.duration_since(started).saturating_sub(phases.connect);
        let may_ask_anew = was_kept && !matches!(request.method, Method::Post(_));
        let total = self.settings.limits.request_timeout.saturating_sub(phases.connect);
        let in_time = tokio::time::timeout(total, async {
            let response = match self.send(&mut sender, request, may_ask_anew).await {
                Sent::Answered(response) => response,
                Sent::KeptConnectionWasDead => return Ok(None),
                Sent::Failed(happened) => return Err(happened),
            };
            phases.first_byte = written.elapsed();
            self.read(response, request).await.map(Some)
        });
        let answer = in_time.await.map_err(|_| Happened::TimedOut(Phase::Total))??;
        let Some(answer) = answer else {
            self.pool.forget(&origin);
            return Ok(Exchange::NotSent);
        };
        phases.body = written.elapsed().saturating_sub(phases.first_byte);
        self.pool.keep(&origin, sender, self.settings.limits.max_idle_connections);
        Ok(Exchange::Answered(answer))
    }

    async fn connect(&self, url: &WebUrl) -> Result<Sender, Happened> {
        let limits = &self.settings.limits;
        tokio::time::timeout(limits.connect_timeout, async {
            let addresses = self.addresses(url).await?;
            connect(url, &addresses, &self.tls, limits.max_header_bytes).await
        })
        .await
        .map_err(|_| Happened::TimedOut(Phase::Connect))?
    }

    /// Writes the request, and waits for the head of the answer.
    async fn send(&self, sender: &mut Sender, request: &Request, may_ask_anew: bool) -> Sent {
        let idle = self.settings.limits.idle_read_timeout;
        let head = match sender {
            Sender::One(sender) => {
                let Some(head) = self.head(request, Version::HTTP_11) else { return unsendable() };
                within(idle, sender.send_request(head)).await
            }
            Sender::Two(sender) => {
                let Some(head) = self.head(request, Version::HTTP_2) else { return unsendable() };
                within(idle, sender.send_request(head)).await
            }
        };
        match head {
            Ok(response) => Sent::Answered(response),
            Err(SendFault::Silent) => Sent::Failed(Happened::TimedOut(Phase::Read)),
            Err(SendFault::Hyper(error)) if may_ask_anew && died_unanswered(&error) => {
                Sent::KeptConnectionWasDead
            }
            Err(SendFault::Hyper(error)) => Sent::Failed(classify(&error)),
        }
    }

    fn head(&self, request: &Request, version: Version) -> Option<http::Request<RequestBody>> {
        let url = &request.url;
        let target = match version {
            Version::HTTP_2 => url.as_str(),
            _ => url.path_and_query(),
        };
        let (method, body) = match &request.method {
            Method::Get => (http::Method::GET, Bytes::new()),
            Method::Head => (http::Method::HEAD, Bytes::new()),
            Method::Post(body) => (http::Method::POST, body.clone()),
        };
        let mut head = http::Request::new(Full::new(body));
        *head.method_mut() = method;
        *head.uri_mut() = target.parse::<Uri>().ok()?;
        let headers = head.headers_mut();
        if version != Version::HTTP_2 {
            headers.insert(HOST, HeaderValue::from_str(&authority(url)).ok()?);
        }
        headers.insert(USER_AGENT, self.user_agent.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, br, zstd, deflate"));
        for (name, value) in &request.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).ok()?);
        }
        Some(head)
    }

    async fn read(
        &self,
        response: http::Response<Incoming>,
        request: &Request,
    ) -> Result<Answer, Happened> {
        let (head, body) = response.into_parts();
        let limits = &self.settings.limits;
        if header_bytes(&head.headers) > limits.max_header_bytes {
            return Err(Happened::BadAnswer(AnswerFault::HeadersTooLarge));
        }
        let (body, share) = match request.method {
            Method::Head => (Bytes::new(), Share::none()),
            _ => read_body(body, &head.headers, limits, &self.budget).await?,
        };
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body, share })
    }
}

#[async_trait]
impl Web for Client {
    async fn exchange(
        &self,
        request: &Request,
        leave: &mut dyn Leave,
        phases: &mut Phases,
    ) -> Exchange {
        self.try_exchange(request, leave, phases).await.unwrap_or_else(Exchange::Failed)
    }
}

enum SendFault {
    Silent,
    Hyper(hyper::Error),
}

async fn within<T>(
    idle: Duration,
    sending: impl Future<Output = Result<T, hyper::Error>>,
) -> Result<T, SendFault> {
    match tokio::time::timeout(idle, sending).await {
        Ok(result) => result.map_err(SendFault::Hyper),
        Err(_) => Err(SendFault::Silent),
    }
}

fn unsendable() -> Sent {
    let why = "the URL or a header can't be written as HTTP".to_owned();
    Sent::Failed(Happened::Refused(why))
}

/// The connection ended before one byte of an answer.
fn died_unanswered(error: &hyper::Error) -> bool {
    error.is_canceled() || error.is_closed() || error.is_incomplete_message() || is_io(error)
}

fn is_io(error: &hyper::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if inner.is::<io::Error>() {
            return true;
        }
        source = inner.source();
    }
    false
}

fn classify(error: &hyper::Error) -> Happened {
    if error.is_parse_too_large() {
        Happened::BadAnswer(AnswerFault::HeadersTooLarge)
    } else if error.is_parse() {
        Happened::Network(NetworkFault::NotHttp)
    } else {
        Happened::Network(NetworkFault::Reset)
    }
}

/// The `Host` header: the name, and the port when it is not the scheme's own.
fn authority(url: &WebUrl) -> String {
    let default_port = match url.scheme() {
        Scheme::Http => 80,
        Scheme::Https => 443,
    };
    if url.port() == default_port {
        url.host().to_owned()
    } else {
        format!("{}:{}", url.host(), url.port())
    }
}

fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}
