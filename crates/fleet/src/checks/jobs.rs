//! Checks that no job is lost or done twice, and that the ledger is right after every operation of the store.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use fetchwell_engine::pipeline::INTERNAL;
use fetchwell_engine::ports::dead_letters::Revision;
use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::{Job, Lane, Lease, LeaseId};
use fetchwell_engine::ports::queue::Ledger;
use fetchwell_engine::ports::source::Demand;
use fetchwell_policy::time::Time;

use crate::dice::fnv1a;

/// A URL is given up for a fault of the program if processes have died this many times while fetching it.
pub(crate) const DEATHS_OF_A_CULPRIT: u32 = 4;

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
    /// The hashes of the URLs in the queue, for doors that queue each of them once.
    in_queue: HashSet<u64>,
    /// When the leases of each holder expire.
    valid_until: BTreeMap<String, Time>,
    /// The number of jobs that ended in each way.
    ended: BTreeMap<&'static str, i64>,
    held: i64,
    /// Whether any job has a lane of its own.
    has_lanes: bool,
    /// Every settlement of a dead letter must have details.
    pub(crate) letters_have_details: bool,
}

#[derive(Default)]
struct JobHistory {
    url: String,
    lane: Lane,
    deadline: Option<Time>,
    /// It must not be handed out before this.
    due: Time,
    /// The holder of its lease is fetching it.
    is_started: bool,
    /// How often its holder died while fetching it.
    deaths: u32,
    /// The process and epoch that holds its lease.
    holder: Option<String>,
    ended_as: Option<&'static str>,
    /// The number of its records in the sink.
    records: u32,
}

type Checked = Result<(), String>;

impl JobChecks {
    /// A job was offered. It must be accepted unless its URL is in the queue; a dead letter stays there.
    pub(crate) fn on_offered(&mut self, job: &Job, is_accepted: bool) -> Checked {
        let url = &job.url;
        let is_known = self.in_queue.contains(&hash(url));
        if is_accepted == is_known {
            return Err(format!("{url} is in the queue: {is_known}; accepted: {is_accepted}"));
        }
        if is_accepted {
            self.in_queue.insert(hash(url));
            self.on_accepted(job);
        }
        Ok(())
    }

    /// A job was accepted. Returns its id; ids count from 1.
    pub(crate) fn on_accepted(&mut self, job: &Job) -> LeaseId {
        let Job { url, lane, deadline, .. } = job.clone();
        let id = LeaseId::try_from(self.jobs.len()).unwrap_or(LeaseId::MAX).saturating_add(1);
        self.has_lanes |= lane != Lane::default();
        self.jobs.insert(id, JobHistory { url, lane, deadline, ..JobHistory::default() });
        id
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
            if now < job.due && job.deadline.is_none_or(|deadline| now < deadline) {
                let early_by = job.due.since(now);
                return Err(format!("job {id} was handed out {early_by:?} before its time"));
            }
            job.holder = Some(holder.to_owned());
            job.is_started = false;
            self.held += 1;
        }
        Ok(())
    }

    /// Lanes take turns: none gets two jobs while another one gets none, although it has one that is due, at a site that
    /// hands out jobs. Jobs whose deadlines have passed have no turns.
    pub(crate) fn lanes_take_turns(&self, demand: &Demand, leases: &[Lease], now: Time) -> Checked {
        let is_overdue = |deadline: Option<Time>| deadline.is_some_and(|deadline| deadline <= now);
        if !self.has_lanes || leases.iter().any(|lease| is_overdue(lease.job.deadline)) {
            return Ok(());
        }
        let mut taken: BTreeMap<&Lane, usize> = BTreeMap::new();
        let mut open_sites: BTreeSet<&str> = BTreeSet::new();
        for Lease { job, .. } in leases {
            *taken.entry(&job.lane).or_default() += 1;
            open_sites.extend(site_of(&job.url));
        }
        let Some((first, count)) = taken.iter().find(|(_, count)| **count > 1) else {
            return Ok(());
        };
        let is_passed_over = |job: &JobHistory| {
            let waits = job.holder.is_none() && job.ended_as.is_none() && job.due <= now;
            let rests = job.lane.group.as_ref().is_some_and(|name| demand.resting.contains(name));
            let is_open = || site_of(&job.url).is_some_and(|site| open_sites.contains(site));
            waits && !rests && !taken.contains_key(&job.lane) && is_open()
        };
        match self.jobs.iter().find(|(_, job)| is_passed_over(job)) {
            Some((id, JobHistory { lane, .. })) => Err(format!(
                "{first:?} got {count} jobs, and {lane:?}, whose job {id} is due, got none"
            )),
            None => Ok(()),
        }
    }

    /// A process is fetching these jobs.
    pub(crate) fn on_started(&mut self, holder: &str, ids: &[LeaseId]) {
        for id in ids {
            if let Some(job) = self.jobs.get_mut(id) {
                job.is_started |= job.holder.as_deref() == Some(holder);
            }
        }
    }

    /// An instance renewed its lease. That rescues the jobs of the instances whose leases have expired.
    pub(crate) fn on_renewed(&mut self, holder: &str, now: Time, until: Time) -> Checked {
        let expired = self.valid_until.extract_if(.., |_, until| *until <= now);
        let expired: Vec<String> = expired.map(|(holder, _)| holder).collect();
        if !expired.is_empty() {
            for job in self.jobs.values_mut() {
                if job.holder.take_if(|holder| expired.contains(holder)).is_some() {
                    self.held -= 1;
                    job.deaths += u32::from(job.is_started);
                    job.due = Time::EPOCH;
                }
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
        if let Settlement::Retry { at, .. } | Settlement::HandBack { at } = ending.settlement {
            job.due = at;
            return Ok(());
        }
        job.ended_as = Some(word);
        if matches!(ending.settlement, Settlement::Done | Settlement::Skipped) {
            self.in_queue.remove(&hash(&job.url));
        }
        *self.ended.entry(word).or_default() += 1;
        let is_dead = matches!(ending.settlement, Settlement::Dead { .. });
        if let Settlement::Dead { reason } = &ending.settlement
            && reason == INTERNAL
            && job.deaths < DEATHS_OF_A_CULPRIT
        {
            let deaths = job.deaths;
            return Err(format!("job {id} was given up after {deaths} interruptions"));
        }
        if is_dead && self.letters_have_details && !ending.has_details {
            return Err(format!("the dead letter of job {id} has no details"));
        }
        Ok(())
    }

    /// An operator ended a job that waited.
    pub(crate) fn on_cancelled(&mut self, id: LeaseId) -> Checked {
        let job = self.jobs.get_mut(&id).ok_or_else(|| format!("job {id} was never accepted"))?;
        if job.holder.is_some() || job.ended_as.is_some() {
            let JobHistory { holder, ended_as, .. } = job;
            return Err(format!(
                "job {id} was cancelled; holder: {holder:?}, it ended as {ended_as:?}"
            ));
        }
        job.ended_as = Some("done");
        *self.ended.entry("done").or_default() += 1;
        Ok(())
    }

    /// An operator made a job due.
    pub(crate) fn on_hastened(&mut self, id: LeaseId) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.due = Time::EPOCH;
        }
    }

    /// An operator retried or dropped a dead letter.
    pub(crate) fn on_revised(&mut self, id: LeaseId, revision: Revision) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        *self.ended.entry("dead").or_default() -= 1;
        match revision {
            Revision::Retry => {
                job.ended_as = None;
                job.due = Time::EPOCH;
                job.deaths = 0;
            }
            Revision::Drop => {
                job.ended_as = Some("skipped");
                self.in_queue.remove(&hash(&job.url));
                *self.ended.entry("skipped").or_default() += 1;
            }
        }
    }

    /// How often processes died while fetching a job.
    pub(crate) fn deaths(&self, id: LeaseId) -> u32 {
        self.jobs.get(&id).map_or(0, |job| job.deaths)
    }

    /// The ids of the dead letters.
    pub(crate) fn dead_letters(&self) -> Vec<LeaseId> {
        let is_dead =
            |(id, job): (&LeaseId, &JobHistory)| (job.ended_as == Some("dead")).then_some(*id);
        self.jobs.iter().filter_map(is_dead).collect()
    }

    /// The number of jobs that were accepted. Their ids count from 1.
    pub(crate) fn accepted(&self) -> usize {
        self.jobs.len()
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

    /// Whether an instance of a process has a lease that is valid.
    pub(crate) fn has_lease(&self, process: &str, now: Time) -> bool {
        let from = format!("{process}/");
        let its = self.valid_until.range(from.clone()..);
        its.take_while(|(holder, _)| holder.starts_with(&from)).any(|(_, until)| now < *until)
    }

    /// A process stopped in an orderly way, so it holds nothing.
    pub(crate) fn on_stopped(&self, process: &str) -> Checked {
        let is_its = |holder: &String| holder.split_once('/').is_some_and(|(of, _)| of == process);
        match self.jobs.iter().find(|(_, job)| job.holder.as_ref().is_some_and(is_its)) {
            Some((id, _)) => Err(format!("{process} stopped, and holds job {id}")),
            None => Ok(()),
        }
    }

    /// No job has waited since before `time` although its deadline had passed.
    pub(crate) fn no_deadline_is_before(&self, time: Time) -> Checked {
        let is_late = |job: &JobHistory| {
            job.ended_as.is_none() && job.deadline.is_some_and(|deadline| deadline < time)
        };
        match self.jobs.iter().find(|(_, job)| is_late(job)) {
            Some((id, JobHistory { url, holder, deadline, .. })) => Err(format!(
                "the deadline of job {id} ({url}) passed at {deadline:?}; holder: {holder:?}"
            )),
            None => Ok(()),
        }
    }

    /// The sites of the jobs that have not ended and need not wait any longer.
    pub(crate) fn sites_with_work(&self, now: Time) -> BTreeSet<String> {
        let has_work = |job: &&JobHistory| job.ended_as.is_none() && job.due <= now;
        let site = |job: &JobHistory| site_of(&job.url).map(str::to_owned);
        self.jobs.values().filter(has_work).filter_map(site).collect()
    }

    /// At the end: every job has ended, with as many records as promised.
    pub(crate) fn at_the_end(&self, has_one_record: bool) -> Checked {
        for (id, JobHistory { url, holder, ended_as, records, .. }) in &self.jobs {
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

fn site_of(url: &str) -> Option<&str> {
    url.split('/').nth(2)
}

fn hash(url: &str) -> u64 {
    fnv1a(0xCBF2_9CE4_8422_2325, url.as_bytes())
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
        checks.on_offered(&lease(1).job, true).unwrap();
        checks.on_offered(&lease(2).job, true).unwrap();
        checks.on_renewed("a", at(0), at(20)).unwrap();
        checks.on_taken("a", &[lease(1)], at(1)).unwrap();
        checks
    }

    #[test]
    fn no_lane_is_passed_over() {
        let of = |id, party: &str, url: &str| {
            let mut lease = lease(id);
            lease.job.lane.party = Some(party.to_owned());
            url.clone_into(&mut lease.job.url);
            lease
        };
        let ann = [of(1, "ann", "http://a.test/1"), of(2, "ann", "http://a.test/2")];
        let after_a_take = |others: &[Lease], taken: &[Lease]| {
            let mut checks = JobChecks::default();
            for lease in ann.iter().chain(others) {
                checks.on_accepted(&lease.job);
            }
            checks.on_renewed("a", at(0), at(20)).unwrap();
            checks.on_taken("a", taken, at(1)).unwrap();
            checks.lanes_take_turns(&Demand::default(), taken, at(1))
        };
        let ben = of(3, "ben", "http://a.test/3");
        let found = after_a_take(std::slice::from_ref(&ben), &ann).unwrap_err();
        assert!(found.contains("got 2 jobs") && found.contains("job 3 is due"), "{found}");
        after_a_take(std::slice::from_ref(&ben), &ann[..1]).unwrap();
        after_a_take(&[of(3, "ann", "http://a.test/3")], &ann).unwrap();
        after_a_take(&[of(3, "ben", "http://closed.test/3")], &ann).unwrap();
    }

    #[test]
    fn a_lease_is_valid_until_it_expires() {
        let mut checks = JobChecks::default();
        checks.on_renewed("m1.1/0", at(0), at(20)).unwrap();
        assert!(checks.has_lease("m1.1", at(19)) && !checks.has_lease("m1.1", at(20)));
        assert!(!checks.has_lease("m1", at(19)) && !checks.has_lease("m1.11", at(19)));
        checks.on_renewed("m1.1/1", at(21), at(41)).unwrap();
        assert!(checks.has_lease("m1.1", at(40)));
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

    #[test]
    fn a_url_is_accepted_once_until_it_has_ended() {
        let mut checks = two_jobs();
        assert!(checks.on_offered(&lease(1).job, true).unwrap_err().contains("in the queue: true"));
        checks.on_offered(&lease(1).job, false).unwrap();
        checks.on_settled("a", &lease(1), &done(), Settled::Confirmed, at(2)).unwrap();
        assert!(checks.on_offered(&lease(1).job, false).unwrap_err().contains("accepted: false"));
        checks.on_offered(&lease(1).job, true).unwrap();
    }

    #[test]
    fn a_job_that_was_put_off_waits_for_its_time_or_its_deadline() {
        let mut checks = two_jobs();
        let ending = Ending { settlement: Settlement::HandBack { at: at(9) }, ..done() };
        checks.on_settled("a", &lease(1), &ending, Settled::Confirmed, at(2)).unwrap();
        assert!(checks.on_taken("a", &[lease(1)], at(8)).unwrap_err().contains("1s before"));
        checks.on_taken("a", &[lease(1)], at(9)).unwrap();
        let mut checks = two_jobs();
        let mut late = lease(3);
        late.job.deadline = Some(at(5));
        checks.on_offered(&late.job, true).unwrap();
        checks.on_taken("a", &[late.clone()], at(3)).unwrap();
        checks.on_settled("a", &late, &ending, Settled::Confirmed, at(4)).unwrap();
        checks.no_deadline_is_before(at(5)).unwrap();
        assert!(checks.no_deadline_is_before(at(6)).unwrap_err().contains("deadline of job 3"));
        checks.on_taken("a", &[late], at(5)).unwrap();
    }

    #[test]
    fn a_url_is_to_blame_only_after_four_deaths() {
        let settlement = Settlement::Dead { reason: INTERNAL.to_owned() };
        let ending = Ending { settlement, has_details: true };
        for (deaths, is_right) in [(3, false), (4, true)] {
            let mut checks = two_jobs();
            for death in 0..deaths {
                let now = 20 * (death + 1);
                checks.on_started("a", &[1]);
                checks.on_renewed("a", at(now), at(now + 20)).unwrap();
                checks.on_taken("a", &[lease(1)], at(now)).unwrap();
            }
            let settled =
                checks.on_settled("a", &lease(1), &ending, Settled::Confirmed, at(20 * deaths + 1));
            assert_eq!(settled.is_ok(), is_right, "{settled:?}");
        }
    }

    #[test]
    fn a_process_that_stopped_holds_nothing() {
        let mut checks = JobChecks::default();
        checks.on_offered(&lease(1).job, true).unwrap();
        checks.on_renewed("m1.1/0", at(0), at(20)).unwrap();
        checks.on_taken("m1.1/0", &[lease(1)], at(1)).unwrap();
        checks.on_stopped("m1.2").unwrap();
        assert!(checks.on_stopped("m1.1").unwrap_err().contains("holds job 1"));
    }
}
