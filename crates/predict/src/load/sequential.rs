//! `dd` and `hdparm -t` through the page cache.

use std::collections::VecDeque;

use braid_model::Host;

use crate::machine::{Machine, Next};

/// A sequential read through the page cache.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The total amount, in bytes.
    pub bytes: u64,
    /// The read-ahead window, in bytes.
    pub window: u64,
    /// The bytes that a call reads.
    pub request: u64,
}

/// The largest request of a window, in bytes: what a server in user space is asked for at once (FUSE takes 256
/// pages).
const PIECE: u64 = 1 << 20;

/// Reads from the beginning; bytes per second.
///
/// ```text
///            reader ▼
///  |── window k ──|── window k+1 ──|
///                 ▲ the first page of the newest window is marked: the read of
///                   that page makes the kernel ask for window k+2
/// ```
///
/// Source: Linux mm/readahead.c, on demand: a window is requested when the reader reaches the mark in the
/// previous one, so that at most two are in flight. Pages of one member are contiguous across chunks and are
/// merged, by a queue that merges; otherwise a window is requested in pieces of up to [`PIECE`].
pub fn read_ahead(machine: &mut Machine, host: &Host, reading: Reading) -> f64 {
    let page = host.page_bytes;
    let window = reading.window.max(page).next_multiple_of(page);
    let page_ns = page as f64 / host.copy_rate * 1e9
        + host.call_ns * page as f64 / reading.request.max(1) as f64;
    let mut there: VecDeque<bool> = VecDeque::new();
    let (mut first, mut asked, mut mark) = (0, 0, 0);
    let piece = if machine.merges() { page } else { PIECE };
    let mut reader_ns = machine.now_ns() as f64;
    let begun_ns = reader_ns;
    let mut happened = Vec::new();
    let ask =
        |machine: &mut Machine, there: &mut VecDeque<bool>, asked: &mut u64, mark: &mut u64| {
            let end = (*asked + window).min(reading.bytes.next_multiple_of(page));
            *mark = *asked;
            while *asked < end {
                let bytes = piece.min(end - *asked);
                machine.submit(*asked / page, false, *asked, bytes);
                there.extend(std::iter::repeat_n(false, (bytes / page) as usize));
                *asked += bytes;
            }
            machine.unplug();
        };
    ask(machine, &mut there, &mut asked, &mut mark);
    loop {
        // What is there is read; at the mark the next window is asked for at the reader's time.
        while there.front() == Some(&true) {
            if first == mark && asked < reading.bytes {
                if machine.now_ns() as f64 >= reader_ns.floor() {
                    ask(machine, &mut there, &mut asked, &mut mark);
                } else {
                    machine.wake_at(reader_ns as u64, u64::MAX);
                    break;
                }
            }
            there.pop_front();
            first += page;
            reader_ns = reader_ns.max(machine.now_ns() as f64) + page_ns;
        }
        if first >= reading.bytes || !machine.next(&mut happened) {
            break;
        }
        for next in &happened {
            if let Next::Moved { owner, left: 0 } = *next {
                // A piece ends where its window does.
                let end = (owner * page / window + 1) * window;
                let pages = piece.min(end - owner * page) / page;
                let from = (owner - first / page) as usize;
                there.iter_mut().skip(from).take(pages as usize).for_each(|page| *page = true);
            }
        }
    }
    reading.bytes as f64 / ((reader_ns - begun_ns) / 1e9)
}

/// Writes from the beginning through the page cache, without a sync; bytes per second in the long run,
/// where the writer waits for the devices, and these for their media.
///
/// `under_way` is what the queues hold at most, in bytes (Linux: `nr_requests` of 128 for each
/// device).
pub fn write_back(machine: &mut Machine, host: &Host, bytes: u64, under_way: u64) -> f64 {
    // Written back in runs, as a flusher does, so that neighbours meet in the queue; whole stripes, as
    // a cache of stripes gathers them.
    let run_bytes = (256 * host.page_bytes).next_multiple_of(machine.stripe().max(1));
    let (mut submitted, mut done) = (0, 0);
    let begun_ns = machine.now_ns();
    let mut happened = Vec::new();
    loop {
        if submitted < bytes && submitted - done <= under_way / 2 {
            while submitted < bytes && submitted - done < under_way {
                let run = run_bytes.min(bytes - submitted);
                machine.submit(submitted, true, submitted, run);
                submitted += run;
            }
            machine.unplug();
        }
        if !machine.next(&mut happened) {
            break;
        }
        for next in &happened {
            if let Next::Moved { owner, left: 0 } = *next {
                done += run_bytes.min(bytes - owner);
            }
        }
    }
    machine.drain();
    bytes as f64 / ((machine.now_ns() - begun_ns) as f64 / 1e9)
}

/// Writes of `request` bytes, each of which waits until it is on the devices, with the block of a log
/// that a file system writes behind it; bytes per second.
pub fn synced(machine: &mut Machine, host: &Host, request: u64, count: u64) -> f64 {
    let mut happened = Vec::new();
    let log = (count * request).next_multiple_of(64 << 20);
    for index in 0..count {
        for (offset, bytes) in
            [(index * request, request), (log + index * host.page_bytes, host.page_bytes)]
        {
            machine.submit(index, true, offset, bytes);
            machine.unplug();
            while machine.next(&mut happened) {}
            machine.drain();
        }
    }
    (count * request) as f64 / (machine.now_ns() as f64 / 1e9)
}
