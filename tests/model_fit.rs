//! `braid model fit`: the profile of a device that braid itself models comes back, nothing is written that was
//! not named, and what cannot be measured is refused with the reason. Disks, and hosts whose processors are busy,
//! are fitted in virtual time (`crates/fit/tests/recovers.rs`).

mod common;

use std::path::Path;
use std::time::Duration;

use braid_model::Profile;
use braid_trace::{Kind, parse};
use common::{MIB, Scratch, Tool, skip_unless_root};

const USAGE: i32 = 2;
const REFUSED: i32 = 3;

/// A fit takes longer than what tests wait for tools, on a machine with other things to do.
const PATIENCE: Duration = Duration::from_secs(300);

fn fit(scratch: &Scratch, device: &Path, options: &[&str]) -> Tool {
    scratch.braid().args(["model", "fit"]).arg(device).args(options).limit(PATIENCE)
}

#[track_caller]
fn profile(path: &Path) -> Profile {
    let text = std::fs::read_to_string(path).expect("a profile was written");
    Profile::parse(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

/// 3 ms a jump and 80 MB/s are far from what a machine adds to them, unless its processors are busy, which is said.
#[test]
fn a_served_model_comes_back_and_is_only_read() {
    skip_unless_root!();
    let scratch = Scratch::new();
    let stack = "model(usb-flash, size=64M, read=80MB/s, latency=3ms)";
    let volume = scratch.up(stack, &["--name", "v", "--trace", "t.log"]);
    let output = scratch.join("v.toml");
    let options = ["--output", "v.toml", "--time", "200s", "--json"];
    let answer = fit(&scratch, volume.device(), &options).run().ok();
    assert!(answer.err.contains("writes nothing"), "{}", answer.err);
    volume.down();

    let text = std::fs::read(scratch.join("t.log")).expect("a trace");
    let trace = parse(&text, None).expect("a trace");
    assert!(trace.requests.len() > 500, "{}", trace.requests.len());
    let changes = |kind| !matches!(kind, Kind::Read | Kind::Flush);
    assert!(!trace.requests.iter().any(|one| changes(one.kind)));

    let answer = answer.json();
    let kind = answer["kind"].as_str().expect("a kind");
    assert_eq!(profile(&output).kind.name(), kind);
    let constants = answer["constants"].as_array().expect("constants");
    let of = |name: &str| {
        let one = constants.iter().find(|one| one["name"] == name);
        one.unwrap_or_else(|| panic!("{name}: {answer}")).clone()
    };
    let jump = if kind == "plain" { "latency_us" } else { "random_us" };
    let value = |name: &str| of(name)["value"].as_f64().expect("a number");
    let (read, jump) = (value("read_rate"), value(jump));
    let near = (64e6..=84e6).contains(&read) && (2850.0..=3700.0).contains(&jump);
    let doubted = answer["doubts"].as_array().is_some_and(|doubts| !doubts.is_empty());
    println!("{read} B/s, {jump} us: {}", answer["doubts"]);
    assert!(near || doubted, "{answer}");
    assert!((20e6..=120e6).contains(&read) && (1500.0..=12_000.0).contains(&jump), "{answer}");
    assert_eq!(of("write_rate")["measured"], false);
    // What is written is what is used.
    let shown = scratch.run(&["model", "show", "v.toml", "--json"]).ok().json();
    assert_eq!(shown["kind"], kind);
    let advice = ["advise", "./v.toml", "./v.toml", "--workload", "seq-read", "--json"];
    scratch.run(&advice).ok();
}

#[test]
fn a_device_that_is_named_again_is_written() {
    skip_unless_root!();
    let scratch = Scratch::new();
    let volume = scratch.up("ram(600M)", &["--name", "v"]);
    let device = volume.device().to_str().expect("a plain name").to_owned();
    let options = ["--output", "v.toml", "--time", "280s", "--destroy", &device];
    let answer = fit(&scratch, volume.device(), &options).run().ok();
    assert!(answer.err.contains("WRITES up to"), "{}", answer.err);
    assert!(answer.out.contains(" and writes "), "{}", answer.out);
    assert!(answer.out.contains("next: braid advise"), "{}", answer.out);
    let found = profile(&scratch.join("v.toml"));
    let write = found.constants.iter().find(|one| one.name == "write_rate");
    assert!(write.is_some_and(|one| one.source.starts_with("fitted, ")), "{write:?}");
    let status = volume.status();
    let written = status["attached"]["written_bytes"].as_u64().expect("a number");
    assert!(written > 32 * MIB, "{status}");
}

#[test]
fn what_cannot_be_measured_is_refused_and_nothing_is_written() {
    let scratch = Scratch::new();
    let full = scratch.file("full.img", 20 * MIB, 1);
    scratch.file("other.img", MIB, 2);
    scratch.sparse("sparse.img", 64 * MIB);
    scratch.file("there.toml", 10, 3);
    let before = (scratch.read("full.img"), scratch.read("other.img"), scratch.read("there.toml"));
    let refuses = |device: &str, options: &[&str], code, parts: &[&str]| {
        fit(&scratch, &scratch.join(device), options).run().fails(code, parts);
    };
    refuses("full.img", &["--output", "there.toml"], REFUSED, &["is there already", "--output"]);
    refuses("full.img", &["--output", "no/x.toml"], USAGE, &["no is no folder"]);
    refuses("full.img", &["--destroy", "other.img"], USAGE, &["--destroy", "none of the members"]);
    refuses("full.img", &["--time", "0s"], USAGE, &["above 0"]);
    refuses("sparse.img", &[], REFUSED, &["100 % of it are holes", "written in full"]);
    refuses("none.img", &[], REFUSED, &["does not exist"]);
    refuses(".", &[], REFUSED, &["is a directory"]);
    let small = ["--output", "small.toml"];
    refuses("other.img", &small, REFUSED, &["1048576 bytes are too few for a fit: 16777216"]);
    let hasty = ["--output", "hasty.toml", "--time", "0.001s"];
    refuses("full.img", &hasty, REFUSED, &["is not fitted", "--time"]);
    let full = full.to_str().expect("a plain name");
    let destroy = ["--output", "small.toml", "--destroy", full];
    refuses("full.img", &destroy, REFUSED, &["too few for experiments that write: 603979776"]);
    let after = (scratch.read("full.img"), scratch.read("other.img"), scratch.read("there.toml"));
    assert!(before == after, "something was written");
    for name in ["full.toml", "small.toml", "hasty.toml", "sparse.toml"] {
        assert!(!scratch.join(name).exists(), "{name}");
    }
}

/// A device in use is never written, even if it is named.
#[test]
fn a_device_in_use_is_not_destroyed() {
    let scratch = Scratch::new();
    let image = scratch.file("a.img", 20 * MIB, 1);
    let before = scratch.read("a.img");
    let volume = scratch.up("./a.img", &["--name", "v", "--attach", "none"]);
    let path = image.to_str().expect("a plain name");
    let options = ["--output", "v.toml", "--destroy", path];
    fit(&scratch, &image, &options).run().fails(REFUSED, &["it is a member of v", "braid down v"]);
    volume.down();
    assert!(before == scratch.read("a.img"));
    assert!(!scratch.join("v.toml").exists());
}
