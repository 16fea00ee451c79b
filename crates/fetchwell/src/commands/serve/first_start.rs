//! The first start: creates a caller, because nobody could use the API without one, and prints its token.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use fetchwell_engine::ports::inbox::{Caller, Inbox, Role};
use fetchwell_service::audit::AuditLog;

use super::callers::add;
use crate::console::exit::Exit;
use crate::console::output::print;

const NAME: &str = "local";

/// Creates the caller `local` if there is no caller, and prints what to do next.
pub(super) async fn welcome(
    inbox: &dyn Inbox,
    audit: &AuditLog,
    listens_on: SocketAddr,
) -> Result<(), Exit> {
    if !inbox.callers().await?.is_empty() {
        return Ok(());
    }
    let caller = Caller { name: NAME.to_owned(), role: Role::Operator };
    // Another process on the store may have created it first, and printed the token.
    if let Some(added) = add(inbox, audit, &caller, "first start").await? {
        print(text(added.token.reveal(), &added.secret.reveal(), listens_on))?;
    }
    Ok(())
}

fn text(token: &str, secret: &str, listens_on: SocketAddr) -> String {
    let home = home(listens_on);
    format!(
        "\
First start: created the caller {NAME}, an operator.
Its token is shown only once:

  {token}

Its webhook secret: {secret}
The dashboard:      {home}/
The documentation:  {home}/docs

Try this next:

  curl {home}/fetch -H 'Authorization: Bearer {token}' \\
    -H 'Content-Type: application/json' -H 'Prefer: wait=10' \\
    -d '{{\"url\": \"https://example.com/\", \"retailer\": \"demo\", \"correlation_id\": \"first\"}}'

To create more tokens: fetchwell callers add NAME
"
    )
}

/// An address at which this machine can reach itself.
fn home(listens_on: SocketAddr) -> String {
    let mut address = listens_on;
    match listens_on.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("http://{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_can_be_pasted() {
        let said = text("fw_x", "whsec_y", "0.0.0.0:8080".parse().unwrap());
        assert!(said.contains("curl http://127.0.0.1:8080/fetch -H 'Authorization: Bearer fw_x'"));
        assert_eq!(home("[::]:1".parse().unwrap()), "http://[::1]:1");
        assert_eq!(home("10.0.0.1:2".parse().unwrap()), "http://10.0.0.1:2");
    }
}
