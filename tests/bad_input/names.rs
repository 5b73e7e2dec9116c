//! Names of files that would steer a terminal, or forge a line of what a program reads.

use std::ffi::OsString;

use crate::REFUSED;
use crate::common::{MIB, Scratch, skip_unless_root};

const NAME: &str = "new\nstate: online \x1b[31mred\x7f\u{9b}2J\u{202e}gmi.img";

/// Nothing that steers a terminal is printed as it is.
#[track_caller]
fn is_tame(text: &str) {
    let odd = |c: &char| c.is_control() && *c != '\n' || matches!(c, '\u{202a}'..='\u{202e}');
    assert_eq!(text.chars().find(odd), None, "{text:?}");
}

/// Nor is any line forged.
#[track_caller]
fn is_in_one_line(text: &str) {
    assert!(!text.lines().any(|line| line.starts_with("state: online ")), "{text:?}");
}

#[test]
fn the_name_of_a_member_is_shown_in_one_line_and_steers_no_terminal() {
    let scratch = Scratch::new();
    let odd = OsString::from(NAME);
    for name in ["a.img".into(), odd.clone()] {
        let file = std::fs::File::create(scratch.path().join(name)).unwrap();
        file.set_len(16 * MIB).unwrap();
    }
    let create = scratch.braid().args(["create", "v", "--level", "raid1", "--assume-clean"]);
    let created = create.arg("a.img").arg(&odd).run().ok();
    is_tame(&created.out);
    is_tame(&created.err);
    let volume = scratch.up("v", &["--attach", "none"]);
    let member = volume.status()["arrays"][0]["members"][1]["member"].clone();
    assert!(member.as_str().unwrap().ends_with(NAME), "programs get the name as it is: {member}");
    let said = |args: &[&str]| {
        let output = scratch.run(args);
        is_tame(&output.out);
        is_tame(&output.err);
        output.out
    };
    let told = |args: &[&str]| {
        let text = said(args);
        is_in_one_line(&text);
        text
    };
    let escaped = r"new\nstate: online \u001b[31mred\u007f\u009b2J\u202egmi.img";
    assert!(told(&["status", "v"]).contains(escaped));
    told(&["status", "v", "--json"]);
    told(&["status", "v", "--export"]);
    assert!(told(&["mdstat"]).contains(escaped));
    let path = member.as_str().unwrap();
    assert!(told(&["member", "fail", "v", path]).contains(r"gmi.img is faulty now"));
    told(&["status", "v"]);
    told(&["member", "remove", "v", path]);
    told(&["member", "remove", "v", path]);
    told(&["member", "re-add", "v", path]);
    let failed = |args: &[&str]| {
        let output = scratch.run(args);
        assert_ne!(output.code(), 0, "{output}");
        for text in [&output.out, &output.err] {
            is_tame(text);
            is_in_one_line(text);
        }
        assert!(output.err.contains(r"new\nstate: online"), "{output}");
    };
    failed(&["member", "re-add", "v", path]);
    failed(&["member", "fail", "v", path]);
    volume.down();
    told(&["examine", path]);
    told(&["examine", "--json", path]);
    told(&["assemble", path, "--degraded", "--plan"]);
    failed(&["create", "w", "--level", "raid1", path, "missing"]);
    scratch.patch(path, 4096, &[0; 4096]);
    failed(&["examine", path]);
    failed(&["assemble", path, "a.img"]);
    failed(&["wipe", path]);
    std::fs::remove_file(path).unwrap();
    failed(&["assemble", path]);
    said(&["up", "v", "--attach", "none"]);
}

/// Root writes into a folder of another user that contains links to a file of root's.
#[test]
fn a_link_in_a_folder_of_another_user_is_not_written_through() {
    skip_unless_root!();
    let scratch = Scratch::new();
    let (folder, precious) = (scratch.join("theirs"), scratch.join("precious"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&precious, "as it was").unwrap();
    for name in ["braid.prom", "image"] {
        let link = folder.join(name);
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).unwrap();
    }
    std::os::unix::fs::lchown(&folder, Some(65534), Some(65534)).unwrap();
    let prom = folder.join("braid.prom").display().to_string();
    scratch.run(&["metrics", "--textfile", &prom]).ok();
    assert!(std::fs::symlink_metadata(&prom).unwrap().is_file(), "the link is replaced");
    let volume = scratch.up("ram(1M)", &["--name", "r", "--attach", "none"]);
    let image = folder.join("image").display().to_string();
    let refused = ["it is a link of another user", "another FILE"];
    scratch.run(&["save", "r", &image, "--force"]).fails(REFUSED, &refused);
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "as it was");
    // A link of one's own is followed, as ever, but images replace images only.
    let own = scratch.join("own");
    std::os::unix::fs::symlink(&precious, &own).unwrap();
    let to_own = own.display().to_string();
    let refused = ["an image replaces images only", "another FILE"];
    scratch.run(&["save", "r", &to_own, "--force"]).fails(REFUSED, &refused);
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "as it was");
    std::fs::write(&precious, "").unwrap();
    scratch.run(&["save", "r", &to_own, "--force"]).ok();
    assert_ne!(std::fs::read(&precious).unwrap(), b"");
    assert!(own.is_symlink());
    volume.down();
}
