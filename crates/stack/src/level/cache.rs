//! `cache(size=SIZE, ORIGIN)`: memory in front of a device.

use std::fmt;

use braid_level::{CacheMode, CachePolicy};

use super::args::{Args, size_between};
use super::{Level, Stack};
use crate::error::Fault;
use crate::expr::fmt_word;
use crate::problem::Problem;
use crate::size::{ByteSize, Latency, Rate};

/// A RAM cache in front of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// Memory for data, in bytes: at least a block, of which as many are used as are whole.
    pub size: ByteSize,
    /// The unit that is held or dropped, in bytes: a power of two from 4 KiB to 64 KiB.
    pub block: ByteSize,
    /// The handling of writes.
    pub mode: CacheMode,
    /// The choice of the block that leaves when it is full.
    pub policy: CachePolicy,
    /// Sequential runs longer than this go past the cache; none if none does.
    pub cutoff: Option<ByteSize>,
    /// In write-back mode: what a FLUSH makes durable beside the origin, and how much may be dirty.
    pub write_back: Option<WriteBack>,
    /// The file that keeps its content between two runs; `None` if it is not kept.
    pub warm: Option<Warm>,
    /// The device behind it; in write-back mode followed by the log, if there is one.
    pub devices: Vec<Stack>,
}

/// The way in which a cache in write-back mode keeps blocks that its origin does not have yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteBack {
    /// Dirty bytes beyond which writers wait; half of the memory if not given.
    pub dirty: Option<ByteSize>,
    /// The greatest age of a dirty block before it is drained.
    pub age: Option<Latency>,
    /// The limit of draining while there is time; no limit if not given.
    pub drain: Option<Rate>,
}

/// The part of a cache that is kept between two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warm {
    /// The file; not empty.
    pub path: String,
    /// Data, too; else only which blocks were held.
    pub has_data: bool,
}

impl Cache {
    /// Bytes of a block if none are given: a page, and the least there are.
    pub const DEFAULT_BLOCK: ByteSize = ByteSize::kib(4);
    /// The most bytes of a block.
    pub const MAX_BLOCK: ByteSize = ByteSize::kib(64);
    /// The greatest age of a dirty block if none is given.
    pub const DEFAULT_AGE: Latency = Latency(30_000_000_000);

    /// The device behind it.
    #[must_use]
    pub fn origin(&self) -> &Stack {
        &self.devices[0]
    }

    /// The device that keeps flushed blocks over a crash until the origin has them.
    #[must_use]
    pub fn log(&self) -> Option<&Stack> {
        self.devices.get(1)
    }
}

const MODES: &[(&str, CacheMode)] = &[
    (CacheMode::WriteThrough.name(), CacheMode::WriteThrough),
    (CacheMode::WriteAround.name(), CacheMode::WriteAround),
    (CacheMode::WriteBack.name(), CacheMode::WriteBack),
];

const YES: &[(&str, bool)] = &[("yes", true), ("no", false)];

const SAVED: &[(&str, bool)] = &[("index", false), ("data", true)];

const POLICIES: &[(&str, CachePolicy)] = &[
    (CachePolicy::S3Fifo.name(), CachePolicy::S3Fifo),
    (CachePolicy::Lru.name(), CachePolicy::Lru),
];

/// The most memory: slots are counted in 32 bits.
const MAX_SIZE: ByteSize = ByteSize(1 << 43);

impl Level for Cache {
    const NAME: &'static str = "cache";
    const USAGE: &'static str = "cache(size=SIZE, mode=write-through, block=4K, policy=s3-fifo, cutoff=SIZE, warm=PATH, saved=index, ORIGIN); \
         with mode=write-back also log=PATH or volatile=yes, dirty=SIZE, age=30s, drain=RATE";
    const PARAMETERS: &'static [&'static str] = &[
        "size", "mode", "block", "policy", "cutoff", "log", "volatile", "dirty", "age", "drain",
        "warm", "saved",
    ];

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
        let mut devices = vec![*args.origin()?];
        let mode = args.choice("mode", MODES)?.unwrap_or_default();
        let write_back = check_write_back(args, mode, size, block)?;
        devices.extend(args.stack("log")?);
        Ok(Self {
            size,
            block,
            mode,
            policy: args.choice("policy", POLICIES)?.unwrap_or_default(),
            cutoff: args.size("cutoff")?,
            write_back,
            warm: check_warm(args)?,
            devices,
        })
    }

    fn members(&self) -> &[Stack] {
        &self.devices
    }

    fn members_mut(&mut self) -> &mut [Stack] {
        &mut self.devices
    }
}

/// The part that is kept between two runs.
fn check_warm(args: &Args<'_>) -> Result<Option<Warm>, Fault> {
    let has_data = args.choice("saved", SAVED)?;
    let Some(path) = args.path("warm")? else {
        let Some(span) = args.place("saved") else { return Ok(None) };
        return Err(Fault::new(Problem::OnlyWarm, span));
    };
    Ok(Some(Warm { path, has_data: has_data.unwrap_or(false) }))
}

/// The parameters that only write-back mode has, and must have.
fn check_write_back(
    args: &Args<'_>,
    mode: CacheMode,
    size: ByteSize,
    block: ByteSize,
) -> Result<Option<WriteBack>, Fault> {
    if mode != CacheMode::WriteBack {
        for parameter in ["log", "volatile", "dirty", "age", "drain"] {
            if let Some(span) = args.place(parameter) {
                return Err(Fault::new(Problem::OnlyWriteBack { parameter }, span));
            }
        }
        return Ok(None);
    }
    let is_volatile = args.choice("volatile", YES)?.unwrap_or(false);
    match (args.place("log"), is_volatile) {
        (None, false) => return Err(Fault::new(Problem::NoLog, args.span())),
        (Some(span), true) => return Err(Fault::new(Problem::VolatileLog, span)),
        (Some(_), false) | (None, true) => {}
    }
    let dirty = args.word("dirty")?.map(|word| size_between("dirty", word, block, size, block));
    let (age, drain) = (args.quantity("age")?, args.rate("drain")?);
    Ok(Some(WriteBack { dirty: dirty.transpose()?, age, drain }))
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
        if let Some(WriteBack { dirty, age, drain }) = self.write_back {
            match self.log() {
                Some(log) => write!(f, ", log={log}")?,
                None => f.write_str(", volatile=yes")?,
            }
            if let Some(dirty) = dirty {
                write!(f, ", dirty={dirty}")?;
            }
            if let Some(age) = age {
                write!(f, ", age={age}")?;
            }
            if let Some(drain) = drain {
                write!(f, ", drain={drain}")?;
            }
        }
        if let Some(Warm { path, has_data }) = &self.warm {
            f.write_str(", warm=")?;
            fmt_word(f, path)?;
            if *has_data {
                f.write_str(", saved=data")?;
            }
        }
        f.write_str(", ")?;
        super::fmt_members(f, &self.devices[..1])?;
        f.write_str(")")
    }
}
