//! Requests of clients that are followed through the volume for some seconds, for `braid top --slow`.

use std::time::Duration;

use braid_block::Op;
use braid_device::{Follow, Followed, Part, Seen};
use braid_engine::Clock;
use braid_shell::shown;
use braid_uring::{ExecutorClock, Remote};

use super::shard;
use crate::control::{SlowPart, SlowRequest, SlowStatus};

/// Requests that are told of.
const MOST: usize = 10;

/// Follows, on all shards, the requests that begin from now on.
pub(super) fn follow(remotes: &[Remote]) {
    remotes.iter().for_each(|remote| shard::call(remote, |_, _| Follow::of_thread().start()));
}

/// Ends that, and answers what was seen by those shards that answer.
pub(super) fn followed(remotes: &[Remote]) -> SlowStatus {
    let seen = |remote: &Remote| -> Option<Seen> {
        shard::ask(remote, |handle, _| Follow::of_thread().stop(ExecutorClock::new(handle).now()))
    };
    let seen: Vec<Seen> = remotes.iter().filter_map(seen).collect();
    let requests = seen.iter().map(|one| one.requests).sum();
    let mut slowest: Vec<Followed> = seen.into_iter().flat_map(|one| one.slowest).collect();
    slowest.sort_by_key(|one| std::cmp::Reverse(one.took));
    slowest.truncate(MOST);
    SlowStatus { requests, slowest: slowest.iter().map(request).collect() }
}

fn request(followed: &Followed) -> SlowRequest {
    let part = |one: &Part| SlowPart {
        member: shown(&one.member).to_string(),
        operation: name(one.op).to_owned(),
        offset_bytes: one.span.offset,
        length_bytes: one.span.len,
        after_us: micros(one.after),
        took_us: micros(one.took),
    };
    SlowRequest {
        operation: name(followed.op).to_owned(),
        offset_bytes: followed.span.offset,
        length_bytes: followed.span.len,
        took_us: micros(followed.took),
        answered: followed.is_answered,
        parts: followed.parts.iter().map(part).collect(),
        more_parts: followed.more_parts,
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Discard => "discard",
        Op::WriteZeroes => "write-zeroes",
    }
}
