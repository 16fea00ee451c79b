//! `fetchwell doctor`: checks everything that this program needs, and says what is wrong, why it matters and how to fix
//! it. It changes and creates nothing.
//!
//! | file | |
//! |---|---|
//! | `settings` | checks of the settings alone: contact, politeness stores that differ |
//! | `machine` | open files, disk, clock, listeners, name servers |
//! | `servers` | checks each store and server in the settings |
//! | `sites` | sites whose host names do not exist |
//! | `print` | prints findings as text or JSON |

mod machine;
mod print;
mod servers;
mod settings;
mod sites;

use fetchwell_settings::{EnvAliasGroup, Settings, Sources, features};
use fetchwell_stores::finding::{Finding, Verdict};

use crate::console::exit::Exit;
use crate::console::output::{Running, print as print_bytes};

pub(crate) fn run<'a>(sources: &'a Sources<'a>, as_json: bool) -> Running<'a> {
    Box::pin(async move {
        // The setting names of a design apply only to its door, and all doors are checked.
        let load = |own_names_of| Settings::load(&Sources { own_names_of, ..*sources });
        let pages = load(&[EnvAliasGroup::Pages]);
        let commoncrawl = load(&[EnvAliasGroup::CommonCrawl]);
        let (findings, failed) = match (load(&[]), pages, commoncrawl) {
            (Ok(settings), Ok(pages), Ok(commoncrawl)) => {
                let doors = Doors { settings, pages, commoncrawl };
                (examine(&doors).await, Exit::Unreachable as fn(String) -> Exit)
            }
            (Err(faults), ..) | (_, Err(faults), _) | (.., Err(faults)) => {
                (settings::faults(&faults), Exit::Usage as fn(String) -> Exit)
            }
        };
        print_bytes(print::text(&findings, as_json))?;
        let failures = findings.iter().filter(|finding| finding.verdict == Verdict::Fail).count();
        match failures {
            0 => Ok(Exit::Ok),
            _ => Err(failed(format!("failed checks: {failures}; each says how to fix it"))),
        }
    })
}

/// The settings as seen by the doors that have their own setting names.
struct Doors {
    /// For all other doors.
    settings: Settings,
    pages: Settings,
    #[cfg_attr(
        not(feature = "rabbitmq"),
        expect(dead_code, reason = "only its broker is checked")
    )]
    commoncrawl: Settings,
}

async fn examine(doors: &Doors) -> Vec<Finding> {
    let mut findings =
        vec![build(), settings::sound(&doors.settings), settings::contact(&doors.settings)];
    findings.extend(settings::unknown(&doors.pages));
    findings.push(settings::politeness(&doors.settings, &doors.pages));
    findings.extend(servers::examine(doors).await);
    findings.extend(sites::examine(doors).await);
    findings.extend(machine::examine(&doors.settings).await);
    findings
}

/// The version and features of this build.
fn build() -> Finding {
    let what = format!("{}, features: {}", env!("CARGO_PKG_VERSION"), features::built_with());
    Finding::ok("fetchwell", what)
}
