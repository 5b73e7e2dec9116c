//! Members that hang beyond their deadline, drawn: in the middle of writes, of flushes, of everything; for a
//! while or for ever. They are asked back before they have answered, and after that.

use braid_block::Op;
use braid_nbd::protocol::ReplyStyle;

use crate::Rng;
use crate::scenario::{Act, Connection, Life, Request, What};
use crate::spec::Spec;

/// Blocks at the start of the array that are written while a member hangs, and again later.
const PLACES: u64 = 16;

/// Gives `life` a deadline, and members that exceed it.
pub(crate) fn some(rng: &mut Rng, spec: &Spec, life: &mut Life) {
    let limit_ns = [5_000_000_000, 30_000_000_000][rng.index(2)];
    life.deadline_ns = Some(limit_ns);
    for _ in 0..rng.within(1..=2) {
        let long_ns = [2_000_000, 10_000_000, 600_000_000][rng.index(3)];
        let at_ns = rng.below(long_ns);
        let op = [None, Some(Op::Write), Some(Op::Write), Some(Op::Flush), Some(Op::Read)];
        let what = What::Hang {
            disk: rng.index(spec.members + 1),
            op: op[rng.index(op.len())],
            count: [1, 1, 2, 4, u64::MAX][rng.index(5)],
            for_ns: [Some(limit_ns / 2), Some(2 * limit_ns), Some(4 * limit_ns), None]
                [rng.index(4)],
        };
        life.acts.push(Act { at_ns, what });
        let comes_ns = at_ns.saturating_sub(rng.below(300_000));
        life.connections.push(writer(rng, comes_ns));
        for early_ns in [3 * limit_ns / 2, 5 * limit_ns] {
            if rng.percent(50) {
                let at_ns = at_ns + early_ns + rng.below(limit_ns);
                let what = What::AddAgain { pick: rng.next_u64() };
                life.acts.push(Act { at_ns, what });
                let comes_ns = at_ns + rng.below(limit_ns);
                life.connections.push(writer(rng, comes_ns));
            }
        }
    }
    life.acts.sort_by_key(|act| act.at_ns);
    life.aftershocks += rng.within(1..=4) as u32;
}

/// A client that writes the same few blocks.
fn writer(rng: &mut Rng, at_ns: u64) -> Connection {
    let request = |rng: &mut Rng| Request {
        pause_ns: rng.below(60_000),
        op: if rng.percent(90) { Op::Write } else { Op::Flush },
        block: rng.below(PLACES),
        blocks: rng.within(1..=4),
        fua: false,
        data: rng.next_u64(),
    };
    let requests = (0..rng.within(5..=20)).map(|_| request(rng)).collect();
    Connection { at_ns, style: ReplyStyle::Simple, depth: 4, requests, leaves: false }
}
