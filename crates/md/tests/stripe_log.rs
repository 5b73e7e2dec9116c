//! The stripe log's bytes: written ones can be read; damaged, old and foreign ones are refused.

use braid_md::rejection::LogRejection;
use braid_md::stripe_log::{
    BLOCK, Dropped, Found, Head, MOST_PARTS, MOST_ROLES, MemberLog, Part, Record, ReplayPart, Ring,
    Roles, plan_replay, scan,
};
use braid_md::{Timestamp, Uuid};
use braid_mutate::Random;
use proptest::prelude::*;

const ARRAY: Uuid = Uuid([3; 16]);
const BLOCKS: usize = 12;

fn head() -> Head {
    Head {
        array_uuid: ARRAY,
        device_number: 2,
        area: (BLOCKS * BLOCK) as u64,
        events: 40,
        tail: 5,
        nonce: 77,
        synced: u64::MAX,
        updated: Timestamp { seconds: 1_700_000_009, micros: 5 },
        before: Timestamp { seconds: 1_700_000_002, micros: 999_999 },
    }
}

fn parse_head(block: &[u8]) -> Result<Head, LogRejection> {
    Head::parse(block, &ARRAY, 2, 1 << 20)
}

/// A record of one part with this payload, at role 1 of roles 0 to 2.
fn record(sequence: u64, payload: &[u8]) -> Record {
    Record {
        array_uuid: ARRAY,
        device_number: 2,
        role: 1,
        nonce: 77,
        sequence,
        tail: 5,
        participants: (0..3).collect(),
        parts: vec![Part { offset: sequence * 4096, len: payload.len() as u32 }],
        payload_len: payload.len() as u32,
        payload_checksum: Record::checksum_of([payload]),
    }
}

fn encoded(record: &Record) -> Vec<u8> {
    let mut block = vec![0xa5; BLOCK];
    record.encode_into(&mut block);
    block
}

/// Puts a record with its payload into an area.
fn put(area: &mut [u8], at: usize, record: &Record, payload: &[u8]) {
    record.encode_into(&mut area[at..at + BLOCK]);
    area[at + BLOCK..at + BLOCK + payload.len()].copy_from_slice(payload);
}

fn area() -> Vec<u8> {
    vec![0; BLOCKS * BLOCK]
}

fn sequences(found: &[Found]) -> Vec<u64> {
    found.iter().map(|found| found.record.sequence).collect()
}

/// A block with a number changed and the checksum right.
fn with(block: &[u8], at: usize, value: u64, width: usize) -> Vec<u8> {
    let mut block = block.to_vec();
    block[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    block[12..16].fill(0);
    let sum = Record::checksum_of([&block[..]]);
    block[12..16].copy_from_slice(&sum.to_le_bytes());
    block
}

fn any_record() -> impl Strategy<Value = Record> {
    let part = (0..1_u64 << 40, 1..64_u32)
        .prop_map(|(sector, sectors)| Part { offset: sector * 512, len: sectors * 512 });
    let parts = prop::collection::vec(part, 1..=MOST_PARTS);
    let roles = prop::collection::vec(0..MOST_ROLES as u16, 1..20);
    (parts, roles, any::<[u32; 2]>(), any::<[u64; 2]>()).prop_map(
        |(parts, roles, [device_number, payload_checksum], [one, other])| Record {
            array_uuid: ARRAY,
            device_number,
            role: roles[0],
            nonce: other,
            sequence: (one | other) >> 1,
            tail: (one & other) >> 1,
            participants: roles.into_iter().collect::<Roles>(),
            payload_len: parts.iter().map(|part| part.len).sum(),
            parts,
            payload_checksum,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn records_round_trip(record in any_record()) {
        let head = Head { device_number: record.device_number, nonce: record.nonce, ..head() };
        let block = encoded(&record);
        prop_assert_eq!(Record::parse(&block, &head), Ok(record));
    }

    #[test]
    fn heads_round_trip(numbers in any::<[u64; 4]>(), device_number in any::<u32>(), blocks in 3..4000_u64) {
        let [events, tail, nonce, synced] = numbers;
        let area = blocks * BLOCK as u64;
        let tail = tail >> 1;
        let head = Head { device_number, area, events, tail, nonce, synced, ..head() };
        prop_assert_eq!(Head::parse(&head.encode(), &ARRAY, device_number, area), Ok(head));
    }

    /// Records never lie over live ones, nor over the end, and there is room where a naive look
    /// finds some.
    #[test]
    fn live_records_never_overlap(seed in any::<u64>(), blocks in 2_usize..40) {
        let mut random = Random::new(seed);
        let mut ring = Ring::new((blocks * BLOCK) as u64);
        // Which sequence has each block; and which are live, from `tail` on.
        let mut owner: Vec<Option<u64>> = vec![None; blocks];
        let (mut sequence, mut tail, mut next) = (0, 0, 0);
        for _ in 0..200 {
            let len = random.below(blocks.min(6) * BLOCK + 1);
            let needed = 1 + len.div_ceil(BLOCK);
            let is_free = |from: usize| {
                from + needed <= blocks && owner[from..from + needed].iter().all(Option::is_none)
            };
            let expected = [next, 0].into_iter().find(|from| is_free(*from));
            prop_assert_eq!(ring.has_room(len as u64), expected.is_some());
            let placed = ring.place(sequence, len as u64);
            prop_assert_eq!(placed, expected.map(|from| (from * BLOCK) as u64));
            if let Some(from) = expected {
                owner[from..from + needed].fill(Some(sequence));
                next = from + needed;
                sequence += 1;
            }
            if expected.is_none() || random.below(3) == 0 {
                tail += random.below((sequence - tail) as usize + 1) as u64;
                ring.retire_below(tail);
                for owner in &mut owner {
                    *owner = owner.filter(|sequence| *sequence >= tail);
                }
            }
            prop_assert_eq!(ring.live().collect::<Vec<_>>(), (tail..sequence).collect::<Vec<_>>());
            let owned = owner.iter().flatten().count() * BLOCK;
            prop_assert!(ring.used() >= owned as u64 && ring.used() <= (blocks * BLOCK) as u64);
        }
    }
}

#[test]
fn every_flipped_byte_is_seen() {
    for block in [head().encode(), encoded(&record(9, &[1; 512]))] {
        for at in 0..BLOCK {
            let mut changed = block.clone();
            changed[at] ^= 0x40;
            assert!(parse_head(&changed).is_err(), "head, byte {at}");
            assert!(Record::parse(&changed, &head()).is_err(), "record, byte {at}");
        }
        for len in 0..BLOCK {
            let refused = LogRejection::Truncated { what: "head", got: len };
            assert_eq!(parse_head(&block[..len]), Err(refused));
        }
    }
}

#[test]
fn heads_that_are_not_this_ones() {
    let block = head().encode();
    let refused = |block: &[u8]| parse_head(block).unwrap_err().to_string();
    let own = "03030303:03030303:03030303:03030303";
    let other = Head { array_uuid: Uuid([4; 16]), ..head() };
    assert_eq!(
        refused(&other.encode()),
        format!("the stripe log is of array 04040404:04040404:04040404:04040404, this is {own}")
    );
    let other = Head { device_number: 5, ..head() };
    assert_eq!(refused(&other.encode()), "the stripe log is of device number 5, this is 2");
    assert_eq!(
        refused(&with(&block, 8, 2, 4)),
        "the head of the stripe log has version 2, known is 1"
    );
    for area in [0, 8192, 12289, (1 << 20) + 4096, u64::MAX - 4095] {
        assert_eq!(
            refused(&with(&block, 40, area, 8)),
            format!(
                "the stripe log's area of {area} bytes cannot be: it has whole 4096, from 12288 to 1048576"
            )
        );
    }
    assert_eq!(
        refused(&with(&block, 56, 1 << 63, 8)),
        "the tail counts 9223372036854775808, which must be below 2^63"
    );
    assert!(matches!(parse_head(&encoded(&record(9, &[1; 512]))), Err(LogRejection::Magic { .. })));
    assert!(matches!(parse_head(&[0; BLOCK]), Err(LogRejection::Magic { .. })));
    // What is behind the fields has no meaning yet.
    assert_eq!(parse_head(&with(&block, 104, 1, 8)), Ok(head()));
}

#[test]
fn a_log_counts_only_with_superblocks_that_it_knows() {
    let Head { updated, before, .. } = head();
    assert_eq!(head().check_current(40, updated), Ok(()));
    assert_eq!(head().check_current(39, before), Ok(()), "ahead of the superblocks");
    assert_eq!(head().check_current(40, before), Ok(()), "written again, and not yet");
    assert_eq!(
        head().check_current(41, updated).unwrap_err().to_string(),
        "the stripe log is of 40 events, the array has 41, or another time of update: another \
         program wrote it since"
    );
    // Another program that counted to the same number.
    let other = Timestamp { seconds: 1_700_000_010, micros: 0 };
    assert!(head().check_current(40, other).is_err());
    assert!(head().check_current(38, before).is_err());
}

#[test]
fn every_field_of_a_record_under_a_right_checksum() {
    let block = encoded(&record(9, &[1; 512]));
    let refused =
        |at, value, width| Record::parse(&with(&block, at, value, width), &head()).unwrap_err();
    let cases: [(LogRejection, (usize, u64, usize)); 14] = [
        (LogRejection::Version { what: "record", found: 0 }, (8, 0, 4)),
        (LogRejection::OtherDevice { found: 3, expected: 2 }, (32, 3, 4)),
        (LogRejection::Role { role: 3 }, (36, 3, 2)),
        (LogRejection::Role { role: 65535 }, (36, 65535, 2)),
        (LogRejection::Parts { found: 0 }, (38, 0, 2)),
        (LogRejection::Parts { found: 65 }, (38, 65, 2)),
        (LogRejection::Count { what: "sequence", value: 1 << 63 }, (40, 1 << 63, 8)),
        (LogRejection::Sequence { sequence: 4, tail: 5 }, (40, 4, 8)),
        (LogRejection::Sequence { sequence: 9, tail: 10 }, (48, 10, 8)),
        (LogRejection::OtherNonce { found: 78, expected: 77 }, (56, 78, 8)),
        (LogRejection::PayloadLen { parts: 512, payload: 513 }, (64, 513, 4)),
        (LogRejection::Role { role: 1 }, (72, 0b101, 8)),
        (LogRejection::Part { offset: 36865, len: 512 }, (120, 36865, 8)),
        (LogRejection::Part { offset: 36864, len: 0 }, (128, 0, 4)),
    ];
    for (rejection, (at, value, width)) in cases {
        assert_eq!(refused(at, value, width), rejection);
    }
    let other = Record { array_uuid: Uuid([0; 16]), ..record(9, &[1; 512]) };
    let elsewhere = LogRejection::OtherArray { found: Uuid([0; 16]), expected: ARRAY };
    assert_eq!(Record::parse(&encoded(&other), &head()), Err(elsewhere));
    let beyond = LogRejection::Part { offset: (1 << 63) - 512, len: 512 };
    assert_eq!(refused(120, (1 << 63) - 512, 8), beyond);
}

#[test]
fn what_a_crash_tore_is_not_found() {
    let (first, second) = ([7; 5000], [8; 512]);
    let mut sound = area();
    // Lengths are whole sectors.
    let first = &first[..4608];
    put(&mut sound, 0, &record(9, first), first);
    put(&mut sound, 3 * BLOCK, &record(10, &second), &second);
    let found = scan(&sound, &head());
    assert_eq!(sequences(&found), [9, 10]);
    assert_eq!((found[0].position, found[0].payload.clone()), (0, BLOCK..BLOCK + 4608));
    assert_eq!(found[1].position, 3 * BLOCK);
    // Each sector of the first record and its payload.
    for sector in 0..17 {
        let mut torn = sound.clone();
        torn[sector * 512 + 100] ^= 0xff;
        assert_eq!(sequences(&scan(&torn, &head())), [10], "sector {sector}");
    }
    // The padding does not matter.
    let mut padding = sound.clone();
    padding[BLOCK + 4608 + 10] = 1;
    assert_eq!(sequences(&scan(&padding, &head())), [9, 10]);
    // Nor does anything of the ring that was not read.
    assert_eq!(sequences(&scan(&sound[..4 * BLOCK], &head())), [9]);
    assert_eq!(sequences(&scan(&[], &head())), [] as [u64; 0]);
}

#[test]
fn what_users_write_is_no_record() {
    // The payload is a record in itself, of a run before: found only once nothing lies over it.
    let inner = encoded(&Record { nonce: 76, ..record(30, &[1; 512]) });
    let mut inner_too = inner;
    inner_too.extend([1; 512]);
    let mut area = area();
    put(&mut area, 0, &record(9, &inner_too), &inner_too);
    assert_eq!(sequences(&scan(&area, &head())), [9]);
    area[0] = 0;
    assert_eq!(sequences(&scan(&area, &head())), [] as [u64; 0]);
}

#[test]
fn records_that_go_beyond_the_ring() {
    let payload = vec![1; BLOCK];
    let mut area = area();
    // The last block is the head's.
    put(&mut area, (BLOCKS - 2) * BLOCK, &record(9, &payload), &payload);
    assert_eq!(scan(&area, &head()), []);
    put(&mut area, (BLOCKS - 3) * BLOCK, &record(10, &payload), &payload);
    assert_eq!(sequences(&scan(&area, &head())), [10]);
}

/// A member's log with records of these sequences, for participants 0 to 2.
fn log(role: u16, in_sync: bool, records: &[u64]) -> MemberLog {
    let mut area = area();
    let payload = [role as u8; 512];
    for (index, sequence) in records.iter().enumerate() {
        let record = Record { role, ..record(*sequence, &payload) };
        put(&mut area, 2 * index * BLOCK, &record, &payload);
    }
    let found = scan(&area, &head());
    assert_eq!(found.len(), records.len());
    MemberLog { role, in_sync, head: Some(head()), found }
}

/// Sequences to be replayed, and dropped.
fn planned(members: &[MemberLog]) -> (Vec<u64>, Vec<u64>) {
    let replay = plan_replay(members).expect("heads");
    (
        replay.transactions.iter().map(|transaction| transaction.sequence).collect(),
        replay.dropped.iter().map(|dropped| dropped.sequence).collect(),
    )
}

#[test]
fn complete_ones_are_replayed_in_order() {
    // As a ring has them that went over its end.
    let members =
        [log(0, true, &[9, 7, 8]), log(1, true, &[7, 9]), log(2, true, &[9, 7]), log(3, true, &[])];
    let replay = plan_replay(&members).expect("heads");
    assert_eq!(planned(&members), (vec![7, 9], vec![8]));
    assert_eq!(replay.next_sequence, 10);
    assert_eq!(replay.dropped, [Dropped { sequence: 8, rows: vec![(8 * 4096, 8 * 4096 + 512)] }]);
    let first = &replay.transactions[0];
    assert_eq!(first.missing_roles, []);
    assert_eq!(first.rows, [(7 * 4096, 7 * 4096 + 512)]);
    let part = |role: u16, block: usize| ReplayPart {
        role,
        member: usize::from(role),
        offset: 7 * 4096,
        len: 512,
        payload: (block + 1) * BLOCK,
    };
    assert_eq!(first.parts, [part(0, 2), part(1, 0), part(2, 2)]);
}

#[test]
fn who_is_missing_is_not_waited_for() {
    // Role 2 is gone, or never got its record and is being rebuilt.
    let (zero, one) = (log(0, true, &[7, 8]), log(1, true, &[7]));
    assert_eq!(planned(&[zero.clone(), one.clone()]), (vec![7], vec![8]));
    let rebuilt = log(2, false, &[]);
    let members = [zero.clone(), one.clone(), rebuilt];
    assert_eq!(planned(&members), (vec![7], vec![8]));
    assert_eq!(plan_replay(&members).expect("heads").transactions[0].missing_roles, [2]);
    // One that is being rebuilt and has its record gets it, also beside a member in sync.
    let members = [zero, one, log(2, true, &[7]), log(2, false, &[7])];
    let replay = plan_replay(&members).expect("heads");
    let of: Vec<usize> = replay.transactions[0].parts.iter().map(|part| part.member).collect();
    assert_eq!(of, [0, 1, 2, 3]);
}

#[test]
fn nothing_is_said_without_the_log_of_a_member_in_sync() {
    let mut members = [log(0, true, &[7]), log(1, true, &[7]), log(2, true, &[7])];
    members[1].head = None;
    assert_eq!(
        plan_replay(&members).unwrap_err().to_string(),
        "role 1 is in sync and has no log, so that nothing is known to be complete"
    );
    members[1].in_sync = false;
    // Whatever was found there has no head that vouches for it.
    let replay = plan_replay(&members).expect("the others");
    assert_eq!(replay.transactions[0].missing_roles, [1]);
}

#[test]
fn what_is_retired_anywhere_is_retired() {
    let mut members = [log(0, true, &[7, 8]), log(1, true, &[7, 8]), log(2, true, &[7, 8])];
    assert_eq!(planned(&members).0, [7, 8]);
    members[2].head.as_mut().expect("a head").tail = 8;
    assert_eq!(planned(&members).0, [8]);
    members[0].found[1].record.tail = 8;
    members[2].head.as_mut().expect("a head").tail = 0;
    assert_eq!(planned(&members).0, [8]);
    members[1].head.as_mut().expect("a head").tail = 50;
    assert_eq!(planned(&members), (vec![], vec![]));
    assert_eq!(plan_replay(&members).expect("heads").next_sequence, 50);
}

/// Records that contradict each other, which braid does not write, are never half believed.
#[test]
fn contradictions_are_dropped() {
    let sound = || [log(0, true, &[7]), log(1, true, &[7]), log(2, true, &[7])];
    // Another one of the same sequence on the same member.
    let mut twice = sound();
    let again = twice[0].found[0].clone();
    twice[0].found.push(again);
    assert_eq!(planned(&twice), (vec![], vec![7]));
    // A record of another role than the member's.
    let mut other = sound();
    other[0].role = 3;
    other[0].in_sync = false;
    assert_eq!(planned(&other).0, [7], "of the others");
    other[0].role = 1;
    other[0].in_sync = true;
    assert_eq!(planned(&other), (vec![], vec![7]));
    // One that knows of more participants.
    let mut more = [sound().to_vec(), vec![log(5, true, &[])]].concat();
    more[1].found[0].record.participants.insert(5);
    assert_eq!(planned(&more), (vec![], vec![7]));
}
