//! Explains in `config check` which limit applies to the messages of "serve".

use super::{Retailer, Settings};

/// How often the messages of each retailer are sent to one site, and which setting decides.
pub(super) fn in_words(settings: &Settings) -> String {
    let others = if settings.retailers.is_empty() { "any retailer" } else { "other retailers" };
    let named =
        settings.retailers.iter().map(|(name, own)| (format!("retailers.{name}"), Some(own)));
    let mut lines = vec![
        "How often \"serve\" sends messages to one site, and which setting decides:".to_owned(),
    ];
    for (whose, own) in named.chain([(others.to_owned(), None)]) {
        let limit = Limit::of(settings, own);
        lines.push(format!("  {whose}: {}", limit.at_a_site(settings.values.rate)));
        for (site, rate) in &settings.site_rates {
            lines.push(format!("    at {site}: {}", limit.beside(*rate, "the site's own rate")));
        }
    }
    lines.push(
        "  A longer Crawl-delay, Retry-After and an operator's override take precedence."
            .to_owned(),
    );
    lines.join("\n")
}

/// The limit of a retailer, for all its sites together.
struct Limit {
    per_second: f64,
    burst: u32,
    /// The burst at each site, if this retailer sets its own rate, which is then also the pace of each of its sites.
    at_sites: Option<u32>,
}

impl Limit {
    fn of(settings: &Settings, own: Option<&Retailer>) -> Limit {
        let values = &settings.values;
        let rate = own.and_then(|own| own.requests_per_second);
        let burst = own.and_then(|own| own.burst_size);
        Limit {
            per_second: rate.unwrap_or(values.retriever_default_rate_limit),
            burst: burst.unwrap_or(values.retriever_default_burst_size),
            at_sites: rate.map(|_| burst.unwrap_or(1)),
        }
    }

    /// At a site without its own rate; `rate` is the default for all sites.
    fn at_a_site(&self, rate: f64) -> String {
        match self.at_sites {
            Some(burst) => format!(
                "{} per second, burst {burst} (its own requests_per_second; rate does not count)",
                self.per_second
            ),
            None => self.beside(rate, "rate"),
        }
    }

    /// At a site with this rate, which comes from the setting `named`. Both limits apply, so the slower one decides.
    fn beside(&self, rate: f64, named: &str) -> String {
        let Limit { per_second, burst, .. } = self;
        if rate == 0.0 || *per_second < rate {
            return format!("{per_second} per second, burst {burst} (the retailer's limit)");
        }
        format!(
            "{rate} per second ({named}); the retailer's limit of {per_second} per second, burst {burst}, \
             is for all its sites together"
        )
    }
}
