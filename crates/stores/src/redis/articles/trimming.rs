//! Removes expired entries from the indexes. The steps are small, and several processes may run them at once.

use fetchwell_engine::ports::error::StoreError;

use super::{LINKS_AT_ONCE, RedisArticles, names};

impl RedisArticles {
    pub(super) async fn forget_attempts(&self) -> Result<(), StoreError> {
        loop {
            let mut call = self.call(script!("forget.lua"));
            call.arg(LINKS_AT_ONCE);
            if self.link.run::<usize>(&call).await? < LINKS_AT_ONCE {
                return Ok(());
            }
        }
    }

    /// Other programs record attempts without a time. They are detected by comparing sizes, because checking each entry
    /// is expensive.
    pub(super) async fn time_the_untimed(&self) -> Result<(), StoreError> {
        let noted: u64 = self.link.query(redis::cmd("SCARD").arg(names::ATTEMPTED)).await?;
        let timed: u64 = self.link.query(redis::cmd("ZCARD").arg(names::ATTEMPTED_AT)).await?;
        if noted == timed {
            return Ok(());
        }
        for uids in self.members(names::ATTEMPTED).await?.chunks(LINKS_AT_ONCE) {
            let mut call = self.call(script!("first_sight.lua"));
            call.arg(uids);
            self.link.run::<()>(&call).await?;
        }
        Ok(())
    }

    /// The index is ordered by time: if no entry of a batch has expired, none of the following has.
    pub(super) async fn trim_index(&self) -> Result<(), StoreError> {
        loop {
            let mut oldest = redis::cmd("ZRANGE");
            oldest.arg(names::INDEX).arg(0).arg(LINKS_AT_ONCE - 1);
            let uids: Vec<String> = self.link.query(&oldest).await?;
            if self.drop_expired(names::INDEX, "ZREM", &uids).await? == 0 {
                return Ok(());
            }
        }
    }

    pub(super) async fn trim_categories(&self) -> Result<(), StoreError> {
        for key in self.category_keys().await? {
            for uids in self.members(&key).await?.chunks(LINKS_AT_ONCE) {
                self.drop_expired(&key, "SREM", uids).await?;
            }
        }
        Ok(())
    }

    async fn drop_expired(
        &self,
        index: &str,
        command: &str,
        uids: &[String],
    ) -> Result<usize, StoreError> {
        let mut call = self.call(script!("drop_expired.lua"));
        call.key(index).arg(command);
        for uid in uids {
            call.key(names::article(uid)).arg(uid);
        }
        self.link.run(&call).await
    }
}
