//! Members of records on machines that are made up.

use std::collections::BTreeMap;

use super::*;

const SIZE: u64 = 1 << 20;

fn seen(path: &str, identity: &str, size_bytes: u64) -> Seen {
    Seen {
        path: path.into(),
        identities: vec![identity.to_owned()],
        size_bytes,
        carries_something: false,
    }
}

fn record(stack: &str, members: &[(&str, &str)]) -> Record {
    let mut record = Record::new(Stack::parse(stack).expect("a stack"));
    record.members = members
        .iter()
        .map(|(path, identity)| Known {
            path: path.into(),
            identity: (*identity).to_owned(),
            size_bytes: SIZE,
            array: None,
            device: None,
        })
        .collect();
    record
}

/// The outcome for `record` on a machine with these paths: identity and size.
fn on(record: &Record, machine: &[(&str, &str, u64)]) -> Membership {
    let paths: BTreeMap<&str, Seen> =
        machine.iter().map(|(path, identity, size)| (*path, seen(path, identity, *size))).collect();
    let look = |path: &Path| paths.get(path.to_str()?).cloned();
    let find = |identity: &str| {
        let mut found = paths.values().filter(|one| one.identities[0] == identity);
        found.next().map(|one| one.path.clone())
    };
    // "md ARRAY", or "md ARRAY DEVICE".
    let member_at = |path: &Path| {
        let text = paths.get(path.to_str()?)?.identities[0].strip_prefix("md ")?;
        let mut words = text.split(' ').map(str::to_owned);
        let (array, device) = (words.next()?, words.next());
        Some(Accepted { path: path.to_owned(), array, device })
    };
    let members_of = |array: &str| {
        let is_link = |path: &&&str| path.starts_with("/dev/by-id");
        let all = paths.keys().filter(|path| !is_link(path));
        let all = all.filter_map(|path| member_at(Path::new(path)));
        all.filter(|one| one.array == array).collect()
    };
    let real = |path: &Path| match path.strip_prefix("/dev/by-id") {
        Ok(name) => Path::new("/dev").join(name),
        Err(_) => path.to_owned(),
    };
    let world = World {
        look: &look,
        find: &find,
        member_at: &member_at,
        members_of: &members_of,
        real: &real,
    };
    Membership::on(record, &world)
}

/// One of two members is gone: the other one, found by the kernel's name, does not stand for it.
#[test]
fn a_member_that_is_known_by_a_link_is_a_member_once() {
    let paths = ["/dev/by-id/sda", "/dev/by-id/sdb"];
    let members = [(paths[0], "md 1"), (paths[1], "serial B")];
    let mut record = record("md(/dev/by-id/sda, /dev/by-id/sdb)", &members);
    record.members.iter_mut().for_each(|known| known.array = Some("1".to_owned()));
    let there = [(paths[0], "md 1", SIZE), ("/dev/sda", "md 1", SIZE), ("/dev/sdc", "md 1", SIZE)];
    let now = on(&record, &there[..2]);
    assert!(now.moved.is_empty(), "{now:?}");
    assert_eq!(now.resolve(&record.stack), record.stack);
    // Another one does.
    let now = on(&record, &there);
    assert_eq!(now.resolve(&record.stack).to_string(), "md(/dev/by-id/sda, /dev/sdc)");
}

#[test]
fn disks_without_serial_numbers_are_found_by_their_superblocks() {
    let mut record = record("md(/dev/sda, /dev/sdb)", &[("/dev/sda", "x"), ("/dev/sdb", "y")]);
    record.members.iter_mut().for_each(|known| known.array = Some("1".to_owned()));
    // The names went on by one; there is a stranger where the first was.
    let machine = [
        ("/dev/sda", "serial S", SIZE),
        ("/dev/sdb", "md 1", SIZE),
        ("/dev/sdc", "md 1", SIZE),
        ("/dev/sdd", "md 2", SIZE),
    ];
    let now = on(&record, &machine);
    assert_eq!(now.resolve(&record.stack).to_string(), "md(/dev/sdc, /dev/sdb)");
    assert_eq!(now.notes(), ["the member /dev/sda (of the array 1) is /dev/sdc now"]);
    assert_eq!(now.recognised, [PathBuf::from("/dev/sdc")]);
    // Both are gone, and one is there: it stands for one of them.
    let now = on(&record, &machine[2..]);
    assert_eq!(now.resolve(&record.stack).to_string(), "md(/dev/sdc, /dev/sdb)");
    assert!(on(&record, &machine[3..]).moved.is_empty());
}

/// A disk that nothing but its number in the kernel tells apart is known by the identifier of the member.
#[test]
fn a_stranger_with_the_superblock_of_the_array_is_no_member() {
    let paths = [("/dev/loop0", "device 7:0"), ("/dev/loop1", "device 7:1")];
    let mut record = record("md(/dev/loop0, /dev/loop1)", &paths);
    for (known, device) in record.members.iter_mut().zip(["a", "b"]) {
        known.array = Some("1".to_owned());
        known.device = Some(device.to_owned());
    }
    let stack = |machine: &[(&str, &str, u64)]| {
        let now = on(&record, machine);
        (now.resolve(&record.stack).to_string(), now.lost.len())
    };
    let resolved = |text: &str, lost| (text.to_owned(), lost);
    // Each has the other's number now: both are members.
    let both = [("/dev/loop0", "md 1 b", SIZE), ("/dev/loop1", "md 1 a", SIZE)];
    assert_eq!(stack(&both), resolved("md(/dev/loop0, /dev/loop1)", 0));
    // A stranger, though its superblock is of the array, stands for none; the member is found elsewhere.
    let strange = [("/dev/loop0", "md 1 evil", SIZE), ("/dev/loop1", "md 1 b", SIZE)];
    assert_eq!(stack(&strange), resolved("md(/dev/loop0, /dev/loop1)", 0));
    let moved = [&strange[..], &[("/dev/loop7", "md 1 a", SIZE)]].concat();
    assert_eq!(stack(&moved), resolved("md(/dev/loop7, /dev/loop1)", 0));
    // Of two that are elsewhere, each stands for itself.
    let both = [("/dev/loop5", "md 1 b", SIZE), ("/dev/loop6", "md 1 a", SIZE)];
    assert_eq!(stack(&both), resolved("md(/dev/loop6, /dev/loop5)", 0));
    assert_eq!(stack(&both[..1]), resolved("md(/dev/loop0, /dev/loop5)", 1));
    // A member that is known by more than a number keeps its place, whatever it carries.
    record.members[0].identity = "md 1 evil".to_owned();
    let now = on(&record, &moved);
    assert_eq!(now.resolve(&record.stack), record.stack);
    assert_eq!(now.accepted(&record)[0].device, None);
}

const DISKS: [(&str, &str); 2] = [("/dev/sdb", "serial B"), ("/dev/sdc", "wwn C")];

#[test]
fn what_is_as_it_was_is_recognised() {
    let record = record("raid0(/dev/sdb, /dev/sdc)", &DISKS);
    let now = on(&record, &[("/dev/sdb", "serial B", SIZE), ("/dev/sdc", "wwn C", SIZE)]);
    assert_eq!((now.recognised.len(), now.moved.len(), now.changed.len()), (2, 0, 0));
    assert_eq!(now.resolve(&record.stack), record.stack);
}

#[test]
fn disks_that_changed_places_are_found_by_their_serial_numbers() {
    let record = record("raid0(/dev/sdb, /dev/sdc)", &DISKS);
    let now = on(&record, &[("/dev/sdc", "serial B", SIZE), ("/dev/sdb", "wwn C", SIZE)]);
    assert_eq!(now.changed, [""; 0]);
    assert_eq!(now.resolve(&record.stack).to_string(), "raid0(chunk=512K, /dev/sdc, /dev/sdb)");
    assert_eq!(now.notes()[0], "the member /dev/sdb (serial B) is /dev/sdc now");
}

/// The first of two disks is gone, and the second has its name since.
#[test]
fn a_disk_that_took_the_name_of_one_that_is_gone_is_a_member_once() {
    let record = record("md(/dev/sdb, /dev/sdc)", &DISKS);
    let now = on(&record, &[("/dev/sdb", "wwn C", SIZE)]);
    assert_eq!(now.changed, [""; 0]);
    assert_eq!(now.resolve(&record.stack).to_string(), "md(/dev/sdb)");
    let now = on(&record, &[("/dev/sdc", "wwn C", SIZE)]);
    let stays = "it is left out by whoever assembles the array";
    assert_eq!(now.resolve(&record.stack), record.stack, "{stays}");
}

#[test]
fn a_disk_that_is_elsewhere_must_have_its_size() {
    let record = record("raid0(/dev/sdb, /dev/sdc)", &DISKS);
    let now = on(&record, &[("/dev/sdd", "serial B", 2 * SIZE), ("/dev/sdc", "wwn C", SIZE)]);
    assert_eq!(now.changed, ["/dev/sdd has 2097152 bytes, and had 1048576"]);
}

#[test]
fn files_that_changed_places_are_told() {
    let members = [("/a", "inode 1"), ("/b", "inode 2")];
    let record = record("raid0(/a, /b)", &members);
    let now = on(&record, &[("/a", "inode 2", SIZE), ("/b", "inode 1", SIZE)]);
    assert_eq!(now.changed, ["/a is what /b was (inode 2)", "/b is what /a was (inode 1)"]);
    let now = on(&record, &[("/a", "inode 1", SIZE), ("/b", "inode 7", SIZE)]);
    let expected = "/b is not the one that it was: it is inode 7, and was inode 2";
    assert_eq!(now.changed, [expected]);
    let now = on(&record, &[("/a", "inode 1", SIZE), ("/b", "inode 2", SIZE / 2)]);
    assert_eq!(now.changed, ["/b has 524288 bytes, and had 1048576"]);
}

#[test]
fn the_stack_is_held_to_the_order_and_to_the_members() {
    let members = [("/a", "inode 1"), ("/b", "inode 2")];
    let machine = [("/a", "inode 1", SIZE), ("/b", "inode 2", SIZE), ("/c", "inode 3", SIZE)];
    let now = on(&record("raid0(/b, /a)", &members), &machine);
    let expected = "the members are in the order /b, /a, and were in the order /a, /b";
    assert_eq!(now.changed, [expected]);
    let now = on(&record("raid0(/a, /c)", &members), &machine);
    assert!(now.changed[0].starts_with("/c is in the stack, and was not"), "{now:?}");
    assert!(on(&record("raid0(/a, /c)", &[]), &machine).changed.is_empty(), "nothing is known");
}

#[test]
fn superblocks_speak_for_themselves() {
    let members = [("/a", "inode 1"), ("/b", "inode 2")];
    let record = record("md(/b, /a, /c)", &members);
    let now = on(&record, &[("/a", "inode 2", SIZE), ("/b", "inode 9", SIZE)]);
    assert_eq!(now.changed, [""; 0]);
    assert_eq!(now.recognised.len(), 0);
}

/// The serial number is that of the whole disk.
#[test]
fn partitions_of_one_disk_are_told_apart() {
    let parts = [None, Some(1), Some(2)].map(|part| lasting(Some("w"), Some("s"), part));
    let all: std::collections::BTreeSet<&String> = parts.iter().flatten().collect();
    assert_eq!(all.len(), 6, "{parts:?}");
}
