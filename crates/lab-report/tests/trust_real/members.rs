//! Arrays against what their members can do.

use std::path::Path;

use braid_lab::campaign::{Setup, Source};
use braid_lab::metric::Metric;

use crate::campaign::{Lab, leave};
use crate::machine::{Loop, alone, has, keep_cached, make_file, watch, with_cache_left_alone};
use crate::runs::{Run, fio, judged, of, workload};

#[test]
fn an_array_that_answers_from_memory() {
    let _turn = alone();
    if !has("fio", "fio") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a.img", "b.img"].map(|name| dir.path().join(name));
    make_file(&a, 16);
    make_file(&b, 16);
    let (Some(first), Some(second)) = (Loop::attach(&a, true), Loop::attach(&b, true)) else {
        return;
    };
    let small = ["--rw=randread", "--bs=4k", "--invalidate=0"];
    let runs = |device: &Loop, file: &Path, how: &str| -> Vec<Run> {
        let watch = watch(device, file);
        (0..2).map(|_| fio(&watch, &device.0, &[&small[..], &[how]].concat())).collect()
    };
    let path = |device: &Loop| device.0.display().to_string();
    let singles = || {
        [("first", &first, &a), ("second", &second, &b)].map(|(name, device, file)| {
            (name, Source::Path(path(device)), runs(device, file, "--direct=1"))
        })
    };
    let array = Source::Stack(format!("raid0({}, {})", path(&first), path(&second)).into());
    let workload = workload("fio", false, Setup::default());
    let mut subjects = Vec::from(singles());
    let cached = || {
        let _cache = keep_cached(&first.0);
        runs(&first, &a, "--direct=0")
    };
    let Some(cached) = with_cache_left_alone(cached) else { return };
    subjects.push(("array", array.clone(), cached));
    let judgement = judged(&workload, &a, subjects);
    let finding = of(&judgement, "array", &workload, "faster-than-members").unwrap();
    println!("{}", finding.why);
    // One that is as fast as one of its members: with the same numbers, as the machine's load changes.
    let mut subjects = Vec::from(singles());
    let alike = subjects[0].2.clone();
    subjects.push(("array", array, alike));
    let judgement = judged(&workload, &a, subjects);
    assert_eq!(of(&judgement, "array", &workload, "faster-than-members"), None);
}

/// A mirror of a slow and a fast model, written for real: with both it is as slow as the slow one,
/// and without that one as fast as the other.
#[test]
fn a_slow_member_that_is_out_is_no_bound() {
    let _turn = alone();
    if std::env::var_os("BRAID").is_none() {
        println!("skipped: BRAID names no program that serves arrays");
        return;
    }
    if !has("fio", "fio") {
        return;
    }
    let model = |rate| format!("model(usb-flash, size=64M, read={rate}MB/s, write={rate}MB/s)");
    let stack = format!("stack = \"raid1({}, {})\"", model(5), model(30));
    for (health, most) in [("healthy", 5.0), ("degraded", 30.0)] {
        let job = format!("op = \"write\"\npattern = \"seq\"\nhealth = \"{health}\"");
        let lab = Lab::on(&stack, 1, &job);
        let tally = lab.run(Path::new("/sys"), leave);
        if tally.measured == 0 {
            println!("skipped: {tally:?}: {:?}", lab.results().trials[0].outcome);
            return;
        }
        let rate = lab.results().trials[0].measured.get(Metric::Throughput).unwrap();
        println!("{health}: {:.1} of {most} MB/s", rate / 1e6);
        assert_eq!(lab.found("faster-than-members"), None, "{health}");
    }
}
