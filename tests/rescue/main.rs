//! `braid rescue` on arrays that the kernel made and left behind: each is opened, copied and compared, and no byte of
//! a member changes.

mod assembled;
mod broken;
mod committed;
#[path = "../common/mod.rs"]
mod common;
mod copied;
mod documented;
mod json;
mod recipes;
mod refused;
mod remade;
mod solved;
#[expect(dead_code, reason = "places of files are compared by another test")]
#[path = "../files/tree.rs"]
mod tree;
mod verified;

use std::path::Path;

use braid_golden::Golden;
use common::{Output, Scratch};

/// The members of a golden array in a folder, and their bytes before.
struct Case {
    scratch: Scratch,
    golden: Golden,
    names: Vec<String>,
    before: Vec<Vec<u8>>,
}

impl Case {
    fn of(golden: Golden) -> Case {
        let scratch = Scratch::new();
        let paths = golden.expand_into(scratch.path()).expect("members can be written");
        let name = |path: &std::path::PathBuf| {
            path.file_name().expect("a name").to_str().expect("UTF-8").to_owned()
        };
        let names: Vec<String> = paths.iter().map(name).collect();
        let before = names.iter().map(|name| scratch.read(name)).collect();
        Case { scratch, golden, names, before }
    }

    #[track_caller]
    fn scan(&self, more: &[&str]) -> Output {
        let names = self.names.iter().map(String::as_str);
        let words: Vec<&str> = ["rescue", "scan", "home"]
            .into_iter()
            .chain(names)
            .chain(more.iter().copied())
            .collect();
        self.scratch.run(&words)
    }

    /// Copies the array; compares what was copied with what was written, and the members with what they were.
    #[track_caller]
    fn copied(&self, status: i32) {
        let copied = self.scratch.run(&["rescue", "copy", "home", "--to", "out.img"]);
        assert_eq!(copied.status.code(), Some(status), "{copied}");
        let out = self.scratch.read("out.img");
        let expected = self.golden.content_block(0, out.len());
        assert_eq!(out.len() as u64, self.golden.array_bytes, "{}", self.golden.name);
        assert!(out == expected, "{}: another content", self.golden.name);
        self.untouched();
    }

    #[track_caller]
    fn untouched(&self) {
        for (name, before) in self.names.iter().zip(&self.before) {
            assert!(self.scratch.read(name) == *before, "{name} was written");
        }
    }
}

/// The text of a stack expression in what `open` prints.
#[track_caller]
fn stack(open: &Output) -> String {
    let line = open.out.lines().skip_while(|line| !line.contains("by this stack:")).nth(1);
    line.unwrap_or_else(|| panic!("{open}")).trim().to_owned()
}

#[test]
fn arrays_that_start_are_read_as_they_are() {
    for name in
        ["raid0-3-uneq-alt", "raid1-2-v0.90", "raid5-3-degraded", "raid6-5-2missing", "raid10-3-o2"]
    {
        let case = Case::of(braid_golden::named(name));
        let scan = case.scan(&[]).ok();
        assert!(scan.out.contains("braid rescue open home"), "{scan}");
        let open = case.scratch.run(&["rescue", "open", "home"]).ok();
        assert!(open.out.contains("In doubt: nothing."), "{open}");
        case.copied(0);
    }
}

#[test]
fn a_stale_member_is_left_out() {
    for (name, stale) in [("raid1-2-stale", "m1.img"), ("raid1-2-bitmap-stale", "m0.img")] {
        let case = Case::of(braid_golden::named(name));
        let scan = case.scan(&[]).ok();
        let line = scan.out.lines().find(|line| line.contains(stale) && line.contains("stale"));
        assert!(line.is_some(), "{scan}");
        case.copied(0);
    }
}

#[test]
fn what_open_prints_is_what_cat_takes() {
    let case = Case::of(braid_golden::named("raid5-3-degraded"));
    case.scan(&[]).ok();
    let open = case.scratch.run(&["rescue", "open", "home"]).ok();
    let stack = stack(&open);
    assert!(open.out.contains("Nothing that is known lies at its start."), "{open}");
    assert!(stack.starts_with("raid5(chunk=64K, layout=left-symmetric, file("), "{stack}");
    case.scratch.run(&["cat", &stack, "--length", "64K", "--offset", "4K"]).ok();
    let json = case.scratch.run(&["rescue", "open", "home", "--json"]).ok();
    assert_eq!(json.json()["stack"], stack);
    assert_eq!(json.json()["doubts"], serde_json::json!([]));
}

#[test]
fn a_copy_is_continued_and_goes_onto_nothing_else() {
    let case = Case::of(braid_golden::named("raid5-3"));
    case.scan(&[]).ok();
    case.copied(0);
    // As an interrupted copy leaves it: a part that was not copied, and not called read.
    let (scratch, map) = (&case.scratch, case.scratch.join("out.img.map"));
    let text = std::fs::read_to_string(&map).expect("the map");
    let head: Vec<&str> =
        text.lines().filter(|line| !line.ends_with('+') || line.contains("     +")).collect();
    let rest = case.golden.array_bytes - (1 << 20);
    let blocks = format!("0x0 0x100000 ?\n0x100000 {rest} +\n");
    std::fs::write(&map, head.join("\n") + "\n" + &blocks).expect("the map can be written");
    scratch.patch("out.img", 0, &vec![0xaa; 1 << 20]);
    case.copied(0);
}

fn refusal(output: &Output, words: &[&str]) {
    assert!(!output.status.success(), "{output}");
    for word in words {
        assert!(output.err.contains(word), "{word}: {output}");
    }
}

#[test]
fn bad_input_gets_a_sentence_and_the_next_command() {
    let case = Case::of(braid_golden::named("raid5-3"));
    let run = |words: &[&str]| case.scratch.run(words);
    refusal(
        &run(&["rescue", "open", "home"]),
        &["there is no case in home.rescue", "braid rescue scan home"],
    );
    refusal(&run(&["rescue", "scan", "home"]), &["needs its members"]);
    case.scratch.sparse("empty", 0);
    let output = case.scan(&["empty", "./m0.img", "none"]);
    refusal(&output, &["empty is empty: it has 0 bytes", "none"]);
    assert!(output.out.contains("braid rescue open home"), "{output}");
    std::os::unix::fs::symlink("m0.img", case.scratch.join("again")).expect("a link");
    refusal(&case.scan(&["again"]), &["again is the same file or device as"]);
    let copy = |to: &str| run(&["rescue", "copy", "home", "--to", to]);
    refusal(&copy("m1.img"), &["is a member", "never written"]);
    refusal(&copy("again"), &["is a member"]);
    refusal(&copy("."), &["no file system whose files can be told", "--to FILE.img"]);
    case.scratch.file("there", 4096, 1);
    refusal(&copy("there"), &["is there already, and not of a copy"]);
    refusal(&copy("/dev/null"), &["only a file is written"]);
    std::fs::write(case.scratch.join("a.map"), "0 +\n0 4096 +\n").expect("a map");
    refusal(
        &run(&["rescue", "scan", "home", "--map", "m0.img=a.map"]),
        &["is the map of another disk"],
    );
    refusal(&run(&["rescue", "scan", "home", "--map", "m9.img=a.map"]), &["no such member"]);
    std::fs::write(case.scratch.join("a.map"), "nonsense\n").expect("a map");
    refusal(&run(&["rescue", "scan", "home", "--map", "m0.img=a.map"]), &["is no map of ddrescue"]);
    case.untouched();
}

#[test]
fn a_case_of_changed_members_is_refused() {
    let case = Case::of(braid_golden::named("raid5-3"));
    case.scan(&[]).ok();
    case.scratch.patch("m1.img", 100, b"x");
    let open = case.scratch.run(&["rescue", "open", "home"]);
    refusal(&open, &["m1.img is not what was scanned", "its first MiB has changed"]);
    assert_eq!(open.status.code(), Some(3), "{open}");
    let text = case.scratch.join("home.rescue").join("case.json");
    std::fs::write(&text, "{}").expect("it can be written");
    refusal(&case.scratch.run(&["rescue", "open", "home"]), &["case.json", "missing field"]);
    assert!(Path::new(&text).exists());
}
