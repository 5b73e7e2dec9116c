//! Why orders are not carried out, with the values that the reasons have: the one place where they become sentences.

use std::fmt::Display;

use serde::Serialize;

use braid_shell::shown;
use braid_stack::ByteSize;

use crate::control::{ErrorCode, Failure};

/// Each row: a reason with its values, its kind and code, the sentence, and the next command if there is one.
macro_rules! whys {
    ($($variant:ident { $($field:ident: $type:ty),* } = $kind:ident $code:ident $why:tt $(next $next:tt)?;)*) => {
        /// Why an order is not carried out.
        #[derive(Debug, Serialize)]
        #[serde(untagged)]
        pub(crate) enum Why {
            $($variant { $($field: $type),* },)*
        }

        impl From<Why> for Failure {
            fn from(why: Why) -> Failure {
                let values = match serde_json::to_value(&why) {
                    Ok(serde_json::Value::Object(values)) => values,
                    _ => serde_json::Map::new(),
                };
                let failure = match why {
                    $(Why::$variant { $($field),* } => {
                        Failure::$kind(format_args! $why).code(ErrorCode::$code)$(.next(format_args! $next))?
                    })*
                };
                Failure { values, ..failure }
            }
        }
    };
}

/// The failure of an order that was given up before anything was changed.
pub(crate) fn given_up(why: impl Display) -> Failure {
    Failure::failed(why).code(ErrorCode::GivenUp)
}

whys! {
    // Any order.
    AnotherOrder { volume: String } = refused Busy
        ("another order is being carried out on {volume}") next ("again, when it is done");
    NotReached { seconds: u64 } = failed GivenUp
        ("the array did not come to it within {seconds} s: the order was not carried out, and will not be");
    NotThrough { seconds: u64 } = failed OutcomeUnknown
        ("the order was begun, but the array was not through with it within {seconds} s: whether it will be carried out is not known");

    // The volume as a whole.
    Locked { volume: String } = refused Locked
        ("{volume} is locked: nothing of it is changed") next ("`braid unlock {volume}`");
    UsedWhileLocked { volume: String, users: Vec<String> } = refused InUse
        ("{volume} is in use, and what is on it would get errors when it writes:\n  {}", users.join("\n  "))
        next ("unmount or close it (what was locked can be mounted again, for reading); or `braid lock {volume} --force`");
    UsedWhileSaved { volume: String, users: Vec<String> } = refused InUse
        ("{volume} is in use, and an image of it while it is written would be none:\n  {}", users.join("\n  "))
        next ("unmount or close it; or `braid lock {volume}`, then `braid save`, then `braid unlock {volume}`");
    Used { volume: String, users: Vec<String> } = refused InUse
        ("{volume} is in use:\n  {}", users.join("\n  ")) next ("unmount or close it");
    UsedUnlessForced { volume: String, users: Vec<String>, order: &'static str } = refused InUse
        ("{volume} is in use:\n  {}", users.join("\n  "))
        next ("unmount or close it; or the same with --force, if {order} is meant nevertheless");
    UpReadOnly { volume: String } = refused ReadOnly
        ("{volume} was brought up with --read-only") next ("`braid down {volume}`, then `braid up {volume}` without it");
    ReadOnly { volume: String } = refused ReadOnly ("{volume} is read-only");
    NotErased { volume: String } = refused NotRam
        ("{volume} is no RAM disk, and nothing else is erased here")
        next ("`blkdiscard` or `mkfs` on its device; `braid wipe MEMBER` removes superblocks of an array that is down");
    HasData { volume: String, file: String } = refused HasData
        ("{volume} has data, which would be overwritten")
        next ("`braid save {volume} FILE` keeps it; `braid restore {volume} {file} --force` overwrites it");

    // The size of a RAM disk.
    NotResizable { volume: String } = refused NotRam
        ("{volume} is no RAM disk, and only these are resized")
        next ("for an array with superblocks `braid grow {volume} --size SIZE`; else `braid down {volume}` and a stack of other members");
    NotFree { volume: String, bytes: u64 } = refused TooMuchMemory
        ("{volume} is not resized to {:#}: it is preallocated, and that much memory is not free", ByteSize(bytes))
        next ("a smaller size, or a volume taken down");
    DataBehindEnd { volume: String, bytes: u64, data_end: u64 } = refused DataBehindEnd
        ("{volume} is not resized to {:#}: data lies behind the new end, up to byte {data_end}", ByteSize(bytes))
        next ("move it (`resize2fs`, for instance) and discard the rest, or `braid erase {volume}`");
    NoMultiple { volume: String, bytes: u64, block_bytes: u64 } = refused BadSize
        ("{volume} is not resized to {:#}: that is no multiple of its blocks of {block_bytes} bytes", ByteSize(bytes))
        next ("a size that is");
    AboveMost { volume: String, bytes: u64, most_bytes: u64 } = refused BadSize
        ("{volume} is not resized to {:#}: it can have up to {:#} in this life", ByteSize(bytes), ByteSize(most_bytes))
        next ("`braid save {volume} FILE`, `braid down {volume}`, a larger one, and `braid restore`");

    // Arrays and members.
    NoSuchArray { array: String, arrays: Vec<String> } = refused NoSuchArray
        ("the stack has no array {array:?}: there are {}", arrays.join(", "));
    WhichArray { arrays: Vec<String> } = refused WhichArray
        ("the stack has several arrays, and which one is meant is not said: {}", arrays.join(", "))
        next ("the same with --array {}", arrays.first().map_or("NAME", String::as_str));
    NoSuchMember { member: String, members: Vec<String> } = refused NoSuchMember
        ("{} is no member of an array that survives a failure: there are {}", shown(&member), shown(&members.join(", ")));
    AlreadyMember { device: String } = refused AlreadyMember
        ("{device} is in use: it is a member already") next ("`braid member remove` lets go of one that failed");
    MemberLocked { device: String } = refused InUse
        ("{device} is in use: it is a member already, or another program has it locked")
        next ("`braid member remove` lets go of one that failed");
    RequestsUnderWay { device: String, requests: u64 } = refused RequestsUnderWay
        ("{device} is not taken: {requests} requests from when it was a member are still under way, and may be carried out at any time")
        next ("wait until it has answered them, or take it away; then the same again");
    NotByBitmap { device: String, reason: String } = refused NotByBitmap
        ("{device} cannot come back by the bitmap: {reason}") next ("`braid member add` takes it in anew");
    WriteMostly { device: String, level: String } = refused Unsuitable
        ("{device} would be write-mostly, which means something to raid1 only, not to {level}")
        next ("the same without --write-mostly");

    // Caches.
    HasCache { volume: String } = refused HasCache ("{volume} has a cache in front of it already")
        next ("`braid cache resize {volume} SIZE`; or `braid cache detach {volume}` first");
    NoCache { volume: String } = refused NoCache
        ("{volume} has no cache") next ("`braid cache attach {volume} size=SIZE` puts one in front");
    SeveralCaches { volume: String } = refused SeveralCaches
        ("{volume} has several caches, and which one is meant cannot be said")
        next ("`braid down {volume}`, and `braid up` with another stack");
    CacheInside { volume: String } = refused CacheInside
        ("the cache of {volume} is a part of its stack, not in front of it")
        next ("`braid down {volume}`, and `braid up` with the stack without it");
    IsMemory { volume: String } = refused IsMemory ("{volume} is memory itself: a cache would make it slower")
        next ("`braid resize {volume} SIZE` gives it more");
    NoMode { volume: String, mode: String } = usage BadRequest
        ("{mode:?} is no mode of a cache: write-through, write-around, write-back")
        next ("`braid cache mode {volume} write-through`");
    WriteBackAlready { volume: String } = refused WriteBackAlready ("{volume} is in write-back mode already")
        next ("`braid cache mode {volume} write-through` closes its log, and another one may follow");
    NotWriteBack { volume: String } = refused NotWriteBack
        ("the cache of {volume} is not in write-back mode: there is nothing to drain") next ("`braid status {volume}`");
    BelowBlock { volume: String, least_bytes: u64 } = usage BadRequest
        ("a cache of {volume} has at least a block, {:#}", ByteSize(least_bytes)) next ("a larger size");
    RelativePath { path: String } = usage BadRequest
        ("{path:?} is no whole path") next ("name it from the root, as /var/lib/braid/cache.log");
    CacheChanging { volume: String } = refused Busy
        ("an earlier order about the cache of {volume} is still being carried out")
        next ("`braid status {volume}`, and again when it is through");
    CacheDirty { volume: String, bytes: u64 } = refused CacheDirty
        ("more of {volume}'s cache is dirty than {:#}", ByteSize(bytes))
        next ("again in a moment: it is being drained; `braid status {volume}` says how far");
    CacheLost { volume: String } = failed NoCache
        ("{volume} has not the cache that its stack says") next ("`braid status {volume}`");
    NoMemory { bytes: u64, error: String } = failed NoMemory
        ("no memory for {:#}: {error}", ByteSize(bytes)) next ("a smaller size");
    NotDrained { volume: String, error: String } = failed NotDrained
        ("what is dirty could not be drained ({error}): the cache goes on as it was")
        next ("`braid status {volume}` says what fails");
}
