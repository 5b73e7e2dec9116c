//! `docs/symptoms.md`: each of its commands is run in the situation of its section, and prints what the page shows.

use braid_md::superblock::SUPERBLOCK_BYTES;

use crate::common::{MIB, Output, Scratch, wait_until};
use crate::{SIZE, superblock};

const PAGE: &str = include_str!("../../docs/symptoms.md");

/// Lines of a section that belong together: a command, and what is shown of its output.
type Shown<'a> = (&'a str, Vec<&'a str>);

fn commands(section: &str) -> Vec<Shown<'_>> {
    let mut all: Vec<Shown<'_>> = Vec::new();
    for line in section.lines() {
        match line.strip_prefix("    ") {
            Some(line) if line.starts_with("$ ") => all.push((&line[2..], Vec::new())),
            Some(line) => all.last_mut().expect("a command comes first").1.push(line),
            None => {}
        }
    }
    all
}

/// Runs `command` with the scratch folder as `/srv`.
fn run(scratch: &Scratch, command: &str) -> Output {
    let folder = scratch.path().display().to_string();
    let mut words = command.replace("/srv", &folder).replace("'", "");
    if words.starts_with("braid up") {
        words.push_str(" --attach none");
    }
    let args: Vec<&str> = words.split_whitespace().skip(1).collect();
    scratch.run(&args)
}

/// True if `text` has the parts of `line` between its `…` in their order, in one line.
fn has(text: &str, line: &str) -> bool {
    text.lines().any(|one| {
        let mut rest = one;
        line.trim().split('…').all(|part| {
            rest.split_once(part).is_some_and(|(_, after)| {
                rest = after;
                true
            })
        })
    })
}

fn up(scratch: &Scratch) {
    scratch.run(&["up", "home", "--attach", "none"]).ok();
}

/// Brings about what the section is about.
fn prepare(scratch: &Scratch, title: &str) {
    ["a.img", "b.img", "c.img"].iter().for_each(|name| drop(scratch.sparse(name, SIZE)));
    let create = ["create", "home", "--level", "raid1", "--data-offset", "1M", "--assume-clean"];
    scratch.run(&[&create[..], &["a.img", "b.img"]].concat()).ok();
    up(scratch);
    let down = || scratch.run(&["down", "home"]).ok();
    match title {
        "A member is missing" => {
            down();
            std::fs::remove_file(scratch.join("b.img")).expect("a member");
        }
        "The array does not start, and mdadm refuses it, too" => {
            down();
            scratch.run(&["forget", "home"]).ok();
            let members = ["a.img", "b.img", "c.img", "d.img"];
            for name in members {
                let _ = std::fs::remove_file(scratch.join(name));
                scratch.sparse(name, SIZE);
            }
            let create = ["create", "home", "--level", "raid5", "--assume-clean"];
            scratch.run(&[&create[..], &members].concat()).ok();
            // Two members are as they were before the array was up for the last time.
            let of = |from: &str, to: &str| {
                std::fs::copy(scratch.join(from), scratch.join(to)).expect("a member");
            };
            [("c.img", "c.old"), ("d.img", "d.old")].iter().for_each(|(from, to)| of(from, to));
            for _ in 0..2 {
                up(scratch);
                down();
            }
            [("c.old", "c.img"), ("d.old", "d.img")].iter().for_each(|(from, to)| of(from, to));
        }
        "The members have other paths" => {
            down();
            std::fs::create_dir(scratch.join("new")).expect("a folder");
            for name in ["a.img", "b.img"] {
                let to = scratch.join("new").join(name);
                std::fs::rename(scratch.join(name), to).expect("a member");
            }
        }
        "The superblocks are gone" => {
            down();
            for name in ["a.img", "b.img"] {
                let at = superblock(scratch, name).super_offset;
                scratch.patch(name, at, &[0; SUPERBLOCK_BYTES]);
            }
        }
        "Its process is gone" => {
            let pid =
                scratch.run(&["status", "home", "--json"]).ok().json()["volumes"][0]["pid"].clone();
            let pid = u32::try_from(pid.as_u64().expect("a process")).expect("a process");
            crate::common::send_signal(pid, rustix::process::Signal::KILL);
            wait_until("its end", || !crate::common::is_alive(pid));
        }
        "A disk failed" => drop(scratch.run(&["member", "fail", "home", "b.img"]).ok()),
        "Which copy is right" => {
            down();
            scratch.patch("b.img", 2 * MIB + 4096, &[7; 512]);
            up(scratch);
        }
        "It is slow" => {
            scratch.run(&["speed", "home", "--max", "64K"]).ok();
            scratch.run(&["scrub", "home"]).ok();
        }
        "No room is left in the log" => {
            scratch.sparse("o.img", 16 * MIB);
            scratch.sparse("l.img", 8 * MIB);
            let stack = "cache(size=16M, mode=write-back, log=./l.img, ./o.img)";
            scratch.run(&["up", stack, "--name", "fast", "--attach", "none"]).ok();
        }
        "A disk is about to fail" | "It does not answer" => {}
        other => panic!("{other:?}: its situation is not made here"),
    }
}

#[test]
fn every_command_of_the_page_prints_what_it_shows() {
    let sections = PAGE.split("\n## ").skip(1);
    // Bytes are lost only with disks that cannot be read: `bad_blocks` has these.
    let tried = sections.filter(|section| !section.starts_with("Bytes are lost\n"));
    let mut count = 0;
    for section in tried {
        let (title, text) = section.split_once('\n').expect("a title");
        let scratch = Scratch::new();
        prepare(&scratch, title);
        let folder = scratch.path().display().to_string();
        for (command, lines) in commands(text) {
            let output = run(&scratch, command);
            let fails = lines.iter().any(|line| line.starts_with("braid: "));
            assert_eq!(output.status.success(), !fails, "{title}: {output}");
            let told = format!("{}\n{}", output.out, output.err).replace(&folder, "/srv");
            for line in lines {
                assert!(has(&told, line), "{title}: {line:?} is not in\n{told}");
            }
            count += 1;
        }
    }
    assert!(count > 20, "{count} commands");
}
