//! The command line of a scenario, which `regressions.txt` also uses.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, Parser};

use crate::scenario::{Feature, Scenario};

/// How a scenario differs from that of its seed.
#[derive(Args, Clone, Debug, Default)]
pub struct ScenarioOverrides {
    /// The number of machines that run `fetch`.
    #[arg(long)]
    fetchers: Option<usize>,
    /// The number of machines that run `pages`.
    #[arg(long)]
    pagers: Option<usize>,
    /// The number of machines that run `serve`.
    #[arg(long)]
    retrievers: Option<usize>,
    /// The number of sites.
    #[arg(long)]
    sites: Option<usize>,
    /// The number of URLs per queue.
    #[arg(long)]
    urls: Option<usize>,
    /// How long faults happen, in seconds.
    #[arg(long, value_name = "SECONDS")]
    troubled_for: Option<u64>,
    /// Only these features, such as `crashes,redirects`; empty for none.
    #[arg(long, value_delimiter = ',', value_name = "FEATURES", value_parser = feature)]
    only: Option<Vec<Option<Feature>>>,
}

fn feature(name: &str) -> Result<Option<Feature>, String> {
    if name.is_empty() {
        return Ok(None);
    }
    let names = || Feature::ALL.map(Feature::name).join(", ");
    Feature::named(name)
        .map(Some)
        .ok_or_else(|| format!("there is no such feature; use some of these: {}", names()))
}

impl ScenarioOverrides {
    /// The scenario of this seed with these overrides.
    pub fn scenario(&self, seed: u64) -> Scenario {
        let mut scenario = Scenario::of_seed(seed);
        let numbers = [
            (self.fetchers, &mut scenario.fetchers),
            (self.pagers, &mut scenario.pagers),
            (self.retrievers, &mut scenario.retrievers),
            (self.sites, &mut scenario.sites),
            (self.urls, &mut scenario.urls),
        ];
        for (given, number) in numbers {
            *number = given.unwrap_or(*number);
        }
        scenario.sites = scenario.sites.max(1);
        if let Some(seconds) = self.troubled_for {
            scenario.troubled_for = Duration::from_secs(seconds);
        }
        if let Some(features) = &self.only {
            scenario.features = features.iter().copied().flatten().collect::<BTreeSet<Feature>>();
        }
        scenario
    }
}

/// The arguments of one run, as [`Scenario::arguments`] writes them.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct RunArguments {
    #[arg(long)]
    seed: u64,
    #[command(flatten)]
    overrides: ScenarioOverrides,
}

impl Scenario {
    /// The scenario of these arguments.
    pub fn from_arguments(arguments: &str) -> anyhow::Result<Scenario> {
        let words = arguments.split_whitespace().map(|word| word.trim_matches('\''));
        let RunArguments { seed, overrides } = RunArguments::try_parse_from(words)?;
        Ok(overrides.scenario(seed))
    }

    /// The arguments that repeat this run, apart from a plant, which only tests have. They name everything, so that they
    /// mean the same when seeds mean something else.
    pub fn arguments(&self) -> String {
        let Scenario { seed, fetchers, pagers, retrievers, sites, urls, .. } = self;
        let names: Vec<&str> = self.features.iter().map(|feature| feature.name()).collect();
        format!(
            "--seed {seed} --fetchers {fetchers} --pagers {pagers} --retrievers {retrievers} --sites {sites} --urls {urls} \
             --troubled-for {} --only '{}'",
            self.troubled_for.as_secs(),
            names.join(",")
        )
    }

    /// The command that repeats this run.
    pub fn command(&self) -> String {
        let is_of_seed = *self == Scenario::of_seed(self.seed);
        let arguments = if is_of_seed { format!("--seed {}", self.seed) } else { self.arguments() };
        format!("cargo run -p fetchwell-fleet -- {arguments}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_round_trip() {
        let of_seed = Scenario::of_seed(7);
        let features = BTreeSet::from([Feature::Crashes, Feature::Orders]);
        let troubled_for = Duration::from_secs(1_234);
        for scenario in [
            of_seed.clone(),
            Scenario { sites: 99, urls: 1, features, ..of_seed.clone() },
            Scenario { fetchers: 8, pagers: 9, retrievers: 0, troubled_for, ..of_seed.clone() },
            Scenario { features: BTreeSet::new(), ..of_seed },
        ] {
            let arguments = scenario.arguments();
            assert_eq!(Scenario::from_arguments(&arguments).unwrap(), scenario, "{arguments}");
        }
        assert!(Scenario::from_arguments("--seed 7 --only flying").is_err());
    }
}
