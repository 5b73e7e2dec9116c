//! The modes in which a cache in front of a device handles writes, and the policies by which blocks leave it:
//! names.

use std::fmt;

/// The handling of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// They go to the origin, and are held.
    #[default]
    WriteThrough,
    /// They go to the origin, and what was held of their place is dropped.
    WriteAround,
    /// They are held, and go to the origin later.
    WriteBack,
}

impl CacheMode {
    /// All of them.
    pub const ALL: [CacheMode; 3] =
        [CacheMode::WriteThrough, CacheMode::WriteAround, CacheMode::WriteBack];

    /// As it is written in a stack expression.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CacheMode::WriteThrough => "write-through",
            CacheMode::WriteAround => "write-around",
            CacheMode::WriteBack => "write-back",
        }
    }
}

/// Which block leaves a full cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CachePolicy {
    /// One that was not used again while it was new.
    #[default]
    S3Fifo,
    /// The one that was used longest ago.
    Lru,
}

impl CachePolicy {
    /// All of them.
    pub const ALL: [CachePolicy; 2] = [CachePolicy::S3Fifo, CachePolicy::Lru];

    /// As it is written in a stack expression.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CachePolicy::S3Fifo => "s3-fifo",
            CachePolicy::Lru => "lru",
        }
    }
}

impl fmt::Display for CacheMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for CachePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
