//! `braid advise` with devices among the members: they are fitted, the best layouts are measured, and nothing is
//! written that was not named.

mod common;

use std::time::Duration;

use braid_predict::off::{EVIDENCE, Family};
use braid_trace::{Kind, parse};
use common::{MIB, Scratch, Tool, skip_unless_root, skip_without};
use serde_json::Value;

const USAGE: i32 = 2;
const REFUSED: i32 = 3;

/// Fits and measurements take longer than what tests wait for tools, on a machine with other things to do.
const PATIENCE: Duration = Duration::from_secs(400);

/// A device that is nothing like those of these tests, so that what is measured differs from it.
const PROFILE: &str = r#"
kind = "plain"
label = "what nobody has"
[constant]
read_rate = [2e6, "assumed"]
write_rate = [1e6, "assumed"]
latency_us = [10, "assumed"]
bus_rate = [0, "assumed"]
"#;

/// Layouts are measured once: these tests ask what is measured, not how far it scatters.
fn advise(scratch: &Scratch, words: &[&str]) -> Tool {
    std::fs::write(scratch.join("p.toml"), PROFILE).expect("a profile");
    scratch.braid().arg("advise").args(words).args(["--repetitions", "1"]).limit(PATIENCE)
}

fn sentence(advice: &Value) -> &str {
    advice["answer"][0].as_str().expect("a sentence")
}

fn measured(layout: &Value) -> Option<f64> {
    layout["measured"]["bytes_per_s"].as_f64()
}

#[test]
fn devices_are_fitted_and_only_read() {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img"] {
        scratch.file(name, 20 * MIB, 1);
    }
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    let words = ["./a.img", "./b.img@x", "--workload", "random-write", "--json", "--time", "200s"];
    let answer = advise(&scratch, &words).run().ok();
    assert!(answer.err.contains("writes nothing"), "{}", answer.err);
    assert!(answer.err.contains("a.img=FILE.toml takes it"), "{}", answer.err);
    let advice = answer.json();
    let layouts = advice["layouts"].as_array().expect("layouts");
    assert!(layouts.iter().all(|one| measured(one).is_none()), "{advice}");
    // On a busy machine one may seem to be faster, and then stands first in the best.
    let is_in_order = |one: &&Value| one["level"] == "raid0" && one["members"][0] == "./a.img";
    let both = layouts.iter().find(is_in_order).expect("a stripe");
    assert_eq!(both["buses"][1], "x");
    assert!(both["capacity"].as_u64().is_some_and(|bytes| bytes == 40 * MIB), "{both}");
    // What was not measured is said, with the command that would.
    let doubts = advice["doubts"].to_string();
    assert!(doubts.contains("this workload writes") && doubts.contains("is assumed"), "{doubts}");
    let next = advice["measure"].as_str().expect("a command");
    for name in ["a.img", "b.img"] {
        let path = scratch.join(name).display().to_string();
        assert!(next.contains(&format!("--destroy {path}")), "{next}");
    }
    assert!(before == [scratch.read("a.img"), scratch.read("b.img")], "something was written");
}

/// A profile that was fitted before is taken; layouts without copies are measured by reading alone, and what
/// was measured counts.
#[test]
fn what_is_only_read_is_measured_and_counts() {
    skip_unless_root!();
    let scratch = Scratch::new();
    let stack = "model(usb-flash, size=64M, read=40MB/s, latency=1ms)";
    let volumes = ["v", "w"].map(|name| {
        let trace = format!("{name}.log");
        scratch.up(stack, &["--name", name, "--trace", &trace])
    });
    let members = volumes.each_ref().map(|volume| format!("{}=p.toml", volume.device().display()));
    let words = [&members[0], &members[1], "--workload", "seq-read"];
    let advice = advise(&scratch, &words).arg("--json").run().ok().json();
    volumes.into_iter().for_each(common::UpVolume::down);

    let best = &advice["layouts"][0];
    // The stripe has 80 MB/s where the machine is idle, and 4 MB/s by its profile.
    let rate = measured(best).unwrap_or_else(|| panic!("{advice}"));
    assert!((6e6..=100e6).contains(&rate), "{advice}");
    assert_eq!(best["measured"]["differs"], true);
    let first = sentence(&advice);
    assert!(first.contains(" measured (") && first.contains("not what was predicted"), "{first}");
    let mut copies = advice["layouts"].as_array().expect("layouts").iter();
    let copies = copies.find(|one| one["level"] == "raid1").expect("a mirror");
    assert_eq!(measured(copies), None, "copies are made to agree, which writes");
    for name in ["v.log", "w.log"] {
        let text = std::fs::read(scratch.join(name)).expect("a trace");
        let trace = parse(&text, None).expect("a trace");
        assert!(trace.requests.len() > 10, "{}", trace.requests.len());
        let changes = |kind| !matches!(kind, Kind::Read | Kind::Flush);
        assert!(!trace.requests.iter().any(|one| changes(one.kind)), "{name}");
    }
}

#[track_caller]
fn layout<'a>(advice: &'a Value, level: &str) -> &'a Value {
    let mut layouts = advice["layouts"].as_array().expect("layouts").iter();
    layouts.find(|one| one["level"] == level).expect("a layout")
}

/// Asserts that it was measured; on a very busy machine a measurement may not be trusted, and then the advice
/// says so.
#[track_caller]
fn assert_measured(advice: &Value, layout: &Value) {
    let is_doubted = advice["doubts"].to_string().contains("is measured and not believed");
    assert!(measured(layout).is_some() || is_doubted, "{advice}");
}

#[test]
fn devices_that_are_named_are_written_and_no_others() {
    skip_without!("fio");
    let scratch = Scratch::new();
    let seeds = [("a.img", 1), ("b.img", 2)];
    seeds.iter().for_each(|(name, seed)| drop(scratch.file(name, 32 * MIB, *seed)));
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    let words = ["./a.img=p.toml", "./b.img=p.toml", "--workload", "random-write", "--json"];
    let advice = advise(&scratch, &words).args(["--destroy", "a.img"]).run().ok().json();
    let is_before = seeds.map(|(name, _)| scratch.read(name)) == before;
    assert!(scratch.read("b.img") == before[1], "what was not named was written");
    assert!(!is_before, "what was named was not");
    assert_measured(&advice, layout(&advice, "single"));
    assert_eq!(measured(&advice["layouts"][0]), None, "{advice}");
    assert!(sentence(&advice).contains(" predicted ("), "{advice}");
    assert!(advice["doubts"].to_string().contains("was not measured: this workload writes"));

    let all = ["--destroy", "./a.img", "--destroy", "b.img", "--out", "kept"];
    let advice = advise(&scratch, &words).args(all).run().ok().json();
    assert_measured(&advice, &advice["layouts"][0]);
    // So that redundancy is not given up for a difference that was not measured.
    assert_measured(&advice, layout(&advice, "raid1"));
    assert_eq!(advice["measure"], Value::Null);
    if advice["layouts"][0]["level"] != "single" {
        let create = advice["create"].as_str().expect("a command");
        assert!(create.contains("./a.img ./b.img"), "{create}");
    }
    assert!(scratch.read("b.img") != before[1], "what was named was not written");
    // Superblocks of arrays that were measured are gone.
    scratch.run(&["create", "v", "--level", "raid1", "./a.img", "./b.img"]).ok();
    assert!(scratch.join("kept").join("results.sqlite").is_file());
}

/// Two images, and job files: one of several sections, one of them by Zipf's law, and one that only reads.
fn with_jobs() -> Scratch {
    let scratch = Scratch::new();
    ["a.img", "b.img"].iter().for_each(|name| drop(scratch.file(name, 32 * MIB, 1)));
    let put = |name: &str, jobs: &str| {
        std::fs::write(scratch.join(name), format!("[global]\nioengine=libaio\ndirect=1\n{jobs}"))
            .expect("a job file");
    };
    put(
        "mine.fio",
        "[popular]\nrw=randread\nrandom_distribution=zipf:1.2\niodepth=4\nruntime=1h\n\
         [log]\nrw=write\nbs=64k\noffset=8m\nsize=8m\n",
    );
    put("reads.fio", "[a]\nrw=randread\n[b]\nrw=read\nbs=64k\n");
    scratch
}

fn words_for(jobs: &str) -> [&str; 5] {
    ["./a.img=p.toml", "./b.img=p.toml", "--workload", jobs, "--json"]
}

/// Without permission to write.
#[test]
fn a_job_file_that_only_reads_is_measured() {
    skip_without!("fio");
    let scratch = with_jobs();
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    let advice = advise(&scratch, &words_for("mine.fio")).run().ok().json();
    assert!(advice["doubts"].to_string().contains("was not measured: this workload writes"));
    let advice = advise(&scratch, &words_for("reads.fio")).run().ok().json();
    assert_measured(&advice, layout(&advice, "raid0"));
    assert_eq!(measured(layout(&advice, "raid1")), None, "copies are made to agree, which writes");
    assert!(before == [scratch.read("a.img"), scratch.read("b.img")], "something was written");
}

/// By fio itself, all sections at once, on what may be written.
#[test]
fn a_job_file_of_several_sections_is_measured() {
    skip_without!("fio");
    let scratch = with_jobs();
    let all = ["--destroy", "a.img", "--destroy", "b.img", "--out", "kept"];
    let advice = advise(&scratch, &words_for("mine.fio")).args(all).run().ok().json();
    assert_measured(&advice, &advice["layouts"][0]);
    assert!(!advice["doubts"].to_string().contains("measured: "), "{advice}");
    let report = scratch.run(&["lab", "report", "kept", "--format", "md"]).ok();
    let report =
        report.out + &std::fs::read_to_string(scratch.join("kept/report.md")).unwrap_or_default();
    for part in ["popular: Zipf 1.2 read 4K, depth 4", "log: sequential write 64K of 8M from 8M"] {
        assert!(report.contains(part), "{part} in {report}");
    }
}

/// The busiest part of it, by what may be done to each device.
#[test]
fn a_trace_is_measured() {
    skip_unless_root!();
    let scratch = Scratch::new();
    ["a.img", "b.img"].iter().for_each(|name| drop(scratch.file(name, 32 * MIB, 1)));
    let line =
        |at: u64, what: &str| format!("{} x {what} {} 65536\n", 5000 * at, 65536 * (at % 99));
    let put = |name: &str, each: &dyn Fn(u64) -> String| {
        let lines: String = (0..200).map(each).collect();
        let text = format!("fio version 3 iolog\n0 x add\n0 x open\n{lines}");
        std::fs::write(scratch.join(name), text).expect("a trace");
    };
    put("reads.log", &|at| line(at, "read"));
    put("mixed.log", &|at| line(at, if at % 4 == 0 { "write" } else { "read" }));
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    let words = |trace| ["./a.img=p.toml", "./b.img=p.toml", "--workload", trace, "--json"];

    let advice = advise(&scratch, &words("mixed.log")).run().ok().json();
    assert!(advice["doubts"].to_string().contains("was not measured: this workload writes"));
    let advice = advise(&scratch, &words("reads.log")).run().ok().json();
    assert_measured(&advice, layout(&advice, "raid0"));
    assert_eq!(measured(layout(&advice, "raid1")), None, "copies are made to agree, which writes");
    assert!(before == [scratch.read("a.img"), scratch.read("b.img")], "something was written");

    let all = ["--destroy", "a.img", "--destroy", "b.img"];
    let advice = advise(&scratch, &words("mixed.log")).args(all).run().ok().json();
    assert_measured(&advice, &advice["layouts"][0]);
    assert!(!advice["doubts"].to_string().contains("was not measured"), "{advice}");
    assert!(before[0] != scratch.read("a.img"), "nothing was written");
}

#[test]
fn what_is_refused_is_left_as_it_is() {
    let scratch = Scratch::new();
    scratch.file("a.img", 20 * MIB, 1);
    scratch.file("small.img", MIB, 2);
    scratch.sparse("sparse.img", 64 * MIB);
    std::os::unix::fs::symlink("a.img", scratch.join("link.img")).expect("a link");
    let before = [scratch.read("a.img"), scratch.read("small.img")];
    let refuses = |members: &[&str], code, parts: &[&str]| {
        let words = [members, &["--workload", "random-write"]].concat();
        advise(&scratch, &words).run().fails(code, parts);
    };
    refuses(&["./a.img*2"], USAGE, &["there is one of it", "name each device once"]);
    refuses(&["a.img", "./link.img"], REFUSED, &["bytes in common", "name each device once"]);
    refuses(&["./a.img=none.toml"], USAGE, &["neither a profile nor a file"]);
    refuses(&["./a.img=host-2007"], USAGE, &["no device"]);
    refuses(&["rally2", "--destroy", "a.img"], USAGE, &["none of the members"]);
    refuses(&["a.img", "--destroy", "small.img"], USAGE, &["none of the members"]);
    refuses(&["sparse.img"], REFUSED, &["100 % of it are holes"]);
    refuses(&["sparse.img=p.toml"], REFUSED, &["100 % of it are holes"]);
    refuses(&["small.img"], REFUSED, &["1048576 bytes are too few for a fit: 16777216"]);
    refuses(&["a.img", "--destroy", "a.img"], REFUSED, &["too few for experiments that write"]);
    refuses(&["a.img", "--time", "0.001s"], REFUSED, &["is not fitted", "--time"]);
    let volume = scratch.up("./a.img", &["--name", "v", "--attach", "none"]);
    refuses(&["a.img=p.toml", "--destroy", "a.img"], REFUSED, &["a member of v", "braid down v"]);
    volume.down();
    assert!(before == [scratch.read("a.img"), scratch.read("small.img")]);
}

/// The value of a curve at so many bytes.
#[track_caller]
fn point(advice: &Value, of: &str, bytes: u64) -> f64 {
    let curves = advice["depends_on"].as_array().expect("curves");
    let curve = curves.iter().find(|one| one["of"] == of).unwrap_or_else(|| panic!("{advice}"));
    let mut points = curve["points"].as_array().expect("points").iter();
    let point = points.find(|one| one["bytes"] == bytes).unwrap_or_else(|| panic!("{curve}"));
    point["value"].as_f64().expect("a number")
}

#[test]
fn read_ahead_and_caches_are_told_where_they_matter() {
    let scratch = Scratch::new();
    let of = |words: &[&str]| advise(&scratch, words).arg("--json").run().ok().json();
    let stripe = of(&["cruzer-titanium*6", "--workload", "seq-read", "--need", "throughput"]);
    let (usual, more) =
        (point(&stripe, "read-ahead", 128 << 10), point(&stripe, "read-ahead", 2 << 20));
    assert!(more > 2.0 * usual, "{stripe}");
    assert!(stripe["answer"].to_string().contains("that it has, 12M, is enough"), "{stripe}");
    let why = "times one member alone with its read-ahead of 128K";
    assert!(stripe["answer"].to_string().contains(why), "{stripe}");
    let alone = of(&["p.toml", "--size", "1G", "--workload", "seq-read"]);
    assert!(alone["answer"].to_string().contains("that it has, 128K, is enough"), "{alone}");

    // A loop over 1000 blocks, ten times; what is written beside it comes never again.
    let mut trace = "fio version 3 iolog\n0 d add\n0 d open\n".to_owned();
    for at in 0..10_000_u64 {
        let (read, written) = (at % 1000 * 4096, (1 << 30) + at % 5 * 4096);
        trace += &format!("{at} d read {read} 4096\n{at} d write {written} 4096\n");
    }
    trace += "10000 d close\n";
    std::fs::write(scratch.join("loop.log"), trace).expect("a trace");
    let cached = of(&["p.toml", "--size", "4G", "--workload", "./loop.log"]);
    // 1005 blocks need the next power of two.
    let sentence = "A cache of 4M would answer 90 % of the reads: cache(size=4M, …)";
    assert!(cached["answer"].to_string().contains(sentence), "{cached}");
    assert!(point(&cached, "cache", 1 << 20) < 50.0, "{cached}");
    let anywhere = of(&["rally2*2", "--workload", "random-read"]);
    assert_eq!(anywhere["depends_on"], Value::Array(Vec::new()), "all places are alike");
}

/// The error that is printed under predictions and advice is that of the published rows about their kinds of
/// devices.
#[test]
fn what_predictions_are_off_by_is_said_by_all_alike() {
    let scratch = Scratch::new();
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (profile, family) in [("rally2", Family::Sticks), ("sata-7200", Family::Disks)] {
        let of = EVIDENCE.iter().find(|one| one.family == family).expect("its rows");
        let off = of.off_by().expect("rows were published");
        let advice =
            scratch.run(&["advise", &format!("{profile}*2"), "--workload", "seq-read"]).ok();
        assert!(flat(&advice.out).contains(&off.grounds), "{}:\n{}", off.grounds, advice.out);
        let one = format!("model({profile}, size=1G)");
        let (two, folder) =
            (format!("two=raid0(chunk=64K, {one}, {one})"), format!("of-{profile}"));
        let campaign = ["model", "predict", "quick", "--baseline", &one, "--subject", &two];
        let words: Vec<&str> = campaign.into_iter().chain(["--output", &folder]).collect();
        let said = scratch.run(&words).ok();
        assert!(flat(&said.out).contains(&off.grounds), "{}:\n{}", off.grounds, said.out);
        let report = scratch.read(&format!("{folder}/report.json"));
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        let said = &report["prediction"];
        assert_eq!(
            (said["error_percent"].as_u64(), &said["grounds"]),
            (Some(off.percent().into()), &off.grounds.into())
        );
    }
}
