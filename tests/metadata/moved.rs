//! Members that are found at other paths, and strangers that claim to be members.

use braid_md::Uuid;

use super::{REFUSED, Scratch, edit, members, refuses, superblock};

const NONE: [&str; 2] = ["--attach", "none"];

/// The array `home` of a.img, b.img and c.img, which was up once, so that its members are known.
fn home() -> Scratch {
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img", "c.img"]);
    let create =
        ["create", "home", "--level", "raid5", "--assume-clean", "a.img", "b.img", "c.img"];
    scratch.run(&create).ok();
    scratch.up("home", &NONE).down();
    scratch
}

fn record(scratch: &Scratch) -> String {
    std::fs::read_to_string(scratch.config_file("home")).expect("a record")
}

fn move_to(scratch: &Scratch, name: &str, to: &str) {
    std::fs::rename(scratch.join(name), scratch.join(to)).expect("it is there");
}

#[test]
fn members_that_moved_are_found_by_assemble_which_keeps_the_record() {
    let scratch = home();
    std::fs::create_dir(scratch.join("new")).expect("a folder");
    for name in ["a.img", "b.img", "c.img"] {
        move_to(&scratch, name, &format!("new/{name}"));
    }
    let parts = ["home is not started: its members are not there", "braid assemble PATH.."];
    let refused = refuses(&scratch, &["up", "home"], REFUSED, &parts);
    assert!(!refused.err.contains("truncate"), "{refused}");
    let set = record(&scratch).replace("re-add = \"auto\"", "re-add = \"ask\"");
    std::fs::write(scratch.config_file("home"), set).expect("a record");
    // The array is the volume's, whatever its name and its paths are.
    let assembled = scratch.run(&["assemble", "--in", "new"]).ok();
    assert!(assembled.out.contains("next: braid up home"), "{assembled}");
    let renewed = record(&scratch);
    assert!(renewed.contains("new/c.img") && renewed.contains("re-add = \"ask\""), "{renewed}");
    assert_eq!(renewed.matches("\ndevice = ").count(), 3, "{renewed}");
    scratch.up("home", &NONE).down();
    // Another record of the same array is the user's word, and is said to stop the start at boot.
    let two = scratch.run(&["assemble", "--in", "new", "--as", "two"]).ok();
    assert!(two.err.contains("the array is of the volume home, too"), "{two}");
    let parts = ["is of two volumes: home and two", "braid forget home; or braid forget two"];
    refuses(&scratch, &["incremental", "new/a.img"], REFUSED, &parts);
}

#[test]
fn a_plain_member_that_moved_is_not_made_anew() {
    let scratch = Scratch::new();
    members(&scratch, &["a.img", "b.img"]);
    scratch.up("raid0(a.img, b.img)", &[&["--name", "pair"], &NONE[..]].concat()).down();
    move_to(&scratch, "b.img", "elsewhere.img");
    let parts = ["its member", "b.img (inode ", "is not there", "pair.toml", "--accept-members"];
    let refused = refuses(&scratch, &["up", "pair"], REFUSED, &parts);
    assert!(!refused.err.contains("truncate"), "{refused}");
}

/// A copy of a.img, with a higher count of events and with other data; `device` is its own identifier.
fn forge(scratch: &Scratch, device: Option<Uuid>) {
    std::fs::copy(scratch.join("a.img"), scratch.join("evil.img")).expect("a copy");
    edit(scratch, "evil.img", |one| {
        one.events += 1_000_000;
        one.device_uuid = device.unwrap_or(one.device_uuid);
    });
    let data = superblock(scratch, "evil.img").data_offset;
    scratch.patch("evil.img", data, &[0x45; 4096]);
}

#[test]
fn a_stranger_that_claims_to_be_the_freshest_member_is_named_as_such() {
    for (device, why) in [
        (Some(Uuid([7; 16])), "is not recorded"),
        // The same identifier as a.img, which is known by its file, too.
        (None, "it is a copy of"),
    ] {
        let scratch = home();
        forge(&scratch, device);
        let told = scratch.run(&["incremental", "--no-start", "evil.img"]).ok();
        assert!(told.out.contains("is not attached to home") && told.out.contains(why), "{told}");
        let told = scratch.run(&["incremental", "--no-start", "a.img"]).ok();
        assert!(told.out.contains("which can be started"), "{told}");
        let export = scratch.run(&["incremental", "--export", "--no-start", "evil.img"]).ok();
        assert!(export.out.starts_with("BRAID_OWNER=braid\n"), "the kernel leaves it: {export}");
        let all = ["assemble", "--plan", "a.img", "b.img", "c.img", "evil.img"];
        let plan = scratch.run(&all).ok();
        assert!(plan.out.contains("state: clean; can be started"), "{plan}");
        assert!(plan.err.contains("passed over") && plan.err.contains(why), "{plan}");
        scratch.run(&["forget", "home"]).ok();
        let unknown = scratch.run(&all);
        assert!(!unknown.out.contains("state: clean; can be started"), "{unknown}");
    }
}

#[test]
fn a_stranger_at_a_member_s_path_is_not_taken() {
    let scratch = home();
    forge(&scratch, Some(Uuid([7; 16])));
    move_to(&scratch, "a.img", "gone.img");
    move_to(&scratch, "evil.img", "a.img");
    let parts = ["role 0 missing", "is not recorded", "--degraded"];
    scratch.run(&["up", "home"]).fails(REFUSED, &parts);
    // The member itself is taken, wherever it lies.
    let plan = scratch.run(&["assemble", "--plan", "gone.img", "b.img", "c.img"]).ok();
    assert!(plan.out.contains("state: clean; can be started"), "{plan}");
    // Had it become the member elsewhere, it would be as fresh as the others, and a word would make it known.
    edit(&scratch, "a.img", |one| one.events -= 1_000_000);
    scratch.run(&["up", "home"]).fails(REFUSED, &parts);
    scratch.up("home", &["--attach", "none", "--accept-members"]).down();
    scratch.up("home", &NONE).down();
}
