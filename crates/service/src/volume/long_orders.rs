//! Orders that take long, as jobs that status shows: while they are carried out, and the last ones after that.
//!
//! Invariant: an order that was refused is no job.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::control::{Answer, FailureKind, Job, JobState, Order};

/// Jobs that are kept.
const KEPT: usize = 16;

/// The jobs, the oldest first.
#[derive(Default)]
pub(super) struct LongOrders(Mutex<Vec<Job>>);

impl LongOrders {
    /// Carries `order` out by `work`, as a job if it takes long.
    pub(super) fn carry_out(&self, order: Order, work: impl FnOnce(Order) -> Answer) -> Answer {
        let Some(kind) = order.job() else { return work(order) };
        let number = self.begin(kind);
        let answer = work(order);
        let mut all = self.lock();
        let Some(at) = all.iter().position(|job| job.number == number) else { return answer };
        let job = &mut all[at];
        job.ended_ms = Some(now_ms());
        match &answer {
            Ok(_) => (job.state, job.done_bytes) = (JobState::Done, job.total_bytes),
            Err(failure) => match failure.kind {
                FailureKind::Failed | FailureKind::Interrupted => {
                    job.state = JobState::Failed;
                    job.why = Some(failure.why.clone());
                }
                FailureKind::Usage | FailureKind::Refused => drop(all.remove(at)),
            },
        }
        answer
    }

    fn begin(&self, kind: &str) -> u64 {
        let (mut all, now) = (self.lock(), now_ms());
        let number = all.last().map_or(now, |last| now.max(last.number + 1));
        if all.len() >= KEPT
            && let Some(oldest) = all.iter().position(|job| job.ended_ms.is_some())
        {
            all.remove(oldest);
        }
        all.push(Job {
            number,
            kind: kind.to_owned(),
            member: None,
            state: JobState::Running,
            done_bytes: 0,
            total_bytes: 0,
            began_ms: now,
            ended_ms: None,
            why: None,
        });
        number
    }

    /// The job of this kind that runs came so far, in bytes.
    pub(super) fn reached(&self, kind: &str, done_bytes: u64, total_bytes: u64) {
        let mut all = self.lock();
        let runs = |job: &&mut Job| job.ended_ms.is_none() && job.kind == kind;
        if let Some(job) = all.iter_mut().find(runs) {
            (job.done_bytes, job.total_bytes) = (done_bytes, total_bytes);
        }
    }

    /// The jobs that run, and the last ones that ended.
    pub(super) fn all(&self) -> Vec<Job> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Failure, WholeOrder};

    #[test]
    fn an_order_is_a_job_unless_it_is_short_or_refused() {
        let jobs = LongOrders::default();
        let save = || Order::Whole(WholeOrder::Save { file: "/x".into(), force: false });
        jobs.carry_out(Order::Whole(WholeOrder::Unlock), |_| Ok("unlocked".to_owned()))
            .expect("done");
        jobs.carry_out(save(), |_| Err(Failure::refused("no"))).expect_err("refused");
        assert_eq!(jobs.all(), []);
        let failed = jobs.carry_out(save(), |_| {
            jobs.reached("save", 5, 10);
            let all = jobs.all();
            assert_eq!((all[0].state, all[0].done_bytes), (JobState::Running, 5));
            Err(Failure::failed("full"))
        });
        failed.expect_err("failed");
        for _ in 0..KEPT {
            jobs.carry_out(save(), |_| Ok("saved".to_owned())).expect("done");
        }
        let all = jobs.all();
        assert_eq!(all.len(), KEPT, "the oldest went");
        assert!(all.iter().all(|job| job.state == JobState::Done && job.ended_ms.is_some()));
        assert!(all.windows(2).all(|two| two[0].number < two[1].number));
    }
}
