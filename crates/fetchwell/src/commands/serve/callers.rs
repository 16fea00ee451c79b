//! `fetchwell callers`: manages the callers of the API.

use fetchwell_doors::webhooks::WebhookSecret;
use fetchwell_engine::ports::inbox::{Caller, CallerRecord, Inbox, Role};
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_service::audit::AuditLog;
use fetchwell_service::auth::{ApiToken, TOKEN_CACHE};
use fetchwell_settings::Settings;
use serde_json::json;

use crate::commands::serve::args::CallersCommand;
use crate::console::exit::Exit;
use crate::console::output::{Running, json_line, print};
use crate::wiring::open_retriever;

/// The origin in the audit log.
const FROM: &str = "command line";

pub(crate) fn run(settings: &Settings, command: CallersCommand, as_json: bool) -> Running<'_> {
    Box::pin(async move {
        let (store, clock) = open_retriever(settings).await?;
        let inbox = &*store.inbox;
        let audit = AuditLog::of_store(store.inbox.clone(), clock);
        match command {
            CallersCommand::Add { name, role } => {
                check_name(&name)?;
                let role = Role::parse(&role).unwrap_or(Role::Caller);
                let caller = Caller { name, role };
                let added = add(inbox, &audit, &caller, FROM).await?.ok_or_else(|| {
                    let name = &caller.name;
                    Exit::Usage(format!(
                        "the caller {name} already exists; to give it a new token, run `fetchwell \
                         callers revoke {name}` first"
                    ))
                })?;
                print(added.text(&caller, as_json))
            }
            CallersCommand::List => print(list(&inbox.callers().await?, as_json)),
            CallersCommand::Revoke { name } => {
                check_name(&name)?;
                if !inbox.revoke_caller(&name).await? {
                    return Err(Exit::Usage(format!(
                        "there is no caller {name} with a token; run `fetchwell callers list` to see \
                         all"
                    )));
                }
                let detail = "its token was revoked".to_owned();
                audit.note(&name, "revoke_caller", detail, FROM).await?;
                // Servers cache valid tokens: wait until none of them accepts this one any more.
                tokio::time::sleep(TOKEN_CACHE).await;
                print(format!("revoked {name}\n"))
            }
        }
    })
}

/// The secrets of a new caller, which are shown once.
pub(crate) struct Added {
    pub(super) token: ApiToken,
    pub(super) secret: WebhookSecret,
}

/// Adds a caller with a new token; `None` if the name is taken.
pub(crate) async fn add(
    inbox: &dyn Inbox,
    audit: &AuditLog,
    caller: &Caller,
    from: &str,
) -> Result<Option<Added>, Exit> {
    let token = ApiToken::generate()?;
    let hash = token.hash();
    if !inbox.add_caller(caller, &hash).await? {
        return Ok(None);
    }
    let detail = format!("with the role {}", caller.role.as_str());
    audit.note(&caller.name, "add_caller", detail, from).await?;
    Ok(Some(Added { token, secret: WebhookSecret::of(&hash) }))
}

impl Added {
    fn text(&self, caller: &Caller, as_json: bool) -> String {
        let token = self.token.reveal();
        let secret = self.secret.reveal();
        let name = &caller.name;
        let role = caller.role.as_str();
        if as_json {
            return json_line(
                json!({"name": name, "role": role, "token": token, "webhook_secret": secret}),
            );
        }
        format!(
            "added {name} ({role}). These are shown only once:\n\n  token           {token}\n  \
             webhook secret  {secret}\n"
        )
    }
}

fn check_name(name: &str) -> Result<(), Exit> {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    if (1..=32).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(Exit::Usage(format!(
        "{name:?} is not a valid caller name; use 1 to 32 characters from a-z, 0-9, _ and -"
    )))
}

fn list(callers: &[CallerRecord], as_json: bool) -> String {
    if as_json {
        let line = |record: &CallerRecord| {
            let CallerRecord { caller, created_at, revoked_at } = record;
            json_line(json!({
                "name": caller.name, "role": caller.role.as_str(),
                "created_at": rfc3339(*created_at), "revoked_at": revoked_at.map(rfc3339),
            }))
        };
        return callers.iter().map(line).collect();
    }
    if callers.is_empty() {
        return "there are no callers; `fetchwell callers add NAME` adds one\n".to_owned();
    }
    let mut text = format!("{:<32}  {:<8}  {:<27}  revoked\n", "name", "role", "since");
    for CallerRecord { caller, created_at, revoked_at } in callers {
        let role = caller.role.as_str();
        let since = rfc3339(*created_at);
        let revoked = revoked_at.map(rfc3339).unwrap_or_default();
        let line = format!("{:<32}  {role:<8}  {since:<27}  {revoked}", caller.name);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
