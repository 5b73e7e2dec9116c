//! Requests for parts of blocks, by requests for whole ones.
//!
//! ```text
//!   blocks     │     ▒▒▒▒▒│▒▒▒▒▒▒▒▒▒▒│▒▒▒       │
//!              head ▲      client's bytes  ▲ tail      head, tail < a block
//!   a read     all blocks, of which head and tail are not sent
//!   a write    reads the first and the last block, fills head and tail in, writes all blocks
//! ```

use braid_block::{Completion, Errno, Flags, Io, Payload, Span};
use braid_engine::Dev;

use crate::canary::Canary;
use crate::overlaps::Lane;

/// A range of bytes in the whole blocks that hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    /// The blocks.
    pub(super) span: Span,
    /// Bytes of the first block before the range.
    pub(super) head: u64,
    /// Bytes of the last block behind the range.
    pub(super) tail: u64,
    block: u64,
}

impl Blocks {
    /// Those of `len` bytes from `offset`, of which each has `block` bytes, a power of two.
    #[inline]
    pub(super) fn of(offset: u64, len: u64, block: u32) -> Blocks {
        let block = u64::from(block);
        let head = offset & (block - 1);
        let tail = (offset + len).wrapping_neg() & (block - 1);
        Blocks { span: Span::new(offset - head, head + len + tail), head, tail, block }
    }

    /// Returns true if the range is whole blocks.
    #[inline]
    pub(super) fn are_whole(&self) -> bool {
        self.head | self.tail == 0
    }

    /// The blocks that lie in the range; maybe none.
    pub(super) fn inside(&self) -> Span {
        let from = self.span.offset + if self.head > 0 { self.block } else { 0 };
        let to = self.span.end() - if self.tail > 0 { self.block } else { 0 };
        Span::new(from, to.saturating_sub(from))
    }

    /// Bytes of memory to read the first and the last block.
    pub(super) fn scratch(&self) -> u64 {
        if self.are_whole() { 0 } else { 2 * self.block }
    }

    /// The requested range of the blocks that were read.
    pub(super) fn cut(&self, mut payload: Payload) -> Payload {
        drop(payload.take_front(self.head));
        payload.take_front(self.span.len - self.head - self.tail)
    }

    /// The blocks that hold more than the range: where each begins, and which of its bytes are in the range.
    fn edges(&self) -> Vec<(u64, std::ops::Range<usize>)> {
        let (block, head, tail) = (self.block as usize, self.head as usize, self.tail as usize);
        let (first, last) = (self.span.offset, self.span.end() - self.block);
        if first == last {
            return vec![(first, head..block - tail)];
        }
        let edges = [(first, head..block), (last, 0..block - tail)];
        edges.into_iter().filter(|(_, range)| range.len() < block).collect()
    }
}

/// The memory of a write to parts of blocks, but for the client's bytes.
pub(super) struct Edges {
    blocks: Blocks,
    front: Payload,
    back: Payload,
    scratch: Payload,
}

impl Edges {
    /// Divides memory for the blocks, and to read the first and the last: answers what is between the edges, for
    /// the client's bytes. A device that takes aligned memory only gets the blocks in it.
    pub(super) fn divide(blocks: Blocks, mut memory: Payload) -> (Edges, Payload) {
        let mut bytes = memory.take_front(blocks.span.len);
        let front = bytes.take_front(blocks.head);
        let middle = bytes.take_front(blocks.span.len - blocks.head - blocks.tail);
        (Edges { blocks, front, back: bytes, scratch: memory }, middle)
    }

    /// Writes the client's bytes, `middle`, and around them what was there.
    pub(super) async fn write(
        mut self,
        dev: Dev,
        lane: Lane,
        middle: Payload,
        flags: Flags,
    ) -> Completion {
        let _alone = lane.alone(self.blocks.span).await;
        for (at, range) in self.blocks.edges() {
            let old = match read(&dev, at, self.scratch.take_front(self.blocks.block)).await {
                Ok(old) => old.to_vec(),
                Err(errno) => return failed(errno),
            };
            if at == self.blocks.span.offset {
                put(&mut self.front, 0, &old[..range.start]);
            }
            let is_last = at == self.blocks.span.end() - self.blocks.block;
            if is_last && !Canary::NeighboursLost.is_planted() {
                put(&mut self.back, 0, &old[range.end..]);
            }
        }
        let flags = if Canary::FuaOfPartsLost.is_planted() { Flags::NONE } else { flags };
        let mut payload = self.front;
        payload.append(middle);
        payload.append(self.back);
        dev.start(Io::write(self.blocks.span.offset, payload, flags)).await
    }
}

/// Writes zeroes to parts of blocks, with memory to read the first and the last.
pub(super) async fn write_zeroes(
    blocks: Blocks,
    dev: Dev,
    lane: Lane,
    mut scratch: Payload,
    flags: Flags,
) -> Completion {
    let _alone = lane.alone(blocks.span).await;
    for (at, range) in blocks.edges() {
        let mut payload = match read(&dev, at, scratch.take_front(blocks.block)).await {
            Ok(payload) => payload,
            Err(errno) => return failed(errno),
        };
        put(&mut payload, range.start, &vec![0; range.len()]);
        let done = dev.start(Io::write(at, payload, flags)).await;
        if done.result.is_err() {
            return done;
        }
    }
    match blocks.inside() {
        inside if inside.is_empty() => Completion { result: Ok(()), payload: Payload::None },
        inside => dev.start(Io::write_zeroes(inside, flags)).await,
    }
}

async fn read(dev: &Dev, at: u64, memory: Payload) -> Result<Payload, Errno> {
    let done = dev.start(Io::read(at, memory)).await;
    done.result.map(|()| done.payload)
}

fn failed(errno: Errno) -> Completion {
    Completion { result: Err(errno), payload: Payload::None }
}

/// Copies `bytes` to what lies `skip` bytes behind the start.
fn put(to: &mut Payload, mut skip: usize, mut bytes: &[u8]) {
    for buf in to.bufs_mut() {
        let from = skip.min(buf.len());
        let count = bytes.len().min(buf.len() - from);
        buf[from..from + count].copy_from_slice(&bytes[..count]);
        bytes = &bytes[count..];
        skip -= from;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::{Context, Poll, Waker};

    use braid_block::{Limits, Op};
    use braid_engine::{Device, Pending};
    use braid_mem::Pool;

    use super::*;
    use crate::overlaps::Overlaps;

    type Asked = Rc<RefCell<Vec<(Op, Span, Flags)>>>;

    /// Keeps what it is asked to change.
    struct Witness(Asked);

    impl Device for Witness {
        fn limits(&self) -> Limits {
            Limits::new(1 << 20, 512)
        }

        fn start(&self, io: Io) -> Pending {
            if io.op.is_modifying() {
                self.0.borrow_mut().push((io.op, io.span, io.flags));
            }
            Pending::ready(io.complete(Ok(())))
        }
    }

    /// Returns the device requests of `request`, which must succeed.
    fn asked<F: Future<Output = Completion>>(
        request: impl FnOnce(Dev, Lane, &Pool) -> F,
    ) -> Vec<(Op, Span, Flags)> {
        let (asked, pool) = (Asked::default(), Pool::new(1 << 20).expect("memory"));
        let (dev, lane) = (Dev::new(Witness(Rc::clone(&asked))), Overlaps::default().lane());
        let done = pin!(request(dev, lane, &pool)).poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Completion { result, .. }) = done else { panic!("nothing is in the way") };
        assert_eq!(result, Ok(()));
        asked.take()
    }

    #[test]
    fn all_that_a_part_takes_is_written_with_its_flags() {
        let blocks = Blocks::of(100, 1536, 512);
        let memory = |pool: &Pool, len: u64| Payload::One(pool.get(len as usize).expect("memory"));
        let written = asked(|dev, lane, pool| {
            let (edges, middle) =
                Edges::divide(blocks, memory(pool, blocks.span.len + blocks.scratch()));
            edges.write(dev, lane, middle, Flags::FUA)
        });
        assert_eq!(written, [(Op::Write, Span::new(0, 2048), Flags::FUA)]);
        let zeroed = asked(|dev, lane, pool| {
            write_zeroes(blocks, dev, lane, memory(pool, blocks.scratch()), Flags::FUA)
        });
        let edge = |at| (Op::Write, Span::new(at, 512), Flags::FUA);
        let inside = (Op::WriteZeroes, Span::new(512, 1024), Flags::FUA);
        assert_eq!(zeroed, [edge(0), edge(1536), inside]);
    }

    /// Bytes that are kept.
    struct Disk(Rc<RefCell<Vec<u8>>>);

    impl Device for Disk {
        fn limits(&self) -> Limits {
            Limits::new(2048, 512)
        }

        fn start(&self, mut io: Io) -> Pending {
            let mut disk = self.0.borrow_mut();
            let mut at = io.span.offset as usize;
            match io.op {
                Op::WriteZeroes => disk[at..io.span.end() as usize].fill(0),
                Op::Write => disk[at..io.span.end() as usize].copy_from_slice(&io.payload.to_vec()),
                _ => {
                    for buf in io.payload.bufs_mut() {
                        let end = at + buf.len();
                        buf.copy_from_slice(&disk[at..end]);
                        at = end;
                    }
                }
            }
            Pending::ready(io.complete(Ok(())))
        }
    }

    #[test]
    fn bytes_around_a_part_stay() {
        let pool = Pool::new(1 << 20).expect("memory");
        let memory = |len: u64, byte| {
            let mut buf = pool.get(len as usize).expect("memory");
            buf.fill(byte);
            Payload::One(buf)
        };
        for (offset, len) in [(100, 50), (500, 24), (100, 1500), (512, 100), (900, 124)] {
            let blocks = Blocks::of(offset, len, 512);
            for is_zeroes in [false, true] {
                let bytes = Rc::new(RefCell::new(vec![1; 2048]));
                let (dev, lane) = (Dev::new(Disk(Rc::clone(&bytes))), Overlaps::default().lane());
                let mut cx = Context::from_waker(Waker::noop());
                let done = if is_zeroes {
                    let scratch = memory(blocks.scratch(), 9);
                    pin!(write_zeroes(blocks, dev, lane, scratch, Flags::NONE)).poll(&mut cx)
                } else {
                    let all = memory(blocks.span.len + blocks.scratch(), 9);
                    let (edges, mut middle) = Edges::divide(blocks, all);
                    middle.bufs_mut().iter_mut().for_each(|buf| buf.fill(2));
                    pin!(edges.write(dev, lane, middle, Flags::NONE)).poll(&mut cx)
                };
                assert!(matches!(done, Poll::Ready(Completion { result: Ok(()), .. })));
                let mut expected = vec![1; 2048];
                expected[offset as usize..][..len as usize].fill(if is_zeroes { 0 } else { 2 });
                assert!(*bytes.borrow() == expected, "{len} bytes from {offset}");
            }
        }
    }

    #[test]
    fn a_range_lies_in_its_blocks() {
        for (offset, len, span, inside, edges) in [
            (0, 512, (0, 512), (0, 512), vec![]),
            (1, 1, (0, 512), (512, 0), vec![(0, 1..2)]),
            (511, 2, (0, 1024), (512, 0), vec![(0, 511..512), (512, 0..1)]),
            (512, 513, (512, 1024), (512, 512), vec![(1024, 0..1)]),
            (100, 1436, (0, 1536), (512, 1024), vec![(0, 100..512)]),
        ] {
            let blocks = Blocks::of(offset, len, 512);
            assert_eq!(blocks.span, Span::new(span.0, span.1));
            assert_eq!(blocks.inside(), Span::new(inside.0, inside.1));
            assert_eq!(blocks.are_whole(), edges.is_empty());
            assert!(blocks.are_whole() || blocks.edges() == edges, "{offset}+{len}");
        }
    }
}
