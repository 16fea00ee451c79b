//! The timeouts and the pace of each retailer.

use std::collections::HashMap;

use fetchwell_engine::gate::GroupPace;
use fetchwell_engine::web::Timeouts;
use fetchwell_policy::pace::Rate;
use fetchwell_settings::Settings;

pub(super) fn timeouts(settings: &Settings, default: Timeouts) -> HashMap<String, Timeouts> {
    let own = settings.retailers.iter().map(|(name, own)| {
        let connect = own.connection_timeout.or(default.connect);
        let request = own.request_timeout.or(default.request);
        (name.clone(), Timeouts { connect, request })
    });
    own.collect()
}

/// The rate limit of each retailer, in addition to the pace of each site. An explicit rate of a retailer is also the
/// pace of its sites; its burst applies there only if it is explicit, too.
pub(super) fn pace(settings: &Settings) -> GroupPace {
    let values = &settings.values;
    let per_second = values.retriever_default_rate_limit;
    let burst = values.retriever_default_burst_size;
    let named = settings.retailers.iter().map(|(name, own)| {
        let rate = Rate::per_second(
            own.requests_per_second.unwrap_or(per_second),
            own.burst_size.unwrap_or(burst),
        );
        (name.clone(), rate)
    });
    let at_sites = settings.retailers.iter().filter_map(|(name, own)| {
        let rate = Rate::per_second(own.requests_per_second?, own.burst_size.unwrap_or(1));
        Some((name.clone(), rate))
    });
    GroupPace {
        default: Some(Rate::per_second(per_second, burst)),
        named: named.collect(),
        at_sites: at_sites.collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use fetchwell_settings::Sources;

    use super::*;

    #[test]
    fn a_rate_that_was_written_down_is_the_pace_of_sites_and_a_default_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let toml = "[retailers.both]\nrequests_per_second = 4\nburst_size = 3\n\
                    [retailers.rate]\nrequests_per_second = 5\n[retailers.burst]\nburst_size = 7\n";
        std::fs::write(folder.path().join("fetchwell.toml"), toml).unwrap();
        let settings = Settings::load(&Sources {
            flags: &[],
            config_file: None,
            environment: &BTreeMap::new(),
            working_directory: folder.path(),
            own_names_of: &[],
        });
        let pace = pace(&settings.unwrap());
        let ms = |rate: &Rate| (rate.interval.as_millis(), rate.burst);
        assert_eq!(pace.at_sites.get("both").map(ms), Some((250, 3)));
        assert_eq!(pace.at_sites.get("rate").map(ms), Some((200, 1)));
        assert_eq!(pace.at_sites.get("burst"), None);
        assert_eq!(pace.named.get("both").map(ms), Some((250, 3)));
        assert_eq!(pace.named.get("rate").map(ms), Some((200, 20)));
        assert_eq!(pace.named.get("burst").map(ms), Some((100, 7)));
        assert_eq!(pace.default.map(|rate| rate.interval), Some(Duration::from_millis(100)));
    }
}
