//! Volumes that are up already, or were never; records that are wrong; members that were
//! exchanged behind the record's back.

use crate::common::{MIB, Scratch, Tool, UpVolume, skip_without};
use crate::{FAILED, REFUSED, USAGE, contents, refuses};

const NONE: [&str; 2] = ["--attach", "none"];

#[test]
fn up_of_what_is_up() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    scratch.file("b.img", MIB, 2);
    let volume = scratch.up("./a.img", &["--name", "v", NONE[0], NONE[1]]);
    let pid = format!("v is up already (process {})", volume.pid);
    let parts = [pid.as_str(), "next: `braid status v` shows it, `braid down v` ends it"];
    for target in ["v", "./a.img"] {
        let name: &[&str] = if target == "v" { &[] } else { &["--name", "v"] };
        scratch.braid().args(["up", target]).args(name).args(NONE).run().fails(REFUSED, &parts);
    }
    // Another stack of the same name, up or down.
    let other = ["up", "./b.img", "--name", "v", NONE[0], NONE[1]];
    let parts = ["there is a volume called v with another stack: ", "a.img", "next: ", "--name"];
    scratch.run(&other).fails(REFUSED, &parts);
    volume.client().flush().expect("the first one serves");
    volume.down();
    scratch.run(&other).fails(REFUSED, &parts);
}

#[test]
fn volumes_that_nobody_knows() {
    let scratch = Scratch::new();
    let unknown = ["no volume called v is up", "next: `braid status` lists those that are"];
    scratch.run(&["down", "v"]).fails(FAILED, &unknown);
    scratch.run(&["down", "v", "--force"]).fails(FAILED, &unknown);
    scratch.run(&["status", "v"]).fails(FAILED, &unknown);
    scratch.run(&["status", "v", "--json"]).fails(FAILED, &unknown);
    let parts = ["v.toml does not exist", "\"v\" names no volume", "next: `braid up STACK"];
    scratch.run(&["up", "v"]).fails(USAGE, &parts);
    scratch.sparse("a b.img", MIB);
    let parts = [
        "\"a b.img\" names no volume",
        "a file of that name is here",
        "next: braid up './a b.img'",
    ];
    scratch.run(&["up", "a b.img"]).fails(USAGE, &parts);
    scratch.run(&["up", "v.toml"]).fails(USAGE, &["v.toml does not exist", "next:"]);
}

#[test]
fn records_that_cannot_be_read() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("config")).unwrap();
    for (text, parts) in [
        ("stack = ", &["v.toml", "line 1"][..]),
        (
            "stack = \"ram(1M)\"\ncolour = \"red\"\n",
            &["v.toml", "unknown field `colour`", "line 2"],
        ),
        ("attach = \"none\"\n", &["v.toml", "missing field `stack`"]),
        ("stack = \"ram(1M\"\n", &["v.toml", "`)` is missing for `ram(`"]),
        ("stack = \"ram(1M)\"\nattach = \"glue\"\n", &["v.toml", "glue"]),
        ("stack = \"ram(1M)\"\nshards = -1\n", &["v.toml", "-1"]),
        ("\0\u{1}", &["v.toml"]),
    ] {
        std::fs::write(scratch.config_file("v"), text).unwrap();
        let in_place = scratch.config_file("v");
        for target in ["v", in_place.to_str().unwrap()] {
            scratch.run(&["up", target]).fails(USAGE, parts);
        }
        assert_eq!(std::fs::read_to_string(&in_place).unwrap(), text, "it is not written over");
    }
    std::fs::write(scratch.config_file("v"), [0xff, 0xfe]).unwrap();
    scratch.run(&["up", "v"]).fails(FAILED, &["cannot read", "v.toml"]);
}

/// A member of `size` with an ext4 on it.
fn make_ext4(scratch: &Scratch, name: &str, size: u64) {
    let image = scratch.sparse(name, size);
    Tool::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).run().ok();
}

#[test]
fn a_member_that_was_exchanged() {
    skip_without!("mkfs.ext4", "nbdcopy");
    let scratch = Scratch::new();
    scratch.sparse("a.img", 8 * MIB);
    make_ext4(&scratch, "fs.img", 8 * MIB);
    let volume = scratch.up("./a.img", &["--name", "v", NONE[0], NONE[1]]);
    let image = scratch.join("fs.img");
    Tool::new("nbdcopy").arg(&image).arg(&volume.uris[0]).run().ok();
    volume.down();
    // What the member carries now is the volume's own, and no obstacle to the volume …
    let volume = scratch.up("v", &[]);
    volume.down();
    // … but to any other.
    let contains =
        ["a.img is refused: it contains ext4", "a start writes nothing to it", "--force"];
    refuses(&scratch, "./a.img", &[], REFUSED, &contains);
    // A stranger at its place is not the volume's, …
    std::fs::rename(&image, scratch.join("a.img")).unwrap();
    let before = contents(&scratch);
    let other = ["a.img is not the one that it was", "braid up v --accept-members --force"];
    scratch.run(&["up", "v"]).fails(REFUSED, &other);
    // … and its contents have an owner, whether or not it is a member.
    scratch.run(&["up", "v", "--accept-members"]).fails(REFUSED, &contains);
    scratch.run(&["up", "v", "--force", "./a.img"]).fails(REFUSED, &other);
    assert!(before == contents(&scratch), "nothing was written");
    // Named again, it is taken, and is the volume's from now on.
    let volume = scratch.up("v", &["--accept-members", "--force", "./a.img"]);
    volume.down();
    scratch.up("v", &[]).down();
}

#[test]
fn a_member_that_is_gone_or_grew() {
    skip_without!("mkfs.ext4");
    let scratch = Scratch::new();
    make_ext4(&scratch, "a.img", 8 * MIB);
    let force = ["--force", "./a.img", "--name", "v", NONE[0], NONE[1]];
    scratch.up("./a.img", &force).down();
    // Of another size it is not what was accepted.
    scratch.resize("a.img", 9 * MIB);
    let parts = ["a.img has 9437184 bytes, and had 8388608", "braid up v --accept-members"];
    scratch.run(&["up", "v"]).fails(REFUSED, &parts);
    std::fs::remove_file(scratch.join("a.img")).unwrap();
    let gone = ["a.img (inode ", "is not there\n  next: bring it back", "--accept-members"];
    scratch.run(&["up", "v"]).fails(REFUSED, &gone);
}

#[test]
fn a_member_that_was_only_looked_at() {
    skip_without!("mkfs.ext4");
    let scratch = Scratch::new();
    make_ext4(&scratch, "fs.img", 8 * MIB);
    let before = contents(&scratch);
    scratch.up("./fs.img", &["--name", "v", "--read-only", NONE[0], NONE[1]]).down();
    // To be looked at it comes up again; to be written it is a stranger.
    scratch.up("v", &["--read-only"]).down();
    scratch.run(&["up", "v"]).fails(REFUSED, &["fs.img is refused: it contains ext4"]);
    assert!(before == contents(&scratch), "nothing was written");
}

#[test]
fn a_volume_that_cannot_be_remembered_does_not_stay_up() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    // A file where the folder of records should be.
    std::fs::write(scratch.join("config"), "").unwrap();
    let Err(output) = UpVolume::start(&scratch, "./a.img", &["--name", "v", NONE[0], NONE[1]])
    else {
        panic!("there is no place for its record")
    };
    output.fails(FAILED, &["cannot make the folder", "config"]);
    scratch.run(&["status", "v"]).fails(FAILED, &["no volume called v is up"]);
}

/// A volume over these members that was up once, with a pattern on it; and its record.
fn was_up(stack: &str, scratch: &Scratch, names: &[&str]) -> String {
    for (seed, name) in names.iter().enumerate() {
        scratch.file(name, 2 * MIB, seed as u64);
    }
    scratch.up(stack, &["--name", "v", NONE[0], NONE[1]]).down();
    record(scratch)
}

fn record(scratch: &Scratch) -> String {
    std::fs::read_to_string(scratch.config_file("v")).unwrap()
}

/// A volume that is refused in its present state, and that comes up for reading, or if the user accepts the
/// present members; only the latter changes the record.
#[track_caller]
fn is_held_to_its_members(scratch: &Scratch, parts: &[&str]) {
    let (before, remembered) = (contents(scratch), record(scratch));
    let next = ["not what it was last up with", "braid up v --read-only", "--accept-members"];
    scratch.run(&["up", "v", NONE[0], NONE[1]]).fails(REFUSED, &[parts, &next].concat());
    let volume = scratch.up("v", &["--read-only", NONE[0], NONE[1]]);
    let warnings = volume.status()["warnings"].to_string();
    for part in parts {
        assert!(warnings.contains(part), "{part:?} in {warnings}");
    }
    volume.down();
    let cat = scratch.run(&["cat", "v", "--length", "0"]).ok();
    for part in parts {
        assert!(cat.err.contains(part), "{part:?} in {cat}");
    }
    assert!(before == contents(scratch), "no member is changed");
    assert_eq!(remembered, record(scratch), "nor is the record");
    scratch.up("v", &["--accept-members", NONE[0], NONE[1]]).down();
    assert_ne!(remembered, record(scratch));
    scratch.up("v", &NONE).down();
}

#[test]
fn members_that_changed_places() {
    for level in ["raid0", "linear", "raid1", "raid5"] {
        let scratch = Scratch::new();
        was_up(&format!("{level}(p.img, q.img, s.img)"), &scratch, &["p.img", "q.img", "s.img"]);
        let path = |name: &str| scratch.join(name);
        std::fs::rename(path("q.img"), path("x")).unwrap();
        std::fs::rename(path("s.img"), path("q.img")).unwrap();
        std::fs::rename(path("x"), path("s.img")).unwrap();
        let (q, s) = (path("q.img"), path("s.img"));
        let told = [(&q, &s), (&s, &q)]
            .map(|(here, was)| format!("{} is what {} was", here.display(), was.display()));
        is_held_to_its_members(&scratch, &[&told[0], &told[1]]);
    }
}

#[test]
fn members_that_shrank_or_grew() {
    for size in [MIB, 4 * MIB] {
        let scratch = Scratch::new();
        was_up("raid0(p.img, linear(q.img))", &scratch, &["p.img", "q.img"]);
        scratch.resize("q.img", size);
        is_held_to_its_members(&scratch, &[&format!("q.img has {size} bytes, and had 2097152")]);
    }
}

#[test]
fn a_member_that_was_copied_is_another_one() {
    let scratch = Scratch::new();
    was_up("raid0(p.img, q.img)", &scratch, &["p.img", "q.img"]);
    std::fs::copy(scratch.join("q.img"), scratch.join("copy")).unwrap();
    std::fs::rename(scratch.join("copy"), scratch.join("q.img")).unwrap();
    is_held_to_its_members(&scratch, &["q.img is not the one that it was: it is inode "]);
}

#[test]
fn a_record_whose_stack_was_edited() {
    let scratch = Scratch::new();
    let text = was_up("raid0(p.img, q.img)", &scratch, &["p.img", "q.img"]);
    scratch.file("r.img", 2 * MIB, 9);
    let path = |name: &str| scratch.join(name).display().to_string();
    let stack = format!("{}, {}", path("p.img"), path("q.img"));
    for (edited, part) in [
        (format!("{}, {}", path("q.img"), path("p.img")), "the members are in the order "),
        (format!("{}, {}", path("p.img"), path("r.img")), "r.img is in the stack, and was not"),
    ] {
        let edited = text.replacen(&stack, &edited, 1);
        assert_ne!(edited, text);
        std::fs::write(scratch.config_file("v"), edited).unwrap();
        is_held_to_its_members(&scratch, &[part]);
    }
}

#[test]
fn members_that_are_the_same_by_another_name_of_their_folder() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("then")).unwrap();
    let text = was_up("raid0(then/p.img, then/q.img)", &scratch, &["then/p.img", "then/q.img"]);
    std::fs::rename(scratch.join("then"), scratch.join("now")).unwrap();
    std::os::unix::fs::symlink("now", scratch.join("then")).unwrap();
    scratch.up("v", &NONE).down();
    assert_eq!(record(&scratch), text, "what is as it was is not written again");
}

#[test]
fn options_hold_for_once_unless_they_are_to_be_remembered() {
    let scratch = Scratch::new();
    let text = was_up("./p.img", &scratch, &["p.img"]);
    assert!(!text.contains("none"), "{text}");
    let address = ["--nbd", "tcp:127.0.0.1:0", "--insecure", "--io", "threads"];
    let given = [&["--read-only"][..], &NONE, &address].concat();
    let is_read_only = |volume: &UpVolume<'_>| volume.status()["device"]["read_only"] == true;
    let uri = |volume: &UpVolume<'_>| volume.uris[0].clone();
    let once = scratch.up("v", &given);
    assert!(is_read_only(&once) && uri(&once).starts_with("nbd://127.0.0.1"));
    once.down();
    assert_eq!(record(&scratch), text);
    let plain = scratch.up("v", &NONE);
    assert!(!is_read_only(&plain) && uri(&plain).starts_with("nbd+unix"));
    plain.down();
    // To be remembered they have to be told so, …
    scratch.up("v", &[&given[..], &["--remember"]].concat()).down();
    let remembered = scratch.up("v", &[]);
    assert!(is_read_only(&remembered) && uri(&remembered).starts_with("nbd://127.0.0.1"));
    assert_eq!(remembered.status()["io"], "threads");
    remembered.down();
    for part in ["read_only = true", "insecure = true", "tcp:127.0.0.1:0", "threads"] {
        assert!(record(&scratch).contains(part), "{part}");
    }
    // … all of them, or some, …
    scratch.up("v", &[NONE[0], NONE[1], "--remember"]).down();
    let volume = scratch.up("v", &[]);
    assert!(!is_read_only(&volume) && uri(&volume).starts_with("nbd+unix"));
    assert_eq!(volume.device, None);
    volume.down();
    assert!(record(&scratch).contains("none"));
    // … and are taken back.
    scratch.up("v", &["--remember"]).down();
    assert_eq!(record(&scratch), text);
}
