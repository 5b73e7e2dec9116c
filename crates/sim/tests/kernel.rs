//! The model of the kernel's rules of freshness, checked with arrays that the kernel made: it must trust the
//! members that were in sync when the kernel released them.

use std::time::Duration;

use braid_block::Limits;
use braid_engine::redundant::Speed;
use braid_golden::{Expect, Role};
use braid_md::{Level, Superblock, Version};
use braid_sim::found::{Frame, assemble, build, carried, label, look};
use braid_sim::kernel::{Kernel, Made, make};
use braid_sim::spec::{Policy, Spec};
use braid_sim::{Image, Outcome, Sim, SimDisk};

#[test]
fn the_model_believes_whom_the_kernel_had_in_sync() {
    let (mut arrays, mut stale) = (0, 0);
    for golden in braid_golden::all() {
        // A journal device, and a reshape, are not the model's.
        if golden.members.iter().any(|one| one.role == Role::Journal)
            || golden.expect == Expect::RefuseOrRead
            || matches!(&golden.level[..], "linear" | "raid0")
        {
            continue;
        }
        let there: Vec<_> = golden.members.iter().filter(|one| one.present()).collect();
        let superblocks: Vec<Superblock> = there
            .iter()
            .map(|member| {
                let image = Image::from(golden.expand_member(member.index));
                carried(&image).unwrap_or_else(|why| panic!("{}: {why:?}", golden.name)).superblock
            })
            .collect();
        let list: Vec<&Superblock> = superblocks.iter().collect();
        let wanted: Vec<bool> = (0..golden.raid_disks)
            .map(|slot| {
                let is_it = |one: &&&braid_golden::Member| {
                    let word = one.state.split(',').next();
                    one.role == Role::Slot(slot) && word == Some("in_sync")
                };
                there.iter().any(|one| is_it(&one))
            })
            .collect();
        stale += there.iter().filter(|one| one.state.starts_with("stale")).count();
        for kernel in [Kernel::Before6_8, Kernel::Since6_8] {
            match make(&list, kernel) {
                Made::Runs(believed) => {
                    assert_eq!(believed.in_sync(), wanted, "{} ({kernel:?})", golden.name);
                }
                Made::Refused(why) => panic!("{} ({kernel:?}): {why}", golden.name),
            }
        }
        arrays += 1;
    }
    assert!(arrays > 40 && stale > 0, "{arrays} arrays, {stale} stale members");
}

/// A crash came between the two superblocks that leave a member behind: kernels before 6.8 would take
/// it for as good as the other, whatever it holds by then.
#[test]
fn who_was_left_an_event_behind_is_left_behind_when_the_array_is_started() {
    let spec = Spec {
        level: Level::Raid1,
        layout: 0,
        members: 2,
        chunk: 0,
        member_size: 16 << 10,
        policy: Policy::Resync,
        version: Version::V1_2,
    };
    let image = |role: usize| {
        spec.disk(role, &[], |superblock| {
            superblock.events = 10 - role as u64;
            if role == 0 {
                superblock.roles[1] = braid_md::Role::Faulty;
            }
        })
    };
    let images = [Some(image(0)), Some(image(1))];
    let assembled = assemble(&look(&images).unwrap()).unwrap();
    let in_sync = |images: &[Option<Image>]| {
        let there = look(images).unwrap();
        let superblocks: Vec<_> = there.iter().map(|one| &one.carried.superblock).collect();
        match make(&superblocks, Kernel::Before6_8) {
            Made::Runs(believed) => believed.in_sync(),
            Made::Refused(why) => panic!("{why}"),
        }
    };
    assert_eq!(in_sync(&images), [true, true]);
    assert!(assembled.is_changed);

    let sim = Sim::new(1);
    let handle = sim.handle();
    let disk = |(number, image): (usize, Option<Image>)| {
        let image = image.unwrap();
        let limits = Limits::new(image.len() as u64, 512);
        SimDisk::with_contents(&handle, label(number), limits, image)
    };
    let disks: Vec<_> = images.into_iter().enumerate().map(disk).collect();
    let unix_start = Duration::from_secs(1_700_000_000);
    let frame = Frame { handle: &handle, unix_start, speed: Speed::default(), nonce: 1 };
    let array = build(&assembled, &frame, &disks);
    let outcome = sim.run_until(async move {
        array.restart().await.unwrap();
        array.record().await.unwrap();
    });
    assert!(matches!(outcome, Outcome::Done(())));
    let images: Vec<_> = disks.iter().map(|disk| Some(disk.durable())).collect();
    assert_eq!(in_sync(&images), [true, false]);
}
