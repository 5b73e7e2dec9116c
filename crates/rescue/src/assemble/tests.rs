//! Arrays of superblocks that were made here, and left as md leaves them.

use braid_md::bitmap::PAGE_BYTES;
use braid_md::ppl::Entry;
use braid_md::superblock::Contents;
use braid_md::{Features, Reshape, Role, Timestamp, Uuid, Version};
use braid_stack::ByteSize;

use super::backup::Section;
use super::*;

const CHUNK: u64 = 64 << 10;
const COMPONENT: u64 = 4 << 20;

/// A member of a raid5 or raid6: its role, events and the roles that its table counts on.
fn claimant(level: Level, role: u16, events: u64, alive: &[u16], disks: u32) -> Claimant {
    let roles = (0..disks).map(|role| {
        let role = u16::try_from(role).expect("a role");
        if alive.contains(&role) { Role::Active(role) } else { Role::Faulty }
    });
    let contents = Contents {
        version: Version::V1_2,
        array_uuid: Uuid([7; 16]),
        name: "nas:0".to_owned(),
        created: Timestamp { seconds: 1000, micros: 0 },
        updated: Timestamp { seconds: 1000 + events, micros: 0 },
        level,
        layout: 2,
        chunk: CHUNK,
        component_size: COMPONENT,
        raid_disks: disks,
        events,
        resync: Resync::Clean,
        features: Features::default(),
        bitmap_offset: None,
        ppl: None,
        reshape: None,
        roles: roles.collect(),
        logical_block_size: 0,
        super_offset: 4096,
        data_offset: 1 << 20,
        data_size: COMPONENT,
        device_uuid: Uuid([u8::try_from(role).expect("a role") + 1; 16]),
        device_number: role.into(),
        corrected_reads: 0,
        write_mostly: false,
        fail_fast: false,
        recovery_offset: None,
        bad_block_log: None,
        old: None,
        raw: Vec::new(),
    };
    let superblock = Superblock::new(contents, (1 << 20) + COMPONENT).expect("it is sound");
    Claimant {
        member: role.into(),
        label: format!("m{role}"),
        path: format!("/m{role}"),
        start: 0,
        length: (1 << 20) + COMPONENT,
        superblock,
        bitmap: None,
        logged: None,
        holes: Vec::new(),
        content: role.to_string(),
        is_guessed: false,
    }
}

/// Changes fields of a superblock.
fn change(one: &mut Claimant, change: impl FnOnce(&mut Contents)) {
    let mut contents = one.superblock.clone().into_contents();
    change(&mut contents);
    one.superblock = Superblock::new(contents, (1 << 20) + COMPONENT).expect("it is sound");
}

/// A raid5 of 4 that lost role 3 first, and role 2 when it failed.
fn two_dropped() -> Vec<Claimant> {
    let member = |role, events, alive: &[u16]| claimant(Level::Raid5, role, events, alive, 4);
    vec![
        member(0, 90, &[0, 1]),
        member(1, 90, &[0, 1]),
        member(2, 80, &[0, 1, 2]),
        member(3, 10, &[0, 1, 2, 3]),
    ]
}

fn standings(opening: &Opening) -> Vec<Option<Standing>> {
    opening.seats.iter().map(|seat| seat.as_ref().map(|seat| seat.standing)).collect()
}

#[test]
fn a_member_that_left_when_the_array_failed_is_used_and_the_stale_one_is_not() {
    use Standing::{Last, LeftLast};
    let claimants = two_dropped();
    let opening = open(&claimants, None).expect("three of four suffice");
    assert_eq!(standings(&opening), [Some(Last), Some(Last), Some(LeftLast), None]);
    assert_eq!(opening.left_out, [LeftOut { claimant: 3, why: WhyLeftOut::Stale }]);
    assert_eq!(opening.doubts, []);
    assert_eq!(opening.size, 3 * COMPONENT);
    assert_eq!(
        opening.expression(&claimants, &|_, _| None),
        "raid5(chunk=64K, layout=left-symmetric, file(/m0, offset=1M, length=4M), \
         file(/m1, offset=1M, length=4M), file(/m2, offset=1M, length=4M), missing)"
    );
}

#[test]
fn the_order_in_which_members_are_given_does_not_matter() {
    let mut claimants = two_dropped();
    let labels = |claimants: &[Claimant]| {
        let opening = open(claimants, None).expect("three of four suffice");
        let label = |seat: &Option<Seat>| Some(claimants[seat.as_ref()?.claimant].label.clone());
        opening.seats.iter().map(label).collect::<Vec<_>>()
    };
    let expected = labels(&claimants);
    for _ in 0..4 {
        claimants.rotate_left(1);
        assert_eq!(labels(&claimants), expected);
    }
}

#[test]
fn writes_under_way_when_the_array_failed_are_in_doubt() {
    let mut claimants = two_dropped();
    change(&mut claimants[2], |contents| contents.resync = Resync::From(0));
    let opening = open(&claimants, None).expect("three of four suffice");
    assert_eq!(opening.doubts, [Doubt::Torn { at: 1080, ranges: None }]);
}

#[test]
fn without_the_member_that_left_last_the_stale_one_is_needed_and_in_doubt() {
    let mut claimants = two_dropped();
    claimants.remove(2);
    let opening = open(&claimants, None).expect("with the stale member three of four");
    // By the table of member 3, member 2 was there when it left: the array may have gone on with that one.
    assert_eq!(standings(&opening)[3], Some(Standing::Stale));
    assert_eq!(opening.doubts, [Doubt::Stale { label: "m3".to_owned(), role: 3, at: 1010 }]);
}

#[test]
fn the_member_without_which_one_was_forced_in_is_used_instead() {
    // Role 3 left, then the array was assembled from it, without role 2, and used.
    let all = &[0, 1, 3];
    let forced: Vec<Claimant> =
        all.iter().map(|role| claimant(Level::Raid5, *role, 20, all, 4)).collect();
    let with = |one: Claimant| [forced.clone(), vec![one]].concat();
    let opening =
        open(&with(claimant(Level::Raid5, 2, 9, &[0, 1, 2], 4)), None).expect("it is read");
    // What was written since is in doubt, and that alone.
    let at = 1009;
    assert_eq!(opening.doubts, [Doubt::Stale { label: "m2".to_owned(), role: 2, at }]);
    let last = Some(Standing::Last);
    assert_eq!(standings(&opening), [last, last, Some(Standing::Stale), None]);
    let without = "m2".to_owned();
    assert_eq!(opening.left_out, [LeftOut { claimant: 2, why: WhyLeftOut::Forced { without } }]);
    // One that left while all others were there.
    let opening =
        open(&with(claimant(Level::Raid5, 2, 9, &[0, 1, 2, 3], 4)), None).expect("it is read");
    assert_eq!(opening.doubts, []);
}

#[test]
fn a_missing_member_that_nothing_replaces_is_a_gap() {
    let member = |level, role| claimant(level, role, 9, &[0, 1, 2], 3);
    let without = |level| [member(level, 0), member(level, 2)];
    let (end, gap) = (2 * COMPONENT, 3 * CHUNK);
    // The rest of the content, in whole chunks.
    let opening = open(&without(Level::Linear), Some(end + gap - 4096)).expect("it has a size");
    assert_eq!((opening.gap, opening.size), (Some(gap), end + gap));
    let ranges = std::iter::once(COMPONENT..COMPONENT + gap).collect();
    assert_eq!(opening.doubts, [Doubt::Lost { ranges }]);
    let few = |opening: Result<Opening, OpenError>| matches!(opening, Err(OpenError::TooFew { roles, .. }) if roles == [1]);
    assert!(few(open(&without(Level::Linear), None)));
    assert!(few(open(&without(Level::Linear), Some(end))), "all of it is on the others");
    // As much as each of the others has.
    let opening = open(&without(Level::Raid0), None).expect("all have one size");
    assert_eq!((opening.gap, opening.size), (Some(COMPONENT), 3 * COMPONENT));
}

#[test]
fn members_that_left_together_are_used_together() {
    let member = |role, events, alive: &[u16]| claimant(Level::Raid5, role, events, alive, 4);
    let all = [0, 1, 2, 3];
    let claimants =
        [member(0, 90, &[0, 1]), member(1, 90, &[0, 1]), member(2, 80, &all), member(3, 80, &all)];
    let opening = open(&claimants, None).expect("all are here");
    assert_eq!(standings(&opening)[2..], [Some(Standing::LeftLast), Some(Standing::LeftLast)]);
    assert_eq!(opening.doubts, []);
}

#[test]
fn a_member_that_the_array_went_on_without_is_stale() {
    let mut claimants = two_dropped();
    for one in &mut claimants[..3] {
        change(one, |contents| {
            contents.events = 90;
            contents.updated.seconds = 1090;
            contents.roles[2] = Role::Active(2);
        });
    }
    claimants.remove(2);
    let opening = open(&claimants, None).expect("with the stale member three of four");
    assert_eq!(standings(&opening)[3], Some(Standing::Stale));
    assert_eq!(opening.doubts, [Doubt::Stale { label: "m3".to_owned(), role: 3, at: 1010 }]);
}

/// A bitmap of 64 KiB chunks in which these are set.
fn bitmap(events: u64, cleared: u64, chunks: &[u64]) -> Bitmap {
    let header = braid_md::BitmapHeader {
        version: 4,
        uuid: Uuid([7; 16]),
        events,
        events_cleared: cleared,
        sync_size: COMPONENT,
        stale: false,
        write_error: false,
        host_endian: false,
        chunk_size: CHUNK,
        daemon_sleep: 5,
        write_behind: 0,
        reserved: 0,
        nodes: 0,
        cluster_name: [0; 64],
        unknown: Default::default(),
    };
    let mut bitmap = Bitmap::new(header, PAGE_BYTES as u64).expect("it has room");
    for chunk in chunks {
        bitmap.set(*chunk);
    }
    bitmap
}

#[test]
fn a_stale_member_with_a_bitmap_fills_holes_but_not_where_it_is_out_of_date() {
    let mut claimants = two_dropped();
    claimants[0].bitmap = Some(bitmap(90, 10, &[1, 5]));
    assert_eq!(
        open(&claimants, None).expect("three of four suffice").left_out[0].why,
        WhyLeftOut::NotNeeded
    );
    // A hole where the stale member is good, and one where it is not.
    let data = 1 << 20;
    claimants[2].holes = vec![data + 4096..data + 8192, data + CHUNK..data + CHUNK + 4096];
    let opening = open(&claimants, None).expect("enough");
    assert_eq!(standings(&opening)[3], Some(Standing::ByBitmap));
    let seat = opening.seats[3].as_ref().expect("it is used");
    assert_eq!(seat.holes, [CHUNK..2 * CHUNK, 5 * CHUNK..6 * CHUNK]);
    // Stripe 1, left-symmetric: roles 3, 0, 1 have data, role 2 has parity.
    assert_eq!(opening.doubts, [Doubt::Lost { ranges: vec![3 * CHUNK..3 * CHUNK + 4096] }]);
    assert_eq!(
        Opening::holes_of(&claimants, seat),
        [data + CHUNK..data + 2 * CHUNK, data + 5 * CHUNK..data + 6 * CHUNK]
    );
    // Bits that were cleared after it left are not about it.
    claimants[0].bitmap = Some(bitmap(90, 11, &[1, 5]));
    let opening = open(&claimants, None).expect("enough");
    assert_eq!(opening.left_out, [LeftOut { claimant: 3, why: WhyLeftOut::Stale }]);
}

#[test]
fn copies_of_a_member_are_told_apart() {
    let mut claimants = two_dropped();
    let mut old = claimants[0].clone();
    old.label = "old".to_owned();
    change(&mut old, |contents| contents.events = 60);
    let mut same = claimants[1].clone();
    same.label = "same".to_owned();
    claimants.extend([old, same]);
    let opening = open(&claimants, None).expect("three of four suffice");
    assert_eq!(standings(&opening)[..3].iter().flatten().count(), 3);
    let why: Vec<String> = opening.left_out.iter().map(|one| one.why.to_string()).collect();
    assert!(why.contains(&"it is an older copy of m0".to_owned()), "{why:?}");
    assert!(why.contains(&"it is the same as m1, given twice or copied".to_owned()), "{why:?}");
    // With other content nothing tells which one is right.
    claimants[5].content = "other".to_owned();
    let opening = open(&claimants, None).expect("three of four suffice");
    assert_eq!(opening.doubts, [Doubt::Ambiguous { label: "m1".to_owned(), role: 1 }]);
}

#[test]
fn what_cannot_be_read_is_refused_with_the_reason() {
    let mut claimants = two_dropped();
    claimants.truncate(2);
    let error = open(&claimants, None).expect_err("two of four");
    assert_eq!(error.to_string(), "raid5 of 4 cannot be read without its roles 2, 3");
}

/// A raid5 of which a reshape from 3 to 4 members, or back, came to `position`.
fn reshaping(position: u64, backwards: bool) -> Vec<Claimant> {
    let reshape = |new_offset: i64| Reshape {
        position,
        delta_disks: if backwards { -1 } else { 1 },
        new_level: 5,
        new_layout: 2,
        new_chunk: CHUNK,
        new_offset,
        backwards,
    };
    let disks = if backwards { 3 } else { 4 };
    let mut members: Vec<Claimant> =
        (0..4).map(|role| claimant(Level::Raid5, role, 5, &[0, 1, 2, 3], 4)).collect();
    for one in &mut members {
        change(one, |one| {
            (one.raid_disks, one.reshape) = (disks, Some(reshape(0)));
            one.features = Features(one.features.0 | Features::RESHAPE.0);
        });
    }
    members
}

fn numbers(half: &Half) -> Vec<Option<usize>> {
    let of = |seat: &Option<Seat>| seat.as_ref().map(|seat| half.claimants[seat.claimant].member);
    half.opening.seats.iter().map(of).collect()
}

#[test]
fn a_reshape_that_stopped_is_read_by_both_geometries() {
    let all = |count: usize| (0..count).map(Some).collect::<Vec<_>>();
    let at = 12 * CHUNK;
    let members = reshaping(at, false);
    let reshape = reshape_of(&members).expect("it is in a reshape");
    let grown = halves(&members, reshape, &[]).expect("it can be read");
    assert_eq!((numbers(&grown.below), numbers(&grown.above)), (all(4), all(3)));
    assert_eq!((grown.position, grown.size, grown.doubts.len()), (at, 2 * COMPONENT, 0));
    let text = grown.expression("new", "old", "");
    let (from, rest) = (ByteSize(at), ByteSize(2 * COMPONENT - at));
    let (new, old) = ("slice(new, offset=0, length=", "slice(old, offset=");
    assert_eq!(text, format!("linear({new}{from}), {old}{from}, length={rest}))"));

    // From the end on: what is behind the position has three members.
    let members = reshaping(at, true);
    let shrunk = halves(&members, reshape_of(&members).expect("one"), &[]).expect("readable");
    assert_eq!((numbers(&shrunk.below), numbers(&shrunk.above)), (all(4), all(3)));
    assert_eq!((shrunk.position, shrunk.doubts.len()), (at, 0));
    // The fourth member is lost: the old geometry is degraded, and the new one does not have it.
    let shrunk = halves(&members[..3], reshape_of(&members).expect("one"), &[]).expect("readable");
    assert_eq!(numbers(&shrunk.below), [Some(0), Some(1), Some(2), None]);
    assert!(shrunk.doubts.is_empty());
}

#[test]
fn the_critical_section_is_in_doubt_without_a_backup() {
    let ranges = |halves: &Halves| match &halves.doubts[..] {
        [] => Vec::new(),
        [Doubt::Critical { ranges }] => ranges.clone(),
        other => panic!("{other:?}"),
    };
    // A grow that has just begun: a stripe of both geometries.
    let members = reshaping(0, false);
    let grown = halves(&members, reshape_of(&members).expect("one"), &[]).expect("readable");
    assert_eq!(ranges(&grown), [0..6 * CHUNK]);

    // Another chunk in place: everything behind the position.
    let (at, end) = (8 * CHUNK, 3 * COMPONENT);
    let in_place = |new_offset: i64| -> Vec<Claimant> {
        let mut members = reshaping(at, false);
        for one in &mut members {
            change(one, |one| {
                let reshape = one.reshape.as_mut().expect("one");
                (reshape.delta_disks, reshape.new_chunk) = (0, 2 * CHUNK);
                reshape.new_offset = new_offset;
                if new_offset != 0 {
                    one.features = Features(one.features.0 | Features::NEW_OFFSET.0);
                }
            });
        }
        members
    };
    let members = in_place(0);
    let reshape = reshape_of(&members).expect("one");
    let read = |saved: &[Section]| halves(&members, reshape, saved).expect("readable");
    assert_eq!(ranges(&read(&[])), [at..end]);
    // The backup has two sections: the reshape came to the first, and not behind the second.
    let section = |array: Range<u64>, at: u64| Section { array, at };
    let middle = at + 4 * CHUNK;
    let saved = [section(at..middle, 4096), section(middle..middle + CHUNK, 8192)];
    let whole = read(&saved);
    assert_eq!((ranges(&whole), whole.position), (Vec::new(), at));
    let text = whole.expression("new", "old", "/backup");
    let order = ["slice(new", "file(/backup, offset=4K", "file(/backup, offset=8K", "slice(old"];
    let places: Vec<usize> = order.iter().filter_map(|part| text.find(part)).collect();
    assert!(places.len() == 4 && places.is_sorted(), "{text}");
    // One that is older than the superblocks does not help; one that is newer leaves a gap.
    assert_eq!(ranges(&read(&[section(0..at, 4096)])), [at..end]);
    assert_eq!(ranges(&read(&[section(middle..end, 4096)])), [at..middle]);
    // Data that move by both chunks are never overwritten before they are safe.
    let members = in_place(-(4 * CHUNK as i64));
    let moved = halves(&members, reshape_of(&members).expect("one"), &[]).expect("readable");
    assert!(moved.doubts.is_empty(), "{:?}", moved.doubts);
}

#[test]
fn a_log_of_partial_parity_says_which_rows_are_in_doubt() {
    // Role 3 is missing, and writes were under way.
    let mut members: Vec<Claimant> =
        (0..3).map(|role| claimant(Level::Raid5, role, 5, &[0, 1, 2], 4)).collect();
    for one in &mut members {
        change(one, |one| one.resync = Resync::From(0));
        one.logged = Some(Vec::new());
    }
    let torn = |members: &[Claimant]| {
        let doubts = open(members, None).expect("it can be read").doubts;
        doubts.into_iter().find_map(|doubt| match doubt {
            Doubt::Torn { ranges, .. } => Some(ranges),
            _ => None,
        })
    };
    // Nothing was being written.
    assert_eq!(torn(&members), None);
    // Left-symmetric: stripe 1 has its parity on role 2, and its first chunk on role 3.
    let entry = |start: u64| Entry {
        data_start: start,
        data_len: 4096,
        parity_len: 4096,
        parity_role: 2,
        checksum: 0,
    };
    members[2].logged = Some(vec![entry(3 * CHUNK + 8192)]);
    assert_eq!(torn(&members), Some(Some(vec![3 * CHUNK + 8192..3 * CHUNK + 12288])));
    // The log of one member is damaged.
    members[1].logged = None;
    assert_eq!(torn(&members), Some(None));
}
