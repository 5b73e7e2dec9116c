//! Messages of vhost-user (the specification of QEMU's documentation), as far as a block device needs them.
//!
//! ```text
//!   | request 4 | flags 4 | length 4 | payload … |        in the byte order of the machine, descriptors beside it
//! ```
//!
//! Deliberately absent: sockets, and the state that messages change ([`crate::control`]).

use crate::memory::{MOST_REGIONS, RegionInfo};
use crate::ring::Addresses;

/// Length of a header, in bytes.
pub(crate) const HEADER: usize = 12;
/// Longest payload, in bytes: 12 and a configuration space of 256.
pub(crate) const MOST_PAYLOAD: usize = 4096;
/// Most descriptors with a message.
pub(crate) const MOST_FDS: usize = MOST_REGIONS;

/// The version in the flags.
const VERSION: u32 = 1;
const IS_REPLY: u32 = 1 << 2;
const NEEDS_REPLY: u32 = 1 << 3;

/// The number, in messages of the server, of a change of the configuration.
const CONFIG_CHANGED: u32 = 2;

/// Several queues.
pub(crate) const MQ: u64 = 1 << 0;
/// Each message can be acknowledged.
pub(crate) const REPLY_ACK: u64 = 1 << 3;
/// The server sends messages by itself.
pub(crate) const BACKEND_REQ: u64 = 1 << 5;
/// The configuration space is the server's.
pub(crate) const CONFIG: u64 = 1 << 9;
/// Requests in flight are noted in memory of the front-end.
pub(crate) const INFLIGHT: u64 = 1 << 12;
/// All that is offered.
pub(crate) const PROTOCOL_FEATURES: u64 = MQ | REPLY_ACK | BACKEND_REQ | CONFIG | INFLIGHT;

/// Length of a payload about notes of requests in flight, in bytes; the last 4 have no meaning.
const INFLIGHT_BODY: usize = 24;

/// The fault of a message. The next one cannot be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MessageFault {
    /// Flags of no version that is known.
    #[error("a message with the flags {0:#x}")]
    Flags(u32),
    /// A payload that no message has.
    #[error("message {request} with {len} bytes")]
    Length {
        /// Its number.
        request: u32,
        /// Bytes of its payload.
        len: usize,
    },
    /// A message that is not known, or was not offered.
    #[error("message {0}, which was not offered")]
    Unknown(u32),
    /// Descriptors that are missing, or too many.
    #[error("message {request} with {count} descriptors")]
    Descriptors {
        /// Its number.
        request: u32,
        /// Descriptors.
        count: usize,
    },
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) request: u32,
    pub(crate) needs_reply: bool,
    /// Bytes of the payload.
    pub(crate) len: usize,
}

impl Header {
    /// # Errors
    /// Another version, a reply, or a payload that is too long.
    pub(crate) fn parse(bytes: [u8; HEADER]) -> Result<Header, MessageFault> {
        let [request, flags, len] = [0, 4, 8].map(|at| u32_at(&bytes, at));
        if flags & 3 != VERSION || flags & IS_REPLY != 0 {
            return Err(MessageFault::Flags(flags));
        }
        let len = len as usize;
        if len > MOST_PAYLOAD {
            return Err(MessageFault::Length { request, len });
        }
        Ok(Header { request, needs_reply: flags & NEEDS_REPLY != 0, len })
    }
}

/// The state of a queue in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueValue {
    pub(crate) queue: u32,
    pub(crate) value: u32,
}

/// Sizes of the notes of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InflightInfo {
    pub(crate) len: u64,
    pub(crate) offset: u64,
    pub(crate) queues: u16,
    pub(crate) size: u16,
}

/// A message of a front-end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    GetFeatures,
    SetFeatures(u64),
    SetOwner,
    ResetOwner,
    SetMemory(Vec<RegionInfo>),
    SetSize(QueueValue),
    SetAddresses(u32, Addresses),
    SetBase(QueueValue),
    GetBase(u32),
    /// With or without a descriptor.
    SetKick(u32),
    SetCall(u32),
    SetError(u32),
    GetProtocolFeatures,
    SetProtocolFeatures(u64),
    GetQueueCount,
    SetEnabled(QueueValue),
    SetBackendChannel,
    /// So many bytes from this one on.
    GetConfig(u32, u32),
    SetConfig,
    GetInflight(InflightInfo),
    SetInflight(InflightInfo),
}

impl Message {
    /// The message with that number and payload, and so many descriptors.
    ///
    /// # Errors
    /// One that is not known, or whose payload has another length.
    pub(crate) fn parse(request: u32, body: &[u8], fds: usize) -> Result<Message, MessageFault> {
        let count = |allowed: std::ops::RangeInclusive<usize>| match allowed.contains(&fds) {
            true => Ok(()),
            false => Err(MessageFault::Descriptors { request, count: fds }),
        };
        let exactly = |len: usize| match body.len() == len {
            true => Ok(()),
            false => Err(MessageFault::Length { request, len: body.len() }),
        };
        count(match request {
            5 => 0..=MOST_REGIONS,
            12..=14 => 0..=1,
            21 | 32 => 1..=1,
            _ => 0..=0,
        })?;
        exactly(match request {
            1 | 3 | 4 | 15 | 17 | 21 => 0,
            2 | 8 | 10 | 11 | 12..=14 | 16 | 18 => 8,
            9 => 40,
            31 | 32 => INFLIGHT_BODY,
            5 | 24 | 25 => body.len(),
            _ => return Err(MessageFault::Unknown(request)),
        })?;
        let value = || QueueValue { queue: u32_at(body, 0), value: u32_at(body, 4) };
        Ok(match request {
            1 => Message::GetFeatures,
            2 => Message::SetFeatures(u64_at(body, 0)),
            3 => Message::SetOwner,
            4 => Message::ResetOwner,
            5 => Message::SetMemory(parse_regions(request, body, fds)?),
            8 => Message::SetSize(value()),
            9 => Message::SetAddresses(u32_at(body, 0), parse_addresses(body)),
            10 => Message::SetBase(value()),
            11 => Message::GetBase(value().queue),
            // Of the flag that no descriptor comes, the number of descriptors tells.
            12 => Message::SetKick(u32_at(body, 0) & 0xff),
            13 => Message::SetCall(u32_at(body, 0) & 0xff),
            14 => Message::SetError(u32_at(body, 0) & 0xff),
            15 => Message::GetProtocolFeatures,
            16 => Message::SetProtocolFeatures(u64_at(body, 0)),
            17 => Message::GetQueueCount,
            18 => Message::SetEnabled(value()),
            21 => Message::SetBackendChannel,
            24 | 25 if body.len() < 12 => {
                return Err(MessageFault::Length { request, len: body.len() });
            }
            24 => Message::GetConfig(u32_at(body, 0), u32_at(body, 4)),
            25 => Message::SetConfig,
            31 => Message::GetInflight(parse_inflight(body)),
            _ => Message::SetInflight(parse_inflight(body)),
        })
    }
}

fn parse_regions(request: u32, body: &[u8], fds: usize) -> Result<Vec<RegionInfo>, MessageFault> {
    let length = MessageFault::Length { request, len: body.len() };
    let Some((head, rest)) = body.split_at_checked(8) else { return Err(length) };
    let regions = rest.chunks_exact(32).map(|one| RegionInfo {
        guest: u64_at(one, 0),
        size: u64_at(one, 8),
        user: u64_at(one, 16),
        offset: u64_at(one, 24),
    });
    let count = u32_at(head, 0) as usize;
    if count != fds {
        return Err(MessageFault::Descriptors { request, count: fds });
    }
    // A front-end may send room for more regions than there are.
    if count > MOST_REGIONS || rest.len() < count * 32 {
        return Err(length);
    }
    Ok(regions.take(count).collect())
}

fn parse_addresses(body: &[u8]) -> Addresses {
    Addresses { descriptors: u64_at(body, 8), used: u64_at(body, 16), available: u64_at(body, 24) }
}

fn parse_inflight(body: &[u8]) -> InflightInfo {
    let sizes = u32_at(body, 16).to_ne_bytes();
    InflightInfo {
        len: u64_at(body, 0),
        offset: u64_at(body, 8),
        queues: u16::from_ne_bytes([sizes[0], sizes[1]]),
        size: u16::from_ne_bytes([sizes[2], sizes[3]]),
    }
}

/// The 4 bytes at `at`, of which the caller knows that they are there; 0 if they are not.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |four| u32::from_ne_bytes(*four))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |eight| u64::from_ne_bytes(*eight))
}

fn message(request: u32, flags: u32, body: &[u8]) -> Vec<u8> {
    // A payload that is sent is short.
    let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut bytes = [request, flags, len].map(u32::to_ne_bytes).concat();
    bytes.extend_from_slice(body);
    bytes
}

/// The reply to message number `request`.
pub(crate) fn reply(request: u32, body: &[u8]) -> Vec<u8> {
    message(request, VERSION | IS_REPLY, body)
}

/// A message of the server: the configuration space has changed.
pub(crate) fn config_changed() -> Vec<u8> {
    message(CONFIG_CHANGED, VERSION, &[])
}

/// The body of a reply about a queue.
pub(crate) fn queue_value(queue: u32, value: u16) -> Vec<u8> {
    [queue, value.into()].map(u32::to_ne_bytes).concat()
}

/// The body of a reply about notes of requests in flight.
pub(crate) fn inflight_info(info: InflightInfo) -> Vec<u8> {
    let mut body = [info.len, info.offset].map(u64::to_ne_bytes).concat();
    body.extend_from_slice(&[info.queues, info.size].map(u16::to_ne_bytes).concat());
    body.resize(INFLIGHT_BODY, 0);
    body
}
