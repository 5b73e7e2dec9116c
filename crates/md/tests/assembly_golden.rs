//! Arrays that the kernel's md made: the members have the roles that it gave them, and it would
//! start what braid starts.

use braid_golden::{Expect, Golden, Member, Role, all, named};
use braid_md::assembly::{
    Assembly, BitmapFacts, Candidate, Next, Options, Reason, Slot, Start, State, group,
};
use braid_md::{Bitmap, Superblock, Version};

fn candidate(golden: &Golden, member: &Member) -> Candidate {
    let image = golden.expand_member(member.index);
    let version: Version = golden.metadata.parse().expect("a version");
    let size = image.len() as u64;
    let offset = version.superblock_offset(size).expect("large enough");
    let superblock = Superblock::parse(version, offset, size, &image[offset as usize..])
        .unwrap_or_else(|rejection| panic!("{} m{}: {rejection}", golden.name, member.index));
    let facts = |at: i64| {
        let area = &image[offset.strict_add_signed(at) as usize..];
        let bitmap = Bitmap::parse(area).expect("a bitmap");
        let Bitmap { header, .. } = &bitmap;
        let (events_cleared, chunk) = (header.events_cleared, header.chunk_size);
        BitmapFacts { events_cleared, chunk, dirty: bitmap.count_set() }
    };
    let bitmap = superblock.bitmap_offset.map(facts);
    let label = format!("m{}", member.index);
    Candidate {
        label,
        size,
        superblock,
        bitmap,
        bitmap_trouble: None,
        log_head: None,
        log_trouble: None,
    }
}

fn assess(golden: &Golden, options: Options<'_>) -> Assembly {
    let candidates = golden.present().map(|member| candidate(golden, member)).collect();
    let sets = group(candidates);
    assert_eq!(sets.len(), 1, "{}", golden.name);
    sets[0].assess(options)
}

fn options() -> Options<'static> {
    Options {
        force: false,
        read_only: false,
        degraded: false,
        raid0_layout: None,
        supported: &|_| true,
    }
}

#[test]
fn every_member_has_the_role_that_the_kernel_gave_it() {
    for golden in all() {
        let assembly = assess(&golden, options());
        for member in &golden.members {
            let label = format!("m{}", member.index);
            let is = |found: Option<&braid_md::assembly::Member>| {
                found.is_some_and(|found| found.label == label)
            };
            let role = match member.role {
                Role::Slot(role) => Some(role as usize),
                _ => None,
            };
            let slot = role.map(|role| &assembly.slots[role]);
            let state = member.state.split(',').next().unwrap_or_default();
            let fits = match state {
                "in_sync" => slot.is_some_and(|slot| slot.is_in_sync() && is(slot.member())),
                "missing" => slot == Some(&Slot::Missing),
                "stale" => {
                    let left_out = assembly.left_out.iter().find(|one| one.label == label);
                    slot == Some(&Slot::Missing)
                        && left_out.is_some_and(|one| matches!(one.reason, Reason::Stale { .. }))
                }
                "spare" => assembly.spares.iter().any(|spare| is(Some(spare))),
                "recovering" if member.state.contains("replacement") => {
                    assembly.replacements.iter().any(|(_, member, _)| is(Some(member)))
                }
                "recovering" => slot.is_some_and(|slot| {
                    matches!(slot, Slot::Recovering { .. }) && is(slot.member())
                }),
                other => panic!("{}: {other}", golden.name),
            };
            assert!(fits, "{} {label} is {}: {assembly:?}", golden.name, member.state);
        }
    }
}

#[test]
fn every_array_is_started_and_has_its_size() {
    for golden in all() {
        let assembly = assess(&golden, options());
        assert_eq!(assembly.can_start, Start::ReadWrite, "{}: {assembly}", golden.name);
        assert_eq!(assembly.array_size, Some(golden.array_bytes), "{}", golden.name);
        let is_degraded =
            matches!(assembly.state, State::Degraded(_) | State::DegradedDirty { .. });
        assert_eq!(is_degraded, golden.degraded > 0, "{}: {assembly}", golden.name);
        assert_eq!(golden.expect == Expect::ReadDegraded, is_degraded, "{}", golden.name);
        let is_dirty = matches!(assembly.state, State::Dirty(_) | State::DegradedDirty { .. });
        // The machine that stopped during a recovery had not been writing.
        if golden.clean_shutdown {
            assert!(!is_dirty, "{}: {assembly}", golden.name);
        }
        for member in assembly.members() {
            let index: usize = member.label[1..].parse().expect("a number");
            let expected = golden.members[index].data_offset_bytes;
            assert_eq!(Some(member.data_offset), expected, "{}", golden.name);
        }
    }
}

/// The verdicts on the arrays that something happened to, as a user reads them.
#[test]
fn verdicts() {
    for (name, verdict) in [
        ("raid1-2", "clean; can be started"),
        ("raid1-2-stale", "degraded: 1 of 2 members in sync; role 1 missing; can be started"),
        ("raid1-2-dirty-bitmap", "dirty: resync of 4 chunks of 65536 bytes is due; can be started"),
        (
            "raid10-4-n2-degraded",
            "degraded: 2 of 4 members in sync; roles 1 and 2 missing; can be started",
        ),
        (
            "raid1-2-recovering",
            "degraded: 1 of 2 members in sync; role 1 being rebuilt; can be started",
        ),
    ] {
        assert_eq!(assess(&named(name), options()).to_string(), verdict, "{name}");
    }
}

/// The member that failed under a bitmap left late enough to come back by it.
#[test]
fn a_stale_member_with_a_bitmap_can_be_re_added() {
    let assembly = assess(&named("raid1-2-bitmap-stale"), options());
    assert_eq!(assembly.left_out[0].re_add, Some(0));
    let (array, member) = (Some("v".to_owned()), "m0".to_owned());
    assert_eq!(assembly.next, [Next::ReAdd { array: array.clone(), member }]);
    let without = assess(&named("raid1-2-stale"), options());
    assert_eq!(without.left_out[0].re_add, None);
    assert_eq!(without.next, [Next::Add { array }]);
}
