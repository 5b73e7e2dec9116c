//! `cache(size=SIZE, ORIGIN)`: memory in front of a device, which has everything at every moment.

use std::fmt;

use braid_level::{CacheMode, CachePolicy};

use super::args::{Args, size_between};
use super::{Level, Stack};
use crate::error::Fault;
use crate::problem::Problem;
use crate::size::ByteSize;

/// A RAM cache in front of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// Memory for data, in bytes: at least a block, of which as many are used as are whole.
    pub size: ByteSize,
    /// What is held or dropped in one piece, in bytes: a power of two from 4 KiB to 64 KiB.
    pub block: ByteSize,
    /// What becomes of writes.
    pub mode: CacheMode,
    /// Which block leaves when it is full.
    pub policy: CachePolicy,
    /// Sequential runs longer than this go past the cache; none if none does.
    pub cutoff: Option<ByteSize>,
    /// The device behind it.
    pub origin: Box<[Stack; 1]>,
}

impl Cache {
    /// Bytes of a block if none are given: a page, and the least there are.
    pub const DEFAULT_BLOCK: ByteSize = ByteSize::kib(4);
    /// The most bytes of a block.
    pub const MAX_BLOCK: ByteSize = ByteSize::kib(64);
}

const MODES: &[(&str, CacheMode)] = &[
    (CacheMode::WriteThrough.name(), CacheMode::WriteThrough),
    (CacheMode::WriteAround.name(), CacheMode::WriteAround),
];

const POLICIES: &[(&str, CachePolicy)] = &[
    (CachePolicy::S3Fifo.name(), CachePolicy::S3Fifo),
    (CachePolicy::Sieve.name(), CachePolicy::Sieve),
    (CachePolicy::Arc.name(), CachePolicy::Arc),
    (CachePolicy::Lru.name(), CachePolicy::Lru),
];

/// The most memory: slots are counted in 32 bits.
const MAX_SIZE: ByteSize = ByteSize(1 << 43);

impl Level for Cache {
    const NAME: &'static str = "cache";
    const USAGE: &'static str =
        "cache(size=SIZE, mode=write-through, block=4K, policy=s3-fifo, cutoff=SIZE, ORIGIN)";
    const PARAMETERS: &'static [&'static str] = &["size", "mode", "block", "policy", "cutoff"];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let block = match args.word("block")? {
            Some(word) => {
                let least = Self::DEFAULT_BLOCK;
                let block = size_between("block", word, least, Self::MAX_BLOCK, least)?;
                if !block.bytes().is_power_of_two() {
                    let problem = Problem::NotPowerOfTwo { what: "block", value: block };
                    return Err(Fault::new(problem, word.span));
                }
                block
            }
            None => Self::DEFAULT_BLOCK,
        };
        let size = args.required_size("size", "the memory that it may take: size=SIZE")?;
        if !(block..=MAX_SIZE).contains(&size) {
            let problem =
                Problem::OutOfRange { what: "size", value: size, min: block, max: MAX_SIZE };
            return Err(Fault::new(problem, args.span()));
        }
        let origin = <[Stack; 1]>::try_from(args.members()?).map_err(|several| {
            let problem = Problem::TooManyArguments { level: Self::NAME, usage: Self::USAGE };
            Fault::new(problem, several.get(1).map_or(args.span(), |second| second.span))
        })?;
        Ok(Self {
            size,
            block,
            mode: args.choice("mode", MODES)?.unwrap_or_default(),
            policy: args.choice("policy", POLICIES)?.unwrap_or_default(),
            cutoff: args.size("cutoff")?,
            origin: Box::new(origin),
        })
    }

    fn members(&self) -> &[Stack] {
        &self.origin[..]
    }

    fn members_mut(&mut self) -> &mut [Stack] {
        &mut self.origin[..]
    }
}

impl fmt::Display for Cache {
    /// The mode is always there, so that a log says it; the rest where it is not the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cache(size={}, mode={}", self.size, self.mode)?;
        if self.block != Self::DEFAULT_BLOCK {
            write!(f, ", block={}", self.block)?;
        }
        if self.policy != CachePolicy::default() {
            write!(f, ", policy={}", self.policy)?;
        }
        if let Some(cutoff) = self.cutoff {
            write!(f, ", cutoff={cutoff}")?;
        }
        f.write_str(", ")?;
        super::fmt_members(f, &self.origin[..])?;
        f.write_str(")")
    }
}
