//! The setup of a cache in write-back mode: its bounds, its log, the identity of its origin.
//!
//! The origin holds no mark of the cache. What proves that a log is its own is what the devices below are
//! known by wherever they are plugged in, how they are joined, and the size of it all. A device that is
//! known by nothing that lasts (a loop device, a disk without a serial number) is proved by its place
//! and the size alone.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use braid_block::Limits;
use braid_cache::log::format::OriginId;
use braid_cache::{LogError, LogSetup, WriteBackConfig, least_log};
use braid_engine::{Clock, Dev};
use braid_stack::{Cache, Node, Rate, Stack};

use super::given_up::GivenUpLogs;
use super::md::MdArray;
use super::options::OpenOptions;
use crate::record::Seen;

/// The same as [`WriteBackConfig`], for any shard.
pub(super) struct WriteBack {
    dirty: u64,
    age: Duration,
    drain: Option<u64>,
    /// Identity of the origin.
    digest: [u8; 16],
    /// The origin as it is written.
    text: String,
    /// The log as it is written.
    pub(super) log_text: String,
    given_up: GivenUpLogs,
    /// The user named the log again: its content of another cache is given up.
    is_forced: bool,
}

impl WriteBack {
    /// Returns the setup of `cache`, if it is in write-back mode.
    pub(super) fn new(cache: &Cache, identity: &str, options: &OpenOptions) -> Option<WriteBack> {
        let bounds = cache.write_back?;
        let of_log = cache.log().map_or(Vec::new(), Stack::member_paths);
        let dirty = bounds.dirty.map_or(cache.size.bytes() / 2, |dirty| dirty.bytes());
        Some(WriteBack {
            dirty,
            age: Duration::from_nanos(bounds.age.unwrap_or(Cache::DEFAULT_AGE).0),
            drain: bounds.drain.map(Rate::bytes_per_second),
            digest: digest(identity.as_bytes()),
            text: cache.origin().to_string(),
            log_text: cache.log().map(ToString::to_string).unwrap_or_default(),
            given_up: GivenUpLogs::in_folder(&options.given_up, of_log.first().copied()),
            is_forced: of_log.iter().any(|path| options.forced.iter().any(|one| one == path)),
        })
    }

    /// For one shard, on which `log` is the log; with `is_live` the origin is in use already.
    pub(super) fn config(
        &self,
        origin: &Dev,
        log: Option<Dev>,
        clock: Rc<dyn Clock>,
        is_live: bool,
    ) -> io::Result<WriteBackConfig> {
        let mut uuid = [0; 16];
        rustix::rand::getrandom(&mut uuid, rustix::rand::GetRandomFlags::empty())?;
        let log = log.map(|dev| LogSetup {
            dev,
            origin: OriginId { size: origin.limits().size, digest: self.digest },
            text: self.text.clone(),
            uuid,
            is_forced: self.is_forced,
            is_live,
            given_up: Some(Rc::new(self.given_up.clone())),
        });
        let WriteBack { dirty, age, drain, .. } = *self;
        Ok(WriteBackConfig { dirty, age, drain, clock, log })
    }
}

/// Why a device cannot be the log of a cache with blocks of `block` bytes in front of `origin`, whatever it
/// holds.
pub(super) fn unfit(log: Option<Limits>, origin: Option<Limits>, block: u64) -> Option<String> {
    let (Some(log), Some(origin)) = (log, origin) else {
        return Some("it is not there".to_owned());
    };
    let least = least_log(block);
    if log.size < least {
        return Some(format!("it has {} bytes, and needs {least}", log.size));
    }
    let ends = log.volatile && !origin.volatile;
    ends.then(|| "what it holds ends with this process".to_owned())
}

/// Returns the next command for a log that cannot be used.
pub(super) fn next_of_log(error: &LogError, log: &str) -> String {
    match error {
        LogError::OtherOrigin { .. } => format!(
            "bring up the cache that it belongs to, then `braid down` drains it; or another log; or, \
             to give up what it holds, --force {log}"
        ),
        LogError::Damaged(_) | LogError::Rotten(_) => {
            format!("another copy of the log; or, to give up what it holds, --force {log}")
        }
        LogError::TooSmall { .. } => "a larger file or device as log=".to_owned(),
        LogError::NotReplayed(_) => {
            "without --read-only, which writes it to the origin first".to_owned()
        }
        LogError::InUse(_) => format!(
            "another log; or bring the volume down, and up with {log} as its log: then it is written to the \
             origin"
        ),
        LogError::Unknown(_) => "again, when it can be".to_owned(),
        LogError::Device(_) | LogError::Origin(_) => {
            "look at the device: `dmesg` says what failed; what the log holds is still there"
                .to_owned()
        }
    }
}

/// Returns the identity of `stack`, whose arrays with superblocks are among `arrays`: lasting identifiers of its
/// devices, in place of their paths. Only reads.
pub(super) fn identity(stack: &Stack, arrays: &[&MdArray]) -> String {
    match &stack.node {
        Node::Md(md) => {
            let is_it = |array: &&&MdArray| array.is_of(&md.members);
            let uuid = arrays.iter().find(is_it).map(|array| array.superblock.array_uuid);
            format!("md {}", uuid.map(|uuid| uuid.to_string()).unwrap_or_default())
        }
        Node::File(file) => {
            let seen = Seen::at(&braid_stack::path_of(&file.name()));
            let lasts = |one: &String| {
                ["wwn ", "serial ", "inode "].iter().any(|word| one.starts_with(word))
            };
            let known = seen.and_then(|seen| seen.identities.into_iter().find(lasts));
            let known = known.unwrap_or_default();
            format!("file {known} {} {:?}", file.offset, file.length)
        }
        Node::Slice(slice) => {
            format!(
                "slice {} {:?} ({})",
                slice.offset,
                slice.length,
                identity(&slice.origin, arrays)
            )
        }
        Node::Cow(cow) => format!("cow {} ({})", cow.store, identity(&cow.origin, arrays)),
        _ if stack.members().is_empty() => stack.to_string(),
        node => {
            let members = stack.members().iter().map(|member| identity(member, arrays));
            let members: Vec<String> = members.collect();
            format!("{} {:?} ({})", node.name(), stack.shape(), members.join(", "))
        }
    }
}

/// FNV-1a, 128 bits: tells devices apart, and proves nothing to an adversary.
fn digest(bytes: &[u8]) -> [u8; 16] {
    let step = |hash: u128, byte: &u8| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    };
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, step).to_be_bytes()
}
