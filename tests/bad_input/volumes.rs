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
    let contains = ["a.img is refused: it contains ext4", "next: to overwrite it: --force"];
    refuses(&scratch, "./a.img", &[], REFUSED, &contains);
    // A stranger at its place, with a file system on it, is not the volume's.
    std::fs::rename(&image, scratch.join("a.img")).unwrap();
    let before = contents(&scratch);
    scratch.run(&["up", "v"]).fails(REFUSED, &contains);
    assert!(before == contents(&scratch), "nothing was written");
    // Named again, it is taken, and is the volume's from now on.
    let volume = scratch.up("v", &["--force", "./a.img"]);
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
    scratch.run(&["up", "v"]).fails(REFUSED, &["a.img is refused: it contains ext4", "--force"]);
    std::fs::remove_file(scratch.join("a.img")).unwrap();
    scratch.run(&["up", "v"]).fails(REFUSED, &["a.img is refused: it does not exist", "next:"]);
}

#[test]
fn a_member_that_was_only_looked_at() {
    skip_without!("mkfs.ext4");
    let scratch = Scratch::new();
    make_ext4(&scratch, "fs.img", 8 * MIB);
    let before = contents(&scratch);
    scratch.up("./fs.img", &["--name", "v", "--read-only", NONE[0], NONE[1]]).down();
    // It comes up again as it was, until the record says otherwise; and then it is a stranger.
    scratch.up("v", &[]).down();
    let record = std::fs::read_to_string(scratch.config_file("v")).unwrap();
    let writable = record.replace("read_only = true", "read_only = false");
    assert_ne!(record, writable);
    std::fs::write(scratch.config_file("v"), writable).unwrap();
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
