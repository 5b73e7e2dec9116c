//! A scenario, drawn from a seed: which array, what its clients ask, what goes wrong and when.
//!
//! Invariant: a seed draws the same scenario for ever, so that one that once failed can be kept. What is
//! added draws from a generator of its own, or for seeds of its own.

use std::ops::RangeInclusive;

use braid_array::Geometry;
use braid_block::Op;
use braid_md::{Level, Version};
use braid_nbd::protocol::ReplyStyle;

use crate::Rng;
use crate::front::Front;
use crate::scenario::{Act, Connection, End, Life, Probe, Request, Scenario, Start, Way, What};
use crate::spec::{FIRST_PAGE, Policy, Spec};
pub use crate::worlds::{
    AT_ONCE, CLOCKS, HALVES, HANGS, HARSH, MEMORY, NESTS, ORDERS, SHARDS, WIDE, WORLDS,
};
use crate::{hang, memory, shards};

/// The amount and the kind of events.
struct Mood {
    /// The possible numbers of acts of a life, and its possible lengths.
    acts: [u64; 5],
    long_ns: [u64; 4],
    /// The probabilities, in percent, that a client stays in one place, and that members are lost with a crash.
    stays: u64,
    loses: u64,
    /// The number of probes of a life.
    probes: RangeInclusive<u64>,
    /// The kinds of acts, by the numbers of [`what`].
    acts_drawn: &'static [u64],
}

const PLAIN: Mood = Mood {
    acts: [0, 1, 3, 6, 10],
    long_ns: [3_000_000, 20_000_000, 600_000_000, 12_000_000_000],
    stays: 40,
    loses: 60,
    probes: 1..=4,
    acts_drawn: &[
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
        25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39,
    ],
};
const ROUGH: Mood = Mood {
    acts: [2, 4, 6, 9, 13],
    long_ns: [3_000_000, 8_000_000, 20_000_000, 600_000_000],
    stays: 75,
    loses: 75,
    probes: 3..=8,
    // Full disks, replacements and members that come back more often than others.
    acts_drawn: &[
        0, 3, 3, 9, 12, 15, 17, 17, 17, 17, 17, 17, 21, 21, 21, 26, 26, 29, 29, 29, 33, 33, 33, 35,
        36, 38, 8, 3, 29, 33,
    ],
};

impl Scenario {
    /// The scenario of `seed`: a harsh one if it has the bit [`HARSH`].
    pub fn of(seed: u64) -> Scenario {
        let mood = if seed & HARSH == 0 { &PLAIN } else { &ROUGH };
        let seed = seed & !HARSH;
        let mut rng = Rng::new(seed ^ 0x5ce0_a110_7e57_0000);
        let spec = if seed & WIDE == 0 { spec(&mut rng) } else { wide_spec(&mut rng) };
        let start = match rng.below(12) {
            0 => Start::Unsynced(rng.below(spec.member_size / 4096) * 4096),
            1 => Start::Missing(rng.index(spec.members)),
            2 => Start::Unsynced(0),
            _ => Start::Clean,
        };
        // Without a log, what a member had that was never there cannot be told from doubtful parity.
        let start = match start {
            Start::Unsynced(from) if !spec.has_parity() && from > 0 => Start::Unsynced(0),
            other => other,
        };
        let lives = rng.within(1..=3);
        let mut lives: Vec<Life> = (0..lives).map(|_| life(&mut rng, &spec, mood)).collect();
        if let (Start::Unsynced(_), true) = (start, rng.percent(60)) {
            unsettle(&mut rng, &spec, &mut lives[0]);
        }
        whole_stripes(&mut Rng::new(seed ^ 0x57f1_9e50), &spec, &mut lives);
        if seed & WIDE != 0 {
            to_both_pages(&mut Rng::new(seed ^ 0x2_9a6e5), &spec, &mut lives);
        }
        if seed & ORDERS != 0 {
            let rng = &mut Rng::new(seed ^ 0xb17_3a95);
            lives.iter_mut().for_each(|life| more_orders(rng, life));
        }
        if seed & (HANGS | MEMORY) == HANGS {
            let rng = &mut Rng::new(seed ^ 0x4a46_5eed);
            lives.iter_mut().for_each(|life| hang::some(rng, &spec, life));
        }
        if seed & CLOCKS != 0 {
            let rng = &mut Rng::new(seed ^ 0xc10c_c10c);
            lives.iter_mut().for_each(|life| wrong_clocks(rng, life));
        }
        if seed & MEMORY != 0 {
            let rng = &mut Rng::new(seed ^ 0x3e30_5ca2);
            lives.iter_mut().for_each(|life| memory::little(rng, life));
        }
        if seed & NESTS != 0 {
            let rng = &mut Rng::new(seed ^ 0x9e57_ac4e);
            lives.iter_mut().for_each(|life| life.front = Front::drawn(rng));
        }
        if seed & (SHARDS | NESTS) == SHARDS {
            let rng = &mut Rng::new(seed ^ 0x5a4d_2d05);
            lives.iter_mut().for_each(|life| shards::some(rng, &spec, life));
        }
        Scenario { seed, spec, start, lives }
    }
}

/// The clock is set before a life, and in it.
fn wrong_clocks(rng: &mut Rng, life: &mut Life) {
    // The last are before 1970, where it stands, and after 2106, beyond 32 bits of seconds.
    const BY_S: [i64; 8] =
        [0, -1, 1, -3600, -400_000_000, 400_000_000, -4_000_000_000, 4_000_000_000];
    life.clock_by_s = BY_S[rng.index(BY_S.len())];
    for _ in 0..rng.within(0..=3) {
        let long_ns = [2_000_000, 20_000_000, 600_000_000][rng.index(3)];
        let what = What::Clock { by_s: BY_S[rng.index(BY_S.len())] };
        life.acts.push(Act { at_ns: rng.below(long_ns), what });
    }
    life.acts.sort_by_key(|act| act.at_ns);
}

/// In some scenarios a client of each life writes whole stripes and parts of them, few and again.
fn whole_stripes(rng: &mut Rng, spec: &Spec, lives: &mut [Life]) {
    let often = if spec.policy == Policy::Log { 40 } else { 10 };
    let Some(geometry) = spec.stripes().filter(|_| rng.percent(often)) else { return };
    let (stripe, chunk) = (geometry.stripe() / 512, geometry.chunk() / 512);
    let stripes = (spec.member_size / geometry.chunk()).min(2);
    for life in lives {
        let connection = rng.index(life.connections.len());
        for request in &mut life.connections[connection].requests {
            let first = rng.below(stripes) * stripe;
            (request.block, request.blocks) = match request.op {
                Op::Write if rng.percent(50) => (first, stripe),
                _ => (first + rng.below(stripe - 1), rng.within(1..=chunk / 2)),
            };
        }
    }
}

/// Bitmaps come, change and go: beside a client that writes everywhere, where a new one has no bits yet; and
/// while a member is out that then comes back by what they say. Passes are held.
fn more_orders(rng: &mut Rng, life: &mut Life) {
    let long_ns = [2_000_000, 10_000_000, 600_000_000][rng.index(3)];
    let bitmap = |rng: &mut Rng| What::Bitmap { chunk: [4 << 10, 8 << 10, 32 << 10][rng.index(3)] };
    let mut acts: Vec<Act> = Vec::new();
    for _ in 0..rng.within(1..=3) {
        let at_ns = rng.below(long_ns);
        acts.push(Act { at_ns, what: bitmap(rng) });
        let what = if rng.percent(70) { What::NoBitmap } else { bitmap(rng) };
        acts.push(Act { at_ns: at_ns + rng.below(1_000_000), what });
    }
    if rng.percent(50) {
        let fail = What::Fail { pick: rng.next_u64() };
        let again = What::AddAgain { pick: rng.next_u64() };
        let mut times: Vec<u64> = (0..3).map(|_| rng.below(long_ns)).collect();
        times.sort_unstable();
        let whats = [fail, bitmap(rng), again];
        acts.extend(times.into_iter().zip(whats).map(|(at_ns, what)| Act { at_ns, what }));
    }
    if rng.percent(60) {
        let request = |rng: &mut Rng| Request {
            pause_ns: rng.below(60_000),
            op: Op::Write,
            block: rng.below(1 << 20),
            blocks: rng.within(1..=4),
            fua: false,
            data: rng.next_u64(),
        };
        let requests = (0..rng.within(20..=60)).map(|_| request(rng)).collect();
        let style = ReplyStyle::Simple;
        let at_ns = acts[0].at_ns.saturating_sub(rng.below(300_000));
        life.connections.push(Connection { at_ns, style, depth: 4, requests, leaves: false });
    }
    if rng.percent(30) {
        let at_ns = rng.below(long_ns);
        acts.push(Act { at_ns, what: What::Hold });
        acts.push(Act { at_ns: at_ns + rng.below(long_ns), what: What::GoOn });
    }
    life.acts.extend(acts);
    life.acts.sort_by_key(|act| act.at_ns);
    life.aftershocks += rng.within(2..=6) as u32;
}

/// All kinds of layouts, a few sizes.
pub(crate) fn spec(rng: &mut Rng) -> Spec {
    const NEAR: u32 = 0x102;
    const FAR: u32 = 0x201;
    const OFFSET: u32 = 0x1_0201;
    let (level, layouts, members, policies): (_, &[u32], _, &[Policy]) = match rng.below(100) {
        0..18 => (Level::Raid1, &[0], 2..=3, &[Policy::Resync, Policy::Bitmap]),
        18..32 => (Level::Raid10, &[NEAR, FAR, OFFSET], 3..=4, &[Policy::Resync, Policy::Bitmap]),
        32..46 => {
            (Level::Raid4, &[0], 3..=4, &[Policy::Log, Policy::Log, Policy::Resync, Policy::Bitmap])
        }
        46..72 => (
            Level::Raid5,
            &[0, 1, 2, 3],
            3..=5,
            &[Policy::Ppl, Policy::Ppl, Policy::Log, Policy::Resync, Policy::Bitmap],
        ),
        _ => (
            Level::Raid6,
            &[2, 0, 10, 18],
            4..=6,
            &[Policy::Log, Policy::Log, Policy::Resync, Policy::Bitmap],
        ),
    };
    let policy = policies[rng.index(policies.len())];
    let version = match rng.below(20) {
        0 => Version::V1_1,
        1 if policy != Policy::Log => Version::V1_0,
        2 if matches!(policy, Policy::Resync | Policy::Bitmap) => Version::V0_90,
        _ => Version::V1_2,
    };
    let chunk = [4 << 10, 4 << 10, 8 << 10, 16 << 10][rng.index(4)];
    let (chunk, member_size) = match level {
        Level::Raid1 => (0, rng.within(4..=24) * 4096),
        _ => (chunk, rng.within(2..=if chunk == 4096 { 10 } else { 5 }) * chunk),
    };
    let layout = layouts[rng.index(layouts.len())];
    let members = rng.within(members) as usize;
    let spec = Spec { level, layout, members, chunk, member_size, policy, version };
    // raid10 uses whole rows of chunks only, as `create` has it.
    if level == Level::Raid10 { Spec { member_size: even_rows(&spec), ..spec } } else { spec }
}

/// An array whose bitmap has two pages.
fn wide_spec(rng: &mut Rng) -> Spec {
    let (level, layout, members, chunk) = match rng.below(3) {
        0 | 1 => (Level::Raid1, 0, rng.within(2..=3), 0),
        _ => (Level::Raid5, 2, 3, 64 << 10),
    };
    Spec {
        level,
        layout,
        members: members as usize,
        chunk,
        member_size: FIRST_PAGE + (1 << 20),
        policy: Policy::Bitmap,
        version: Version::V1_2,
    }
}

/// Requests go to the first sectors and to the last ones, whose bits are on the second page. In some lives all go to
/// one of them, so that the other page rests. Passes go fast, since they have far to go.
fn to_both_pages(rng: &mut Rng, spec: &Spec, lives: &mut [Life]) {
    const PLACES: u64 = 128;
    let blocks = spec.size() / 512;
    for life in lives {
        life.speed = 100 << 20;
        let late_percent = [0, 50, 100, 100][rng.index(4)];
        let all = life.connections.iter_mut().flat_map(|connection| &mut connection.requests);
        for request in all {
            request.blocks = request.blocks.min(PLACES / 2);
            let place = rng.below(PLACES - request.blocks);
            request.block = if rng.percent(late_percent) { blocks - PLACES + place } else { place };
        }
    }
}

/// The most that raid10 uses of as many bytes.
fn even_rows(spec: &Spec) -> u64 {
    spec.member_size.next_multiple_of(2 * spec.chunk)
}

fn life(rng: &mut Rng, spec: &Spec, mood: &Mood) -> Life {
    let long_ns = mood.long_ns[rng.index(4)];
    let connections = rng.within(1..=3);
    let requests = rng.within(6..=36);
    let acts = mood.acts[rng.index(5)];
    let connections =
        (0..connections).map(|_| connection(rng, long_ns, requests / connections, mood));
    let mut connections: Vec<Connection> = connections.collect();
    let trickles = rng.percent(if spec.policy == Policy::Bitmap { 25 } else { 4 });
    if trickles {
        connections.push(trickle(rng));
    }
    let mut acts: Vec<Act> =
        (0..acts).map(|_| Act { at_ns: rng.below(long_ns), what: what(rng, spec, mood) }).collect();
    acts.sort_by_key(|act| act.at_ns);
    let mut probes: Vec<Probe> =
        (0..rng.within(mood.probes.clone())).map(|_| probe_of(rng, mood)).collect();
    if trickles {
        let late = |rng: &mut Rng| Probe { event: rng.within(300..=2500), ..probe_of(rng, mood) };
        probes.extend((0..3).map(|_| late(rng)));
    }
    let end = match rng.below(10) {
        0..3 => End::Rest,
        3..5 => End::Kill(event(rng)),
        _ => End::Power(probe_of(rng, mood)),
    };
    let speed = [256 << 10, 4 << 20, 100 << 20][rng.index(3)];
    let aftershocks = if acts.is_empty() { 0 } else { rng.below(5) as u32 };
    Life { connections, acts, probes, aftershocks, end, ..Life::plain(rng.next_u64(), speed) }
}

/// Something happens while the first resync is under way, which takes its time.
fn unsettle(rng: &mut Rng, spec: &Spec, life: &mut Life) {
    let rows = spec.member_size / 512;
    let (disk, block) = (rng.index(spec.members), rng.below(rows));
    let blocks = rng.within(1..=(rows - block).min(24));
    let what = match rng.percent(50) {
        true => What::Full { disk: None, block, blocks, for_ns: 4_000_000 },
        false => What::Latent { disk, block, blocks },
    };
    life.speed = 256 << 10;
    life.acts.insert(0, Act { at_ns: rng.below(3_000_000), what });
    life.acts.sort_by_key(|act| act.at_ns);
}

/// A client that keeps an array from being marked clean, for longer than a bitmap is swept in, and
/// flushes nothing.
fn trickle(rng: &mut Rng) -> Connection {
    let block = rng.below(1 << 20);
    let request = |rng: &mut Rng| Request {
        pause_ns: rng.within(60_000_000..=170_000_000),
        op: Op::Write,
        block,
        blocks: 1,
        fua: false,
        data: rng.next_u64(),
    };
    let requests = (0..rng.within(60..=130)).map(|_| request(rng)).collect();
    Connection { at_ns: 0, style: ReplyStyle::Simple, depth: 1, requests, leaves: false }
}

fn connection(rng: &mut Rng, long_ns: u64, requests: u64, mood: &Mood) -> Connection {
    let longest = [1, 8, 24, 64, 160][rng.index(5)];
    let pausing = rng.percent(40);
    let hot = rng.percent(mood.stays).then(|| rng.below(1 << 20));
    let requests = (0..requests.max(1)).map(|_| {
        let op = match rng.below(100) {
            0..30 => Op::Read,
            30..78 => Op::Write,
            78..84 => Op::WriteZeroes,
            84..87 => Op::Discard,
            _ => Op::Flush,
        };
        let pause_ns = if pausing && rng.percent(30) { rng.below(long_ns / 4) } else { 0 };
        Request {
            pause_ns,
            op,
            block: hot.unwrap_or(0)
                + if hot.is_some() { rng.below(24) } else { rng.below(1 << 20) },
            blocks: rng.within(1..=longest),
            fua: op.is_modifying() && rng.percent(25),
            data: rng.next_u64(),
        }
    });
    let requests = requests.collect();
    let styles = [ReplyStyle::Simple, ReplyStyle::Structured, ReplyStyle::Extended];
    Connection {
        at_ns: if rng.percent(70) { 0 } else { rng.below(long_ns) },
        style: styles[rng.index(3)],
        depth: rng.within(1..=8) as usize,
        requests,
        leaves: rng.percent(10),
    }
}

fn what(rng: &mut Rng, spec: &Spec, mood: &Mood) -> What {
    let disk = rng.index(spec.members + 1);
    let rows = spec.member_size / 512;
    let (block, pick) = (rng.below(rows), rng.next_u64());
    let blocks = rng.within(1..=(rows - block).min(24));
    match mood.acts_drawn[rng.index(mood.acts_drawn.len())] {
        0..3 => What::Latent { disk, block, blocks },
        3..8 => What::Transient {
            disk,
            op: [Op::Write, Op::Write, Op::Read, Op::Flush][rng.index(4)],
            count: rng.within(1..=4),
            after_ns: [0, 0, 0, 8_000_000_000][rng.index(4)],
        },
        8 => What::Slow { disk, times: [10, 1000][rng.index(2)] },
        9..12 => What::Vanish { disk },
        12..15 => What::Return { disk },
        15..17 => What::FlushError { disk },
        17..20 => What::Full {
            disk: rng.percent(40).then_some(disk),
            block,
            blocks,
            for_ns: [1_000_000, 4_000_000, 50_000_000][rng.index(3)],
        },
        20 => What::Scribble { disk, data: pick },
        21..25 => What::Fail { pick },
        25 => What::Remove { pick },
        26..29 => What::Add,
        29..33 => What::AddAgain { pick },
        33..35 => What::Replace { pick },
        35 => What::Check,
        36 => What::Repair,
        37 => What::Speed { rate: [256 << 10, 100 << 20][rng.index(2)] },
        38 if spec.level == Level::Raid1 => What::Grow,
        _ => What::NoScrub,
    }
}

/// Any moment, and what a crash may do then.
pub fn probe(rng: &mut Rng) -> Probe {
    probe_of(rng, &PLAIN)
}

fn probe_of(rng: &mut Rng, mood: &Mood) -> Probe {
    Probe {
        event: event(rng),
        way: [Way::All, Way::Nothing, Way::Blocks, Way::Mixed][rng.index(4)],
        loses: rng.percent(mood.loses),
        again: [0, 0, 0, 1, 2][rng.index(5)],
        dice: rng.next_u64(),
    }
}

/// Early ones are as likely as late ones: the start of an array has its moments, too.
fn event(rng: &mut Rng) -> u64 {
    let scale = [20, 80, 250, 700][rng.index(4)];
    rng.within(1..=scale)
}
