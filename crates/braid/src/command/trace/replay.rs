//! `braid trace replay`: the requests of a trace on a device, each when it is due.
//!
//! Invariants
//! * A request waits for its time and for nothing else: those that are not answered yet hold none back, up to
//!   [`AT_ONCE`] of them, a thread each. What one took counts from when it was due, so a device that is too
//!   slow for the trace shows it, as it does in a prediction.
//! * Nothing is written to a device that `--destroy` does not name again.
//!
//! Deliberately absent: discards, which have no model either; the data of the trace, which it does not have.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use braid_predict::Outcome;
use braid_shell::shell_path;
use braid_trace::{AT_ONCE, Kind, Request, Trace, busiest};
use serde_json::json;

use super::super::direct::{Access, Direct, Memory};
use super::super::given;
use super::super::model::fit::{device, readable};
use crate::cli;
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::Failure;

/// Memory that is ready for each request under way, in bytes; a longer one gets its own when it comes.
const READY: usize = 1 << 20;
/// Maximum sleep of a thread between two checks for the end of the replay.
const NAP: Duration = Duration::from_millis(100);

/// Result of a replay.
struct Replayed {
    outcome: Outcome,
    flushes: u64,
    /// Nanoseconds from when a request was due until it was begun, ascending.
    late_ns: Vec<u64>,
    /// Requests that were not begun before the limit.
    given_up: u64,
    /// Skipped discards.
    discards: u64,
    too_long: u64,
    doubts: Vec<String>,
}

pub(super) fn replay(options: &cli::TraceReplay) -> Result<String, Failure> {
    let trace = super::read(&options.file, options.of.as_deref())?;
    let mut requests = match options.part {
        Some(part) => busiest(&trace.requests, nanos(part)),
        None => trace.requests.clone(),
    };
    if options.reads_only {
        requests.retain(|request| request.kind == Kind::Read);
    }
    if !requests.iter().any(Request::has_data) {
        return Err(Failure::usage(format!("{} asks for no data", options.file.display())));
    }
    let given = given::absolute(std::slice::from_ref(&options.on))?;
    let destroy = !given::named_again("--destroy", options.destroy.as_slice(), &given)?.is_empty();
    let writes = requests.iter().filter(|request| request.kind == Kind::Write).count();
    if writes > 0 && !destroy {
        return Err(not_to_be_written(options, writes));
    }
    let (facts, doubts) = match options.held {
        // The caller holds the device, and has checked other users.
        true => (readable(&given[0])?.0, Vec::new()),
        false => device(&given[0], destroy)?,
    };
    let access = match (destroy, options.held) {
        (false, _) => Access::Read,
        (true, false) => Access::Destroy,
        (true, true) => Access::DestroyHeld,
    };
    let device = Direct::open(&facts, access)?;
    let size = options.region.map_or(device.size, |region| region.0.min(device.size));
    let placed: Vec<Request> =
        requests.iter().filter_map(|one| placed(one, &device, size)).collect();
    if !placed.iter().any(Request::has_data) {
        let text = format!("{} has no room for any request of the trace", facts.path.display());
        return Err(Failure::refused(text));
    }
    let discards = requests.iter().filter(|one| one.kind == Kind::Discard).count() as u64;
    let too_long = (requests.len() - placed.len()) as u64 - discards;
    let until_ns = options.limit.map_or(u64::MAX, nanos);
    let timed = carry_out(&device, &placed, until_ns)
        .map_err(|why| Failure::failed(format!("{}: {why}", facts.path.display())))?;
    let given_up = (placed.len() - timed.len()) as u64;
    let replayed = Replayed { given_up, discards, too_long, doubts, ..added_up(&placed, &timed) };
    Ok(match options.json {
        true => format!("{}\n", as_json(options, &trace, &replayed)),
        false => as_text(options, &trace, &replayed),
    })
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn not_to_be_written(options: &cli::TraceReplay, writes: usize) -> Failure {
    let (file, on) = (shell_path(&options.file), shell_path(&options.on));
    let text = format!(
        "{} has {writes} writes, and {} is not named to be written to",
        options.file.display(),
        options.on.display()
    );
    Failure::refused(text)
        .note(format!("braid trace replay {file} --on {on} --reads-only leaves the writes out"))
        .next(format!(
            "braid trace replay {file} --on {on} --destroy {on}, which loses what is on it"
        ))
}

/// A request where the device has room for it; a discard has no part.
fn placed(request: &Request, device: &Direct, size: u64) -> Option<Request> {
    match request.kind {
        Kind::Read | Kind::Write => request.within(size, device.block),
        Kind::Flush => Some(*request),
        Kind::Discard => None,
    }
}

/// From when to when a request was under way, in nanoseconds since the first was due.
#[derive(Clone, Copy)]
struct Timed {
    index: usize,
    began_ns: u64,
    ended_ns: u64,
}

/// Each request when it is due; none is begun after `until_ns`.
fn carry_out(device: &Direct, requests: &[Request], until_ns: u64) -> Result<Vec<Timed>, String> {
    let longest = requests.iter().map(|request| request.length).max().unwrap_or(0);
    let longest = usize::try_from(longest).map_err(|error| error.to_string())?;
    let first_ns = requests.first().map_or(0, |first| first.at_ns);
    let mut memory: Vec<Memory> = Vec::new();
    memory.resize_with(AT_ONCE.min(requests.len()), Memory::default);
    for one in &mut memory {
        one.aligned(longest.min(READY));
    }
    let (next, until_ns) = (&AtomicUsize::new(0), &AtomicU64::new(until_ns));
    let began = Instant::now();
    let now = || nanos(began.elapsed());
    let work = |mut memory: Memory| -> Result<Vec<Timed>, String> {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(request) = requests.get(index) else { return Ok(done) };
            let due_ns = request.at_ns - first_ns;
            let began_ns = loop {
                let now_ns = now();
                if now_ns.max(due_ns) > until_ns.load(Ordering::Relaxed) {
                    return Ok(done);
                }
                match due_ns.saturating_sub(now_ns) {
                    0 => break now_ns,
                    left_ns => thread::sleep(NAP.min(Duration::from_nanos(left_ns))),
                }
            };
            if let Err(why) = one(device, &mut memory, request) {
                // No thread begins another request.
                until_ns.store(0, Ordering::Relaxed);
                return Err(why);
            }
            done.push(Timed { index, began_ns, ended_ns: now() });
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> =
            memory.into_iter().map(|memory| scope.spawn(move || work(memory))).collect();
        let mut all = Vec::with_capacity(requests.len());
        for thread in threads {
            all.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

fn one(device: &Direct, memory: &mut Memory, request: &Request) -> Result<(), String> {
    let Request { kind, offset, length, fua, .. } = *request;
    let (done, what) = match kind {
        Kind::Read => (device.read(memory, offset, length), "read"),
        Kind::Write => (device.write(memory, offset, length, fua), "write"),
        Kind::Flush => (device.flush(), "flush"),
        Kind::Discard => return Ok(()),
    };
    done.map_err(|error| format!("a {what} of {length} bytes at {offset}: {error}"))
}

fn added_up(requests: &[Request], timed: &[Timed]) -> Replayed {
    let first_ns = requests.first().map_or(0, |first| first.at_ns);
    let mut outcome = Outcome::default();
    let (mut flushes, mut late_ns) = (0, Vec::with_capacity(timed.len()));
    for timed in timed {
        let request = &requests[timed.index];
        let due_ns = request.at_ns - first_ns;
        late_ns.push(timed.began_ns - due_ns);
        outcome.seconds = outcome.seconds.max(timed.ended_ns as f64 / 1e9);
        if !request.has_data() {
            flushes += 1;
            continue;
        }
        let write = request.kind == Kind::Write;
        *(if write { &mut outcome.written } else { &mut outcome.read }) += request.length;
        outcome.requests += 1;
        outcome.latencies_ns.push(timed.ended_ns - due_ns);
    }
    outcome.latencies_ns.sort_unstable();
    late_ns.sort_unstable();
    let (given_up, discards, too_long, doubts) = (0, 0, 0, Vec::new());
    Replayed { outcome, flushes, late_ns, given_up, discards, too_long, doubts }
}

fn as_json(options: &cli::TraceReplay, trace: &Trace, replayed: &Replayed) -> serde_json::Value {
    let Replayed { outcome, flushes, late_ns, given_up, discards, too_long, doubts } = replayed;
    let latency: serde_json::Map<_, _> = outcome
        .percentiles()
        .map(|(percent, ns)| (format!("p{percent}"), ns.into()))
        .chain([("mean".to_owned(), outcome.mean_ns().into())])
        .chain(outcome.latencies_ns.last().map(|ns| ("max".to_owned(), (*ns).into())))
        .collect();
    json!({
        "output_version": OUTPUT_VERSION,
        "trace": options.file,
        "of": trace.name,
        "device": options.on,
        "seconds": outcome.seconds,
        "requests": outcome.requests,
        "flushes": flushes,
        "read_bytes": outcome.read,
        "written_bytes": outcome.written,
        "bytes_per_second": outcome.rate(),
        "requests_per_second": outcome.per_second(),
        "latency_ns": latency,
        "late_ns": { "p50": late_ns.get(late_ns.len() / 2), "max": late_ns.last() },
        "given_up": given_up,
        "discards_left_out": discards,
        "too_long_left_out": too_long,
        "doubts": doubts,
    })
}

fn as_text(options: &cli::TraceReplay, trace: &Trace, replayed: &Replayed) -> String {
    let Replayed { outcome, flushes, late_ns, given_up, discards, too_long, doubts } = replayed;
    let ms = |ns: u64| format!("{:.3} ms", ns as f64 / 1e6);
    let mut lines = vec![
        ("trace", format!("{} ({})", options.file.display(), trace.format.name())),
        ("on", options.on.display().to_string()),
        (
            "replayed",
            format!(
                "{} reads and writes and {flushes} flushes in {:.2} s",
                outcome.requests, outcome.seconds
            ),
        ),
        (
            "rate",
            format!(
                "{:.1} MB/s ({:.1} read, {:.1} written), {:.0} requests a second",
                outcome.rate() / 1e6,
                outcome.read as f64 / 1e6 / outcome.seconds.max(1e-9),
                outcome.written as f64 / 1e6 / outcome.seconds.max(1e-9),
                outcome.per_second()
            ),
        ),
    ];
    let told: Vec<_> =
        outcome.percentiles().map(|(percent, ns)| format!("p{percent} {}", ms(ns))).collect();
    let most = outcome.latencies_ns.last().map(|ns| format!("{} at most", ms(*ns)));
    let told: Vec<_> = told.into_iter().chain(most).collect();
    lines.push(("latency", format!("{}, each from when it was due", told.join(", "))));
    if let (Some(half), Some(most)) = (late_ns.get(late_ns.len() / 2), late_ns.last()) {
        lines.push((
            "begun",
            format!("{} after it was due or earlier, for half; {} at most", ms(*half), ms(*most)),
        ));
    }
    if *given_up > 0 {
        lines.push(("given up", format!("{given_up} requests were not begun within the limit")));
    }
    if *discards > 0 {
        lines.push(("left out", format!("{discards} discards")));
    }
    if *too_long > 0 {
        lines.push(("left out", format!("{too_long} requests that are longer than the device")));
    }
    lines.extend(doubts.iter().map(|doubt| ("doubtful", doubt.clone())));
    lines.iter().map(|(key, value)| format!("{key:>8}: {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(at_ns: u64, kind: Kind, length: u64) -> Request {
        Request { at_ns, offset: 0, length, kind, fua: false }
    }

    #[test]
    fn what_a_request_took_counts_from_when_it_was_due() {
        let requests = [
            request(1000, Kind::Read, 512),
            request(2000, Kind::Write, 1024),
            request(2500, Kind::Flush, 0),
        ];
        // The second waited for 300 ns until a thread was free.
        let timed = [
            Timed { index: 1, began_ns: 1300, ended_ns: 2000 },
            Timed { index: 0, began_ns: 0, ended_ns: 400 },
            Timed { index: 2, began_ns: 1500, ended_ns: 1600 },
        ];
        let Replayed { outcome, flushes, late_ns, .. } = added_up(&requests, &timed);
        assert_eq!(outcome.latencies_ns, [400, 1000]);
        assert_eq!((outcome.read, outcome.written, outcome.requests), (512, 1024, 2));
        assert_eq!(flushes, 1);
        assert_eq!(late_ns, [0, 0, 300]);
        assert!((outcome.seconds - 2e-6).abs() < 1e-12, "{}", outcome.seconds);
    }
}
