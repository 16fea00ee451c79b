//! The addresses on which this process listens. It never connects to them, whatever the operator allows.
//!
//! A door that fetched its own pages would act for its caller with the rights of the operator.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use parking_lot::Mutex;

/// The addresses on which this process listens. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct OwnListeners(Arc<Mutex<Vec<SocketAddr>>>);

impl OwnListeners {
    /// Adds a listener. Call this as soon as it is bound.
    pub fn register(&self, listener: SocketAddr) {
        self.0.lock().push(listener);
    }

    /// Whether a connection to this address would reach one of the listeners.
    pub(super) fn covers(&self, target: SocketAddr) -> bool {
        let listeners = self.0.lock();
        let mut on_its_port = listeners.iter().filter(|own| own.port() == target.port());
        on_its_port.any(|own| ends_at(target.ip().to_canonical(), own.ip().to_canonical()))
    }
}

fn ends_at(target: IpAddr, listener: IpAddr) -> bool {
    // The unspecified address is this machine as a target, and every address of this machine as a listener.
    target == listener
        || target.is_unspecified()
        || (listener.is_unspecified() && is_of_this_machine(target))
}

/// A socket can only be bound to an address of this machine.
fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_covers_its_own_address_and_port() {
        for (listener, target, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080", true),
            ("127.0.0.1:8080", "127.0.0.1:8081", false),
            ("127.0.0.1:8080", "127.0.0.2:8080", false),
            ("127.0.0.1:8080", "[::ffff:127.0.0.1]:8080", true),
            ("127.0.0.1:8080", "0.0.0.0:8080", true),
            ("127.0.0.1:8080", "[::]:8080", true),
            ("[::1]:8080", "[::1]:8080", true),
            ("[::1]:8080", "127.0.0.1:8080", false),
            ("[::ffff:127.0.0.1]:8080", "127.0.0.1:8080", true),
            ("0.0.0.0:9100", "127.0.0.1:9100", true),
            ("0.0.0.0:9100", "127.200.3.4:9100", true),
            ("0.0.0.0:9100", "93.184.216.34:9100", false),
            ("0.0.0.0:9100", "127.0.0.1:80", false),
            ("[::]:9100", "127.0.0.1:9100", true),
            ("[::]:9100", "[::ffff:127.0.0.1]:9100", true),
            ("[::]:9100", "[::1]:9100", true),
            ("[::]:9100", "[2606:4700::1]:9100", false),
        ] {
            let own = OwnListeners::default();
            assert!(!own.covers(target.parse().unwrap()));
            own.clone().register(listener.parse().unwrap());
            assert_eq!(own.covers(target.parse().unwrap()), expected, "{listener} {target}");
        }
    }
}
