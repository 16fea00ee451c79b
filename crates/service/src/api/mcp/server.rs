//! The handler of the protocol: lists the tools, and calls them within limits.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::request::Parts;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::Semaphore;
use tracing::error;

use super::answer::{Answer, short};
use super::{advice, archive, explain, fetch, map, tools};
use crate::api::Api;
use crate::api::identity::Identity;
use crate::api::memory::Held;
use crate::problem::{Problem, ProblemKind};

/// How long a call may take. Many clients give up after a minute.
pub(super) const CALL_TIME: Duration = Duration::from_secs(45);

/// How much longer a call may take before it is aborted.
const LAST_TIME: Duration = Duration::from_secs(10);

/// The memory that answers occupy until they are sent.
#[derive(Clone, Default)]
pub(super) struct HeldAnswers(Arc<Mutex<Vec<Held>>>);

/// A call of a tool.
pub(super) struct Call<'a> {
    pub(super) api: &'a Api,
    pub(super) identity: &'a Identity,
    held: HeldAnswers,
}

impl Call<'_> {
    /// Keeps memory until the answer is sent.
    pub(super) fn hold(&self, share: Held) {
        self.held.0.lock().push(share);
    }

    /// Records the call in the audit log. `fetch` and `map` do not need this: their messages are recorded.
    pub(super) async fn note(&self, action: &str, detail: &str) -> Result<(), Problem> {
        let Identity { caller, from, .. } = self.identity;
        let noted = self.api.on.audit.note(&caller.name, action, detail.to_owned(), from).await;
        self.api.stored(noted)
    }
}

/// Serves the tools. Clones share their limit on calls.
#[derive(Clone)]
pub(super) struct ToolServer {
    api: Arc<Api>,
    /// The caller, if it is this process; over HTTP each request has its own.
    own: Option<Identity>,
    calls: Arc<Semaphore>,
}

impl ToolServer {
    /// For HTTP requests, each with its own identity: see `endpoint`.
    pub(super) fn for_requests(api: Arc<Api>, max_calls: usize) -> ToolServer {
        ToolServer { api, own: None, calls: Arc::new(Semaphore::new(max_calls)) }
    }

    /// For one client, which is trusted like the user who started this process.
    pub(super) fn for_one(api: Arc<Api>, identity: Identity, max_calls: usize) -> ToolServer {
        ToolServer { own: Some(identity), ..ToolServer::for_requests(api, max_calls) }
    }

    async fn answer(
        &self,
        params: CallToolRequestParams,
        identity: &Identity,
        held: HeldAnswers,
    ) -> Result<Answer, Problem> {
        identity.check_may_send()?;
        let Ok(_turn) = self.calls.try_acquire() else {
            return Err(Problem::new(ProblemKind::BUSY).retry_after(CALL_TIME.as_secs()));
        };
        let call = Call { api: &self.api, identity, held };
        let given = params.arguments;
        match params.name.as_ref() {
            tools::FETCH => fetch::call(&call, given).await,
            tools::MAP => map::call(&call, given).await,
            tools::EXPLAIN => explain::call(&call, given).await,
            tools::FIND_IN_ARCHIVE => archive::call(&call, given).await,
            // Checked before.
            _ => Err(Problem::new(ProblemKind::INTERNAL)),
        }
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let about =
            Implementation::new("fetchwell", env!("CARGO_PKG_VERSION")).with_title("Fetchwell");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(about)
            .with_instructions(tools::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::named(name)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if tools::named(&params.name).is_none() {
            let known =
                tools::all().into_iter().map(|tool| tool.name).collect::<Vec<_>>().join(", ");
            let name = short(&params.name);
            let text = format!("unknown tool {name}; the tools are {known}");
            return Err(ErrorData::invalid_params(text, None));
        }
        let parts = context.extensions.get::<Parts>();
        let of_request = |parts: &Parts| parts.extensions.get::<Identity>().cloned();
        let identity = self.own.clone().or_else(|| parts.and_then(of_request));
        // A request without one is a bug in `endpoint`.
        let Some(identity) = identity else {
            return Err(ErrorData::internal_error("no identity", None));
        };
        let held = parts.and_then(|parts| parts.extensions.get::<HeldAnswers>().cloned());
        let answering = self.answer(params, &identity, held.unwrap_or_default());
        let in_time = tokio::time::timeout(CALL_TIME + LAST_TIME, caught(answering));
        let answer = tokio::select! {
            answer = in_time => answer,
            // The client has disconnected or cancelled the call: nobody reads this answer.
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
        };
        let answer = match answer {
            Ok(answer) => {
                answer.unwrap_or_else(|problem| Answer::error(advice::about_call(&problem)))
            }
            Err(_) => Answer::error(
                "This took too long. Call the tool again with the same arguments in a few seconds, or continue \
                 without it.",
            ),
        };
        let content = vec![ContentBlock::text(answer.text)];
        let result = if answer.is_error {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        Ok(result.into())
    }
}

/// Turns a panic into an error, so that the client gets an answer.
async fn caught(
    answering: impl Future<Output = Result<Answer, Problem>>,
) -> Result<Answer, Problem> {
    AssertUnwindSafe(answering).catch_unwind().await.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        error!("a tool panicked: {text}");
        Err(Problem::new(ProblemKind::INTERNAL))
    })
}
