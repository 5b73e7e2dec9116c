//! The offer of a server: the properties of an export that a member needs, and the reasons to refuse one.
//!
//! Deliberately absent: trust. Sizes and flags are compared with those of before at every connection.

use braid_block::Limits;
use braid_nbd::client::ClientNegotiated;
use braid_nbd::protocol::ReplyStyle;
use braid_nbd::protocol::constants::*;

/// Most bytes of a read or write at once, below the 32 MiB that every server takes.
const MOST_PAYLOAD: u32 = 4 << 20;
/// The largest block that the engine knows, in bytes.
const LARGEST_BLOCK: u32 = 4096;

/// Why an export is no member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the values")]
pub enum Unfit {
    #[error(
        "the server takes no request below {minimum} bytes; at most {LARGEST_BLOCK} are possible"
    )]
    BlockSize { minimum: u32 },
    #[error(
        "the server takes no more than {most} bytes in a request; at least {LARGEST_BLOCK} are needed"
    )]
    Payload { most: u32 },
    #[error("the export has {size} bytes: less than a block of {block}")]
    Small { size: u64, block: u32 },
    #[error("the export claims {size} bytes, more than a device can have")]
    Large { size: u64 },
    #[error(
        "the server cannot flush, so nothing says when a write is durable; `flush=missing` accepts that"
    )]
    NoFlush,
    #[error("the export has {now} bytes now; it had {before}")]
    Shrank { before: u64, now: u64 },
    #[error("the export is read-only now, and was not")]
    ReadOnly,
    #[error("the server offers less than before: {what}")]
    Less { what: &'static str },
}

/// An export as a server described it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Size in bytes, whole blocks only.
    pub size: u64,
    /// Smallest request in bytes: a power of two from 512 to 4096.
    pub block: u32,
    /// Size of the blocks that serve the server best, in bytes, at most 4096.
    pub preferred: u32,
    /// Most bytes of a read or write.
    pub most: u32,
    /// The form of replies.
    pub style: ReplyStyle,
    /// `NBD_FLAG_*`.
    pub flags: u16,
    /// The server says where holes are (`base:allocation`).
    pub has_status: bool,
}

impl Offer {
    /// Checks what a handshake ended with.
    ///
    /// # Errors
    /// The export cannot be a member.
    pub fn check(agreed: &ClientNegotiated) -> Result<Offer, Unfit> {
        let (minimum, preferred, most) = match agreed.block_size {
            None => (1, LARGEST_BLOCK, MOST_PAYLOAD),
            Some(sizes) => (sizes.minimum, sizes.preferred, sizes.maximum_payload),
        };
        if minimum > LARGEST_BLOCK {
            return Err(Unfit::BlockSize { minimum });
        }
        if most < LARGEST_BLOCK {
            return Err(Unfit::Payload { most });
        }
        let block = minimum.max(512);
        let size = agreed.size_bytes / u64::from(block) * u64::from(block);
        if size == 0 {
            return Err(Unfit::Small { size: agreed.size_bytes, block });
        }
        if size > i64::MAX as u64 {
            return Err(Unfit::Large { size: agreed.size_bytes });
        }
        Ok(Offer {
            size,
            block,
            preferred: preferred.clamp(block, LARGEST_BLOCK),
            most: most.min(MOST_PAYLOAD) / LARGEST_BLOCK * LARGEST_BLOCK,
            style: agreed.style,
            flags: agreed.transmission_flags,
            has_status: agreed.base_allocation.is_some(),
        })
    }

    /// Returns true if the server has `flag`, one of `NBD_FLAG_*`.
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Returns true if the export refuses changes.
    pub fn is_read_only(&self) -> bool {
        self.has(NBD_FLAG_READ_ONLY)
    }

    /// Checks that the export can be written safely, which needs a flush unless `may_lack_flush`.
    ///
    /// # Errors
    /// [`Unfit::ReadOnly`] and [`Unfit::NoFlush`].
    pub fn check_writable(&self, may_lack_flush: bool) -> Result<(), Unfit> {
        if self.is_read_only() {
            return Err(Unfit::ReadOnly);
        }
        match self.has(NBD_FLAG_SEND_FLUSH) || may_lack_flush {
            true => Ok(()),
            false => Err(Unfit::NoFlush),
        }
    }

    /// Checks that `now`, the offer at another connection, keeps what this one promised.
    ///
    /// # Errors
    /// The export shrank, or can do less.
    pub fn check_again(&self, now: &Offer) -> Result<(), Unfit> {
        if now.size < self.size {
            return Err(Unfit::Shrank { before: self.size, now: now.size });
        }
        if now.is_read_only() && !self.is_read_only() {
            return Err(Unfit::ReadOnly);
        }
        if now.block > self.block {
            return Err(Unfit::Less { what: "its blocks are larger" });
        }
        if now.most < self.most {
            return Err(Unfit::Less { what: "its requests are smaller" });
        }
        const NEEDED: [(u16, &str); 5] = [
            (NBD_FLAG_SEND_FLUSH, "it cannot flush"),
            (NBD_FLAG_SEND_FUA, "it has no durable writes (FUA)"),
            (NBD_FLAG_SEND_TRIM, "it cannot trim"),
            (NBD_FLAG_SEND_WRITE_ZEROES, "it cannot write zeroes"),
            (NBD_FLAG_CAN_MULTI_CONN, "a flush reaches one connection only"),
        ];
        let lacks = |(flag, _): &&(u16, &str)| self.has(*flag) && !now.has(*flag);
        match NEEDED.iter().find(lacks) {
            Some((_, what)) => Err(Unfit::Less { what }),
            None => Ok(()),
        }
    }

    /// Returns the connections to use of `wanted`: one, if a flush on one does not reach changes of another.
    pub fn connections(&self, wanted: u32) -> u32 {
        match self.has(NBD_FLAG_CAN_MULTI_CONN) || self.is_read_only() {
            true => wanted.max(1),
            false => 1,
        }
    }

    /// Returns the limits of a device on the export.
    pub fn limits(&self, read_only: bool) -> Limits {
        Limits {
            physical_block: self.preferred,
            read_only: read_only || self.is_read_only(),
            discard: self.has(NBD_FLAG_SEND_TRIM),
            // A server that trims makes holes of zeroes that may be holes.
            unmaps_zeroes: self.has(NBD_FLAG_SEND_TRIM) && self.has(NBD_FLAG_SEND_WRITE_ZEROES),
            rotational: self.has(NBD_FLAG_ROTATIONAL),
            // Each shard has connections of its own.
            shared_flush: false,
            ..Limits::new(self.size, self.block)
        }
    }
}
