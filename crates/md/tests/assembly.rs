//! Which members make an array: small worlds, all of them, and the cases that have a story.

use proptest::prelude::*;

use braid_level::size::suffice;
use braid_level::{Raid0Layout, Raid10Layout, layout};
use braid_md::assembly::{
    Assembly, BitmapFacts, Candidate, LeftOut, Obstacle, Options, Reason, Risk, Set, Slot, Start,
    State, came_back, group,
};
use braid_md::create::{BitmapChoice, Consistency, Device, Place, Request, plan};
use braid_md::stripe_log::Head;
use braid_md::superblock::Contents;
use braid_md::{Features, Level, Resync, Role, Superblock, Timestamp, Uuid, Version};

const EVENTS: u64 = 40;

fn options() -> Options<'static> {
    Options {
        force: false,
        read_only: false,
        degraded: false,
        raid0_layout: None,
        supported: &|_| true,
    }
}

fn force() -> Options<'static> {
    Options { force: true, ..options() }
}

fn read_only() -> Options<'static> {
    Options { read_only: true, ..options() }
}

/// A clean array without a log that has been in use, of members `m0`, `m1`, …, and spares behind them.
fn array_with(level: Level, disks: usize, spares: usize) -> Vec<Candidate> {
    let device = |index: usize| Device {
        label: format!("m{index}"),
        size: 64 << 20,
        uuid: Uuid([index as u8 + 1; 16]),
        write_mostly: false,
    };
    let request = Request {
        level,
        layout: None,
        version: Version::V1_2,
        chunk: level.has_chunk().then_some(65536),
        members: (0..disks).map(|index| Place::Device(device(index))).collect(),
        spares: (disks..disks + spares).map(device).collect(),
        size: None,
        data_offset: None,
        bitmap: BitmapChoice::None,
        consistency: Some(Consistency::Resync),
        write_behind: 0,
        assume_clean: true,
        array_uuid: Uuid([7; 16]),
        name: "v".to_owned(),
        homehost: Some("host".to_owned()),
        created: Timestamp { seconds: 1_700_000_000, micros: 0 },
    };
    let planned = plan(&request).expect("a plain array").members;
    let candidate = |member: braid_md::create::Planned| {
        let (label, superblock) = (member.label, member.superblock.at_event(EVENTS));
        Candidate {
            label,
            size: 64 << 20,
            superblock,
            bitmap: None,
            log_head: None,
            bitmap_trouble: None,
            log_trouble: None,
        }
    };
    planned.into_iter().map(candidate).collect()
}

/// Returns the next steps in words.
fn commands(assembly: &Assembly) -> Vec<String> {
    assembly.next.iter().map(braid_md_text::next::command).collect()
}

/// Has a candidate's superblock say something else that md's rules allow.
fn change(candidate: &mut Candidate, change: impl FnOnce(&mut Contents)) {
    let mut contents = candidate.superblock.clone().into_contents();
    change(&mut contents);
    candidate.superblock = Superblock::new(contents, candidate.size).expect("a superblock");
}

fn array(level: Level, disks: usize) -> Vec<Candidate> {
    array_with(level, disks, 0)
}

/// The worlds that are small: every level, 2 to 4 members.
fn small_arrays() -> impl Iterator<Item = (Level, usize)> {
    let all = Level::ALL.into_iter().flat_map(|level| (2..=4).map(move |disks| (level, disks)));
    all.filter(|(level, disks)| *level != Level::Raid6 || *disks == 4)
}

fn set(candidates: &[Candidate]) -> Set {
    let mut sets = group(candidates.to_vec());
    assert_eq!(sets.len(), 1);
    sets.remove(0)
}

fn assess(candidates: &[Candidate], options: Options<'_>) -> Assembly {
    set(candidates).assess(options)
}

/// Lets the members `who` go on without the others, for `events` more.
fn go_on(candidates: &mut [Candidate], who: &[usize], events: u64) {
    let others: Vec<usize> = (0..candidates.len()).filter(|one| !who.contains(one)).collect();
    for index in who {
        change(&mut candidates[*index], |one| {
            one.events += events;
            one.updated.seconds += 60;
            for other in &others {
                one.roles[*other] = Role::Spare;
            }
        });
    }
}

fn reason<'a>(assembly: &'a Assembly, label: &str) -> &'a Reason {
    let found = assembly.left_out.iter().find(|left_out| left_out.label == label);
    &found.unwrap_or_else(|| panic!("{label} is not left out: {assembly:?}")).reason
}

/// Among members with as many events the one that has all its data defines the array's state: a member that is
/// being filled may lack the bitmap, too.
#[test]
fn a_member_that_is_being_filled_does_not_speak_for_the_others() {
    for level in [Level::Raid1, Level::Raid5, Level::Raid10] {
        let mut candidates = array(level, 4);
        change(&mut candidates[0], |one| one.recovery_offset = Some(4096));
        let assembly = assess(&candidates, Options { degraded: true, ..options() });
        assert_eq!(set(&candidates).candidates()[assembly.freshest].label, "m1", "{level}");
        change(&mut candidates[1], |one| one.recovery_offset = Some(8192));
        let told = assess(&candidates, Options { degraded: true, ..options() }).freshest;
        assert_eq!(set(&candidates).candidates()[told].label, "m2", "{level}");
    }
}

/// Returns the number of members that a level can lose, whichever they are.
fn spare_members(level: Level, disks: usize) -> usize {
    match level {
        Level::Linear | Level::Raid0 => 0,
        Level::Raid1 => disks - 1,
        Level::Raid4 | Level::Raid5 | Level::Raid10 => 1,
        Level::Raid6 => 2,
    }
}

/// The kernel's rule for raid10 (`_enough`): a window over as many neighbours as there are
/// copies, moved on by the near copies, must have a member everywhere.
fn enough_by_the_kernel(layout: Raid10Layout, present: &[bool]) -> bool {
    let disks = present.len();
    let (near, all) = (layout.near(), layout.copies());
    let mut first = 0;
    loop {
        if !(0..all).any(|next| present[(first + next) % disks]) {
            return false;
        }
        first = (first + near) % disks;
        if first == 0 {
            return true;
        }
    }
}

#[test]
fn raid10_survives_what_the_kernel_says_it_survives() {
    let mut worlds = 0;
    let layouts = (1..=4).flat_map(|near| (1..=4).map(move |far| near | far << 8));
    for number in layouts.flat_map(|copies| [copies, copies | 1 << 16]) {
        let Ok(layout) = Raid10Layout::from_number(number) else { continue };
        for disks in 2..=7_u32 {
            if !layout::is_sound(Level::Raid10, number, disks) {
                continue;
            }
            for who in 0..1_u32 << disks {
                let present: Vec<bool> = (0..disks).map(|role| who >> role & 1 == 1).collect();
                let suffices = suffice(Level::Raid10, number, &present);
                let expected = enough_by_the_kernel(layout, &present);
                assert_eq!(suffices, expected, "{layout} {present:?}");
                worlds += 1;
            }
        }
    }
    assert!(worlds > 2500, "{worlds}");
}

/// Far copies that go round in sets: a chunk's copies are in one set, so that one member of each
/// may be missing, and not both of one.
#[test]
fn raid10_with_far_sets_starts_without_members_of_different_sets() {
    let mut candidates = array(Level::Raid10, 4);
    for candidate in &mut candidates {
        change(candidate, |one| one.layout = 0x4_0201);
    }
    let without = |missing: &[usize]| {
        let there = |index: &usize| !missing.contains(index);
        let left: Vec<Candidate> =
            (0..4).filter(there).map(|index| candidates[index].clone()).collect();
        assess(&left, Options { degraded: true, ..options() }).can_start
    };
    assert_eq!(without(&[]), Start::ReadWrite);
    assert_eq!(without(&[0, 2]), Start::ReadWrite);
    assert_eq!(without(&[1, 2]), Start::ReadWrite);
    assert_eq!(without(&[0, 1]), Start::Refused);
    assert_eq!(without(&[2, 3]), Start::Refused);
}

/// Every subset of the members: what is there has its role, and the array starts exactly if the
/// level can do without the rest.
#[test]
fn every_subset_of_members() {
    for (level, disks) in small_arrays() {
        let whole = array(level, disks);
        for who in 1..1_usize << disks {
            let present: Vec<bool> = (0..disks).map(|one| who >> one & 1 == 1).collect();
            let there: Vec<Candidate> =
                (0..disks).filter(|one| present[*one]).map(|one| whole[one].clone()).collect();
            let missing = disks - there.len();
            let survives = suffice(level, there[0].superblock.layout, &present);
            if missing <= spare_members(level, disks) {
                assert!(survives, "{level} {present:?}");
            } else if level != Level::Raid10 {
                assert!(!survives, "{level} {present:?}");
            }
            let assembly = assess(&there, options());
            for (role, slot) in assembly.slots.iter().enumerate() {
                let label = slot.member().map(|member| member.label.clone());
                assert_eq!(label, present[role].then(|| format!("m{role}")));
            }
            assert_eq!(assembly.left_out, []);
            // The array does not record that they are gone: without an option, braid does not make them stale.
            let (can_start, forced) = match (survives, missing) {
                (true, 0) => (Start::ReadWrite, Start::ReadWrite),
                (true, _) => (Start::ReadOnly, Start::ReadWrite),
                (false, _) => (Start::Refused, Start::Refused),
            };
            assert_eq!(assembly.can_start, can_start, "{level} {present:?}: {assembly}");
            assert_eq!(assess(&there, force()).can_start, forced, "{level} {present:?}");
            match assembly.state {
                State::Clean => assert_eq!(missing, 0),
                State::Degraded(absent) => assert!(survives && absent.missing.len() == missing),
                State::Partial(absent) => assert!(!survives && absent.missing.len() == missing),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// For every subset that went on without the others, by one event or by many: the others have no role, because
/// one event behind is accepted only of a member that was not removed.
#[test]
fn those_who_were_left_behind_have_no_role() {
    for (level, disks) in small_arrays().filter(|(level, _)| level.is_redundant()) {
        for who in 1..(1_usize << disks) - 1 {
            let went_on: Vec<usize> = (0..disks).filter(|one| who >> one & 1 == 1).collect();
            for events in [1, 2, 17] {
                let mut candidates = array(level, disks);
                go_on(&mut candidates, &went_on, events);
                let assembly = assess(&candidates, options());
                for role in 0..disks {
                    let is_in = assembly.slots[role].is_in_sync();
                    assert_eq!(is_in, went_on.contains(&role), "{level} {went_on:?} {events}");
                }
                for left_out in &assembly.left_out {
                    match &left_out.reason {
                        Reason::Disowned { .. } => assert_eq!(events, 1),
                        Reason::Stale { freshest, .. } => {
                            assert_eq!(*freshest, EVENTS + events);
                            assert!(events > 1);
                        }
                        other => panic!("{other}"),
                    }
                    assert_eq!(left_out.re_add, None, "there is no bitmap");
                }
                // The array records the missing members, so it may go on without them.
                let survives = !matches!(assembly.state, State::Partial(_));
                let expected = if survives { Start::ReadWrite } else { Start::Refused };
                assert_eq!(assembly.can_start, expected);
                // With force there is always enough, and no more is taken than it takes.
                let forced = assess(&candidates, force());
                assert_eq!(forced.can_start, Start::ReadWrite, "{level} {went_on:?}");
                let is_stale = |risk: &&Risk| matches!(risk, Risk::StaleMember { .. });
                assert_eq!(forced.risks.iter().any(|risk| is_stale(&risk)), !survives);
            }
        }
    }
}

/// A crash between the writes of two superblocks: one event behind, and still in the table.
#[test]
fn one_event_behind_is_fine_two_are_not() {
    for behind in 0..4 {
        let mut candidates = array(Level::Raid1, 2);
        change(&mut candidates[1], |one| one.events -= behind);
        let assembly = assess(&candidates, options());
        assert_eq!(assembly.slots[1].is_in_sync(), behind <= 1, "{behind} behind");
    }
}

#[test]
fn the_order_in_which_devices_are_found_changes_nothing() {
    let mut candidates = array_with(Level::Raid5, 4, 1);
    go_on(&mut candidates, &[0, 1, 3, 4], 5);
    let expected = assess(&candidates, options());
    for turn in 0..5 {
        candidates.rotate_left(1);
        assert_eq!(assess(&candidates, options()), expected, "turn {turn}");
        candidates.swap(0, 3);
        assert_eq!(assess(&candidates, options()), expected, "turn {turn}, swapped");
        candidates.swap(0, 3);
    }
    assert_eq!(expected.spares.iter().map(|spare| &*spare.label).collect::<Vec<_>>(), ["m4"]);
}

#[test]
fn a_stale_member_comes_back_by_the_bitmap_if_it_left_late_enough() {
    for (cleared, comes_back) in [(EVENTS, true), (EVENTS - 5, true), (EVENTS + 1, false)] {
        let mut candidates = array(Level::Raid1, 2);
        go_on(&mut candidates, &[0], 6);
        candidates[0].bitmap =
            Some(BitmapFacts { events_cleared: cleared, chunk: 65536, dirty: 3 });
        let assembly = assess(&candidates, options());
        assert_eq!(
            reason(&assembly, "m1").to_string(),
            "it is stale: 40 events against 46, last written 60 s before the freshest"
        );
        assert_eq!(assembly.left_out[0].re_add, comes_back.then_some(1));
        let next =
            if comes_back { "braid member re-add v m1" } else { "braid member add v DEVICE" };
        assert_eq!(commands(&assembly), [next]);
        assert_eq!(
            assembly.to_string(),
            "degraded: 1 of 2 members in sync; role 1 missing; can be started"
        );
    }
}

/// Both halves of a mirror were run alone: for any events, neither is chosen.
#[test]
fn two_sides_that_went_on_alone() {
    for (ahead, back) in [(5, 5), (9, 5), (6, 5)] {
        let mut candidates = array(Level::Raid1, 2);
        go_on(&mut candidates, &[0], ahead);
        go_on(&mut candidates, &[1], back);
        candidates[0].bitmap = Some(BitmapFacts { events_cleared: 0, chunk: 65536, dirty: 3 });
        let assembly = assess(&candidates, options());
        assert!(matches!(reason(&assembly, "m1"), Reason::Diverged { .. }), "{assembly:?}");
        assert_eq!(assembly.left_out[0].re_add, None);
        assert_eq!(assembly.can_start, Start::Refused);
        assert_eq!(commands(&assembly), ["braid assemble m0", "braid assemble m1 --read-only"]);
        assert_eq!(assess(&candidates, read_only()).can_start, Start::ReadOnly);
        let forced = assess(&candidates, force());
        assert_eq!(forced.can_start, Start::ReadWrite);
        assert_eq!(forced.risks, [Risk::Diverged { label: "m1".to_owned() }]);
        assert_eq!(assess(&candidates[..1], options()).can_start, Start::ReadWrite);
    }
}

/// A newcomer of the side `who`: a device that is filled in the role that `away` had, with the next number.
fn take_in(candidates: &mut Vec<Candidate>, who: &mut Vec<usize>, away: usize, label: &str) {
    let Role::Active(role) = candidates[away].superblock.role() else { panic!("no member") };
    let number = candidates[who[0]].superblock.roles.len() as u32;
    let mut newcomer = candidates[who[0]].clone();
    newcomer.label = label.to_owned();
    let uuid = Uuid([100 + candidates.len() as u8; 16]);
    change(&mut newcomer, |one| {
        one.roles.push(Role::Active(role));
        one.device_number = number;
        one.device_uuid = uuid;
    });
    candidates.push(newcomer);
    for index in &*who {
        change(&mut candidates[*index], |one| one.roles.push(Role::Active(role)));
    }
    who.push(candidates.len() - 1);
    for index in &*who {
        change(&mut candidates[*index], |one| one.events += 4);
    }
}

/// Two halves of a mirror that each went on alone, and filled new disks: whichever is the fresher one, and
/// whichever of their disks are there, the two are never taken for one array.
#[test]
fn two_halves_that_each_filled_a_blank_disk() {
    let mut worlds = 0;
    for disks in 2..=4 {
        // By bits: members of the first side; of the rest, members of the second; number of new members of
        // each.
        for sides in 0..3_usize.pow(disks as u32) {
            let side = |disk: usize| sides / 3_usize.pow(disk as u32) % 3;
            let of =
                |wanted: usize| (0..disks).filter(|disk| side(*disk) == wanted).collect::<Vec<_>>();
            if of(0).is_empty() || of(1).is_empty() {
                continue;
            }
            for (first, second) in (0..9).map(|filled| (filled / 3, filled % 3)) {
                // Both fill a role that a third one had: their newcomers have one number and one role.
                if !of(2).is_empty() && first * second > 0 {
                    continue;
                }
                for ahead in [1, 30] {
                    let mut all = array(Level::Raid1, disks);
                    let (mut a, mut b) = (of(0), of(1));
                    go_on(&mut all, &a.clone(), 2 + ahead);
                    go_on(&mut all, &b.clone(), 3);
                    for (who, count) in [(&mut a, first), (&mut b, second)] {
                        let own = who.clone();
                        let away = (0..disks).filter(|disk| !own.contains(disk)).take(count);
                        for (number, away) in away.enumerate() {
                            take_in(&mut all, who, away, &format!("new {number} of {own:?}"));
                        }
                    }
                    // Any of the second side beside all of the first one.
                    for back in &b {
                        let these: Vec<Candidate> =
                            a.iter().chain([back]).map(|index| all[*index].clone()).collect();
                        let assembly = assess(&these, options());
                        let label = &all[*back].label;
                        let world = format!("{a:?} {b:?} {label} {assembly:#?}");
                        let is_alone =
                            |one: &LeftOut| matches!(one.reason, Reason::Diverged { .. });
                        assert!(assembly.left_out.iter().any(is_alone), "{world}");
                        assert_eq!(assembly.can_start, Start::Refused, "{world}");
                        let ours = &all[a[0]].superblock;
                        let taken = came_back(ours, &all[*back].superblock);
                        assert!(matches!(taken, Err(Reason::Diverged { .. })), "{world}");
                        worlds += 1;
                    }
                }
            }
        }
    }
    assert!(worlds > 1000, "{worlds}");
}

/// All members that a member knew were replaced while it was away. If others have the roles that it knew, it is
/// stale; if none has, it looks like a member that went on alone. A crash interrupted an update: one member has
/// it, and is away when the others go on. Their next update has as many events; it is the later one.
#[test]
fn an_update_that_was_cut_short_is_older_than_one_without_its_member() {
    for ahead in 0..4 {
        let mut candidates = array(Level::Raid6, 4);
        let others: Vec<usize> = (0..4).filter(|one| *one != ahead).collect();
        change(&mut candidates[ahead], |one| {
            one.events += 1;
            one.resync = Resync::From(0);
        });
        go_on(&mut candidates, &others[..2], 1);
        candidates.remove(others[2]);
        let assembly = assess(&candidates, Options { degraded: true, ..options() });
        let label = format!("m{ahead}");
        assert!(matches!(reason(&assembly, &label), Reason::Disowned { .. }), "{assembly:?}");
        assert!(matches!(assembly.state, State::Degraded(_)), "{assembly:?}");
        assert_eq!(assembly.can_start, Start::ReadWrite);
    }
}

#[test]
fn a_member_whose_companions_were_all_replaced() {
    let old = array(Level::Raid1, 3);
    let mut new = array(Level::Raid1, 3);
    for (index, candidate) in new.iter_mut().enumerate() {
        candidate.label = format!("n{index}");
        change(candidate, |one| {
            one.device_number = index as u32 + 3;
            one.device_uuid = Uuid([index as u8 + 50; 16]);
            one.roles[..3].fill(Role::Faulty);
            for role in 0..3 {
                one.roles[role + 3] = Role::Active(role as u16);
            }
            one.events += 20;
            one.updated.seconds += 3600;
        });
    }
    let mut candidates = [&new[..], &old[1..2]].concat();
    let assembly = assess(&candidates, options());
    assert!(matches!(reason(&assembly, "m1"), Reason::Stale { .. }), "{assembly:?}");
    assert_eq!(assembly.can_start, Start::ReadWrite);

    // When it left, role 2 was empty; of the later members only the one in that role is there.
    candidates = vec![new[2].clone(), old[1].clone()];
    change(&mut candidates[0], |one| one.roles[3..5].fill(Role::Faulty));
    change(&mut candidates[1], |one| one.roles[2] = Role::Faulty);
    let assembly = assess(&candidates, options());
    assert!(matches!(reason(&assembly, "m1"), Reason::Diverged { .. }), "{assembly:?}");
    assert_eq!(assembly.can_start, Start::Refused);
    assert_eq!(commands(&assembly)[0], "braid assemble n2");
    assert_eq!(assess(&candidates[..1], options()).can_start, Start::ReadWrite);
}

#[test]
fn the_same_member_twice_is_not_guessed_at() {
    let mut candidates = array(Level::Raid1, 2);
    let mut copy = candidates[1].clone();
    copy.label = "copy of m1".to_owned();
    candidates.push(copy);
    for options in [options(), force(), read_only()] {
        let assembly = assess(&candidates, options);
        assert_eq!(assembly.state, State::Conflicting(vec!["copy of m1".into(), "m1".into()]));
        assert_eq!(assembly.can_start, Start::Refused);
        assert_eq!(commands(&assembly), ["braid examine 'copy of m1'", "braid examine m1"]);
    }
    candidates[2].label = "-x".to_owned();
    let next = commands(&assess(&candidates, options()));
    assert_eq!(next, ["braid examine ./-x", "braid examine m1"]);
    candidates[2].label = "copy of m1".to_owned();
    change(&mut candidates[2], |one| one.events -= 1);
    let assembly = assess(&candidates, options());
    assert_eq!(*reason(&assembly, "copy of m1"), Reason::OldCopy { of: "m1".into() });
    assert_eq!(assembly.can_start, Start::ReadWrite);
    // Another device with the same role: the one with fewer events gives way, equals do not.
    change(&mut candidates[2], |one| one.device_uuid = Uuid([99; 16]));
    let assembly = assess(&candidates, options());
    assert!(matches!(reason(&assembly, "copy of m1"), Reason::SameRole { equal: false, .. }));
    assert_eq!(assembly.can_start, Start::ReadWrite);
    change(&mut candidates[2], |one| one.events += 1);
    assert_eq!(assess(&candidates, force()).can_start, Start::Refused);
}

#[test]
fn other_shapes_and_small_members_are_left_out() {
    let mut candidates = array(Level::Raid1, 3);
    change(&mut candidates[1], |one| one.component_size -= 65536);
    // The others use more of each member, of which it has not heard, and which it has no room for.
    change(&mut candidates[2], |one| {
        (one.component_size, one.data_size) = (65536, 65536);
        one.events -= 1;
    });
    let assembly = assess(&candidates, options());
    let other_shape = reason(&assembly, "m1");
    assert!(matches!(other_shape, Reason::OtherShape { what: "component size", .. }));
    assert!(matches!(reason(&assembly, "m2"), Reason::TooSmall { size: 65536, .. }));
    assert_eq!(assembly.can_start, Start::ReadOnly);
}

/// A crash in the middle of a raid1's getting another member: the new one says so first.
#[test]
fn a_raid1_that_was_growing_has_all_of_its_members() {
    let mut candidates = array(Level::Raid1, 3);
    for candidate in &mut candidates[..2] {
        change(candidate, |one| {
            one.raid_disks = 2;
            one.roles[2] = Role::Spare;
        });
    }
    change(&mut candidates[2], |one| {
        (one.events, one.recovery_offset) = (EVENTS + 1, Some(0));
        one.features = one.features.union(Features::RECOVERY_OFFSET);
    });
    let assembly = assess(&candidates, options());
    assert_eq!(assembly.can_start, Start::ReadWrite, "{assembly:?}");
    assert!(assembly.left_out.is_empty(), "{:?}", assembly.left_out);
    change(&mut candidates[0], |one| one.events -= 1);
    let assembly = assess(&candidates, options());
    let is_other = matches!(reason(&assembly, "m0"), Reason::OtherShape { .. });
    assert!(is_other, "two events: it was left behind");
}

/// A crash in the middle of a raid1's using more of its members, or fewer roles.
#[test]
fn a_raid1_that_changed_its_size_has_all_of_its_members() {
    let mut candidates = array(Level::Raid1, 3);
    change(&mut candidates[1], |one| {
        one.events += 1;
        one.component_size -= 65536;
    });
    change(&mut candidates[2], |one| one.raid_disks = 4);
    let assembly = assess(&candidates, options());
    assert_eq!(assembly.can_start, Start::ReadWrite, "{assembly:?}");
    assert!(assembly.left_out.is_empty(), "{:?}", assembly.left_out);
}

fn dirty(level: Level, disks: usize) -> Vec<Candidate> {
    let mut candidates = array(level, disks);
    for candidate in &mut candidates {
        change(candidate, |one| one.resync = Resync::From(1 << 20));
    }
    candidates
}

#[test]
fn mirrors_after_a_crash() {
    let mut mirror = dirty(Level::Raid1, 2);
    assert_eq!(
        assess(&mirror, options()).to_string(),
        "dirty: resync from byte 1048576 on is due; can be started"
    );
    for candidate in &mut mirror {
        candidate.bitmap = Some(BitmapFacts { events_cleared: EVENTS, chunk: 65536, dirty: 3 });
    }
    assert_eq!(
        assess(&mirror, options()).to_string(),
        "dirty: resync of 3 chunks of 65536 bytes is due; can be started"
    );
    go_on(&mut mirror, &[0], 2);
    let assembly = assess(&mirror, options());
    assert!(matches!(assembly.state, State::DegradedDirty { write_hole: false, .. }));
    assert_eq!(assembly.can_start, Start::ReadWrite);
    // Levels without redundancy have nothing to resync.
    assert_eq!(assess(&dirty(Level::Raid0, 2), options()).state, State::Clean);
}

#[test]
fn parity_after_a_crash() {
    let mut parity = dirty(Level::Raid5, 3);
    assert_eq!(assess(&parity, options()).can_start, Start::ReadWrite);
    go_on(&mut parity, &[0, 1], 2);
    let assembly = assess(&parity, options());
    assert_eq!(assembly.can_start, Start::Refused);
    assert!(assembly.state.to_string().ends_with("(write hole)"), "{}", assembly.state);
    assert_eq!(
        commands(&assembly),
        ["braid assemble m0 m1 m2 --read-only", "braid assemble m0 m1 m2 --force"]
    );
    assert_eq!(assess(&parity, read_only()).can_start, Start::ReadOnly);
    let forced = assess(&parity, force());
    assert_eq!((forced.can_start, forced.risks), (Start::ReadWrite, vec![Risk::WriteHole]));
    // A log closes the hole.
    for candidate in &mut parity {
        change(candidate, |one| {
            one.ppl = Some((4096, 1 << 19));
            one.bad_block_log = None;
        });
    }
    let assembly = assess(&parity, options());
    assert_eq!(assembly.can_start, Start::ReadWrite);
    assert!(assembly.state.to_string().ends_with("; the partial parity log closes the write hole"));
    // A fault in the log of a member that is missing, or will only be written, does not matter.
    parity[2].log_trouble = Some("torn".to_owned());
    assert_eq!(assess(&parity, options()).can_start, Start::ReadWrite);
    parity[0].log_trouble = Some("torn".to_owned());
    let assembly = assess(&parity, options());
    assert_eq!(assembly.can_start, Start::Refused, "{assembly}");
    assert_eq!(assess(&parity, force()).risks, [Risk::WriteHole]);
}

/// A stripe log closes the hole only where every member in sync has it, as new as the array.
/// A crash cut the superblocks short that say that writes may begin, and a member is missing: none has
/// begun, so that what is computed in its place is right.
#[test]
fn parity_of_which_not_all_heard_that_writes_may_begin() {
    for level in [Level::Raid4, Level::Raid5, Level::Raid6] {
        let mut parity = array(level, 4);
        go_on(&mut parity, &[0, 1, 2], 2);
        change(&mut parity[0], |one| {
            one.events += 1;
            one.resync = Resync::From(0);
        });
        let assembly = assess(&parity, options());
        assert!(matches!(assembly.state, State::Degraded(_)), "{level}: {}", assembly.state);
        assert_eq!(assembly.can_start, Start::ReadWrite, "{level}");
        // The others were brought up without it since, and count as many.
        parity[1..3].iter_mut().for_each(|one| change(one, |one| one.events += 1));
        let assembly = assess(&parity, options());
        assert!(matches!(assembly.state, State::Degraded(_)), "{level}: {}", assembly.state);
        // They say that writes may be under way, too.
        parity[1..3].iter_mut().for_each(|one| change(one, |one| one.resync = Resync::From(0)));
        assert_eq!(assess(&parity, options()).can_start, Start::Refused, "{level}");
    }
}

#[test]
fn parity_with_a_stripe_log_after_a_crash() {
    for level in [Level::Raid4, Level::Raid5, Level::Raid6] {
        let mut parity = dirty(level, 4);
        go_on(&mut parity, &[0, 1, 2], 2);
        let events = parity[0].superblock.events;
        for candidate in &mut parity {
            candidate.log_head = Some(Head {
                array_uuid: candidate.superblock.array_uuid,
                device_number: candidate.superblock.device_number,
                area: 4 << 20,
                events,
                tail: 0,
                nonce: 1,
                synced: u64::MAX,
                updated: candidate.superblock.updated,
                before: Timestamp::default(),
            });
        }
        let assembly = assess(&parity, options());
        assert_eq!(assembly.can_start, Start::ReadWrite, "{assembly}");
        assert_eq!(assembly.risks, []);
        assert!(assembly.state.to_string().ends_with("; the stripe log closes the write hole"));
        // A missing member needs none.
        parity[3].log_head = None;
        assert_eq!(assess(&parity, options()).can_start, Start::ReadWrite);
        let mut older = parity.clone();
        older[1].log_head.as_mut().expect("a head").events -= 1;
        let mut without = parity.clone();
        without[2].log_head = None;
        let mut other = parity.clone();
        other[0].log_head.as_mut().expect("a head").area *= 2;
        for open in [older, without, other] {
            let assembly = assess(&open, options());
            assert_eq!(assembly.can_start, Start::Refused, "{assembly}");
            assert!(assembly.state.to_string().ends_with("(write hole)"), "{assembly}");
            assert_eq!(assess(&open, force()).risks, [Risk::WriteHole]);
        }
    }
}

/// Mirrors have no write hole, and a log says nothing about them.
#[test]
fn a_log_says_nothing_about_mirrors() {
    let mut mirror = dirty(Level::Raid1, 3);
    go_on(&mut mirror, &[0, 1], 2);
    let state = assess(&mirror, options()).state;
    assert!(matches!(state, State::DegradedDirty { write_hole: false, log: None, .. }), "{state}");
}

#[test]
fn a_member_that_is_being_rebuilt_is_no_source_of_data() {
    let mut candidates = array(Level::Raid5, 3);
    change(&mut candidates[2], |one| one.recovery_offset = Some(1 << 20));
    let assembly = assess(&candidates, options());
    let recovering = &assembly.slots[2];
    assert!(matches!(recovering, Slot::Recovering { from: 0x10_0000, by_bitmap: false, .. }));
    assert_eq!(assembly.can_start, Start::ReadWrite);
    let partial = assess(&candidates[1..], force());
    assert!(matches!(partial.state, State::Partial(_)));
}

#[test]
fn a_replacement_stands_beside_the_member_that_it_replaces() {
    let mut candidates = array_with(Level::Raid5, 3, 1);
    for candidate in &mut candidates {
        change(candidate, |one| one.roles[3] = Role::Active(1));
    }
    change(&mut candidates[3], |one| {
        one.features = Features::REPLACEMENT.union(Features::RECOVERY_OFFSET);
        one.recovery_offset = Some(65536);
    });
    let assembly = assess(&candidates, options());
    assert_eq!(assembly.state, State::Clean);
    let [(role, member, filled)] = &assembly.replacements[..] else { panic!("{assembly:?}") };
    assert_eq!((*role, &*member.label, *filled), (1, "m3", 65536));
}

/// Without the member that it replaces, it has the role: all of it, or the filled part.
#[test]
fn a_replacement_stands_in_for_a_member_that_is_not_there() {
    let mut candidates = array_with(Level::Raid5, 3, 1);
    for candidate in &mut candidates {
        change(candidate, |one| one.roles[3] = Role::Active(1));
    }
    change(&mut candidates[3], |one| one.features = Features::REPLACEMENT);
    candidates.remove(1);
    let assembly = assess(&candidates, options());
    assert!(matches!(&assembly.slots[1], Slot::InSync(member) if member.label == "m3"));
    assert_eq!((assembly.state, assembly.replacements.len()), (State::Clean, 0));
    change(&mut candidates[2], |one| {
        one.features = Features::REPLACEMENT.union(Features::RECOVERY_OFFSET);
        one.recovery_offset = Some(65536);
    });
    let assembly = assess(&candidates, options());
    assert!(matches!(&assembly.slots[1], Slot::Recovering { from: 65536, .. }), "{assembly:?}");
}

/// `--force` takes the freshest of the stale, and no more than it needs.
#[test]
fn force_takes_the_freshest_first() {
    let mut candidates = array(Level::Raid5, 4);
    go_on(&mut candidates, &[0, 1, 2], 10);
    go_on(&mut candidates, &[0, 1], 10);
    let assembly = assess(&candidates, options());
    assert_eq!(
        assembly.state.to_string(),
        "too few members: 2 of 4 members in sync; roles 2 and 3 missing"
    );
    // The rescue writes nothing, so it comes first.
    let next = ["braid rescue scan CASE m0 m1 m2 m3", "braid assemble m0 m1 m2 m3 --force"];
    assert_eq!(commands(&assembly)[..2], next);
    let forced = assess(&candidates, force());
    assert!(!commands(&forced).iter().any(|one| one.contains("rescue")));
    let label = "m2".to_owned();
    let taken = Risk::StaleMember { label, role: 2, events: EVENTS + 10, freshest: EVENTS + 20 };
    assert_eq!(forced.risks, [taken]);
    assert_eq!(forced.slots[3], Slot::Missing);
    assert_eq!(forced.can_start, Start::ReadWrite);
}

#[test]
fn what_is_not_served() {
    let mut candidates = array(Level::Raid1, 2);
    change(&mut candidates[1], |one| one.features = Features(1 << 20));
    let assembly = assess(&candidates, options());
    let unknown = Obstacle::UnknownFeatures { label: "m1".to_owned(), bits: 1 << 20 };
    assert_eq!(assembly.state, State::Unsupported(unknown));
    assert_eq!(assembly.can_start, Start::ReadOnly);
    assert_eq!(commands(&assembly), ["braid assemble m0 m1 --read-only"]);

    for (events, start) in [((1 << 62) - 1, Start::ReadWrite), (1 << 62, Start::ReadOnly)] {
        let mut candidates = array(Level::Raid1, 2);
        candidates.iter_mut().for_each(|one| change(one, |one| one.events = events));
        assert_eq!(assess(&candidates, options()).can_start, start, "{events}");
    }

    let no_parity = |level: Level| level != Level::Raid5;
    let assembly = assess(&array(Level::Raid5, 3), Options { supported: &no_parity, ..options() });
    assert_eq!(assembly.to_string(), "unsupported: raid5 is not served; cannot be started");
    assert!(assembly.slots.iter().all(Slot::is_in_sync));

    for (feature, start) in
        [(Features::JOURNAL, Start::Refused), (Features::CLUSTERED, Start::ReadOnly)]
    {
        let mut candidates = array(Level::Raid5, 3);
        for candidate in &mut candidates {
            change(candidate, |one| one.features = feature);
        }
        assert_eq!(assess(&candidates, options()).can_start, start);
    }
}

/// Without a record of its layout, raid0 over unequal members could be read in two ways.
#[test]
fn raid0_without_a_recorded_layout() {
    let mut candidates = array(Level::Raid0, 2);
    for candidate in &mut candidates {
        change(candidate, |one| one.layout = 0);
    }
    assert_eq!(assess(&candidates, options()).can_start, Start::ReadWrite);
    change(&mut candidates[1], |one| one.data_size -= 65536);
    let assembly = assess(&candidates, options());
    assert_eq!(assembly.state, State::Unsupported(Obstacle::LayoutNotRecorded));
    assert_eq!(assembly.can_start, Start::Refused);
    let next = ["alternate", "original"]
        .map(|layout| format!("braid assemble m0 m1 --layout {layout} --read-only"));
    assert_eq!(commands(&assembly), next);
    let given = Some(Raid0Layout::Original);
    let assembly = assess(&candidates, Options { raid0_layout: given, ..options() });
    assert_eq!((assembly.state, assembly.can_start), (State::Clean, Start::ReadWrite));
}

/// A given layout is for arrays that do not record one.
#[test]
fn a_layout_that_contradicts_the_superblocks_is_refused() {
    let assess = |level, layout| {
        assess(&array(level, 3), Options { raid0_layout: Some(layout), ..options() }).to_string()
    };
    assert!(assess(Level::Raid0, Raid0Layout::Alternate).starts_with("clean"));
    assert_eq!(
        assess(Level::Raid0, Raid0Layout::Original),
        "unsupported: the layout original was given, and the superblocks say alternate; cannot be started"
    );
    assert_eq!(
        assess(Level::Raid5, Raid0Layout::Original),
        "unsupported: the layout original was given, and the superblocks say raid5; cannot be started"
    );
}

#[test]
fn arrays_are_told_apart_and_clashing_names_are_noted() {
    let first = array(Level::Raid1, 2);
    let renamed = |uuid: u8, name: &str| {
        let mut candidates = array(Level::Raid1, 2);
        for candidate in &mut candidates {
            change(candidate, |one| {
                one.array_uuid = Uuid([uuid; 16]);
                one.name = name.to_owned();
            });
        }
        candidates
    };
    let sets = group([renamed(9, "w"), first, renamed(3, "elsewhere:v")].concat());
    let seen: Vec<_> =
        sets.iter().map(|set| (&*set.name, set.name_conflict, set.candidates().len())).collect();
    assert_eq!(
        seen,
        [
            ("elsewhere:v", Some(Uuid([7; 16])), 2),
            ("host:v", Some(Uuid([3; 16])), 2),
            ("w", None, 2)
        ]
    );
    assert_eq!(group(Vec::new()), []);
}

/// Any history: levels, events, tables, members that are being rebuilt, copies.
fn any_candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let role = prop_oneof![
        6 => (0..5_u16).prop_map(Role::Active),
        1 => Just(Role::Spare),
        1 => Just(Role::Faulty),
        1 => Just(Role::Journal),
    ];
    let table = prop::option::weighted(0.3, prop::collection::vec(role, 5));
    let member = (37..=EVENTS, table, 0..12_u8, any::<prop::sample::Index>());
    let level = prop::sample::select(Level::ALL.to_vec());
    (level, prop::collection::vec(member, 1..7)).prop_map(|(level, members)| {
        let whole = array_with(level, 4, usize::from(level.is_redundant()));
        let candidate = |(index, (events, table, what, which)): (usize, _)| {
            let which: prop::sample::Index = which;
            let mut candidate = whole[which.index(whole.len())].clone();
            candidate.label = format!("d{index}");
            let mut one = candidate.superblock.clone().into_contents();
            one.events = events;
            if let Some(table) = table {
                one.roles = table;
            }
            match what {
                0 => one.recovery_offset = Some(65536),
                1 => one.features = Features::REPLACEMENT,
                2 => one.resync = Resync::From(0),
                3 => one.device_uuid = Uuid([index as u8 + 100; 16]),
                4 => {
                    let (events_cleared, chunk, dirty) = (events - 1, 65536, 1);
                    candidate.bitmap = Some(BitmapFacts { events_cleared, chunk, dirty });
                }
                _ => {}
            }
            // A table that md's rules refuse is never read.
            if let Ok(superblock) = Superblock::new(one, candidate.size) {
                candidate.superblock = superblock;
            }
            candidate
        };
        members.into_iter().enumerate().map(candidate).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..Default::default() })]

    /// No member is forgotten or counted twice, the order does not matter, read-only means read-only, and
    /// `force` never makes less possible.
    #[test]
    fn any_history(candidates in any_candidates(), turn in 0..6_usize) {
        let assembly = assess(&candidates, options());
        let mut turned = candidates.clone();
        turned.rotate_left(turn % candidates.len());
        prop_assert_eq!(&assess(&turned, options()), &assembly);
        let forced = assess(&candidates, force());
        prop_assert!(forced.can_start >= assembly.can_start);
        prop_assert!(assess(&candidates, read_only()).can_start <= Start::ReadOnly);
        for assembly in [assembly, forced] {
            let mut found: Vec<usize> = assembly.members().map(|member| member.candidate).collect();
            found.extend(assembly.replacements.iter().map(|(_, member, _)| member.candidate));
            found.extend(assembly.spares.iter().chain(&assembly.journal).map(|one| one.candidate));
            found.extend(assembly.left_out.iter().map(|left_out| left_out.candidate));
            found.sort_unstable();
            prop_assert_eq!(found, (0..candidates.len()).collect::<Vec<_>>());
            let set = set(&candidates);
            for (role, slot) in assembly.slots.iter().enumerate() {
                let Some(member) = slot.member() else { continue };
                let claimed = set.candidates()[member.candidate].superblock.role();
                prop_assert_eq!(claimed, Role::Active(role as u16));
            }
            if assembly.can_start == Start::ReadWrite {
                let present: Vec<bool> = assembly.slots.iter().map(Slot::is_in_sync).collect();
                let array = &set.candidates()[assembly.freshest].superblock;
                prop_assert!(suffice(array.level, array.layout, &present));
            }
        }
    }
}

/// The superblocks of all members of a mirror after member 0 of `disks` went on for `ahead` events
/// without `away`.
fn left_behind(disks: usize, away: &[usize], ahead: u64) -> Vec<braid_md::Superblock> {
    let mut candidates = array(Level::Raid1, disks);
    let here: Vec<usize> = (0..disks).filter(|index| !away.contains(index)).collect();
    go_on(&mut candidates, &here, ahead);
    candidates.into_iter().map(|candidate| candidate.superblock).collect()
}

#[test]
fn a_member_that_was_away_comes_back() {
    for ahead in [1, 2, 50] {
        let all = left_behind(3, &[2], ahead);
        assert_eq!(came_back(&all[0], &all[2]), Ok(()), "{ahead}");
    }
    // Also when those that it knew have become fewer since.
    let mut all = left_behind(3, &[2], 5);
    all[0].set_role(1, Role::Spare);
    assert_eq!(came_back(&all[0], &all[2]), Ok(()));
}

#[test]
fn a_member_that_went_on_alone_does_not() {
    for (ours, theirs) in [(1, 1), (9, 5), (5, 9), (50, 1), (1, 50)] {
        let mut candidates = array(Level::Raid1, 2);
        go_on(&mut candidates, &[0], ours);
        go_on(&mut candidates, &[1], theirs);
        let [a, b] = [0, 1].map(|index: usize| candidates[index].superblock.clone());
        assert!(matches!(came_back(&a, &b), Err(Reason::Diverged { .. })), "{ours} {theirs}");
        assert!(matches!(came_back(&b, &a), Err(Reason::Diverged { .. })), "{ours} {theirs}");
        // A spare that took its role does not make it a member that is known.
        let mut filled = a.clone();
        filled.set_role(2, Role::Active(1));
        assert!(matches!(came_back(&filled, &b), Err(Reason::Diverged { .. })));
    }
    // One number, given to different members, says so beside members that both know.
    let mut all = left_behind(4, &[3], 5);
    all[0].set_role(4, Role::Active(3));
    all[3].set_role(4, Role::Active(2));
    assert!(matches!(came_back(&all[0], &all[3]), Err(Reason::Diverged { .. })));
    // More events than ours say so even where its table does not.
    let mut all = left_behind(2, &[1], 3);
    all[1] = all[1].clone().at_event(all[0].events + 1);
    assert!(matches!(came_back(&all[0], &all[1]), Err(Reason::Diverged { .. })));
}

#[test]
fn a_member_of_an_array_of_another_shape_does_not() {
    let mut all = left_behind(2, &[1], 3);
    let roles = all[0].roles.clone();
    all[0].set_membership(3, (0..).zip(roles));
    assert!(matches!(came_back(&all[0], &all[1]), Err(Reason::OtherShape { .. })));
}

#[test]
fn planted_faults_are_found() {
    braid_canary::hunt(braid_md::canary::Canary::ALL, file!());
}
