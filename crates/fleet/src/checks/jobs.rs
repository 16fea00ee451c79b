//! Checks that no job is lost or done twice, and that the ledger is right after every operation of the store.

use std::collections::BTreeMap;

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::{Lease, LeaseId};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_policy::time::Time;

/// How a lease ends.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) settlement: Settlement,
    /// Whether a dead letter has details.
    pub(crate) has_details: bool,
}

impl Ending {
    pub(crate) fn word(&self) -> &'static str {
        match &self.settlement {
            Settlement::Done => "done",
            Settlement::Skipped => "skipped",
            Settlement::Dead { .. } => "dead",
            Settlement::Retry { .. } => "retry",
            Settlement::HandBack { .. } => "handed back",
        }
    }
}

/// The history of the jobs of one queue.
#[derive(Default)]
pub(crate) struct JobChecks {
    jobs: BTreeMap<LeaseId, JobHistory>,
    /// When the leases of each holder expire.
    valid_until: BTreeMap<String, Time>,
    /// The number of jobs that ended in each way.
    ended: BTreeMap<&'static str, i64>,
    held: i64,
    /// Every settlement of a dead letter must have details.
    pub(crate) letters_have_details: bool,
}

#[derive(Default)]
struct JobHistory {
    url: String,
    /// The process and epoch that holds its lease.
    holder: Option<String>,
    ended_as: Option<&'static str>,
    /// The number of its records in the sink.
    records: u32,
}

type Checked = Result<(), String>;

impl JobChecks {
    /// A job was accepted. Ids count from 1.
    pub(crate) fn on_accepted(&mut self, url: &str) {
        let id = LeaseId::try_from(self.jobs.len()).unwrap_or(LeaseId::MAX).saturating_add(1);
        self.jobs.insert(id, JobHistory { url: url.to_owned(), ..JobHistory::default() });
    }

    pub(crate) fn on_taken(&mut self, holder: &str, leases: &[Lease], now: Time) -> Checked {
        for Lease { id, .. } in leases {
            let job =
                self.jobs.get_mut(id).ok_or_else(|| format!("job {id} was never accepted"))?;
            if let Some(ended) = job.ended_as {
                return Err(format!("job {id} was handed out after it had ended as {ended}"));
            }
            if let Some(other) = &job.holder {
                let until = self.valid_until.get(other).copied().unwrap_or(Time::EPOCH);
                let left = until.since(now);
                return Err(format!(
                    "{holder} got job {id}, which {other} holds for {left:?} more"
                ));
            }
            job.holder = Some(holder.to_owned());
            self.held += 1;
        }
        Ok(())
    }

    /// An instance renewed its lease. That rescues the jobs of the instances whose leases have expired.
    pub(crate) fn on_renewed(&mut self, holder: &str, now: Time, until: Time) -> Checked {
        let expired = self.valid_until.extract_if(.., |_, until| *until <= now);
        let expired: Vec<String> = expired.map(|(holder, _)| holder).collect();
        if !expired.is_empty() {
            for job in self.jobs.values_mut() {
                let rescued = job.holder.take_if(|holder| expired.contains(holder));
                self.held -= i64::from(rescued.is_some());
            }
        }
        self.valid_until.insert(holder.to_owned(), until);
        Ok(())
    }

    pub(crate) fn on_settled(
        &mut self,
        holder: &str,
        lease: &Lease,
        ending: &Ending,
        settled: Settled,
        now: Time,
    ) -> Checked {
        let id = lease.id;
        let word = ending.word();
        let is_valid = self.valid_until.get(holder).is_some_and(|until| now < *until);
        let job = self.jobs.get_mut(&id).ok_or_else(|| format!("job {id} was never accepted"))?;
        let is_ours = is_valid && job.holder.as_deref() == Some(holder);
        match (settled, is_ours) {
            (Settled::Stale, false) => return Ok(()),
            (Settled::Stale, true) => {
                return Err(format!("{holder} holds job {id}, but could not settle it as {word}"));
            }
            (Settled::Confirmed, false) => {
                return Err(format!(
                    "{holder} settled job {id} as {word}, but does not hold it: {:?} does, and it ended as {:?}",
                    job.holder, job.ended_as
                ));
            }
            (Settled::Confirmed, true) => job.holder = None,
        }
        self.held -= 1;
        if matches!(ending.settlement, Settlement::Retry { .. } | Settlement::HandBack { .. }) {
            return Ok(());
        }
        job.ended_as = Some(word);
        *self.ended.entry(word).or_default() += 1;
        let is_dead = matches!(ending.settlement, Settlement::Dead { .. });
        if is_dead && self.letters_have_details && !ending.has_details {
            return Err(format!("the dead letter of job {id} has no details"));
        }
        Ok(())
    }

    /// A record of a job reached the sink.
    pub(crate) fn on_record(&mut self, id: LeaseId) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.records += 1;
        }
    }

    /// Compares the counters of the store with the jobs.
    pub(crate) fn compare(&self, ledger: &Ledger) -> Checked {
        let ended_as = |word| self.ended.get(word).copied().unwrap_or_default();
        let ends = ["done", "skipped", "dead"].map(ended_as);
        let held = self.held;
        let accepted = i64::try_from(self.jobs.len()).unwrap_or(i64::MAX);
        let waiting = accepted - held - ends.iter().sum::<i64>();
        let found = [accepted, ends[0], ends[1], ends[2], held, waiting];
        let Ledger { accepted, done, skipped, dead, in_flight, .. } = *ledger;
        let told = [accepted, done, skipped, dead, in_flight, ledger.waiting()];
        if found == told {
            return Ok(());
        }
        let names = "accepted, done, skipped, dead, in flight, waiting";
        Err(format!("the ledger says {told:?} ({names}), but the jobs are {found:?}"))
    }

    /// At the end: every job has ended, with as many records as promised.
    pub(crate) fn at_the_end(&self, has_one_record: bool) -> Checked {
        for (id, JobHistory { url, holder, ended_as, records }) in &self.jobs {
            if ended_as.is_none() {
                return Err(format!("job {id} ({url}) has not ended; holder: {holder:?}"));
            }
            if has_one_record && *records != 1 {
                return Err(format!("job {id} ({url}) has {records} records"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::ports::job::Job;

    use super::*;

    fn lease(id: LeaseId) -> Lease {
        let job = Job::new(format!("http://a.test/{id}"), Vec::new());
        let history = Default::default();
        Lease { id, job, history, interruptions: 0, accepted_at: Time::EPOCH }
    }

    fn at(secs: i64) -> Time {
        Time::from_secs(secs)
    }

    fn done() -> Ending {
        Ending { settlement: Settlement::Done, has_details: false }
    }

    /// Two jobs; `a` holds the first one until second 20.
    fn two_jobs() -> JobChecks {
        let mut checks = JobChecks::default();
        checks.on_accepted("http://a.test/1");
        checks.on_accepted("http://a.test/2");
        checks.on_renewed("a", at(0), at(20)).unwrap();
        checks.on_taken("a", &[lease(1)], at(1)).unwrap();
        checks
    }

    #[test]
    fn a_job_that_is_held_must_not_be_handed_out() {
        let mut checks = two_jobs();
        checks.on_renewed("b", at(19), at(39)).unwrap();
        assert!(checks.on_taken("b", &[lease(1)], at(19)).unwrap_err().contains("a holds"));
        let mut checks = two_jobs();
        checks.on_renewed("b", at(20), at(40)).unwrap();
        checks.on_taken("b", &[lease(1)], at(20)).unwrap();
    }

    #[test]
    fn only_its_holder_may_settle_a_job_and_only_in_time() {
        let confirmed = Settled::Confirmed;
        let mut checks = two_jobs();
        assert!(checks.on_settled("a", &lease(2), &done(), confirmed, at(2)).is_err());
        assert!(checks.on_settled("a", &lease(1), &done(), confirmed, at(20)).is_err());
        assert!(checks.on_settled("a", &lease(1), &done(), Settled::Stale, at(2)).is_err());
        checks.on_settled("a", &lease(1), &done(), Settled::Stale, at(20)).unwrap();
        checks.on_settled("a", &lease(1), &done(), confirmed, at(2)).unwrap();
        assert!(checks.on_settled("a", &lease(1), &done(), confirmed, at(3)).is_err());
        assert!(checks.on_taken("a", &[lease(1)], at(3)).unwrap_err().contains("had ended"));
    }

    #[test]
    fn the_ledger_must_agree_with_the_jobs() {
        let checks = two_jobs();
        let right = Ledger { accepted: 2, in_flight: 1, queued: 1, ..Ledger::default() };
        checks.compare(&right).unwrap();
        for wrong in [
            Ledger { in_flight: 2, queued: 0, ..right },
            Ledger { queued: 0, ..right },
            Ledger { accepted: 3, done: 1, ..right },
        ] {
            assert!(checks.compare(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn at_the_end_nothing_is_lost_and_nothing_doubled() {
        let mut checks = two_jobs();
        assert!(checks.at_the_end(false).unwrap_err().contains("has not ended"));
        checks.on_taken("a", &[lease(2)], at(1)).unwrap();
        for id in [1, 2] {
            checks.on_settled("a", &lease(id), &done(), Settled::Confirmed, at(2)).unwrap();
            checks.on_record(id);
        }
        checks.at_the_end(true).unwrap();
        checks.on_record(2);
        assert!(checks.at_the_end(true).unwrap_err().contains("2 records"));
    }

    #[test]
    fn a_dead_letter_must_have_details_where_they_are_promised() {
        let dead = Settlement::Dead { reason: "gone".to_owned() };
        let ending = Ending { settlement: dead, has_details: false };
        let mut checks = JobChecks { letters_have_details: true, ..two_jobs() };
        let settled = checks.on_settled("a", &lease(1), &ending, Settled::Confirmed, at(2));
        assert!(settled.unwrap_err().contains("no details"));
    }
}
