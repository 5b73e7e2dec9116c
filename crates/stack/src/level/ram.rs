//! `ram(SIZE, …)`: a RAM disk. Its content is zero when it is made and gone when its process ends,
//! unless it has an image.

use std::fmt;

use super::Level;
use super::args::{Args, device_size, size_between};
use crate::error::Fault;
use crate::expr::fmt_word;
use crate::problem::Problem;
use crate::size::ByteSize;

/// A RAM disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ram {
    /// Bytes: whole logical blocks, not zero.
    pub size: ByteSize,
    /// All of its memory is taken when it comes up, and kept whatever is discarded.
    pub preallocate: bool,
    /// Its pages are of the machine's pool of huge pages.
    pub huge: bool,
    /// It is never swapped out.
    pub lock: bool,
    /// It may promise memory that the machine does not have.
    pub overcommit: bool,
    /// Smallest unit that can be addressed, in bytes: a power of two from 512 to 4096.
    pub logical_block: ByteSize,
    /// The file that its content is restored from when it comes up, and saved to when it goes down; not
    /// empty.
    pub image: Option<String>,
}

impl Ram {
    /// Bytes of a logical block if none are given.
    pub const DEFAULT_BLOCK: ByteSize = ByteSize(512);
    /// The most bytes of a logical block.
    pub const MAX_BLOCK: ByteSize = ByteSize::kib(4);

    /// One of `size`, and nothing special.
    #[must_use]
    pub fn new(size: ByteSize) -> Ram {
        Ram {
            size,
            preallocate: false,
            huge: false,
            lock: false,
            overcommit: false,
            logical_block: Self::DEFAULT_BLOCK,
            image: None,
        }
    }

    /// The words that were given, in the order in which they are printed.
    #[must_use]
    pub fn words(&self) -> Vec<&'static str> {
        let all = [
            (self.preallocate, "preallocate"),
            (self.huge, "huge"),
            (self.lock, "lock"),
            (self.overcommit, "overcommit"),
        ];
        all.into_iter().filter_map(|(given, word)| given.then_some(word)).collect()
    }
}

/// The option that a word after the size sets.
type Set = fn(&mut Ram) -> &mut bool;

const WORDS: &[(&str, Set)] = &[
    ("preallocate", |ram| &mut ram.preallocate),
    ("huge", |ram| &mut ram.huge),
    ("lock", |ram| &mut ram.lock),
    ("overcommit", |ram| &mut ram.overcommit),
];

impl Level for Ram {
    const NAME: &'static str = "ram";
    const USAGE: &'static str = "ram(SIZE, preallocate, huge, lock, overcommit, logical_block=512, image=PATH), for example ram(1G)";
    const PARAMETERS: &'static [&'static str] = &["logical_block", "image"];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let (size_word, words) =
            args.first_and_words("size", "a size", "word for a RAM disk", WORDS)?;
        let mut ram = Self::new(device_size("size", size_word)?);
        for set in words {
            *set(&mut ram) = true;
        }
        if let Some(word) = args.word("logical_block")? {
            let (least, most) = (Self::DEFAULT_BLOCK, Self::MAX_BLOCK);
            let block = size_between("logical_block", word, least, most, least)?;
            if !block.bytes().is_power_of_two() {
                let problem = Problem::NotPowerOfTwo { what: "logical_block", value: block };
                return Err(Fault::new(problem, word.span));
            }
            ram.logical_block = block;
        }
        let (value, multiple) = (ram.size, ram.logical_block);
        if !value.bytes().is_multiple_of(multiple.bytes()) {
            let problem = Problem::NotMultiple { what: "size", value, multiple };
            return Err(Fault::new(problem, size_word.span));
        }
        ram.image = args.path("image")?;
        Ok(ram)
    }
}

impl fmt::Display for Ram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ram({}", self.size)?;
        for word in self.words() {
            write!(f, ", {word}")?;
        }
        if self.logical_block != Self::DEFAULT_BLOCK {
            write!(f, ", logical_block={}", self.logical_block)?;
        }
        if let Some(image) = &self.image {
            f.write_str(", image=")?;
            fmt_word(f, image)?;
        }
        f.write_str(")")
    }
}
