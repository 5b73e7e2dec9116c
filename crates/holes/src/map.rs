//! The states of a device's bytes.

use std::ops::Range;

use crate::MAX_SIZE;
use crate::error::Misfit;

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// `?`: not tried.
    NonTried,
    /// `*`: failed, its edges were not looked for.
    NonTrimmed,
    /// `/`: failed, its sectors were not tried one by one.
    NonScraped,
    /// `-`: bad sectors.
    Bad,
    /// `+`: read.
    Finished,
}

impl State {
    /// All states.
    pub const ALL: [State; 5] =
        [State::NonTried, State::NonTrimmed, State::NonScraped, State::Bad, State::Finished];

    /// Returns the letter in a map.
    pub const fn letter(self) -> char {
        match self {
            State::NonTried => '?',
            State::NonTrimmed => '*',
            State::NonScraped => '/',
            State::Bad => '-',
            State::Finished => '+',
        }
    }
}

/// The phase of ddrescue that wrote the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// `?`: copying blocks that were not tried.
    Copying,
    /// `*`: trimming.
    Trimming,
    /// `/`: scraping.
    Scraping,
    /// `-`: retrying bad sectors.
    Retrying,
    /// `F`: filling blocks.
    Filling,
    /// `G`: generating a map.
    Generating,
    /// `+`: finished.
    Finished,
}

impl Phase {
    /// All phases.
    pub const ALL: [Phase; 7] = [
        Phase::Copying,
        Phase::Trimming,
        Phase::Scraping,
        Phase::Retrying,
        Phase::Filling,
        Phase::Generating,
        Phase::Finished,
    ];

    /// Returns the letter in a map.
    pub const fn letter(self) -> char {
        match self {
            Phase::Copying => '?',
            Phase::Trimming => '*',
            Phase::Scraping => '/',
            Phase::Retrying => '-',
            Phase::Filling => 'F',
            Phase::Generating => 'G',
            Phase::Finished => '+',
        }
    }
}

/// The work of ddrescue at the moment at which the map was written: the status line, by which it resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Byte that was being tried, at most [`MAX_SIZE`].
    pub position: u64,
    /// The phase.
    pub phase: Phase,
    /// The pass within the phase, from 1 on.
    pub pass: u32,
}

/// Adjacent bytes of one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The bytes; at least one.
    pub range: Range<u64>,
    /// Their state.
    pub state: State,
}

/// The state of every byte of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    blocks: Vec<Block>,
    /// The status line. It is written as it stands: changes of the map do not change it.
    pub activity: Activity,
}

impl Map {
    /// Returns the map of `size` bytes that all have `state`.
    ///
    /// # Panics
    /// If `size` is above [`MAX_SIZE`].
    pub fn new(size: u64, state: State) -> Map {
        assert!(size <= MAX_SIZE, "a map of {size} bytes");
        let mut map = Map::empty(Activity { position: 0, phase: Phase::Finished, pass: 1 });
        map.push(size, state);
        map
    }

    pub(crate) fn empty(activity: Activity) -> Map {
        Map { blocks: Vec::new(), activity }
    }

    /// Appends bytes up to `end`, if that is behind the last block.
    pub(crate) fn push(&mut self, end: u64, state: State) {
        let start = self.size();
        match self.blocks.last_mut() {
            _ if end <= start => {}
            Some(last) if last.state == state => last.range.end = end,
            _ => self.blocks.push(Block { range: start..end, state }),
        }
    }

    /// Returns the number of bytes that the map describes; [`MAX_SIZE`] if its end is open, because ddrescue did
    /// not know the size of its input.
    pub fn size(&self) -> u64 {
        self.blocks.last().map_or(0, |last| last.range.end)
    }

    /// Returns the blocks in order: from byte 0 on, without gaps, neighbours of different states.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the holes in order: the longest ranges of bytes that are not finished.
    pub fn holes(&self) -> Vec<Range<u64>> {
        let mut holes: Vec<Range<u64>> = Vec::new();
        for block in self.blocks.iter().filter(|block| block.state != State::Finished) {
            match holes.last_mut() {
                Some(last) if last.end == block.range.start => last.end = block.range.end,
                _ => holes.push(block.range.clone()),
            }
        }
        holes
    }

    /// Returns the part in `range` of the first block there that is not finished; `None` if all of `range` is
    /// finished. Bytes behind the end of the map are neither.
    pub fn first_hole(&self, range: Range<u64>) -> Option<Range<u64>> {
        let from = self.blocks.partition_point(|block| block.range.end <= range.start);
        let within = self.blocks[from..].iter().take_while(|block| block.range.start < range.end);
        let hole = within.into_iter().find(|block| block.state != State::Finished)?;
        let (start, end) = (hole.range.start.max(range.start), hole.range.end.min(range.end));
        (start < end).then_some(start..end)
    }

    /// Returns the number of finished bytes.
    pub fn finished_bytes(&self) -> u64 {
        let finished = self.blocks.iter().filter(|block| block.state == State::Finished);
        finished.map(|block| block.range.end - block.range.start).sum()
    }

    /// Sets the state of `range`.
    ///
    /// # Panics
    /// If `range` goes beyond the end of the map.
    pub fn set(&mut self, range: Range<u64>, state: State) {
        assert!(range.end <= self.size(), "{range:?} of {} bytes", self.size());
        if range.is_empty() {
            return;
        }
        // The blocks that touch the range, with those beside it, which may have its state.
        let first = self.blocks.partition_point(|block| block.range.end < range.start);
        let behind = self.blocks.partition_point(|block| block.range.start <= range.end);
        let touched = &self.blocks[first..behind];
        let mut blocks: Vec<Block> = Vec::with_capacity(touched.len() + 2);
        let mut add = |from: u64, to: u64, state: State| match blocks.last_mut() {
            _ if from >= to => {}
            Some(last) if last.state == state => last.range.end = to,
            _ => blocks.push(Block { range: from..to, state }),
        };
        for block in touched {
            add(block.range.start, block.range.end.min(range.start), block.state);
        }
        add(range.start, range.end, state);
        for block in touched {
            add(block.range.start.max(range.end), block.range.end, block.state);
        }
        self.blocks.splice(first..behind, blocks);
    }

    /// Adds the finished bytes of `other`, a map of another copy of the device.
    ///
    /// # Errors
    /// The maps are not of the same size.
    pub fn add_finished(&mut self, other: &Map) -> Result<(), Misfit> {
        if self.size() != other.size() {
            return Err(Misfit { map: other.size(), device: self.size() });
        }
        let mut both = Map::empty(self.activity);
        let (mut left, mut right) = (self.blocks.iter().peekable(), other.blocks.iter().peekable());
        while let (Some(one), Some(two)) = (left.peek(), right.peek()) {
            let end = one.range.end.min(two.range.end);
            let state = if two.state == State::Finished { two.state } else { one.state };
            let (is_left, is_right) = (one.range.end == end, two.range.end == end);
            both.push(end, state);
            left.next_if(|_| is_left);
            right.next_if(|_| is_right);
        }
        *self = both;
        Ok(())
    }

    /// Returns the map of a device that is read in units of `unit` bytes: a unit in which a byte is not finished is
    /// a hole as a whole. The last unit may be cut off by the end.
    ///
    /// # Panics
    /// If `unit` is 0.
    #[must_use]
    pub fn coarsened(&self, unit: u64) -> Map {
        assert!(unit > 0, "units of no bytes");
        let mut coarse = Map::empty(self.activity);
        for block in self.blocks.iter().filter(|block| block.state != State::Finished) {
            let end = block.range.end.checked_next_multiple_of(unit).unwrap_or(MAX_SIZE);
            coarse.push(block.range.start / unit * unit, State::Finished);
            coarse.push(end.min(self.size()), block.state);
        }
        coarse.push(self.size(), State::Finished);
        coarse
    }

    /// Returns the map for a device of `size` bytes that is read in units of `unit` bytes, as
    /// [`Map::coarsened`]. The device may lack the last bytes, if they are less than a unit; an open end is cut off. A copy
    /// that ddrescue has not finished is shorter than its map, which keeps the size of the disk.
    ///
    /// # Errors
    /// The map is of another device: it describes fewer bytes, or calls bytes finished that the device does not have.
    ///
    /// # Panics
    /// If `unit` is 0.
    pub fn fitted(&self, size: u64, unit: u64) -> Result<Map, Misfit> {
        let last = self.blocks.last().map_or(0, |last| last.range.start);
        let is_open = self.size() == MAX_SIZE && last <= size;
        let is_whole = size <= self.size() && self.size() - size < unit;
        let end = if is_open || is_whole { size } else { self.size() / unit * unit };
        let coarse = self.coarsened(unit);
        let last = coarse.holes().pop();
        let lacks_only_holes = last.is_some_and(|hole| hole.start <= size && hole.end >= end);
        if end < size || (end > size && !lacks_only_holes) {
            return Err(Misfit { map: self.size(), device: size });
        }
        let mut cut = Map::empty(self.activity);
        for block in coarse.blocks {
            cut.push(block.range.end.min(end), block.state);
        }
        Ok(cut)
    }
}
