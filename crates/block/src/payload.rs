//! The memory of a request: one buffer, or several in order.

use std::task::{Context, Poll};

use braid_mem::{Buf, Pool};

/// Bytes in order, in one or more buffers. Boundaries between buffers have no meaning: cutting
/// and appending may move them.
#[derive(Debug, Default)]
pub enum Payload {
    /// No bytes.
    #[default]
    None,
    /// One buffer, the usual case; nothing on the heap.
    One(Buf),
    /// Several, after a request was cut and its pieces gathered.
    Many(Vec<Buf>),
}

impl Payload {
    /// Takes `len` bytes of `pool` in buffers of at most `piece`, if `left` bytes stay, or as many as can; otherwise
    /// the task is woken when memory comes back. What stays is for devices that need memory for the requests that hold
    /// theirs.
    pub fn poll_take(
        pool: &Pool,
        len: usize,
        piece: usize,
        left: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Payload> {
        if len == 0 {
            return Poll::Ready(Payload::None);
        }
        let left = left.min(pool.total_bytes().saturating_sub(len));
        if pool.poll_free(len.saturating_add(left), cx).is_pending() {
            return Poll::Pending;
        }
        if len <= piece {
            return pool.poll_get(len, cx).map(Payload::One);
        }
        let lens: Vec<usize> =
            (0..len).step_by(piece).map(|start| piece.min(len - start)).collect();
        pool.poll_get_all(&lens, cx).map(Payload::Many)
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Payload::None => 0,
            Payload::One(buf) => buf.len() as u64,
            Payload::Many(bufs) => bufs.iter().map(|buf| buf.len() as u64).sum(),
        }
    }

    /// True if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffers, in order.
    #[inline]
    pub fn bufs(&self) -> &[Buf] {
        match self {
            Payload::None => &[],
            Payload::One(buf) => std::slice::from_ref(buf),
            Payload::Many(bufs) => bufs,
        }
    }

    /// The buffers, in order, to be filled.
    #[inline]
    pub fn bufs_mut(&mut self) -> &mut [Buf] {
        match self {
            Payload::None => &mut [],
            Payload::One(buf) => std::slice::from_mut(buf),
            Payload::Many(bufs) => bufs,
        }
    }

    /// Takes the first `len` bytes out, cutting a buffer where they end inside one.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn take_front(&mut self, len: u64) -> Payload {
        let mut front = Payload::None;
        let mut wanted = len;
        while wanted > 0 {
            let mut first = self.pop_front();
            if (first.len() as u64) > wanted {
                self.push_front(first.split_off(wanted as usize));
            }
            wanted -= first.len() as u64;
            front.push_back(first);
        }
        front
    }

    /// Puts `next` behind what is there, joining buffers that lie side by side in memory.
    pub fn append(&mut self, next: Payload) {
        match next {
            Payload::None => {}
            Payload::One(buf) => self.push_back(buf),
            Payload::Many(bufs) => bufs.into_iter().for_each(|buf| self.push_back(buf)),
        }
    }

    /// The same bytes once more, to be stored elsewhere at the same time. Until
    /// [`Payload::reclaim`], neither can be filled.
    pub fn share(&mut self) -> Payload {
        match self {
            Payload::None => Payload::None,
            Payload::One(buf) => Payload::One(buf.share()),
            Payload::Many(bufs) => Payload::Many(bufs.iter_mut().map(Buf::share).collect()),
        }
    }

    /// After the copies made by [`Payload::share`] are gone: the bytes can be filled again.
    pub fn reclaim(&mut self) {
        self.bufs_mut().iter_mut().for_each(|buf| {
            buf.reclaim();
        });
    }

    /// Like [`Payload::reclaim`], if a device that did not answer in time may still have a copy: the bytes are
    /// copied, so that the payload can be filled again.
    pub fn detach(&mut self) {
        self.bufs_mut().iter_mut().for_each(|buf| {
            buf.detach();
        });
    }

    /// All bytes in one buffer; none if there are no bytes. Pieces that do not lie side by side, as when
    /// a device that did not answer in time has kept one of them, are copied.
    pub fn into_one(self) -> Option<Buf> {
        match self {
            Payload::None => None,
            Payload::One(buf) => Some(buf),
            Payload::Many(mut bufs) if bufs.len() == 1 => bufs.pop(),
            Payload::Many(bufs) => {
                let mut whole = Buf::apart(bufs.iter().map(Buf::len).sum()).ok()?;
                let mut rest = &mut whole[..];
                for buf in &bufs {
                    let (part, behind) = rest.split_at_mut(buf.len());
                    part.copy_from_slice(buf);
                    rest = behind;
                }
                Some(whole)
            }
        }
    }

    /// Copies the bytes into a vector, for tests and messages.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len() as usize);
        self.bufs().iter().for_each(|buf| bytes.extend_from_slice(buf));
        bytes
    }

    fn push_back(&mut self, next: Buf) {
        match self {
            Payload::None => *self = Payload::One(next),
            Payload::One(last) => {
                if let Err(next) = last.join(next) {
                    let Payload::One(last) = std::mem::take(self) else {
                        unreachable!("matched as one buffer")
                    };
                    *self = Payload::Many(vec![last, next]);
                }
            }
            Payload::Many(bufs) => match bufs.last_mut() {
                Some(last) => {
                    if let Err(next) = last.join(next) {
                        bufs.push(next);
                    }
                }
                None => bufs.push(next),
            },
        }
    }

    fn pop_front(&mut self) -> Buf {
        match std::mem::take(self) {
            Payload::None => panic!("a payload was cut past its end"),
            Payload::One(buf) => buf,
            Payload::Many(mut bufs) => {
                let first = bufs.remove(0);
                *self = Payload::Many(bufs);
                first
            }
        }
    }

    fn push_front(&mut self, buf: Buf) {
        match self {
            Payload::None => *self = Payload::One(buf),
            Payload::One(_) => {
                let Payload::One(old) = std::mem::take(self) else {
                    unreachable!("matched as one buffer")
                };
                *self = Payload::Many(vec![buf, old]);
            }
            Payload::Many(bufs) => bufs.insert(0, buf),
        }
    }
}

impl From<Buf> for Payload {
    #[inline]
    fn from(buf: Buf) -> Payload {
        Payload::One(buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_mem::Pool;
    use proptest::prelude::*;

    fn filled(pool: &Pool, len: usize, start: usize) -> Buf {
        let mut buf = pool.get(len).unwrap();
        buf.iter_mut().enumerate().for_each(|(i, byte)| *byte = (start + i) as u8);
        buf
    }

    #[test]
    fn pieces_that_lie_apart_become_one_buffer() {
        let pool = Pool::new(1 << 20).unwrap();
        let mut whole = Payload::from(filled(&pool, 3000, 0));
        let front = whole.take_front(1000);
        let mut middle = Buf::apart(500).unwrap();
        middle.fill(9);
        let _ = whole.take_front(500);
        let mut back = front;
        back.append(middle.into());
        back.append(whole);
        let bytes = back.to_vec();
        let one = back.into_one().expect("memory");
        assert_eq!(*one, bytes[..]);
        assert!(one[1000..1500].iter().all(|byte| *byte == 9));
        assert!(Payload::None.into_one().is_none());
    }

    proptest! {
        /// Cutting anywhere and appending in order gives the same bytes, whatever buffers they
        /// started in; pieces of one buffer become one buffer again.
        #[test]
        fn cut_and_append_keep_the_bytes(lens in prop::collection::vec(1usize..9000, 1..5), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
            let pool = Pool::new(1 << 20).unwrap();
            let total: usize = lens.iter().sum();
            let mut payload = Payload::None;
            let mut start = 0;
            for len in &lens {
                payload.append(filled(&pool, *len, start).into());
                start += len;
            }
            let before = payload.bufs().len();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(total)).collect();
            at.sort_unstable();
            let mut pieces = Vec::new();
            let mut done = 0;
            for cut in at {
                pieces.push(payload.take_front((cut - done) as u64));
                done = cut;
            }
            let mut whole = Payload::None;
            pieces.into_iter().for_each(|piece| whole.append(piece));
            whole.append(payload);
            prop_assert_eq!(whole.len(), total as u64);
            prop_assert_eq!(whole.bufs().len(), before);
            prop_assert!(whole.to_vec().iter().enumerate().all(|(i, byte)| *byte == i as u8));
        }
    }
}
