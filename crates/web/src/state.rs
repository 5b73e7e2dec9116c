//! A mark of the state by which an operator decides: it changes when a decision might, and not with every byte.

use braid_control::Status;
use serde_json::{Value, json};

/// The mark of a volume's state: equal marks are states in which the same may be done. It is a digest of
/// what is compared, and no secret.
pub(crate) fn mark(status: &Status) -> String {
    let member = |one: &braid_control::ArrayMember| {
        json!([one.member, one.number, one.role, one.state, one.replacement])
    };
    let array = |one: &braid_control::ArrayStatus| {
        json!([
            one.called,
            one.uuid,
            one.state,
            one.raid_disks,
            one.members.iter().map(member).collect::<Vec<_>>(),
            one.job.as_ref().map(|job| json!([job.kind, job.member])),
            one.requested,
        ])
    };
    let seen: Value = json!([
        status.pid,
        status.stack,
        status.device.size_bytes,
        status.device.locked,
        status.device.read_only,
        status.arrays.iter().map(array).collect::<Vec<_>>(),
        status.caches.iter().map(|one| json!([one.cache, one.mode])).collect::<Vec<_>>(),
    ]);
    // FNV-1a of 64 bits: a clash needs states that were made for it, and gives no access to anything.
    let digest = seen.to_string().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{digest:016x}")
}
