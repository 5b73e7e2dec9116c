//! The content of a golden array: a formula that tells every sector from every other one.
//!
//! ```text
//!   sector s, 512 bytes     | s: u64 LE | token | token | ... 63 times |
//!   token of block b = s/8   BLAKE2b(b: u64 LE, key = the piece's key, 8 bytes of digest)
//! ```
//!
//! `s` counts the array's sectors, not a member's. A content is written in *pieces*, each with a
//! key of its own; later ones lie over earlier ones. The *age* of a content is how many pieces
//! had been written: a member that failed early holds the content of a lesser age. What no piece
//! covers is zero.
//!
//! Invariant: a sector is a [`Sector`], a head and one token that is repeated, and so is every
//! parity of sectors. Hence parity is arithmetic on two words.

use cryptoxide::hashing::blake2b::Blake2b;
use serde::Deserialize;

/// Bytes in a sector.
pub const SECTOR: usize = 512;
/// Sectors that have one token.
const SECTORS_IN_BLOCK: u64 = 8;

/// A sector of content or parity: its first 8 bytes, and the 8 bytes that the rest repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sector {
    /// Bytes 0 to 7, as a little-endian number.
    pub head: u64,
    /// Bytes 8 to 15, and again until the end.
    pub token: u64,
}

impl Sector {
    /// The 512 bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; SECTOR] {
        let mut bytes = [0; SECTOR];
        let (head, rest) = bytes.split_at_mut(8);
        head.copy_from_slice(&self.head.to_le_bytes());
        for word in rest.chunks_exact_mut(8) {
            word.copy_from_slice(&self.token.to_le_bytes());
        }
        bytes
    }

    fn xor(self, other: Sector) -> Sector {
        Sector { head: self.head ^ other.head, token: self.token ^ other.token }
    }

    fn double(self) -> Sector {
        Sector { head: double(self.head), token: double(self.token) }
    }
}

/// Eight bytes of GF(2^8) at once, each times g = 2, modulo x^8 + x^4 + x^3 + x^2 + 1.
fn double(word: u64) -> u64 {
    let high = word & 0x8080_8080_8080_8080;
    ((word ^ high) << 1) ^ ((high >> 7) * 0x1d)
}

/// The token of a block under a key.
fn token(key: &str, block: u64) -> u64 {
    let mut digest = [0; 8];
    let mac = Blake2b::<64>::new_keyed(key.as_bytes()).update(&block.to_le_bytes());
    mac.finalize_at(&mut digest);
    u64::from_le_bytes(digest)
}

/// A piece of the content: `length` bytes from `offset`, of the pattern with this key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Piece {
    /// Place in the array, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// The pattern's key.
    pub key: String,
}

/// A piece with its tokens.
#[derive(Clone, Debug)]
struct Layer {
    /// Array sectors that the piece covers.
    sectors: std::ops::Range<u64>,
    /// The tokens of the blocks that hold them.
    tokens: Vec<u64>,
}

/// The content with which an array was filled, at every age.
#[derive(Clone, Debug)]
pub struct Content {
    layers: Vec<Layer>,
}

impl Content {
    /// The content that was written as these pieces, in this order.
    #[must_use]
    pub fn new(pieces: &[Piece]) -> Content {
        let layer = |piece: &Piece| {
            let first = piece.offset / SECTOR as u64;
            let end = first + piece.length / SECTOR as u64;
            let blocks = first / SECTORS_IN_BLOCK..end.div_ceil(SECTORS_IN_BLOCK);
            let tokens = blocks.map(|block| token(&piece.key, block)).collect();
            Layer { sectors: first..end, tokens }
        };
        Content { layers: pieces.iter().map(layer).collect() }
    }

    /// The age of the content when all was written.
    #[must_use]
    pub fn last_age(&self) -> usize {
        self.layers.len()
    }

    /// A sector of the array after `age` pieces had been written.
    #[must_use]
    pub fn sector(&self, age: usize, sector: u64) -> Sector {
        let over = self.layers[..age].iter().rev().find(|layer| layer.sectors.contains(&sector));
        over.map_or(Sector::default(), |layer| {
            let first = layer.sectors.start / SECTORS_IN_BLOCK;
            let token = layer.tokens[(sector / SECTORS_IN_BLOCK - first) as usize];
            Sector { head: sector, token }
        })
    }

    /// P: the exclusive or of `disks` sectors, of which the first is `sector` and each next one
    /// is `stride` sectors further on in the array.
    #[must_use]
    pub fn p(&self, age: usize, disks: u64, stride: u64, sector: u64) -> Sector {
        (0..disks)
            .map(|disk| self.sector(age, sector + disk * stride))
            .fold(Sector::default(), Sector::xor)
    }

    /// Q: the sum of g^i · D over the same sectors, by Horner's rule. Data disk `first` has g^0,
    /// the next one g^1, and so on round: md counts from the disk behind Q.
    #[must_use]
    pub fn q(&self, age: usize, disks: u64, stride: u64, first: u64, sector: u64) -> Sector {
        (0..disks)
            .rev()
            .map(|power| self.sector(age, sector + (power + first) % disks * stride))
            .fold(Sector::default(), |sum, data| sum.double().xor(data))
    }

    /// Q where data disk i has g^`powers[i]`: in the DDF layouts each member has the power of its
    /// place, and those of P and Q are left out.
    #[must_use]
    pub fn g(&self, age: usize, stride: u64, powers: &[u32], sector: u64) -> Sector {
        (0..)
            .zip(powers)
            .map(|(disk, &power)| {
                let data = self.sector(age, sector + disk * stride);
                (0..power).fold(data, |product, _| product.double())
            })
            .fold(Sector::default(), Sector::xor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication by 2 of a byte alone, by the polynomial's definition.
    fn double_byte(byte: u8) -> u8 {
        let wide = u16::from(byte) << 1;
        (if wide > 0xff { wide ^ 0x11d } else { wide }) as u8
    }

    #[test]
    fn doubling_a_word_doubles_each_byte_alone() {
        for byte in 0..=255_u8 {
            for lane in 0..8 {
                let mut expected = [double_byte(0x91); 8];
                expected[lane] = double_byte(byte);
                let mut bytes = [0x91; 8];
                bytes[lane] = byte;
                assert_eq!(double(u64::from_le_bytes(bytes)).to_le_bytes(), expected);
            }
        }
    }

    #[test]
    fn a_later_piece_lies_over_an_earlier_one_and_not_beyond_its_ends() {
        let piece = |offset, length, key: &str| Piece { offset, length, key: key.into() };
        let content = Content::new(&[piece(0, 16384, "old"), piece(4608, 4096, "new")]);
        for sector in 0..40 {
            let old = Sector { head: sector, token: token("old", sector / 8) };
            let new = Sector { head: sector, token: token("new", sector / 8) };
            let first = if sector < 32 { old } else { Sector::default() };
            assert_eq!(content.sector(0, sector), Sector::default());
            assert_eq!(content.sector(1, sector), first);
            assert_eq!(
                content.sector(2, sector),
                if (9..17).contains(&sector) { new } else { first }
            );
        }
    }
}
