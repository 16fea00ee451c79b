//! Converts arguments to a selection of dead letters.

use fetchwell_engine::ports::dead_letters::{CANARIES, DeadGroup, Letters};
use fetchwell_policy::url::Site;
use fetchwell_service::views::letters::NO_SITE;

use crate::commands::dlq::args::Which;
use crate::console::exit::Exit;

pub(super) fn letters(which: &Which) -> Result<Letters, Exit> {
    Ok(match (&which.url, &which.reason, &which.site) {
        (Some(url), ..) => Letters::OfUrl(url.clone()),
        (None, Some(reason), Some(name)) => {
            let group = DeadGroup { reason: reason.clone(), site: site(name)? };
            Letters::OfGroup { group, most: if which.canary { CANARIES } else { usize::MAX } }
        }
        _ => Letters::All,
    })
}

/// Parses a site name; `-` selects URLs without a site.
pub(super) fn site(name: &str) -> Result<String, Exit> {
    if name == NO_SITE {
        return Ok(String::new());
    }
    match Site::parse(name) {
        Ok(site) => Ok(site.as_str().to_owned()),
        Err(fault) => Err(Exit::Usage(format!(
            "--site {name:?} is not a site: {fault}; use HOST, HOST:PORT, or {NO_SITE} for none"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_named_as_people_write_them() {
        let named = |name| site(name).ok();
        assert_eq!(named("EXAMPLE.com.").as_deref(), Some("example.com"));
        assert_eq!(named("example.com:8080").as_deref(), Some("example.com:8080"));
        assert_eq!(named("-").as_deref(), Some(""));
        assert_eq!(named("no site"), None);
    }

    #[test]
    fn a_canary_is_ten_of_its_group() {
        let which = |canary| Which {
            url: None,
            reason: Some("so".to_owned()),
            site: Some("a.test".to_owned()),
            canary,
            all: false,
        };
        for (canary, expected) in [(true, 10), (false, usize::MAX)] {
            let Ok(Letters::OfGroup { most, .. }) = letters(&which(canary)) else { panic!() };
            assert_eq!(most, expected);
        }
    }
}
