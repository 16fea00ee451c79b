//! `fetchwell callers`: manages the callers of the API.

use std::sync::Arc;
use std::time::Duration;

use fetchwell_doors::webhooks::WebhookSecret;
use fetchwell_engine::ports::inbox::{Caller, CallerRecord, Inbox, Role};
use fetchwell_engine::ports::retriever_store::RetrieverStore;
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_policy::units::{parse_duration, with_unit};
use fetchwell_service::audit::AuditLog;
use fetchwell_service::auth::{ApiToken, TOKEN_CACHE};
use fetchwell_service::callers::{
    CallerService, CallersError, MAX_EXPIRY, MAX_OVERLAP, Manager, TokenView, is_name,
};
use fetchwell_settings::Settings;
use serde_json::json;

use crate::commands::serve::args::{CallersCommand, TokensCommand};
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
        let service = caller_service(&store, audit.clone());
        match command {
            CallersCommand::Tokens(command) => tokens(&service, inbox, command, as_json).await,
            CallersCommand::RotateSecret { name, overlap } => {
                rotate_secret(&service, &name, &overlap, as_json).await
            }
            CallersCommand::Add { name, role } => {
                check_name(&name)?;
                let role = Role::parse(&role).unwrap_or(Role::Caller);
                let caller = Caller { name, role };
                let added = add(inbox, &audit, &caller, FROM).await?.ok_or_else(|| {
                    let name = &caller.name;
                    Exit::Usage(format!(
                        "the caller {name} already exists; to give it a new token, run `fetchwell \
                         callers revoke {name}` first; to give it another one as well, run \
                         `fetchwell callers tokens add {name} --name NAME`"
                    ))
                })?;
                print(added.text(&caller, as_json))
            }
            CallersCommand::List => print(list(&inbox.callers().await?, as_json)),
            CallersCommand::Revoke { name } => {
                check_name(&name)?;
                let detail = "its tokens were revoked".to_owned();
                let entry = audit.entry(&name, "revoke_caller", detail, FROM);
                if !inbox.revoke_caller(&name, &entry).await? {
                    return Err(Exit::Usage(format!(
                        "there is no caller {name} with a token; run `fetchwell callers list` to see \
                         all"
                    )));
                }
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
    let detail = format!("with the role {}", caller.role.as_str());
    let entry = audit.entry(&caller.name, "add_caller", detail, from);
    if !inbox.add_caller(caller, &hash, &entry).await? {
        return Ok(None);
    }
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

/// Manages callers on this store.
pub(crate) fn caller_service(store: &RetrieverStore, audit: AuditLog) -> CallerService {
    let show_secret = Arc::new(|key: &[u8; 32]| WebhookSecret::of(key).reveal());
    CallerService::new(store.inbox.clone(), audit, show_secret)
}

/// The audit log names the caller itself, as for all changes on the command line.
fn manager(caller: &str) -> Manager {
    Manager { name: caller.to_owned(), from: FROM.to_owned() }
}

async fn tokens(
    service: &CallerService,
    inbox: &dyn Inbox,
    command: TokensCommand,
    as_json: bool,
) -> Result<Exit, Exit> {
    match command {
        TokensCommand::Add { caller, name, expires } => {
            check_name(&caller)?;
            check_name(&name)?;
            let expires = expires.as_deref().map(|text| duration("--expires", text, MAX_EXPIRY));
            let expires_in = expires.transpose()?.filter(|expires_in| !expires_in.is_zero());
            let by = manager(&caller);
            let added = service.add_token(&by, &caller, &name, expires_in).await.map_err(exit)?;
            if as_json {
                return print(json_line(json!(added)));
            }
            let until = added.expires_at.map(|at| format!(", valid until {at}"));
            print(format!(
                "added the token {name} of {caller}{}. It is shown only once:\n\n  {}\n",
                until.unwrap_or_default(),
                added.token
            ))
        }
        TokensCommand::List { caller } => {
            check_name(&caller)?;
            let tokens = inbox.tokens(Some(&caller)).await?;
            let views: Vec<TokenView> = tokens.into_iter().map(TokenView::from).collect();
            if as_json {
                return print(views.iter().map(|view| json_line(json!(view))).collect::<String>());
            }
            print(token_table(&caller, &views))
        }
        TokensCommand::Revoke { caller, token } => {
            check_name(&caller)?;
            check_name(&token)?;
            service.revoke_token(&manager(&caller), &caller, &token).await.map_err(exit)?;
            print(format!("revoked the token {token} of {caller}\n"))
        }
    }
}

fn token_table(caller: &str, tokens: &[TokenView]) -> String {
    if tokens.is_empty() {
        return format!("{caller} has no tokens\n");
    }
    let mut text = format!("{:<32}  {:<27}  {:<27}  last used\n", "name", "created", "expires");
    for TokenView { name, created_at, expires_at, last_used_at } in tokens {
        let expires = expires_at.as_deref().unwrap_or("never");
        let used = last_used_at.as_deref().unwrap_or("never");
        text.push_str(&format!("{name:<32}  {created_at:<27}  {expires:<27}  {used}\n"));
    }
    text
}

async fn rotate_secret(
    service: &CallerService,
    caller: &str,
    overlap: &str,
    as_json: bool,
) -> Result<Exit, Exit> {
    check_name(caller)?;
    let overlap = duration("--overlap", overlap, MAX_OVERLAP)?;
    let rotated = service.rotate_secret(&manager(caller), caller, overlap).await.map_err(exit)?;
    if as_json {
        return print(json_line(json!(rotated)));
    }
    let until = match rotated.previous_until {
        Some(until) => format!("deliveries are also signed with the earlier one until {until}"),
        None => "the earlier one is void".to_owned(),
    };
    print(format!(
        "the new webhook secret of {caller} is shown only once; {until}:\n\n  {}\n",
        rotated.webhook_secret
    ))
}

/// Parses a duration; a bare number is seconds.
fn duration(flag: &str, text: &str, most: Duration) -> Result<Duration, Exit> {
    let parsed = parse_duration(&with_unit(text, "s")).ok();
    parsed.filter(|parsed| *parsed <= most).ok_or_else(|| {
        let days = most.as_secs() / 86_400;
        Exit::Usage(format!("{flag} {text:?} is not a duration up to {days}d; use one such as 30d"))
    })
}

fn exit(fault: CallersError) -> Exit {
    match fault {
        CallersError::Store(fault) => fault.into(),
        CallersError::Random(fault) => fault.into(),
        refused => Exit::Usage(refused.to_string()),
    }
}

fn check_name(name: &str) -> Result<(), Exit> {
    if is_name(name) {
        return Ok(());
    }
    Err(Exit::Usage(format!(
        "{name:?} is not a valid name; use 1 to 32 characters from a-z, 0-9, _ and -"
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
