use std::path::{Path, PathBuf};

use braid_md::superblock::SUPERBLOCK_BYTES;
use braid_md::{Resync, Role, Superblock, Timestamp, Uuid, Version};
use braid_stack::Stack;

use super::{Geometry, Identity, Plan, Unfit, plan};
use crate::scan::scan;
use crate::{Examined, Patient};

const MIB: u64 = 1 << 20;

struct World {
    folder: tempfile::TempDir,
}

impl World {
    /// Members of these sizes, called `0`, `1` and so on.
    fn of(sizes: &[u64]) -> World {
        let world = World { folder: tempfile::tempdir().expect("a folder") };
        for (index, size) in sizes.iter().enumerate() {
            let file = std::fs::File::create(world.path(index)).expect("a file");
            file.set_len(*size).expect("room");
        }
        world
    }

    fn path(&self, index: usize) -> PathBuf {
        self.folder.path().join(index.to_string())
    }

    fn examined(&self, count: usize) -> Vec<Examined> {
        let one = |index: usize| {
            let patient = Patient::open(&self.path(index)).expect("a member");
            let findings = scan(&patient, true);
            let path = self.path(index).to_str().expect("UTF-8").to_owned();
            let (label, content) = (index.to_string(), path.clone());
            Examined { patient, findings, label, path, holes: Vec::new(), content }
        };
        (0..count).map(one).collect()
    }

    /// The plan for an expression in which `0`, `1` and so on are members.
    fn plan(&self, count: usize, stack: &str, version: Option<Version>) -> Result<Plan, Unfit> {
        self.planned(count, &self.geometry(stack)?, version)
    }

    fn geometry(&self, stack: &str) -> Result<Geometry, Unfit> {
        let folder = self.folder.path().to_str().expect("UTF-8");
        let stack = Stack::parse_to_read(&stack.replace('@', &format!("{folder}/")));
        Geometry::of(&stack.expect("an expression"))
    }

    fn planned(
        &self,
        count: usize,
        geometry: &Geometry,
        version: Option<Version>,
    ) -> Result<Plan, Unfit> {
        let identity = Identity {
            uuid: Uuid([7; 16]),
            name: "here:home".to_owned(),
            device_uuids: (0..geometry.seats.len() as u8).map(|one| Uuid([one + 1; 16])).collect(),
            now: Timestamp { seconds: 1_700_000_000, micros: 0 },
            version,
        };
        plan(geometry, &self.examined(count), &identity)
    }

    fn write(&self, plan: &Plan) {
        use std::os::unix::fs::FileExt;
        for write in plan.writes() {
            let file = std::fs::File::options().write(true).open(self.path(write.member));
            file.expect("a member").write_all_at(&write.bytes, write.at).expect("room");
        }
    }
}

fn read(path: &Path, version: Version, offset: u64) -> Superblock {
    let bytes = std::fs::read(path).expect("a member");
    let end = (offset as usize + SUPERBLOCK_BYTES).min(bytes.len());
    let found =
        Superblock::parse(version, offset, bytes.len() as u64, &bytes[offset as usize..end]);
    found.expect("a superblock")
}

const RAID5: &str =
    "raid5(chunk=64K, file(@1, offset=1M, length=3M), missing, file(@0, offset=2M, length=3M))";

#[test]
fn superblocks_say_what_the_expression_reads() {
    let world = World::of(&[6 * MIB, 5 * MIB]);
    let plan = world.plan(2, RAID5, None).expect("a plan");
    assert_eq!((plan.size, plan.missing.as_slice(), plan.shorter), (6 * MIB, &[1][..], 0));
    assert_eq!(plan.kept_from, None);
    world.write(&plan);
    let one = read(&world.path(0), Version::V1_2, 4096);
    assert_eq!(
        (one.role(), one.data_offset, one.component_size),
        (Role::Active(2), 2 * MIB, 3 * MIB)
    );
    assert_eq!(
        (one.resync, one.bitmap_offset, one.name.as_str()),
        (Resync::Clean, None, "here:home")
    );
    let other = read(&world.path(1), Version::V1_2, 4096);
    assert_eq!((other.role(), other.data_offset), (Role::Active(0), MIB));
    assert_eq!((one.array_uuid, one.events), (other.array_uuid, other.events));
    assert_ne!(one.device_uuid, other.device_uuid);
}

#[test]
fn what_superblocks_are_left_is_kept_and_no_other_one_stays() {
    let world = World::of(&[6 * MIB, 5 * MIB]);
    world.write(&world.plan(2, RAID5, Some(Version::V1_1)).expect("a plan"));
    // Another order and version: identity and true size stay, the superblocks of the other version go.
    let other =
        "raid5(chunk=64K, missing, file(@0, offset=2M, length=3M), file(@1, offset=1M, length=3M))";
    let plan = world.plan(2, other, Some(Version::V1_2)).expect("a plan");
    assert_eq!(plan.kept_from.as_deref().map(|label| ["0", "1"].contains(&label)), Some(true));
    assert_eq!(plan.array().events, 2);
    assert!(plan.members.iter().all(|one| one.older == [(0, Version::V1_1)]), "{plan:?}");
    world.write(&plan);
    for member in world.examined(2) {
        let found = &member.findings.superblocks;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].version, Version::V1_2);
    }
}

#[test]
fn a_superblock_lies_beside_the_data() {
    let world = World::of(&[4 * MIB, 4 * MIB]);
    let of = |offset: u64, length: u64| {
        format!(
            "raid1(file(@0, offset={offset}, length={length}), file(@1, offset={offset}, length={length}))"
        )
    };
    for (offset, version, at) in
        [(8192, Version::V1_2, 4096), (4096, Version::V1_1, 0), (0, Version::V1_0, 4 * MIB - 8192)]
    {
        let plan = world.plan(2, &of(offset, 4 * MIB - offset), None).expect("room");
        assert_eq!((plan.array().version, plan.array().super_offset), (version, at));
        assert_eq!(plan.shorter > 0, version == Version::V1_0, "{plan:?}");
        let end = plan.array().data_offset + plan.array().component_size;
        assert!(end <= at || version != Version::V1_0, "{plan:?}");
    }
    let refused = world.plan(2, &of(4096, MIB), Some(Version::V1_2)).expect_err("no room");
    assert!(refused.to_string().contains("no superblock has room on 0"), "{refused}");
}

#[test]
fn what_superblocks_cannot_say_is_refused() {
    let world = World::of(&[6 * MIB, 5 * MIB]);
    for (stack, why) in [
        (
            "raid0(chunk=64K, slice(holes(@0, map=@0.map), offset=1M, length=3M), file(@1, offset=1M, length=3M))",
            "has bytes that are not read",
        ),
        (
            "linear(slice(file(@0, offset=1M, length=1M), offset=0, length=512K), slice(file(@1, offset=1M, length=1M), offset=512K))",
            "is not one array",
        ),
        (
            "raid0(chunk=64K, file(@0, offset=1M, length=1M), file(@9, offset=1M, length=1M))",
            "is not a member of the case",
        ),
    ] {
        let refused = world.plan(2, stack, None).expect_err(stack).to_string();
        assert!(refused.contains(why), "{refused}");
    }
    let mut geometry = world.geometry(RAID5).expect("a geometry");
    geometry.vacate(0);
    let refused = world.planned(2, &geometry, None).expect_err("too few").to_string();
    assert_eq!(refused, "raid5 of 3 does not start without its roles 0, 1");
}

#[test]
fn mdadm_is_told_the_same() {
    let world = World::of(&[6 * MIB, 5 * MIB]);
    let plan = world.plan(2, RAID5, None).expect("a plan");
    let command = plan.mdadm("/dev/md/home", &|one| format!("/dev/{}", one.member)).expect("words");
    assert_eq!(
        command,
        "mdadm --create /dev/md/home --assume-clean --metadata=1.2 --level=raid5 --raid-devices=3 \
         --layout=left-symmetric --chunk=64K --size=3072K --bitmap=none --uuid=07070707:07070707:07070707:07070707 \
         --homehost=here --name=home --data-offset=variable /dev/1:1024K missing /dev/0:2048K"
    );
    let raid10 = "raid10(chunk=64K, layout=f2, file(@0, offset=1M, length=3M), file(@1, offset=1M, length=3M))";
    let plan = world.plan(2, raid10, None).expect("a plan");
    let command = plan.mdadm("/dev/md0", &|one| one.member.to_string()).expect("words");
    assert!(
        command.contains("--level=raid10 --raid-devices=2 --layout=f2 --chunk=64K"),
        "{command}"
    );
    assert!(command.ends_with("--data-offset=1024K 0 1"), "{command}");
}
