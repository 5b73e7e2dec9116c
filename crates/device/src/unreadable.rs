//! A device of which no byte can be read.

use braid_block::{Errno, Io, Limits, Op};
use braid_engine::{Device, Pending};

/// A device of which no byte can be read: reads fail with `EIO`. It is read-only.
#[derive(Clone, Copy, Debug)]
pub struct Unreadable {
    size: u64,
}

impl Unreadable {
    /// A device of `size` bytes, a multiple of 512.
    pub fn new(size: u64) -> Unreadable {
        Unreadable { size }
    }
}

impl Device for Unreadable {
    fn limits(&self) -> Limits {
        Limits { read_only: true, ..Limits::new(self.size, 512) }
    }

    fn start(&self, io: Io) -> Pending {
        let result = if io.op == Op::Flush { Ok(()) } else { Err(Errno::IO) };
        Pending::ready(io.complete(result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_block::Span;
    use braid_mem::Pool;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn reads_fail_and_all_of_it_is_data() {
        let device = Unreadable::new(4096);
        assert_eq!((device.limits().size, device.limits().read_only), (4096, true));
        let answer = |io| {
            let mut pending = device.start(io);
            match Pin::new(&mut pending).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(completion) => completion.result,
                Poll::Pending => panic!("it answers in the call"),
            }
        };
        let pool = Pool::new(1 << 20).expect("a MiB");
        assert_eq!(answer(Io::read(512, pool.get(512).expect("room"))), Err(Errno::IO));
        assert_eq!(answer(Io::flush()), Ok(()));
        // A client that skips what is not allocated would take it for zeroes.
        assert!(
            device
                .extents(Span::new(0, 4096))
                .at_once()
                .expect("it asks nobody")
                .iter()
                .all(|one| !one.zero)
        );
    }
}
