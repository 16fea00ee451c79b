//! Sends one request, on a pooled or a new connection, and reads the response into memory.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_policy::outcome::{AnswerFault, FetchOutcome, NetworkFault, Phase};
use fetchwell_policy::url::WebUrl;
use http::header::{ACCEPT, ACCEPT_ENCODING, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Uri, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use rustls::ClientConfig;
use tokio::time::Instant;

use super::breach::{died_unanswered, is_breach_of_http};
use super::connect::{connect, tls_config};
use super::decode::{Decoding, read_body};
use super::dns::{CachedNames, NameServers, Resolve, vetted_addresses};
use super::error::ClientError;
use super::interim::flood_of_interim_answers;
use super::patience::Patience;
use super::pool::{Pool, RequestBody, Sender};
use super::stream::is_overslept;
use super::{HttpLimits, HttpSettings, OwnListeners};
use crate::budget::{Budget, Share};
use crate::web::{Answer, Exchange, Method, Phases, Request, SendPermit, Web, Wire};

/// The HTTP client. A process uses one for all sites. Clones share its connections, its names and its byte budget.
#[derive(Clone)]
pub struct Client {
    settings: Arc<HttpSettings>,
    limits: HttpLimits,
    user_agent: HeaderValue,
    tls: Arc<ClientConfig>,
    names: Arc<CachedNames>,
    pool: Arc<Pool>,
    budget: Budget,
}

impl Client {
    /// A client that uses the name servers from its settings.
    pub fn new(settings: HttpSettings) -> Result<Client, ClientError> {
        let name_servers = NameServers::new(&settings.dns);
        Client::with_resolver(settings, Box::new(name_servers))
    }

    /// A client with the given resolver.
    pub fn with_resolver(
        settings: HttpSettings,
        resolver: Box<dyn Resolve>,
    ) -> Result<Client, ClientError> {
        let user_agent =
            HeaderValue::from_str(&settings.user_agent).map_err(ClientError::UserAgent)?;
        let connect_timeout = settings.limits.connect_timeout;
        let names = CachedNames::new(resolver, &settings.dns, connect_timeout);
        Ok(Client {
            user_agent,
            tls: tls_config(settings.extra_ca_file.as_deref())?,
            names: Arc::new(names),
            pool: Arc::default(),
            budget: Budget::of_bytes(settings.limits.body_budget_bytes),
            limits: settings.limits,
            settings: Arc::new(settings),
        })
    }

    /// A clone with another limit on the size of a body. It cannot exceed the byte budget.
    pub fn with_max_body(&self, bytes: usize) -> Client {
        let max_body_bytes = bytes.min(self.limits.body_budget_bytes);
        Client { limits: HttpLimits { max_body_bytes, ..self.limits }, ..self.clone() }
    }

    /// The vetted addresses that a request for this URL would connect to.
    pub async fn addresses(&self, url: &WebUrl) -> Result<Vec<std::net::SocketAddr>, FetchOutcome> {
        vetted_addresses(url, &self.settings, &self.names).await
    }

    /// Doors register their own listening addresses here.
    pub fn own_listeners(&self) -> &OwnListeners {
        &self.settings.own_listeners
    }

    async fn try_exchange(
        &self,
        request: &Request,
        send_permit: &mut dyn SendPermit,
        phases: &mut Phases,
    ) -> Result<Exchange, FetchOutcome> {
        let url = &request.url;
        let started = Instant::now();
        let (mut sender, was_kept) = self.connection(request).await?;
        phases.connect = started.elapsed();
        let head = self.head(request, sender.version()).ok_or_else(unsendable)?;
        let request_headers = head.headers().clone();
        if !send_permit.to_write().await {
            self.pool.keep(url, sender, self.limits.max_idle_connections);
            return Ok(Exchange::NotSent);
        }
        let written = Instant::now();
        phases.slot += written.duration_since(started).saturating_sub(phases.connect);
        let limits = &self.limits;
        let request_timeout = request.timeouts.request.unwrap_or(limits.request_timeout);
        let total = request_timeout.saturating_sub(phases.connect);
        let patience = Patience::new(limits.idle_read_timeout, total);
        let may_ask_anew = was_kept && request.method.is_idempotent();
        let answer = match send(&mut sender, head, send_permit, patience).await {
            Ok(Ok(response)) => {
                phases.first_byte = written.elapsed();
                self.read(response, request, patience).await
            }
            Ok(Err(error)) if is_overslept(&error) => return Ok(Exchange::NotSent),
            Ok(Err(error)) if may_ask_anew && died_unanswered(&error) => {
                self.pool.forget(url);
                return Ok(Exchange::NotSent);
            }
            Ok(Err(error)) => Err(classify(&error, sender.broke_http())),
            Err(happened) => Err(happened),
        };
        if let Err(FetchOutcome::TimedOut(_)) = answer {
            // The peer may be gone. An HTTP/2 connection would still be in the pool, and fail one request after
            // another.
            self.pool.forget(url);
        }
        let mut answer = answer?;
        answer.wire.peer = Some(sender.peer().ip());
        answer.wire.request_headers = request_headers;
        phases.body = written.elapsed().saturating_sub(phases.first_byte);
        self.pool.keep(url, sender, limits.max_idle_connections);
        Ok(Exchange::Answered(answer))
    }

    /// A connection, and whether it is reused. A probe always gets a new one, because it tests whether the site accepts
    /// connections, and on a reused connection that has died it would count as not sent.
    async fn connection(&self, request: &Request) -> Result<(Sender, bool), FetchOutcome> {
        let url = &request.url;
        let is_probe = request.method == Method::HEAD;
        if !is_probe && let Some(sender) = self.pool.take(url).await {
            return Ok((sender, true));
        }
        let limits = &self.limits;
        let connect_timeout = request.timeouts.connect.unwrap_or(limits.connect_timeout);
        let request_timeout = request.timeouts.request.unwrap_or(limits.request_timeout);
        let time = connect_timeout.min(request_timeout);
        let connecting = async {
            let addresses = self.addresses(url).await?;
            connect(url, &addresses, &self.tls, limits.max_header_bytes, time).await
        };
        let timed_out = Err(FetchOutcome::TimedOut(Phase::Connect));
        let connected = tokio::time::timeout(time, connecting).await.unwrap_or(timed_out);
        if matches!(connected, Err(FetchOutcome::OurFault(_))) {
            self.pool.close_idle();
        }
        Ok((connected?, false))
    }

    fn head(&self, request: &Request, version: Version) -> Option<http::Request<RequestBody>> {
        let url = &request.url;
        let target = match version {
            Version::HTTP_2 => url.as_str(),
            _ => url.path_and_query(),
        };
        let mut head = http::Request::new(Full::new(request.body.clone()));
        *head.method_mut() = request.method.clone();
        *head.uri_mut() = target.parse::<Uri>().ok()?;
        let headers = head.headers_mut();
        if version != Version::HTTP_2 {
            headers.insert(HOST, HeaderValue::try_from(authority(url)).ok()?);
        }
        headers.insert(USER_AGENT, self.user_agent.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, br, zstd, deflate"));
        for (name, value) in &request.headers {
            headers.insert(name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?);
        }
        Some(head)
    }

    async fn read(
        &self,
        response: http::Response<Incoming>,
        request: &Request,
        patience: Patience,
    ) -> Result<Answer, FetchOutcome> {
        let (head, body) = response.into_parts();
        let limits = &self.limits;
        if header_bytes(&head.headers) > limits.max_header_bytes {
            return Err(FetchOutcome::BadAnswer(AnswerFault::HeadersTooLarge));
        }
        let wire = Box::new(Wire { version: head.version, ..Wire::default() });
        let status = head.status.as_u16();
        let headers = head.headers;
        let mut answer = Answer { status, headers, body: Bytes::new(), share: Share::none(), wire };
        // The body of a redirect is not needed, and must not prevent following it.
        if request.wants_body_of(status) && answer.redirect().is_none() {
            let enough = request.enough_bytes.unwrap_or(usize::MAX);
            let headers = &answer.headers;
            let decoding = decoding_of(request);
            let reading =
                read_body(body, headers, decoding, limits, enough, patience, &self.budget);
            (answer.body, answer.share) = reading.await?;
        }
        Ok(answer)
    }
}

#[async_trait]
impl Web for Client {
    async fn exchange(
        &self,
        request: &Request,
        send_permit: &mut dyn SendPermit,
        phases: &mut Phases,
    ) -> Exchange {
        self.try_exchange(request, send_permit, phases).await.unwrap_or_else(Exchange::Failed)
    }
}

/// A part of an encoded file cannot be decoded by itself, so a range is not decoded, whatever `Content-Encoding` the
/// server sends (some send one for every `.gz` file).
fn decoding_of(request: &Request) -> Decoding {
    let asks_for_range = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("range"));
    if asks_for_range { Decoding::AsItComes } else { Decoding::Undo }
}

/// Writes the request, and waits for the response head. The outer error is for a limit that was reached.
async fn send(
    sender: &mut Sender,
    mut head: http::Request<RequestBody>,
    send_permit: &mut dyn SendPermit,
    patience: Patience,
) -> Result<hyper::Result<http::Response<Incoming>>, FetchOutcome> {
    let flood = flood_of_interim_answers(&mut head);
    let answer = async {
        match sender {
            Sender::Http1(sender, _, departure) => {
                departure.by(send_permit.given());
                let answer = sender.send_request(head);
                tokio::pin!(answer);
                tokio::select! {
                    biased; // A late head comes before its response, but both may be ready at once.
                    () = departure.was_late() => send_permit.left_late(),
                    answered = &mut answer => return answered,
                }
                answer.await
            }
            Sender::Http2(sender, _) => sender.send_request(head).await,
        }
    };
    tokio::select! {
        answered = patience.with_first_byte(answer) => answered.map_err(FetchOutcome::TimedOut),
        () = flood.notified() => Err(FetchOutcome::BadAnswer(AnswerFault::NotHttp)),
    }
}

fn unsendable() -> FetchOutcome {
    FetchOutcome::Refused("the URL or a header can't be written as HTTP".to_owned())
}

fn classify(error: &hyper::Error, broke_http: bool) -> FetchOutcome {
    if error.is_parse_too_large() {
        FetchOutcome::BadAnswer(AnswerFault::HeadersTooLarge)
    } else if broke_http || is_breach_of_http(error) {
        FetchOutcome::BadAnswer(AnswerFault::NotHttp)
    } else {
        FetchOutcome::Network(NetworkFault::Reset)
    }
}

/// The `Host` header: the host, and the port unless it is the scheme's default.
fn authority(url: &WebUrl) -> String {
    if url.port() == url.scheme().default_port() {
        url.host().to_owned()
    } else {
        format!("{}:{}", url.host(), url.port())
    }
}

fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}
