//! The content of a disk, in pages that copies share until one of them is written: a simulated crash copies
//! every disk, and changes little of it.

use std::rc::Rc;

const PAGE: usize = 4096;

thread_local! {
    /// The page of all images that was never written.
    static ZEROES: Rc<[u8; PAGE]> = Rc::new([0; PAGE]);
}

/// The bytes of a disk. A copy costs little.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Image {
    /// The last is filled up with zeroes.
    pages: Vec<Rc<[u8; PAGE]>>,
    len: usize,
}

impl Image {
    /// `len` zeroes.
    pub fn zeroes(len: usize) -> Image {
        Image { pages: vec![ZEROES.with(Rc::clone); len.div_ceil(PAGE)], len }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The `len` bytes from `offset` on, which lie in one page: in 4096 bytes from a multiple of 4096
    /// on.
    ///
    /// # Panics
    /// If they do not.
    pub fn piece(&self, offset: usize, len: usize) -> &[u8] {
        debug_assert!(offset + len <= self.len, "beyond the end");
        &self.pages[offset / PAGE][offset % PAGE..][..len]
    }

    /// Fills `into` with what is there from `offset` on.
    ///
    /// # Panics
    /// If that is beyond the end.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        assert!(offset + into.len() <= self.len, "beyond the end");
        let mut done = 0;
        while done < into.len() {
            let (at, len) = step(offset + done, into.len() - done);
            into[done..][..len].copy_from_slice(self.piece(at, len));
            done += len;
        }
    }

    /// True if `bytes` are there from `offset` on.
    ///
    /// # Panics
    /// If that is beyond the end.
    pub fn holds(&self, offset: usize, bytes: &[u8]) -> bool {
        assert!(offset + bytes.len() <= self.len, "beyond the end");
        let mut done = 0;
        while done < bytes.len() {
            let (at, len) = step(offset + done, bytes.len() - done);
            if self.piece(at, len) != &bytes[done..][..len] {
                return false;
            }
            done += len;
        }
        true
    }

    /// True if the `len` bytes from `offset` on, which lie in one page, are zeroes.
    ///
    /// # Panics
    /// If they do not lie in one page.
    pub(crate) fn is_zero(&self, offset: usize, len: usize) -> bool {
        let is_untouched = ZEROES.with(|zeroes| Rc::ptr_eq(zeroes, &self.pages[offset / PAGE]));
        is_untouched || self.piece(offset, len) == &[0; PAGE][..len]
    }

    /// Has `bytes` from `offset` on.
    ///
    /// # Panics
    /// If that is beyond the end.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len, "beyond the end");
        let mut done = 0;
        while done < bytes.len() {
            let (at, len) = step(offset + done, bytes.len() - done);
            let page = Rc::make_mut(&mut self.pages[at / PAGE]);
            page[at % PAGE..][..len].copy_from_slice(&bytes[done..][..len]);
            done += len;
        }
    }

    /// All of it, in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = vec![0; self.len];
        self.read(0, &mut all);
        all
    }
}

/// The first part of the next `left` bytes, up to the end of the page: its place and its length.
fn step(offset: usize, left: usize) -> (usize, usize) {
    (offset, left.min(PAGE - offset % PAGE))
}

impl From<&[u8]> for Image {
    fn from(bytes: &[u8]) -> Image {
        let mut image = Image::zeroes(bytes.len());
        image.write(0, bytes);
        image
    }
}

impl From<Vec<u8>> for Image {
    fn from(bytes: Vec<u8>) -> Image {
        Image::from(&bytes[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_stays_as_it_is() {
        let bytes: Vec<u8> = (0..3 * PAGE + 7).map(|at| (at % 251) as u8).collect();
        let mut image = Image::from(&bytes[..]);
        let copy = image.clone();
        assert!(image == copy && copy.to_vec() == bytes);
        image.write(PAGE - 3, &[9; PAGE + 6]);
        assert_eq!(copy.to_vec(), bytes);
        assert!(image != copy);
        let mut read = vec![0; PAGE + 8];
        image.read(PAGE - 4, &mut read);
        assert_eq!((read[0], read[1], read[PAGE + 6]), (bytes[PAGE - 4], 9, 9));
        assert_eq!(read[PAGE + 7], bytes[2 * PAGE + 3]);
        assert_eq!(image.piece(3 * PAGE, 7), &bytes[3 * PAGE..]);
        assert!(copy.holds(PAGE - 1, &bytes[PAGE - 1..]) && !image.holds(PAGE - 4, &bytes[..PAGE]));
    }

    #[test]
    fn zeroes_are_found_also_where_they_were_written() {
        let mut image = Image::zeroes(2 * PAGE);
        assert!(image.is_zero(0, PAGE));
        image.write(512, &[0, 1]);
        assert!(image.is_zero(0, 512) && !image.is_zero(512, 512) && image.is_zero(PAGE, 512));
    }
}
