//! Checks of the settings alone.

use fetchwell_settings::{Settings, SettingsFaults};
use fetchwell_stores::finding::Finding;

use crate::wiring::politeness_store;

pub(super) fn faults(faults: &SettingsFaults) -> Vec<Finding> {
    let finding = |fault: &fetchwell_settings::SettingError| {
        let place = match fault.key.as_str() {
            "" => fault.origin.to_string(),
            key => format!("{key} ({})", fault.origin),
        };
        Finding::fail(
            "settings",
            format!("{place}: {}", fault.wrong.problem),
            "no command runs with invalid settings",
            fault.wrong.mend.clone(),
        )
    };
    faults.faults().iter().map(finding).collect()
}

/// The finding for valid settings.
pub(super) fn sound(settings: &Settings) -> Finding {
    let given = settings.effective.iter().filter(|setting| !settings.is_default(&setting.key));
    Finding::ok("settings", format!("all are valid; {} are set", given.count()))
}

/// Settings that have no effect.
pub(super) fn unknown(settings: &Settings) -> Vec<Finding> {
    let finding = |warning: &fetchwell_settings::SettingError| {
        Finding::warn(
            "settings",
            format!("{}: {}", warning.origin, warning.wrong.problem),
            "it has no effect",
            warning.wrong.mend.clone(),
        )
    };
    settings.warnings.iter().map(finding).collect()
}

/// The operator of a site should be able to contact the person who fetches from it.
pub(super) fn contact(settings: &Settings) -> Finding {
    let user_agent = crate::wiring::user_agent(settings);
    let fix = match &settings.values.user_agent {
        None if settings.is_default("contact") => "set contact to your web or email address",
        Some(own) if !own.contains(['@', ':']) => {
            "add a web or email address to user_agent: \"MyBot/1.0 (+https://example.com/bot)\""
        }
        _ => return Finding::ok("user agent", user_agent),
    };
    Finding::warn(
        "user agent",
        format!("{user_agent} has no contact address"),
        "site operators who have a problem with your requests cannot contact you, only block you",
        fix,
    )
}

/// Doors with different politeness stores do not know of each other's requests.
pub(super) fn politeness(settings: &Settings, pages: &Settings) -> Finding {
    let one = politeness_store(settings);
    let other = politeness_store(pages);
    if one != other {
        return Finding::warn(
            "politeness",
            format!("\"pages\" keeps the pace of sites in {other}, all other commands in {one}"),
            "they do not share a pace: a site that both fetch from gets twice as many requests as \
             it should",
            format!("set politeness = \"{other}\", so that all commands share one pace"),
        );
    }
    let who = match one.file() {
        Some(_) => "all processes on this machine that use this file",
        None => "all processes that use it",
    };
    Finding::ok("politeness", format!("{one}; shared by {who}"))
}
