//! Threads for what would block: jobs in, results into the executor's inbox.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use braid_mem::steady;

/// More than a job ever has on its stack, in bytes.
const STACK_IN_USE: usize = 64 << 10;

/// A closure that answers as a system call does: a count or a negative error number.
pub(crate) type Job = Box<dyn FnOnce() -> i32 + Send>;

/// Where results go.
pub(crate) type Done = Arc<dyn Fn(u32, i32) + Send + Sync>;

/// Up to a fixed number of threads, started as they are needed, ended with the pool.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    done: Done,
    limit: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<(u32, Job)>,
    threads: usize,
    idle: usize,
    ended: bool,
}

impl Pool {
    pub(crate) fn new(limit: usize, done: Done) -> Pool {
        Pool { shared: Arc::default(), done, limit }
    }

    /// Runs `job` on some thread and reports its result as operation `id`'s.
    pub(crate) fn run(&self, id: u32, job: Job) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.jobs.push_back((id, job));
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
        if let Some((id, job)) = state.jobs.pop_front() {
            drop(state);
            done(id, job());
            state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        } else if state.ended {
            return;
        } else {
            state.idle += 1;
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}
