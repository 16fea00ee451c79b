//! Errors that mean that this process or its machine has run out of a resource.

use std::io;

use rustix::io::Errno;

/// Whether we are out of descriptors, memory or local ports. If this were blamed on the site, it would open the
/// breakers of all sites.
pub fn is_lack_of_our_own(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS | Errno::ADDRNOTAVAIL)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_is_not_to_blame_for_what_we_lack() {
        for lack in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::ADDRNOTAVAIL] {
            assert!(is_lack_of_our_own(&lack.into()), "{lack:?}");
        }
        for fault in [Errno::CONNREFUSED, Errno::NETUNREACH, Errno::CONNRESET, Errno::TIMEDOUT] {
            assert!(!is_lack_of_our_own(&fault.into()), "{fault:?}");
        }
    }
}
