//! Callers and their tokens, for operators.

use std::time::Duration;

use askama::Template;
use axum::extract::Path;
use fetchwell_engine::ports::inbox::{Caller, Role};
use fetchwell_policy::units::parse_duration;

use super::access::{Form, Order, Visitor};
use super::fault::{PageError, PageResult};
use super::layout::{self, Section};
use super::words;
use crate::callers::{
    CallerService, CallerView, CallersError, DEFAULT_OVERLAP, MAX_EXPIRY, MAX_OVERLAP, Manager,
    NAME_RULE, is_name,
};

#[derive(Template)]
#[template(path = "callers.html")]
struct Page<'a> {
    visitor: &'a Visitor,
    /// `None` if this process has no API.
    callers: Option<Vec<CallerView>>,
}

/// The time of something that may never happen.
fn or_never(time: &Option<String>) -> String {
    time.as_deref().map_or_else(|| "never".to_owned(), words::stated)
}

pub(super) async fn page(visitor: Visitor) -> PageResult {
    let callers = match &visitor.dashboard.subject.callers {
        Some(service) => Some(service.list().await?),
        None => None,
    };
    let content = Page { visitor: &visitor, callers };
    layout::page(&visitor, (Section::Callers, "Callers"), &content).await
}

/// Carries out an order. A new token or secret is in the notice of the next page, and nowhere else.
pub(super) async fn order(Path(word): Path<String>, order: Order) -> PageResult {
    let Some(service) = &order.by.dashboard.subject.callers else {
        return Err(PageError::NotFound("this process has no callers"));
    };
    let by = Manager { name: order.by.caller.name.clone(), from: order.operator().from };
    match carry_out(service, &by, &word, &order.form).await? {
        Ok(text) => Ok(order.told(text)),
        Err(Refused::Form(text)) => Ok(order.not_done(text)),
        Err(Refused::Service(CallersError::Store(fault))) => Err(fault.into()),
        Err(Refused::Service(fault)) => {
            Ok(order.not_done(format!("Nothing was changed: {fault}.")))
        }
    }
}

/// Why an order was not carried out.
enum Refused {
    Form(String),
    Service(CallersError),
}

impl From<CallersError> for Refused {
    fn from(fault: CallersError) -> Refused {
        Refused::Service(fault)
    }
}

async fn carry_out(
    service: &CallerService,
    by: &Manager,
    word: &str,
    form: &Form,
) -> Result<Result<String, Refused>, PageError> {
    let caller = form.need("caller")?;
    if !is_name(caller) {
        return Ok(Err(Refused::Form(format!("The name of the caller {NAME_RULE}."))));
    }
    Ok(match word {
        "add" => add(service, by, caller, form).await,
        "add-token" => add_token(service, by, caller, form).await,
        "revoke-token" => revoke_token(service, by, caller, form).await,
        "revoke" => match service.revoke(by, caller).await {
            Ok(()) => Ok(format!("All tokens of {caller} are revoked.")),
            Err(fault) => Err(fault.into()),
        },
        "rotate-secret" => rotate_secret(service, by, caller, form).await,
        _ => return Err(PageError::NotFound("unknown action")),
    })
}

async fn add(
    service: &CallerService,
    by: &Manager,
    caller: &str,
    form: &Form,
) -> Result<String, Refused> {
    let role = Role::parse(form.text("role").unwrap_or("caller"));
    let role = role.ok_or_else(|| Refused::Form("There is no such role.".to_owned()))?;
    let caller = Caller { name: caller.to_owned(), role };
    let added = service.add(by, &caller).await?;
    Ok(format!(
        "Added {}. Shown only once: its token {} and its webhook secret {}",
        added.name, added.token, added.webhook_secret
    ))
}

async fn add_token(
    service: &CallerService,
    by: &Manager,
    caller: &str,
    form: &Form,
) -> Result<String, Refused> {
    let name = token_name(form)?;
    let expires_in = duration(form, "expires", MAX_EXPIRY)?.filter(|one| !one.is_zero());
    let added = service.add_token(by, caller, name, expires_in).await?;
    Ok(format!("Added the token {name} of {caller}. Shown only once: {}", added.token))
}

async fn revoke_token(
    service: &CallerService,
    by: &Manager,
    caller: &str,
    form: &Form,
) -> Result<String, Refused> {
    let name = token_name(form)?;
    service.revoke_token(by, caller, name).await?;
    Ok(format!("The token {name} of {caller} is revoked."))
}

async fn rotate_secret(
    service: &CallerService,
    by: &Manager,
    caller: &str,
    form: &Form,
) -> Result<String, Refused> {
    let overlap = duration(form, "overlap", MAX_OVERLAP)?.unwrap_or(DEFAULT_OVERLAP);
    let rotated = service.rotate_secret(by, caller, overlap).await?;
    let until = match rotated.previous_until {
        Some(until) => format!("deliveries are also signed with the earlier one until {until}"),
        None => "the earlier one is void".to_owned(),
    };
    let secret = rotated.webhook_secret;
    Ok(format!("{caller} has a new webhook secret; {until}. Shown only once: {secret}"))
}

fn token_name(form: &Form) -> Result<&str, Refused> {
    let name = form.text("token").filter(|name| is_name(name));
    name.ok_or_else(|| Refused::Form(format!("The name of the token {NAME_RULE}.")))
}

/// A duration, if the field is filled in.
fn duration(form: &Form, field: &'static str, most: Duration) -> Result<Option<Duration>, Refused> {
    let Some(text) = form.text(field) else { return Ok(None) };
    let parsed = parse_duration(text).ok().filter(|parsed| *parsed <= most);
    let days = most.as_secs() / 86_400;
    let wrong = || Refused::Form(format!("{text} is not a duration up to {days}d, such as 30d."));
    parsed.map(Some).ok_or_else(wrong)
}
