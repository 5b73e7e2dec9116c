//! Programs that use files through the page cache: `dd`, `cp`, `tar`, bonnie++, several at once.
//!
//! All processes go through the phases of their program side by side. A phase takes the time of its devices,
//! for all bytes that the page cache does not have or may not keep, and the time of one processor:
//!
//! * *Long files.* The host lets a process read for a slice of time before it turns to the file of another, and
//!   writes a fixed amount of a file before it turns to the next. The processor works meanwhile.
//! * *Copies out of the page cache.* A process beyond the dirty limit writes to the devices itself (Linux
//!   mm/page-writeback.c, balance_dirty_pages), so the processor's time is added.
//! * *Trees.* Their folders lie anywhere; the files of a folder lie together. A process waits for the files
//!   that it opens, and writes like a copy: the processor's time is added.
//! * *Seeks.* Pages anywhere in the files; the page cache holds as many as fit.

use braid_model::Host;

use super::closed::{Closed, Places, closed_cut};
use super::sequential::{Reading, read_ahead, write_back};
use crate::machine::Machine;

/// A program, with what it works on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Program {
    /// A file that is not in the page cache is read: bytes.
    Read(u64),
    /// A long file is written: bytes.
    Write(u64),
    /// A file that the page cache has is copied: bytes.
    CopyCached(u64),
    /// A tree is made of an archive that the page cache has.
    Unpack(Trees),
    /// A tree is copied. It is in the page cache as far as all that is copied, and the copies, fit.
    CopyTree(Trees),
    /// bonnie++.
    Bonnie(Bonnie),
}

/// Many small files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trees {
    /// Bytes of a tree.
    pub bytes: u64,
    /// Bytes of a file, in the mean.
    pub file: u64,
    /// Bytes of the files of a folder, in the mean.
    pub folder: u64,
    /// True if its pages are dropped from the page cache before it is read.
    pub cold: bool,
}

/// bonnie++: a file that is written, rewritten, read and sought in. Its phases of small files are not modelled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bonnie {
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of it that are also written, and read, by character.
    pub by_character: u64,
    /// Bytes of a request.
    pub chunk: u64,
}

/// A program of several processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Files {
    /// The program that each process runs.
    pub program: Program,
    /// The number of processes.
    pub processes: u64,
    /// True if the processes wait at the end until their writes are on the devices.
    pub synced: bool,
}

/// The treatment of files in a phase.
enum How {
    Long,
    /// A long file out of the page cache; only the bytes beyond the dirty limit reach devices.
    Copied,
    /// Folders of so many bytes.
    Folders(u64),
    /// So many requests of so many bytes, within the bytes of the files.
    Seeks(u64, u64, u64),
}

/// The work of each process until all processes go on.
struct Phase {
    read: u64,
    written: u64,
    /// Seconds of processor time.
    cpu_s: f64,
    how: How,
}

/// The time for which one process reads before another's turn, in seconds: Linux 2.6 block/as-iosched.c,
/// default_read_expire of an eighth of a second; of cfq-iosched.c, cfq_slice_sync, a tenth.
const SLICE_S: f64 = 0.125;
/// The bytes of a file that are written before the next one's turn: Linux fs/fs-writeback.c,
/// MAX_WRITEBACK_PAGES.
const TURN: u64 = 1024 * 4096;
/// The number of folders that are written at once: an assumption, as the queue of Linux holds 128 requests.
const FOLDERS_AT_ONCE: u64 = 8;
/// Requests of bonnie++ 1.03 in its phase of seeks, its processes there, and how many of a hundred only read.
const SEEKS: u64 = 8000;
const SEEKERS: u64 = 3;
const ONLY_READ: u64 = 90;
/// The length to which a long run is cut, in bytes, and the number of requests elsewhere.
const ENOUGH: u64 = 96 << 20;
const REQUESTS: u64 = 600;

impl Files {
    /// Bytes of files that each process has on the subject in the end.
    pub fn bytes(&self) -> u64 {
        match self.program {
            Program::Read(bytes) | Program::Write(bytes) | Program::CopyCached(bytes) => bytes,
            Program::Unpack(trees) => trees.bytes,
            Program::CopyTree(trees) => 2 * trees.bytes,
            Program::Bonnie(bonnie) => bonnie.size,
        }
    }

    /// Bytes that all processes together read and write.
    pub fn moved(&self) -> (u64, u64) {
        let (read, written) = match self.program {
            Program::Read(bytes) => (bytes, 0),
            Program::Write(bytes) | Program::CopyCached(bytes) => (0, bytes),
            Program::Unpack(trees) => (0, trees.bytes),
            Program::CopyTree(trees) => (trees.bytes, trees.bytes),
            Program::Bonnie(one) => {
                (one.by_character + 2 * one.size, one.by_character + 2 * one.size)
            }
        };
        (self.processes * read, self.processes * written)
    }

    fn phases(&self, host: &Host) -> Vec<Phase> {
        let copy_s = |bytes: u64| bytes as f64 / host.copy_rate;
        let long = |read: u64, written: u64, cpu_s: f64| Phase {
            read,
            written,
            cpu_s: cpu_s + copy_s(read + written),
            how: How::Long,
        };
        let tree = |trees: Trees, read: u64, times: f64| Phase {
            read,
            written: trees.bytes,
            cpu_s: times * trees.bytes as f64 / trees.file.max(1) as f64 * host.file_ns / 1e9,
            how: How::Folders(trees.folder),
        };
        match self.program {
            Program::Read(bytes) => vec![long(bytes, 0, 0.0)],
            Program::Write(bytes) => vec![long(0, bytes, 0.0)],
            Program::CopyCached(bytes) => {
                vec![Phase { how: How::Copied, ..long(0, bytes, copy_s(bytes)) }]
            }
            Program::Unpack(trees) => vec![tree(trees, 0, 1.0)],
            Program::CopyTree(trees) => {
                let is_there = self.processes * 2 * trees.bytes <= host.cache_bytes;
                let read = if is_there && !trees.cold { 0 } else { trees.bytes };
                vec![tree(trees, read, 2.0)]
            }
            Program::Bonnie(Bonnie { size, by_character, chunk }) => {
                let stdio_s = by_character as f64 * host.stdio_ns / 1e9;
                let missed =
                    1.0 - (host.cache_bytes as f64 / (self.processes * size) as f64).min(1.0);
                let seeks = (SEEKS as f64 * missed) as u64;
                let sought = Phase { how: How::Seeks(seeks, chunk, size), ..long(0, 0, 0.0) };
                vec![
                    long(0, by_character, stdio_s),
                    long(0, size, 0.0),
                    long(size, size, 0.0),
                    long(by_character, 0, stdio_s),
                    long(size, 0, 0.0),
                    sought,
                ]
            }
        }
    }

    /// Seconds until the last process has ended, on an array of `size` bytes whose queues hold `under_way`.
    pub fn seconds(&self, machine: &mut Machine, host: &Host, size: u64, under_way: u64) -> f64 {
        let phases = self.phases(host);
        let last = phases.iter().rposition(|phase| phase.written > 0);
        let mut on = On { machine, host, size, under_way, processes: self.processes.max(1) };
        let seconds = phases.iter().enumerate().map(|(index, phase)| {
            let keeps = if Some(index) == last && !self.synced { host.dirty_bytes } else { 0 };
            on.phase(phase, keeps)
        });
        seconds.sum()
    }
}

/// The ground of a program: machine, host and sizes.
struct On<'a> {
    machine: &'a mut Machine,
    host: &'a Host,
    size: u64,
    under_way: u64,
    processes: u64,
}

impl On<'_> {
    /// Seconds of a phase of which the page cache keeps so many bytes.
    fn phase(&mut self, phase: &Phase, keeps: u64) -> f64 {
        let cpu_s = self.processes as f64 * phase.cpu_s;
        let read = self.processes * phase.read;
        let written = (self.processes * phase.written).saturating_sub(keeps);
        let rate = match phase.how {
            How::Seeks(0, ..) => return cpu_s,
            How::Seeks(count, request, file) => {
                let range = (self.processes * file).min(self.size);
                let (processes, places) = (SEEKERS * self.processes, Places::Uniform);
                let load = Closed {
                    count: u64::MAX,
                    request,
                    reads: ONLY_READ,
                    places,
                    range,
                    processes,
                    depth: 1,
                };
                let sought = closed_cut(self.machine, &[load], REQUESTS).per_second();
                return cpu_s + (self.processes * count) as f64 / sought;
            }
            _ if read + written == 0 => return cpu_s,
            How::Folders(bytes) => self.folders(read, written, bytes),
            How::Long | How::Copied => self.long(read, written),
        };
        let disks_s = (read + written) as f64 / rate;
        match phase.how {
            How::Folders(_) | How::Copied => cpu_s + disks_s,
            How::Long | How::Seeks(..) => cpu_s.max(disks_s),
        }
    }

    /// Bytes per second of folders that are read and written.
    fn folders(&mut self, read: u64, written: u64, bytes: u64) -> f64 {
        let request = bytes.next_multiple_of(self.host.page_bytes).min(self.size);
        let load = |reads: u64, depth: u64| Closed {
            count: u64::MAX,
            request,
            reads,
            places: Places::Uniform,
            range: self.size,
            processes: self.processes,
            depth,
        };
        let loads = [(read, load(100, 1)), (written, load(0, FOLDERS_AT_ONCE))];
        let seconds = loads
            .into_iter()
            .filter(|(bytes, _)| *bytes > 0)
            .map(|(bytes, load)| bytes as f64 / closed_cut(self.machine, &[load], REQUESTS).rate());
        (read + written) as f64 / seconds.sum::<f64>()
    }

    /// Bytes per second of long files.
    fn long(&mut self, read: u64, written: u64) -> f64 {
        let window = self.host.readahead_bytes.max(2 * self.machine.stripe());
        let bytes = ENOUGH.min(self.size);
        if self.processes == 1 && written == 0 {
            let reading = Reading { bytes, window, request: TURN };
            return read_ahead(self.machine, self.host, reading);
        }
        if self.processes == 1 && read == 0 {
            return write_back(self.machine, self.host, bytes, self.under_way);
        }
        let each = (read.max(written) / self.processes).max(TURN);
        let range = (self.processes * each).min(self.size);
        let load = |reads: u64, request: u64, depth: u64| Closed {
            count: u64::MAX,
            request,
            reads,
            places: Places::Sequential,
            range,
            processes: self.processes,
            depth,
        };
        let mut loads = Vec::new();
        if read > 0 {
            let reading = Reading { bytes: bytes / 4, window, request: TURN };
            let alone = read_ahead(self.machine, self.host, reading);
            let slice = (alone * SLICE_S) as u64 / self.host.page_bytes * self.host.page_bytes;
            loads.push(load(100, slice.clamp(window, range), 1));
        }
        if written > 0 {
            loads.push(load(0, TURN.min(range), 2));
        }
        closed_cut(self.machine, &loads, REQUESTS).rate()
    }
}
