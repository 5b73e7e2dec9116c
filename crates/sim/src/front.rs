//! The parts of a stack between an array and its clients.
//!
//! ```text
//!   clients ── NBD ── cache ── linear ── the array ── disks
//! ```
//!
//! Invariant: each byte has the place that it has in the array, and a write that is answered is in the array. So what
//! clients may read is the same as without these parts.
//!
//! Deliberately absent: caches in write-back mode, whose promise is another (`cache/tests/write_back`).

use std::convert::Infallible;
use std::fmt;

use braid_array::geometry::Linear;
use braid_cache::Config;
use braid_engine::assembled::{Assembled, Level};
use braid_level::{CacheMode, CachePolicy};
use braid_wiring::{Decoration, Part};

use crate::Rng;

/// The parts above an array.
#[derive(Clone, Copy, Debug, Default)]
pub struct Front {
    /// The array is the only member of a linear one.
    pub linear: bool,
    /// A cache in front of both.
    pub cache: Option<Config>,
}

impl Front {
    /// Draws the parts; at least one of them is there.
    pub(crate) fn drawn(rng: &mut Rng) -> Front {
        let mode = [CacheMode::WriteThrough, CacheMode::WriteAround][rng.index(2)];
        let policy = CachePolicy::ALL[rng.index(CachePolicy::ALL.len())];
        let block = [4 << 10, 8 << 10, 64 << 10][rng.index(3)];
        // From one block, where each request evicts another's, to all that these arrays have.
        let size = block * [1, 2, 5, 16, 64][rng.index(5)];
        let sequential_cutoff = rng.percent(30).then_some(16 << 10);
        let config = Config { size, block, mode, policy, sequential_cutoff };
        let cache = rng.percent(80).then_some(config);
        Front { linear: cache.is_none() || rng.percent(50), cache }
    }

    /// The stack whose array is `assembled`.
    pub(crate) fn before(self, assembled: &Assembled) -> Part<Infallible, &Assembled, ()> {
        let array = Part::Md(assembled);
        let origin = if self.linear {
            let sizes = [assembled.level.size()];
            let level = Level::Linear(Linear::new(&sizes, 512).expect("an array has a size"));
            Part::Joined { level, members: vec![array] }
        } else {
            array
        };
        match self.cache {
            None => origin,
            Some(config) => {
                let by = Decoration::Cache { config, of: () };
                Part::Decorated { by, origin: Box::new(origin), store: None }
            }
        }
    }
}

impl fmt::Display for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let array = if self.linear { "linear(the array)" } else { "the array" };
        match self.cache {
            None => f.write_str(array),
            Some(Config { size, block, mode, policy, sequential_cutoff }) => {
                write!(f, "cache(size={size}, block={block}, mode={mode}, policy={policy}, ")?;
                write!(f, "sequential_cutoff={sequential_cutoff:?}, origin={array})")
            }
        }
    }
}
