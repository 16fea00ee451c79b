//! Settings that hold addresses: stores, brokers, networks, name servers, listen addresses, host overrides and URLs.

use std::net::{IpAddr, SocketAddr};

use fetchwell_engine::ports::store_url::{SecretUrl, StoreUrl};
use fetchwell_policy::address::ResolveRule;
use fetchwell_policy::url::WebUrl;
use ipnet::IpNet;

use super::fault::{Wrong, quoted};
use super::features::of_store;
use super::kinds::{Parsed, displayed};

/// The URL of a store. Errors do not quote it, since it may contain a password.
pub(super) const STORE: Parsed<StoreUrl> = displayed(|text| {
    let store = StoreUrl::parse(text).ok_or_else(|| {
        Wrong::new("is not a known kind of store", format!("write {}", StoreUrl::FORMS))
    })?;
    if let Some(feature) = of_store(&store) {
        feature.require()?;
    }
    Ok(store)
});

/// The URL of a message broker. Errors do not quote it, since it may contain a password.
pub(super) const BROKER: Parsed<SecretUrl> = displayed(|text| {
    const MEND: &str =
        r#"write "amqp://USER:PASSWORD@HOST:PORT/VHOST", or amqps:// for TLS; %2f is the vhost /"#;
    if !text.starts_with("amqp://") && !text.starts_with("amqps://") {
        return Err(Wrong::new("is not the URL of a broker", MEND));
    }
    #[cfg(feature = "rabbitmq")]
    text.parse::<amq_protocol_uri::AMQPUri>()
        .map_err(|wrong| Wrong::new(format!("is not the URL of a broker: {wrong}"), MEND))?;
    Ok(SecretUrl::new(text))
});

/// A network, or a single address.
pub(super) const CIDR: Parsed<IpNet> = displayed(|text| {
    let single = || text.parse::<IpAddr>().ok().map(IpNet::from);
    text.parse().ok().or_else(single).ok_or_else(|| {
        Wrong::new(
            format!("{} is not a network", quoted(text)),
            r#"write an address and a prefix length, such as "10.0.0.0/8" or "::1/128""#,
        )
    })
});

/// A name server: an address, with its port unless that is 53.
pub(super) const NAME_SERVER: Parsed<SocketAddr> = Parsed {
    read: |text| {
        let at_its_port = || text.parse().ok().map(|ip: IpAddr| SocketAddr::new(ip, DNS_PORT));
        text.parse().ok().or_else(at_its_port).ok_or_else(|| {
            Wrong::new(
                format!("{} is not the address of a name server", quoted(text)),
                r#"write an address, with a port if needed, such as "10.0.0.53" or "[::1]:5353""#,
            )
        })
    },
    show: |value| match value.port() {
        DNS_PORT => value.ip().to_string().into(),
        _ => value.to_string().into(),
    },
};

const DNS_PORT: u16 = 53;

/// A listen address.
pub(super) const LISTEN: Parsed<SocketAddr> = displayed(|text| {
    parse_listen_address(text).ok_or_else(|| {
        Wrong::new(
            format!("{} is not a listen address", quoted(text)),
            r#"write "127.0.0.1:8080", "[::]:8080", "localhost:8080", or ":8080" for all addresses"#,
        )
    })
});

/// `ADDR:PORT`, `:PORT` for every IPv4 address of the machine, or `localhost:PORT`. Other names are refused, so that
/// listening does not depend on DNS.
fn parse_listen_address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    match host {
        "" => format!("0.0.0.0:{port}").parse().ok(),
        "localhost" => format!("127.0.0.1:{port}").parse().ok(),
        _ => text.parse().ok(),
    }
}

/// `PATTERN=ADDR[:PORT]`.
pub(super) const RESOLVE: Parsed<ResolveRule> = displayed(|text| {
    parse_resolve_rule(text).ok_or_else(|| {
        Wrong::new(
            format!("{} is not PATTERN=ADDR[:PORT]", quoted(text)),
            r#"write a host and an address, such as "*.test=127.0.0.1:8099" or "a.test=::1""#,
        )
    })
});

fn parse_resolve_rule(text: &str) -> Option<ResolveRule> {
    let (pattern, target) = text.split_once('=')?;
    let host = pattern.strip_prefix("*.").unwrap_or(pattern);
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if pattern != "*" && (host.is_empty() || !host.bytes().all(is_host_byte)) {
        return None;
    }
    let (address, port) = match target.parse::<SocketAddr>() {
        Ok(socket) => (socket.ip(), Some(socket.port())),
        Err(_) => (target.trim_matches(['[', ']']).parse().ok()?, None),
    };
    Some(ResolveRule { pattern: pattern.to_ascii_lowercase(), address, port })
}

/// A URL, kept as written.
pub(super) const WEB_ADDRESS: Parsed<String> = displayed(|text| {
    let text = text.trim();
    match WebUrl::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(fault) => Err(Wrong::new(
            format!("{}: {fault}", quoted(text)),
            r#"write an address such as "https://example.com/feed.xml""#,
        )),
    }
});

/// The URL of this service, as it is seen from outside. It is returned without a slash at its end.
pub(super) const PUBLIC_URL: Parsed<String> = displayed(|text| {
    const MEND: &str = r#"write a URL such as "https://fetch.example.com""#;
    let text = text.trim();
    match WebUrl::parse(text) {
        Ok(_) if text.contains(['?', '#']) => {
            Err(Wrong::new(format!("{}: it has a query or a fragment", quoted(text)), MEND))
        }
        Ok(url) => Ok(url.as_str().trim_end_matches('/').to_owned()),
        Err(fault) => Err(Wrong::new(format!("{}: {fault}", quoted(text)), MEND)),
    }
});

#[cfg(test)]
mod tests {
    use super::super::kinds::Kind;
    use super::super::layer::Raw;
    use super::*;

    #[test]
    fn resolve_rules_are_written_as_they_are_read() {
        for text in ["*.test=127.0.0.1:8099", "a.test=10.0.0.1", "*=[::1]:80", "a=::1"] {
            let rule = parse_resolve_rule(text).expect(text);
            assert_eq!(rule.to_string(), text);
        }
        for text in
            ["", "a", "a=", "=127.0.0.1", "a=b", "a b=127.0.0.1", "*.=::1", "a=1.2.3.4:99999"]
        {
            assert_eq!(parse_resolve_rule(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_server_is_shown_as_it_is_written() {
        for text in ["10.0.0.53", "127.0.0.1:5353", "::1", "[::1]:5353"] {
            let server = NAME_SERVER.read(&Raw::One(text.to_owned())).expect(text);
            assert_eq!(NAME_SERVER.show(&server), text);
        }
        for text in ["", "ns.example", "10.0.0.53:", "10.0.0.53:99999", "[::1]", "10.0.0.0/8"] {
            let wrong = NAME_SERVER.read(&Raw::One(text.to_owned())).expect_err(text);
            assert!(format!("{wrong:?}").contains("10.0.0.53"), "{wrong:?}");
        }
    }

    #[test]
    fn an_address_to_listen_on_may_be_a_port_alone() {
        for (text, shown) in [
            (":9100", "0.0.0.0:9100"),
            ("localhost:9100", "127.0.0.1:9100"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("[::]:8080", "[::]:8080"),
        ] {
            let address = LISTEN.read(&Raw::One(text.to_owned())).expect(text);
            assert_eq!(LISTEN.show(&address), shown);
        }
        for text in ["", ":", "9100", ":99999", ":+80", "::", "::9100", "localhost", "host:9100"] {
            let wrong = LISTEN.read(&Raw::One(text.to_owned())).expect_err(text);
            assert!(wrong.mend.contains("\":8080\"") && wrong.mend.contains("\"localhost:8080\""));
        }
    }

    #[test]
    fn a_broker_s_fault_never_shows_its_password() {
        let read = |text: &str| BROKER.read(&Raw::One(text.to_owned()));
        assert!(read("amqp://me:secret@rabbit.test:5672/").is_ok());
        for text in ["amqp://me:secret@rabbit.test:badport", "amqp://me:secret@rabbit.test:99999/"]
        {
            let wrong = read(text).expect_err(text);
            assert!(wrong.problem.contains("port"), "{wrong:?}");
            assert!(!format!("{wrong:?}").contains("secret"), "{wrong:?}");
        }
    }

    #[test]
    fn a_store_never_shows_its_password() {
        for (text, shown) in [
            ("postgres://host/db", "postgres://host/db"),
            ("postgres://me@host/db", "postgres://me@host/db"),
            ("postgres://me:hunter2@host/db", "postgres://me:***@host/db"),
            ("redis://:hunter2@host", "redis://:***@host"),
            ("postgres://me:hun/ter2?#@host/db", "postgres://me:***@host/db"),
            ("postgres://me:p@hunter2@host/db", "postgres://me:***@host/db"),
            ("postgres://host/db?user=me&password=hunter2", "postgres://host/db?***"),
        ] {
            let store = STORE.read(&Raw::One(text.to_owned())).expect(text);
            assert_eq!(store.to_string(), shown);
            assert!(!format!("{store:?}").contains("ter2"), "{store:?}");
        }
        for text in ["", "sqlite:", "mysql://me:hunter2@host", "postgres://", "hunter2"] {
            let wrong = STORE.read(&Raw::One(text.to_owned())).expect_err(text);
            assert!(!format!("{wrong:?}").contains("hunter2"), "{wrong:?}");
        }
    }

    #[test]
    fn a_public_url_has_no_slash_at_its_end() {
        let read = |text: &str| PUBLIC_URL.read(&Raw::One(text.to_owned()));
        for (text, expected) in [
            ("https://a.test", "https://a.test"),
            (" https://a.test/ ", "https://a.test"),
            ("http://a.test:8080/fetch/", "http://a.test:8080/fetch"),
        ] {
            assert_eq!(read(text).unwrap(), expected);
        }
        for text in ["", "a.test", "https://a.test/?b", "https://a.test/#b", "https://me@a.test/"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
