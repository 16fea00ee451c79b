//! One client on a pair of streams, such as the standard input and output of this process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::inbox::Caller;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcMessage, ServerConfig,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext, ServerInitializeError, Service};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::{Transport, TransportAdapterIdentity};
use rmcp::{ErrorData, RoleServer, serve_server};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::server::ToolServer;
use crate::api::Api;
use crate::api::identity::Identity;

/// The maximum size of a message from the client.
const MAX_MESSAGE_BYTES: usize = 256 << 10;

/// The maximum number of concurrent calls.
const MAX_CALLS: usize = 64;

/// How long closing the output may take. While the client does not read an answer, the answer holds the output.
const CLOSING_TIME: Duration = Duration::from_secs(1);

/// The origin in the audit log.
const FROM: &str = "standard input";

/// The rules for a client on a pair of streams.
pub struct StreamRules {
    /// The caller on whose behalf pages are fetched.
    pub caller: Caller,
    /// How long calls may continue after the end of the input.
    pub grace: Grace,
    /// Stops the server.
    pub stop: CancellationToken,
}

/// The time that a process may take to end, for all that it waits for then. Clones share it.
#[derive(Clone)]
pub struct Grace {
    length: Duration,
    ends_at: Arc<watch::Sender<Option<Instant>>>,
}

impl Grace {
    pub fn new(length: Duration) -> Grace {
        Grace { length, ends_at: Arc::default() }
    }

    /// When the time is over. It begins with the first call.
    pub fn ends_at(&self) -> Instant {
        let from_now = Instant::now() + self.length;
        let mut ends_at = from_now;
        self.ends_at.send_if_modified(|at| {
            let is_first = at.is_none();
            ends_at = *at.get_or_insert(from_now);
            is_first
        });
        ends_at
    }

    /// Waits until the time has begun and is over.
    async fn end(&self) {
        let mut ends_at = self.ends_at.subscribe();
        // `self` holds the sender, so this cannot fail.
        drop(ends_at.wait_for(Option::is_some).await);
        tokio::time::sleep_until(self.ends_at()).await;
    }
}

/// Serves a client until its input ends or `stop`, and lets calls in progress finish.
pub async fn serve_streams<R, W>(
    api: &Arc<Api>,
    rules: StreamRules,
    input: R,
    output: W,
) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let StreamRules { caller, grace, stop } = rules;
    let identity = Identity::of_process(caller, FROM);
    let calls = Calls::default();
    let inner = AsyncRwTransport::<RoleServer, R, W>::new(input, output);
    let inner = inner.with_max_line_length(MAX_MESSAGE_BYTES);
    let transport =
        Finishing { inner, calls: calls.clone(), grace: grace.clone(), stop, has_ended: false };
    let server = ToolServer::for_one(api.clone(), identity, MAX_CALLS);
    let running = match serve_server::<_, _, _, TransportAdapterIdentity>(
        Counted { server, calls },
        transport,
    )
    .await
    {
        Ok(running) => running,
        // The client disconnected, or the program was stopped, before the handshake.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
            return Err(io::Error::other("the client did not begin with `initialize`"));
        }
        Err(error) => return Err(io::Error::other(error.to_string())),
    };
    tokio::select! {
        ended = running.waiting() => ended.map(drop).map_err(io::Error::other),
        // rmcp waits for calls once more.
        () = grace.end() => Ok(()),
    }
}

/// The number of calls in progress.
#[derive(Clone, Default)]
struct Calls(Arc<watch::Sender<usize>>);

impl Calls {
    fn begin(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    fn end(&self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }

    async fn all_ended(&self) {
        let mut count = self.0.subscribe();
        // `self` holds the sender, so this cannot fail.
        drop(count.wait_for(|count| *count == 0).await);
    }
}

fn is_call(request: &ClientRequest) -> bool {
    matches!(request, ClientRequest::CallToolRequest(_))
}

/// A transport whose input ends only when the calls in progress have ended, because the protocol's loop ends soon after
/// its input.
struct Finishing<T> {
    inner: T,
    calls: Calls,
    grace: Grace,
    stop: CancellationToken,
    has_ended: bool,
}

impl<T: Transport<RoleServer, Error = io::Error>> Transport<RoleServer> for Finishing<T> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        if !self.has_ended {
            let message = tokio::select! {
                message = self.inner.receive() => message,
                () = self.stop.cancelled() => None,
            };
            if let Some(message) = message {
                // Counted here, because the call itself begins in a task of its own.
                if let JsonRpcMessage::Request(request) = &message
                    && is_call(&request.request)
                {
                    self.calls.begin();
                }
                return Some(message);
            }
        }
        // This future may be dropped and made again.
        self.has_ended = true;
        drop(tokio::time::timeout_at(self.grace.ends_at(), self.calls.all_ended()).await);
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        tokio::time::timeout(CLOSING_TIME, self.inner.close()).await.unwrap_or(Ok(()))
    }
}

/// A server that counts the calls in progress.
struct Counted {
    server: ToolServer,
    calls: Calls,
}

/// Ends a call on drop: a cancelled one is dropped.
struct Ending<'a>(&'a Calls);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Service<RoleServer> for Counted {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let _ending = is_call(&request).then(|| Ending(&self.calls));
        Service::handle_request(&self.server, request, context).await
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Service::handle_notification(&self.server, notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        Service::get_info(&self.server)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    /// A client that has closed its input and reads nothing.
    struct Stuck;

    impl Transport<RoleServer> for Stuck {
        type Error = io::Error;

        fn send(
            &mut self,
            _: ServerJsonRpcMessage,
        ) -> impl Future<Output = io::Result<()>> + Send + 'static {
            pending()
        }

        async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
            None
        }

        async fn close(&mut self) -> io::Result<()> {
            pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_does_not_keep_the_process() {
        let grace = Grace::new(Duration::from_millis(10));
        let stop = CancellationToken::new();
        let calls = Calls::default();
        calls.begin();
        let mut stuck = Finishing { inner: Stuck, calls, grace, stop, has_ended: false };
        let ending = async {
            assert!(stuck.receive().await.is_none());
            stuck.close().await
        };
        let ended = tokio::time::timeout(20 * CLOSING_TIME, ending).await;
        assert!(matches!(ended, Ok(Ok(()))), "{ended:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_grace_is_spent_once() {
        let grace = Grace::new(Duration::from_secs(25));
        let began = Instant::now();
        let same = grace.clone();
        let over = tokio::spawn(async move { same.end().await });
        tokio::time::sleep(Duration::from_secs(1_000)).await;
        assert!(!over.is_finished(), "it has not begun");
        let ends_at = grace.ends_at();
        assert_eq!(ends_at.duration_since(began).as_secs(), 1_025);
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(grace.ends_at(), ends_at);
        over.await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 1_025);
    }
}
