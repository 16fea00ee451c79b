use std::time::Duration;

use super::TestWeb;

/// A control sender on an [`TestWeb`], for a test.
pub struct ControlSender(fetchwell_simweb::Control);

impl ControlSender {
    /// Starts sending to the origin.
    pub fn start(origin: &TestWeb) -> ControlSender {
        ControlSender(fetchwell_simweb::Control::start(origin.server()))
    }

    /// Stops it, and returns by how much a gap may be too short through no fault of the sender.
    pub async fn tolerance(self, origin: &TestWeb) -> Duration {
        let tolerance = self.0.tolerance(origin.server());
        self.0.end().await.unwrap_or_else(|error| panic!("the control could not go on: {error}"));
        tolerance.unwrap_or_else(|| panic!("the control sent nothing"))
    }
}
