//! Layouts that other tools made, or did not write down: raid10 with far sets, raid0 without a
//! recorded layout, chunks as large as md has them.

use braid_md::Features;

use crate::common::{MIB, Scratch, UpVolume};
use crate::{REFUSED, SIZE, USAGE, Unchanged, edit, refuses};

const FOUR: [&str; 4] = ["a.img", "b.img", "c.img", "d.img"];

/// Content that is nowhere the same.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| ((at >> 9) * 31 + at) as u8).collect()
}

fn fill(volume: &UpVolume<'_>, bytes: &[u8]) {
    let mut client = volume.client();
    for (index, part) in bytes.chunks(MIB as usize).enumerate() {
        client.write(index as u64 * MIB, part, false).expect("a write");
    }
    client.flush().expect("a flush");
}

fn read(volume: &UpVolume<'_>) -> Vec<u8> {
    let mut client = volume.client();
    let size = client.size();
    let parts = (0..size).step_by(MIB as usize);
    parts.flat_map(|at| client.read(at, MIB.min(size - at) as u32).expect("a read")).collect()
}

/// The output of `braid cat`.
fn cat(scratch: &Scratch, stack: &str) -> Vec<u8> {
    crate::assembling::scratch_shell(scratch, &format!("\"$0\" cat '{stack}' > copy")).run().ok();
    scratch.read("copy")
}

/// Far copies that go round in sets (bit 18 of the layout), which kernels make on request and mdadm
/// does not: the array is assembled, written, and read without a member of each set.
#[test]
fn raid10_with_far_sets_is_served() {
    let scratch = Scratch::new();
    FOUR.iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
    let create = ["create", "sets", "--level", "raid10", "--layout", "f2", "--chunk", "64K"];
    scratch.run(&[&create[..], &["--assume-clean"], &FOUR].concat()).ok();
    FOUR.iter().for_each(|name| edit(&scratch, name, |one| one.layout |= 1 << 18));
    let plan = scratch.run(&["assemble", "--in", ".", "--plan"]).ok();
    assert!(plan.out.contains("state: clean; can be started"), "{plan}");
    let volume = scratch.up("sets", &["--attach", "none"]);
    let bytes = content(read(&volume).len());
    fill(&volume, &bytes);
    volume.down();
    assert!(cat(&scratch, "md(a.img, b.img, c.img, d.img)") == bytes);
    assert!(cat(&scratch, "md(a.img, d.img)") == bytes, "a member of each set");
    refuses(&scratch, &["cat", "md(a.img, b.img)"], 1, &["too few members"]);
}

/// A raid0 over members of unequal sizes as Linux before 5.4 made it.
#[test]
fn raid0_without_a_recorded_layout_takes_the_one_that_is_given() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", SIZE + (64 << 10));
    scratch.sparse("b.img", 3 * SIZE);
    scratch.sparse("c.img", 3 * SIZE);
    let members = ["a.img", "b.img", "c.img"];
    let create = ["create", "old", "--level", "raid0", "--chunk", "64K", "--layout", "original"];
    scratch.run(&[&create[..], &members].concat()).ok();
    let volume = scratch.up("old", &["--attach", "none"]);
    let bytes = content(read(&volume).len());
    fill(&volume, &bytes);
    volume.down();
    for name in members {
        edit(&scratch, name, |one| {
            one.layout = 0;
            one.features = Features(one.features.0 & !Features::RAID0_LAYOUT.0);
        });
    }
    std::fs::remove_file(scratch.config_file("old")).expect("a record");

    let assemble = [&["assemble"], &members[..]].concat();
    let parts = [
        "which of raid0's two layouts was used is not recorded",
        "everything behind the shortest member's end is in the wrong order",
        "fsck -n",
        "--layout alternate --read-only",
    ];
    let refused = refuses(&scratch, &assemble, REFUSED, &parts);
    let both = |text: &str| refused.out.contains(text) || refused.err.contains(text);
    assert!(both("--layout original --read-only"), "{refused}");
    let wrong = [&assemble[..], &["--layout", "zones"]].concat();
    refuses(&scratch, &wrong, USAGE, &["the layouts are alternate and original"]);

    let unchanged = Unchanged::since_now(&scratch);
    let cat = |layout: &str| {
        let bytes = cat(&scratch, &format!("md(layout={layout}, a.img, b.img, c.img)"));
        std::fs::remove_file(scratch.join("copy")).expect("a copy");
        bytes
    };
    assert!(cat("original") == bytes);
    let other = cat("alternate");
    assert_eq!(other.len(), bytes.len());
    let differs = other.iter().zip(&bytes).position(|(one, other)| one != other);
    assert!(differs.is_some_and(|at| at >= 9 * MIB as usize), "behind the shortest: {differs:?}");
    unchanged.holds("cat");

    scratch.run(&[&assemble[..], &["--layout", "original"]].concat()).ok();
    let volume = scratch.up("old", &["--attach", "none"]);
    assert!(read(&volume) == bytes);
    volume.down();
    let record = std::fs::read_to_string(scratch.config_file("old")).expect("a record");
    assert!(record.contains("md(layout=original, /"), "{record}");
    // A member that is several events behind is taken in by force, with the layout that is given.
    ["b.img", "c.img"].iter().for_each(|name| edit(&scratch, name, |one| one.events += 5));
    let forced = [&assemble[..], &["--layout", "original", "--force"]].concat();
    scratch.run(&forced).ok();
    let contradicts = [&assemble[..], &["--layout", "alternate", "--as", "new"]].concat();
    scratch.run(&contradicts).ok();
    members.iter().for_each(|name| edit(&scratch, name, |one| one.layout = 1));
    let parts = ["the layout alternate was given, and the superblocks say original"];
    refuses(&scratch, &contradicts, REFUSED, &parts);
}

/// md's chunks go up to 512 GiB; where `create` makes such an array, it is served.
#[test]
fn raid0_with_a_chunk_above_64_mib_is_served() {
    let scratch = Scratch::new();
    ["a.img", "b.img"].iter().for_each(|name| drop(scratch.sparse(name, 600 * MIB)));
    let create = ["create", "large", "--level", "raid0", "--chunk", "128M", "a.img", "b.img"];
    scratch.run(&create).ok();
    let volume = scratch.up("large", &["--attach", "none"]);
    let mut client = volume.client();
    assert!(client.size() >= 512 * MIB && client.size().is_multiple_of(128 * MIB));
    let bytes = content(4096);
    for at in [0, 128 * MIB - 2048, 256 * MIB - 2048] {
        client.write(at, &bytes, false).expect("a write");
        assert!(client.read(at, 4096).expect("a read") == bytes);
    }
    drop(client);
    volume.down();
}
