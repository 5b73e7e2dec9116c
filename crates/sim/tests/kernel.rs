//! The model of the kernel's rules of freshness, against arrays that the kernel made: whom it
//! believes is who was in sync when the kernel let go of them.

use braid_golden::{Expect, Role};
use braid_md::Superblock;
use braid_sim::Image;
use braid_sim::found::carried;
use braid_sim::kernel::{Kernel, Made, make};

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
