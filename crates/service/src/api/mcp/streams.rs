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
    pub grace: Duration,
    /// Stops the server.
    pub stop: CancellationToken,
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
    let transport = Finishing { inner, calls: calls.clone(), grace, stop, until: None };
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
    running.waiting().await.map(drop).map_err(io::Error::other)
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
    grace: Duration,
    stop: CancellationToken,
    /// Set when the input has ended: how long calls may continue.
    until: Option<Instant>,
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
        if self.until.is_none() {
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
        // This future may be dropped and made again, with the same time.
        let until = *self.until.get_or_insert_with(|| Instant::now() + self.grace);
        drop(tokio::time::timeout_at(until, self.calls.all_ended()).await);
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
        let grace = Duration::from_millis(10);
        let stop = CancellationToken::new();
        let calls = Calls::default();
        calls.begin();
        let mut stuck = Finishing { inner: Stuck, calls, grace, stop, until: None };
        let ending = async {
            assert!(stuck.receive().await.is_none());
            stuck.close().await
        };
        let ended = tokio::time::timeout(20 * CLOSING_TIME, ending).await;
        assert!(matches!(ended, Ok(Ok(()))), "{ended:?}");
    }
}
