//! Threads for what would block: jobs in, results into the executor's inbox.
//!
//! ```text
//!   busy threads   |■■■■|■■■■|■■■■|    |
//!                   any jobs  those of descriptors that have fewer than a quarter
//! ```
//!
//! Invariant: jobs of one descriptor whose medium hangs leave half of the threads to others, and those of
//! two a quarter. Jobs of one descriptor begin in their order.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use braid_mem::steady;

/// More than a job ever has on its stack, in bytes.
const STACK_IN_USE: usize = 64 << 10;

/// A closure that answers as a system call does: a count or a negative error number.
pub(crate) type Job = Box<dyn FnOnce() -> i32 + Send>;

/// The descriptor that a job is about, if it is about one.
pub(crate) type About = Option<RawFd>;

/// The receiver of results.
pub(crate) type Done = Arc<dyn Fn(u32, i32) + Send + Sync>;

/// Up to a fixed number of threads, started as they are needed, ended with the pool.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    done: Done,
    limit: usize,
}

struct Shared {
    limit: usize,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<(u32, About, Job)>,
    /// The work of each busy thread.
    busy: Vec<About>,
    threads: usize,
    idle: usize,
    ended: bool,
}

impl State {
    /// Takes the first job that may begin.
    fn take(&mut self, limit: usize) -> Option<(u32, About, Job)> {
        let has_room = self.busy.len() < limit.div_ceil(2);
        let may_begin = |about: &About| {
            let of_it = || self.busy.iter().filter(|one| *one == about).count();
            has_room || about.is_none() || of_it() < limit.div_ceil(4)
        };
        let first = self.jobs.iter().position(|(_, about, _)| may_begin(about))?;
        let job = self.jobs.remove(first)?;
        self.busy.push(job.1);
        Some(job)
    }

    /// A job about this is over.
    fn end(&mut self, about: About) {
        if let Some(one) = self.busy.iter().position(|one| *one == about) {
            self.busy.swap_remove(one);
        }
    }
}

impl Pool {
    pub(crate) fn new(limit: usize, done: Done) -> Pool {
        // No memory is taken for them while serving.
        let busy = Vec::with_capacity(limit);
        let state = Mutex::new(State { busy, ..State::default() });
        Pool { shared: Arc::new(Shared { limit, state, work: Condvar::new() }), done, limit }
    }

    /// Runs `job` on some thread and reports its result as operation `id`'s.
    pub(crate) fn run(&self, id: u32, about: About, job: Job) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.jobs.push_back((id, about, job));
        if state.jobs.len() > state.idle && state.threads < self.limit {
            match self.start(&mut state) {
                Ok(()) => {}
                // With at least one thread the job waits its turn.
                Err(_) if state.threads > 0 => {}
                Err(error) => {
                    state.jobs.pop_back();
                    drop(state);
                    (self.done)(id, -error.raw_os_error().unwrap_or(libc::EAGAIN));
                    return;
                }
            }
        }
        drop(state);
        self.shared.work.notify_one();
    }

    /// Starts all threads that there may be, so that none is started while serving: that takes
    /// memory. Fewer will do.
    pub(crate) fn start_all(&self) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.threads < self.limit && self.start(&mut state).is_ok() {}
    }

    fn start(&self, state: &mut State) -> std::io::Result<()> {
        let (shared, done) = (Arc::clone(&self.shared), Arc::clone(&self.done));
        let name = format!("braid-io-{}", state.threads);
        let run = move || {
            steady::touch_stack(STACK_IN_USE);
            work(&shared, &done);
        };
        std::thread::Builder::new().name(name).spawn(run)?;
        state.threads += 1;
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.shared.work.notify_all();
    }
}

fn work(shared: &Shared, done: &Done) {
    let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some((id, about, job)) = state.take(shared.limit) {
            drop(state);
            done(id, job());
            state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.end(about);
        } else if state.ended {
            return;
        } else {
            state.idle += 1;
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use super::*;

    const THREADS: usize = 16;

    fn pool() -> (Pool, Receiver<u32>) {
        let (send, receive) = channel();
        let send = Mutex::new(send);
        let done = move |id, _| {
            let _ = send.lock().unwrap_or_else(PoisonError::into_inner).send(id);
        };
        (Pool::new(THREADS, Arc::new(done)), receive)
    }

    /// Gives the pool jobs about `fd` that end when what is answered is dropped.
    fn hang(pool: &Pool, fd: RawFd, count: u32) -> Vec<Sender<()>> {
        let hang = |id| {
            let (end, wait) = channel::<()>();
            pool.run(
                id,
                Some(fd),
                Box::new(move || {
                    let _ = wait.recv();
                    0
                }),
            );
            end
        };
        (0..count).map(hang).collect()
    }

    #[test]
    fn descriptors_that_hang_leave_threads_to_others() {
        let (pool, done) = pool();
        let hanging = [hang(&pool, 3, 2 * THREADS as u32), hang(&pool, 4, THREADS as u32)];
        for id in 1000..1100 {
            pool.run(id, Some(5 + (id % 3) as RawFd), Box::new(|| 0));
        }
        let mut ended: Vec<u32> = (0..100)
            .map(|_| done.recv_timeout(Duration::from_secs(60)).expect("others go on"))
            .collect();
        ended.sort_unstable();
        assert_eq!(ended, (1000..1100).collect::<Vec<_>>());
        drop(hanging);
        for _ in 0..3 * THREADS {
            done.recv_timeout(Duration::from_secs(60)).expect("what hung goes on");
        }
    }

    #[test]
    fn a_descriptor_alone_has_half_of_the_threads() {
        let (pool, done) = pool();
        let (begun, count) = channel();
        let mut ends = Vec::new();
        for id in 0..THREADS as u32 {
            let (begun, (end, wait)) = (begun.clone(), channel::<()>());
            ends.push(end);
            let job = move || {
                let _ = begun.send(());
                let _ = wait.recv();
                0
            };
            pool.run(id, Some(3), Box::new(job));
        }
        for _ in 0..THREADS / 2 {
            count.recv_timeout(Duration::from_secs(60)).expect("a job begins");
        }
        assert!(count.recv_timeout(Duration::from_millis(50)).is_err(), "no more of them");
        drop(ends);
        for _ in 0..THREADS {
            done.recv_timeout(Duration::from_secs(60)).expect("a job ends");
        }
    }
}
