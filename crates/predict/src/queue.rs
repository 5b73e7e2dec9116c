//! A member's queue, as the kernel's block layer keeps it before a device that does one command at a time.
//!
//! Neighbours are merged up to the largest command. Reads keep their order, but a device with a command queue
//! takes which it likes of the oldest; writes are sorted, and one sweep goes up before the next begins. Reads go
//! first, but no more than a batch of them while writes wait.
//!
//! Source: Linux Documentation/block/deadline-iosched: sorted batches, writes starved at most twice.

use std::collections::{BTreeMap, VecDeque};

use braid_model::{Timetable, Work};

/// Bytes of one owner within a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Whose they are.
    pub(crate) owner: u64,
    /// The number of bytes.
    pub(crate) bytes: u64,
}

/// One command to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) write: bool,
    pub(crate) offset: u64,
    /// None for a flush.
    pub(crate) bytes: u64,
    /// Whose bytes, from the first to the last.
    pub(crate) parts: Vec<Part>,
}

impl Command {
    pub(crate) fn work(&self) -> Work {
        let (offset, bytes) = (self.offset, self.bytes);
        if bytes == 0 {
            return Work::Command;
        }
        if self.write { Work::Write { offset, bytes } } else { Work::Read { offset, bytes } }
    }
}

/// The number of reads in a row that may pass a waiting write.
const READS_IN_A_ROW: u32 = 2 * 16;

/// The neighbours that a request is merged with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merge {
    /// Pages, as from a block device's own page cache.
    #[default]
    Pages,
    /// Requests in whole: what a file system gives, whose requests end where a chunk does.
    Whole,
    /// Nothing, and nothing is sorted: what braid itself gives its members.
    Nothing,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// The largest command, in bytes.
    most: u64,
    merge: Merge,
    /// In the order in which they came; without merging, writes as well.
    reads: VecDeque<Command>,
    writes: BTreeMap<u64, Command>,
    /// The place of the sweep through the writes.
    sweep: u64,
    reads_in_a_row: u32,
}

impl Queue {
    pub(crate) fn new(most: u64) -> Queue {
        Queue { most, ..Queue::default() }
    }

    pub(crate) fn merge(&mut self, merge: Merge) {
        self.merge = merge;
    }

    pub(crate) fn merges(&self) -> bool {
        self.merge != Merge::Nothing
    }

    /// Puts bytes in: behind a command that they continue as far as it has room, the rest as one of
    /// their own.
    pub(crate) fn push(&mut self, write: bool, offset: u64, part: Part) {
        if self.merge == Merge::Nothing {
            self.reads.push_back(Command { write, offset, bytes: part.bytes, parts: vec![part] });
            return;
        }
        let (mut offset, mut left) = (offset, part.bytes);
        while left > 0 {
            let last = if write {
                self.writes.range_mut(..offset).next_back().map(|(_, command)| command)
            } else {
                self.reads.back_mut()
            };
            let fits = |command: &&mut Command| {
                command.offset + command.bytes == offset
                    && command.bytes < self.most
                    && (self.merge == Merge::Pages || command.bytes + left <= self.most)
            };
            let room = last.filter(fits);
            let taken = match room {
                Some(command) => {
                    let taken = left.min(self.most - command.bytes);
                    command.bytes += taken;
                    match command.parts.last_mut().filter(|last| last.owner == part.owner) {
                        Some(last) => last.bytes += taken,
                        None => command.parts.push(Part { bytes: taken, ..part }),
                    }
                    taken
                }
                None => {
                    let bytes = left.min(self.most);
                    let parts = vec![Part { bytes, ..part }];
                    let command = Command { write, offset, bytes, parts };
                    if write {
                        // The same bytes again: what waits is overtaken, its owner is served with it.
                        if let Some(old) = self.writes.insert(offset, command) {
                            let new = self.writes.get_mut(&offset).expect("it was just put there");
                            new.parts.extend(old.parts);
                        }
                    } else {
                        self.reads.push_back(command);
                    }
                    bytes
                }
            };
            offset += taken;
            left -= taken;
        }
    }

    /// Puts a flush in, which counts as one byte of its owner.
    pub(crate) fn push_flush(&mut self, owner: u64) {
        let parts = vec![Part { owner, bytes: 1 }];
        self.reads.push_back(Command { write: true, offset: 0, bytes: 0, parts });
    }

    /// The next command for the device, which is free at `now_ns`: of those that are not sorted here the one
    /// that it takes.
    pub(crate) fn pop(&mut self, device: &mut Timetable, now_ns: u64) -> Option<Command> {
        let writes_wait = !self.writes.is_empty();
        if !self.reads.is_empty() && (!writes_wait || self.reads_in_a_row < READS_IN_A_ROW) {
            self.reads_in_a_row += 1;
            let next = device.next_of(now_ns, self.reads.iter().map(Command::work));
            return self.reads.remove(next);
        }
        self.reads_in_a_row = 0;
        let next = self.writes.range(self.sweep..).next().or_else(|| self.writes.iter().next());
        let offset = *next?.0;
        let command = self.writes.remove(&offset)?;
        self.sweep = offset + command.bytes;
        Some(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that takes what comes.
    fn in_order() -> Timetable {
        let plain = braid_model::profile("ram").expect("a profile that comes with braid");
        Timetable::new(&plain.kind, 1 << 20).expect("memory is a device")
    }

    fn part(owner: u64, bytes: u64) -> Part {
        Part { owner, bytes }
    }

    #[test]
    fn neighbours_are_one_command_up_to_the_largest() {
        let mut queue = Queue::new(100);
        queue.push(false, 0, part(1, 60));
        queue.push(false, 60, part(2, 60));
        queue.push(false, 500, part(3, 250));
        let mut device = in_order();
        let commands: Vec<_> = std::iter::from_fn(|| queue.pop(&mut device, 0)).collect();
        let spans: Vec<_> = commands.iter().map(|one| (one.offset, one.bytes)).collect();
        assert_eq!(spans, [(0, 100), (100, 20), (500, 100), (600, 100), (700, 50)]);
        assert_eq!(commands[0].parts, [part(1, 60), part(2, 40)]);
    }

    #[test]
    fn writes_go_in_sweeps() {
        let mut queue = Queue::new(100);
        for offset in [500, 100, 900] {
            queue.push(true, offset, part(offset, 10));
        }
        let mut device = in_order();
        assert_eq!(queue.pop(&mut device, 0).map(|one| one.offset), Some(100));
        queue.push(true, 50, part(50, 10));
        queue.push(true, 300, part(300, 10));
        let pop = || queue.pop(&mut device, 0);
        let rest: Vec<_> = std::iter::from_fn(pop).map(|one| one.offset).collect();
        assert_eq!(rest, [300, 500, 900, 50]);
    }
}
