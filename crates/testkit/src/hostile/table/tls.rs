//! TLS that fails, stalls, or ends without `close_notify`.

use fetchwell_policy::outcome::NetworkFault::{ConnectRefused, Reset, Tls};
use fetchwell_policy::outcome::TlsFault::{Expired, Handshake, NotTls, UnknownIssuer, WrongName};

use super::super::behaviour::{Behaviour, Good, Over};
use super::super::certificates::Identity;
use super::super::step::HostileStep;
use super::{HELLO, hello};

/// A fatal alert: handshake failure.
const ALERT: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28];
/// A meaningless warning alert.
const WARNING: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x01, 0x5a];
/// The beginning of a handshake record of 16 kB whose message claims 16 MB.
const HUGE_HANDSHAKE: [u8; 9] = [0x16, 0x03, 0x03, 0x40, 0x00, 0x02, 0xff, 0xff, 0xff];

pub(super) fn behaviours() -> Vec<Behaviour> {
    [certificates(), no_handshake(), no_goodbye()].concat()
}

fn certificates() -> Vec<Behaviour> {
    [
        ("self-signed", "a certificate signed by itself", Identity::SelfSigned, UnknownIssuer),
        ("expired", "a certificate of long ago", Identity::Expired, Expired),
        ("wrong-name", "a certificate for other names", Identity::OtherNames, WrongName),
    ]
    .map(|(name, does, identity, fault)| {
        Behaviour::says(name, does, hello("")).over(Over::Tls(identity)).fails(Tls(fault))
    })
    .into()
}

fn no_handshake() -> Vec<Behaviour> {
    let bare = |name, does, script| Behaviour::new(name, does, script).over(Over::NoTls);
    let write = |bytes: &[u8]| HostileStep::Write(bytes.to_vec());
    let refused = Tls(Handshake);
    vec![
        bare("plain-http-for-tls", "HTTP where TLS should be", vec![write(&hello(""))])
            .fails(Tls(NotTls)),
        bare("tls-alert", "refuses the handshake", vec![write(&ALERT)]).fails(refused),
        bare("tls-warnings", "warnings without end", vec![HostileStep::Flood(WARNING.into())])
            .good([Good::Network(refused), Good::TimedOut]),
        bare("tls-garbage", "bytes that are no TLS", vec![write(&[0xff; 64])]).fails(Tls(NotTls)),
        bare("tls-closed", "closes instead of a handshake", vec![]).fails(refused),
        bare("tls-reset", "resets instead of a handshake", vec![HostileStep::Reset])
            .good([Good::Network(refused), Good::Network(ConnectRefused)]),
        bare("tls-stall", "says nothing to the handshake", vec![HostileStep::Silence]).times_out(),
        bare(
            "tls-drip",
            "a handshake byte by byte",
            vec![write(&HUGE_HANDSHAKE), HostileStep::Trickle(vec![0])],
        )
        .times_out(),
        bare(
            "tls-huge-handshake",
            "a handshake of 16 MB",
            vec![write(&HUGE_HANDSHAKE), HostileStep::Flood(vec![0])],
        )
        .fails(refused),
    ]
}

fn no_goodbye() -> Vec<Behaviour> {
    let cut = |name, does, says: Vec<u8>| {
        Behaviour::begins(name, does, says, HostileStep::Cut).over(Over::Tls(Identity::Good))
    };
    vec![
        cut("tls-cut-after-page", "a whole page, and no goodbye", hello("")).page(HELLO),
        // It cannot be known whether the page is complete.
        cut(
            "tls-cut-without-length",
            "a page of unknown length, and no goodbye",
            b"HTTP/1.1 200 OK\r\n\r\nhello".to_vec(),
        )
        .fails(Reset),
        cut(
            "tls-cut-in-body",
            "a part of a page, and no goodbye",
            b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello".to_vec(),
        )
        .fails(Reset),
    ]
}
