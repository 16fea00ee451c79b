//! Assigns batches to the archive's site, so that its pace applies to them: the batches themselves do not name a site.

use async_trait::async_trait;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::wrapped_source::LeaseHooks;
use fetchwell_policy::url::Site;

/// The site that all leases have their first request at.
pub(super) struct AtArchive(pub(super) Site);

#[async_trait]
impl LeaseHooks for AtArchive {
    async fn prepare(&self, leases: &mut Vec<Lease>) -> Result<(), StoreError> {
        for lease in leases {
            lease.job.site = Some(self.0.clone());
        }
        Ok(())
    }
}
