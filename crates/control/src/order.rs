//! What an operator asks of a volume that is up, or of its arrays, and the answer.

#![allow(
    missing_docs,
    reason = "fields are named as the command line's arguments, which say what they are"
)]

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// One order, for the array that it concerns: the one whose name or identifier is given, the one that
/// has the member, the only one; a scrub and the limits of passes are for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Take a member out, as if it had failed.
    Fail { member: String, array: Option<String> },
    /// Let go of a member that failed, or of a spare.
    Remove { member: String, array: Option<String> },
    /// Take a device in, as a spare; one that was a member is brought up to date.
    Add {
        member: PathBuf,
        /// Whatever it carries.
        #[serde(default)]
        force: bool,
        /// Only as the member that it was.
        #[serde(default)]
        again: bool,
        array: Option<String>,
    },
    /// Test what bad-block logs list, and take off what can be written or read.
    Retest { array: Option<String> },
    /// A device came or went.
    Device(DeviceOrder),
    /// Fill a device beside the member that it then replaces.
    Replace {
        member: String,
        with: PathBuf,
        #[serde(default)]
        force: bool,
        array: Option<String>,
    },
    /// Compare copies, or data and parity, or stop doing so.
    Scrub {
        #[serde(default)]
        repair: bool,
        /// Also where nothing proves which member is wrong.
        #[serde(default)]
        force: bool,
        #[serde(default)]
        cancel: bool,
        array: Option<String>,
    },
    /// Scrub for a time, from where the last such scrub stopped.
    ScrubUntil {
        #[serde(default)]
        repair: bool,
        #[serde(default)]
        force: bool,
        /// When it pauses, in milliseconds since 1970.
        until_ms: u64,
        /// What 99 of 100 requests of clients are to stay below meanwhile; the limits that are set without.
        latency_us_p99: Option<u64>,
        array: Option<String>,
    },
    /// Set the limits of passes; what is not given stays.
    Speed {
        min_bytes_per_second: Option<u64>,
        /// 0 for as fast as it goes.
        max_bytes_per_second: Option<u64>,
        /// 0 for no target.
        latency_us_p99: Option<u64>,
        array: Option<String>,
    },
    /// Let a raid1 have so many members.
    RaidDisks { count: usize, array: Option<String> },
    /// Use so many bytes of each member, or all that all of them have.
    MemberSize { bytes: Option<u64>, array: Option<String> },
    /// Give the array a write-intent bitmap, or the one that it has other chunks, or take it away.
    Bitmap {
        /// Away.
        #[serde(default)]
        none: bool,
        /// Bytes that a bit stands for; nothing for what suits the members.
        chunk_bytes: Option<u64>,
        array: Option<String>,
    },
    /// For the volume as a whole.
    Whole(WholeOrder),
    /// For its caches.
    Cache(CacheOrder),
}

impl Order {
    /// Bytes that the order goes through before it is answered, of a volume with `content` bytes: what
    /// [`post_order`](crate::post_order) waits for.
    pub fn bytes_of_work(&self, content: u64) -> u64 {
        match self {
            Order::Whole(WholeOrder::Save { .. }) => content,
            // It is read twice.
            Order::Whole(WholeOrder::Restore { .. }) => content.saturating_mul(2),
            // Memory is had first, and locked, which takes a while.
            Order::Cache(CacheOrder::Resize { bytes }) => *bytes,
            Order::Cache(CacheOrder::Attach { .. }) => 1 << 40,
            _ => 0,
        }
    }
}

/// What is done with a volume as a whole. `force`: whoever uses it, or whatever would be overwritten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WholeOrder {
    /// Refuse what modifies.
    Lock {
        #[serde(default)]
        force: bool,
    },
    Unlock,
    /// Forget all that a RAM disk holds.
    Erase {
        #[serde(default)]
        force: bool,
    },
    /// Give a RAM disk so many bytes.
    Resize {
        bytes: u64,
    },
    /// Write the content to a new file.
    Save {
        file: PathBuf,
        #[serde(default)]
        force: bool,
    },
    /// Take the content from such a file.
    Restore {
        file: PathBuf,
        #[serde(default)]
        force: bool,
    },
}

/// What a volume is told of devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceOrder {
    /// It is there, and may have been a member: the volume's policy decides.
    Back { device: PathBuf },
    /// It is gone: its path, or its number as `8:16`. What was a member on it is faulty.
    Gone { device: String },
}

/// An order about caches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheOrder {
    /// Put a cache in front of the volume: with these parameters, as a stack has them.
    Attach { parameters: String },
    /// Take off the cache that is in front of the volume.
    Detach,
    /// Give the volume's cache so much memory.
    Resize { bytes: u64 },
    /// Have it treat writes otherwise; with what write-back mode has, as a stack has it.
    Mode {
        mode: String,
        #[serde(default)]
        parameters: String,
    },
    /// Hold its draining to so many bytes a second, or to nothing.
    Drain { bytes_per_second: Option<u64> },
}

impl CacheOrder {
    /// Tells if a log is to keep what clients flushed and the origin does not have.
    pub fn names_log(&self) -> bool {
        let (CacheOrder::Attach { parameters, .. } | CacheOrder::Mode { parameters, .. }) = self
        else {
            return false;
        };
        parameters.contains("log=")
    }
}

/// The result of an order: a description for people, or why it was not carried out.
pub type Answer = Result<String, Failure>;

/// An [`Answer`] as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OrderAnswer {
    /// `{"outcome": "refused", "code": …, "why": …, "next": …}`
    Not(Failure),
    /// `{"outcome": "done", "text": …}`
    Done { outcome: Done, text: String },
}

/// The outcome of an order that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Done {
    Done,
}

impl From<Answer> for OrderAnswer {
    fn from(answer: Answer) -> OrderAnswer {
        match answer {
            Ok(text) => OrderAnswer::Done { outcome: Done::Done, text },
            Err(failure) => OrderAnswer::Not(failure),
        }
    }
}

impl From<OrderAnswer> for Answer {
    fn from(answer: OrderAnswer) -> Answer {
        match answer {
            OrderAnswer::Done { text, .. } => Ok(text),
            OrderAnswer::Not(failure) => Err(failure),
        }
    }
}
