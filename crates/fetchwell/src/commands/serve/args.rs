//! The arguments of `fetchwell serve`, `fetchwell callers` and `fetchwell migrate`, and the rules of `serve`.

use clap::{Args, Subcommand};
use fetchwell_doors::crawl::CrawlsRules;
use fetchwell_doors::fetch::OutputFormat;
use fetchwell_doors::retriever::{BodyRules, MessageRules, Retention};
use fetchwell_engine::web::Timeouts;
use fetchwell_policy::robots::product_token;
use fetchwell_policy::time::Time;
use fetchwell_service::api::Rules;
use fetchwell_settings::{Flag, Settings, Values};
use url::Url;

use super::retailers;
use crate::commands::args::given;
use crate::commands::fetch::args::rules as fetch_rules;
use crate::wiring::{read_limits, user_agent};

/// `fetchwell serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<String>,
}

impl ServeArgs {
    /// The flags that override settings.
    pub(crate) fn settings(&self) -> Vec<Flag<'static>> {
        given([("retriever.listen", "--listen", &self.listen)])
    }
}

/// The rules of the API, from the settings.
pub(crate) fn api_rules(values: &Values) -> Rules {
    Rules {
        default_deadline: values.retriever_deadline,
        max_batch_body_bytes: values.retriever_max_batch_body,
        max_page_bytes: values.http_max_body,
        public_metrics: values.retriever_public_metrics,
        caller_rate: values.retriever_caller_rate,
        caller_burst: values.retriever_caller_burst,
        retention: values.retriever_retention,
        max_crawl_pages: values.retriever_max_crawl_pages,
        max_crawls: values.retriever_max_crawls,
        public_url: values.retriever_public_url.clone(),
        mcp_allowed_hosts: mcp_hosts(values),
    }
}

/// The names under which `/mcp` is reached: those of the setting, and that of the public URL.
fn mcp_hosts(values: &Values) -> Vec<String> {
    let public_url = values.retriever_public_url.as_deref().and_then(|url| Url::parse(url).ok());
    let public_host = public_url.as_ref().and_then(Url::host_str).map(str::to_owned);
    values.mcp_allowed_hosts.iter().cloned().chain(public_host).collect()
}

/// The rules for fetching messages.
pub(super) fn message_rules(settings: &Settings) -> MessageRules {
    let values = &settings.values;
    let default_timeouts = Timeouts {
        connect: values.retriever_connection_timeout,
        request: values.retriever_request_timeout,
    };
    MessageRules {
        max_attempts: values.retriever_max_retries,
        max_redirects: values.http_max_redirects,
        reading: read_limits(values),
        bodies: BodyRules {
            max_bytes: values.retriever_body_max_size,
            keep: retention(values).bodies,
            quota_bytes: values.retriever_body_quota,
        },
        default_timeouts,
        timeouts: retailers::timeouts(settings, default_timeouts),
        pace: retailers::pace(settings),
    }
}

/// The rules for the pages of crawls.
pub(super) fn crawls_rules(settings: &Settings) -> CrawlsRules {
    let values = &settings.values;
    // The patience with a site counts from its first failure.
    let fetch = fetch_rules(values, OutputFormat::Json, false, Time::EPOCH);
    let bot = product_token(&user_agent(settings)).to_owned();
    CrawlsRules { fetch, bodies: message_rules(settings).bodies, bot }
}

/// How long `serve` keeps data. Without its result, a body cannot be found.
pub(crate) fn retention(values: &Values) -> Retention {
    let messages = values.retriever_retention;
    Retention { messages, bodies: values.retriever_body_retention.min(messages) }
}

#[derive(Debug, Subcommand)]
pub(crate) enum CallersCommand {
    /// Add a caller and print its token, which is shown only once
    Add {
        /// Name: 1 to 32 characters from a-z, 0-9, _ and -
        name: String,
        /// caller: send messages and see its own; viewer: see everything; operator: see and do everything
        #[arg(long, default_value = "caller", value_parser = ["caller", "viewer", "operator"])]
        role: String,
    },
    /// List all callers
    List,
    /// Revoke all tokens of a caller
    Revoke {
        /// Name of the caller
        name: String,
    },
    /// Add, list and revoke further tokens of a caller
    #[command(subcommand)]
    Tokens(TokensCommand),
    /// Replace the webhook secret of a caller, and print the new one, which is shown only once
    RotateSecret {
        /// Name of the caller
        name: String,
        /// How long deliveries are also signed with the earlier secret, up to 30d; 0 for not at all
        #[arg(long, value_name = "DURATION", default_value = "24h")]
        overlap: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokensCommand {
    /// Add a token to a caller and print it; it is shown only once
    Add {
        /// Name of the caller
        caller: String,
        /// Name of the token: 1 to 32 characters from a-z, 0-9, _ and -
        #[arg(long)]
        name: String,
        /// How long it is valid, such as 30d [default: until it is revoked]
        #[arg(long, value_name = "DURATION")]
        expires: Option<String>,
    },
    /// List the tokens of a caller
    List {
        /// Name of the caller
        caller: String,
    },
    /// Revoke one token of a caller; with its last token, the caller is revoked
    Revoke {
        /// Name of the caller
        caller: String,
        /// Name of the token
        token: String,
    },
}

/// `fetchwell migrate`.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Target: postgres://user:password@host/database; must hold no Fetchwell data yet
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
}
