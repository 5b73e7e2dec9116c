//! Every preset, at a small scale.

use super::{Lab, all, entries, read, tally};
use crate::common::{skip_unless_root, skip_without};

/// A modelled member that is quick enough to try things out.
fn stick(bus: &str) -> String {
    format!(
        "model(usb-flash, size=640M, bus={bus}, bus_rate=2GB/s, read=900MB/s, write=700MB/s, latency=30us)"
    )
}

/// Reasons that lie with the machine: another one could do it.
const OF_THE_MACHINE: [&str; 3] = ["this kernel has no", "is not installed", "mkfs refused"];

/// The preset as a campaign file: without bonnie++, whose phases take seconds however little they
/// write, and with at most two values of each dimension, and one of fio's patterns and block sizes, of
/// which `crystal` has more. A trial of hdparm takes 13 s: there is one, in `rally2`. Page caches are
/// kept: dropping them delays every test of the machine.
fn cut_down(lab: &Lab, name: &str) -> String {
    let text = lab.run(&["presets", name]).ok().out;
    let mut preset: toml::Table = text.parse().expect("a preset is TOML");
    preset.insert("drop_caches".to_owned(), false.into());
    let jobs = preset["job"].as_array_mut().expect("a preset has jobs");
    let is_of = |job: &toml::Value, tool| job["tool"].as_str() == Some(tool);
    jobs.retain(|job| !is_of(job, "bonnie") && (name == "rally2" || !is_of(job, "hdparm")));
    for job in jobs {
        let (is_fio, is_hdparm) = (is_of(job, "fio"), is_of(job, "hdparm"));
        let job = job.as_table_mut().expect("a job is a table");
        for (key, values) in job.iter_mut() {
            let is_one = is_hdparm || is_fio && ["pattern", "block_size"].contains(&key.as_str());
            if let Some(values) = values.as_array_mut() {
                values.truncate(if is_one { 1 } else { 2 });
            }
        }
        if is_hdparm {
            job.insert("subjects".to_owned(), vec!["single"].into());
        }
    }
    lab.campaign(&preset.to_string())
}

/// The part of a long preset that is run here.
enum Cut<'c> {
    /// All of it.
    Nothing,
    /// Only these subjects, and what [`cut_down`] leaves of the jobs.
    Jobs(&'c [&'c str]),
}

/// Runs a preset and looks at what it leaves; at least so many trials must give numbers.
fn try_preset(name: &str, least: usize, more: &[&str], cut: &Cut<'_>) {
    let lab = Lab::new();
    let results = lab.results().display().to_string();
    let cut = if all() { &Cut::Nothing } else { cut };
    let what = match cut {
        Cut::Jobs(_) => cut_down(&lab, name),
        Cut::Nothing => name.to_owned(),
    };
    let mut words = vec!["run", &what, "--out", &results, "--quiet"];
    words.extend(more);
    if let Cut::Jobs(only) = cut {
        words.extend(only.iter().flat_map(|subject| ["--only", subject]));
    }
    let output = lab.run(&words).ok();
    check_trials(&lab, name, least);
    for file in ["report.html", "report.xlsx", "report.md", "report.json", "samples.csv"] {
        assert!(lab.results().join(file).is_file(), "{file} is missing after {output}");
    }
    lab.assert_nothing_is_left(&lab.results());
    let samples = read(&lab.results().join("samples.csv"));
    assert!(samples.lines().count() > 4, "{samples}");
    check_charts(&lab, name);
    if all() {
        keep(&lab, name);
    }
}

/// There are charts if there is a number that can be shown: what took a moment only is invalid.
fn check_charts(lab: &Lab, name: &str) {
    let report: serde_json::Value =
        serde_json::from_str(&read(&lab.results().join("report.json"))).expect("JSON");
    let cells = report["cells"].as_array().expect("cells");
    let measured = || cells.iter().filter(|cell| cell["state"] == "measured");
    let invalid = measured().filter(|cell| cell["standing"] == "invalid").count();
    let shown = measured().count() - invalid;
    println!("{name}: {shown} numbers are shown, {invalid} are invalid");
    let page = read(&lab.results().join("report.html"));
    let charts = entries(&lab.results().join("charts")).len();
    if shown > 0 {
        assert!(page.contains("<svg"), "the page has no chart");
        assert!(charts > 0, "no chart was written");
    }
}

/// All were measured but those that this machine cannot do.
fn check_trials(lab: &Lab, name: &str, least: usize) {
    let found = tally(&lab.results());
    println!("{name}: {} of {} trials measured", found.measured, found.planned);
    for reason in &found.impossible {
        println!("{name}: impossible: {reason}");
        assert!(OF_THE_MACHINE.iter().any(|known| reason.contains(known)), "{reason}");
    }
    assert_eq!(found.failed, [] as [String; 0]);
    assert_eq!(found.measured + found.impossible.len(), found.planned);
    assert!(found.measured >= least, "only {} trials were measured", found.measured);
}

/// Keeps results for inspection.
fn keep(lab: &Lab, name: &str) {
    let kept = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab-smoke").join(name);
    let copied = crate::common::Tool::new("cp")
        .args(["-r", "--no-target-directory"])
        .arg(lab.results())
        .arg(&kept);
    std::fs::create_dir_all(kept.parent().expect("a parent")).expect("a folder can be made");
    let _ = std::fs::remove_dir_all(&kept);
    copied.run().ok();
    println!("kept: {}", kept.display());
}

fn members(names: &[(&str, &str)]) -> Vec<String> {
    names
        .iter()
        .flat_map(|(name, bus)| ["--member".to_owned(), format!("{name}={}", stick(bus))])
        .collect()
}

fn words(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

const SMALL: [&str; 4] = ["--scale", "0.002", "--repetitions", "1"];

#[test]
fn quick_compares_stacks() {
    skip_without!("fio");
    let (one, two) =
        (stick("a"), format!("stripe=raid0(chunk=64K, {}, {})", stick("a"), stick("b")));
    let more = [
        "--baseline",
        &one,
        "--subject",
        &two,
        "--runtime",
        "0.3",
        "--region",
        "16M",
        "--repetitions",
        "1",
    ];
    try_preset("quick", 16, &more, &Cut::Nothing);
}

#[test]
fn crystal() {
    skip_without!("fio");
    let one = stick("a");
    let more = ["--baseline", &one, "--region", "16M", "--runtime", "0.2", "--repetitions", "2"];
    try_preset("crystal", 16, &more, &Cut::Nothing);
}

/// Its series has a value for each second.
#[test]
fn steady() {
    skip_without!("fio");
    let one = stick("a");
    let more = ["--baseline", &one, "--region", "16M", "--runtime", "1", "--repetitions", "6"];
    try_preset("steady", 12, &more, &Cut::Nothing);
}

#[test]
fn two_disk_levels() {
    skip_unless_root!();
    skip_without!("bonnie++", "mkfs.ext3", "tar");
    let members = members(&[("disk1", "a"), ("disk2", "b")]);
    let more = [&words(&members)[..], &SMALL].concat();
    try_preset("two-disk-levels", 30, &more, &Cut::Jobs(&["raid1"]));
}

#[test]
fn rally2() {
    skip_unless_root!();
    skip_without!("fio", "hdparm", "mkfs.xfs");
    let members = members(&[("stick1", "a"), ("stick2", "b")]);
    let more = [&words(&members)[..], &SMALL].concat();
    try_preset("rally2", 11, &more, &Cut::Jobs(&["*"]));
}

#[test]
fn rapiddisk() {
    skip_unless_root!();
    skip_without!("fio", "mkfs.ext4");
    let more = ["--scale", "0.04", "--repetitions", "1"];
    try_preset("rapiddisk", 16, &more, &Cut::Jobs(&["loop*", "cached*"]));
}

#[test]
fn adata_4x() {
    skip_unless_root!();
    skip_without!("sysbench", "hdparm", "mkfs.ext4");
    let names = [("stick1", "a"), ("stick2", "b"), ("stick3", "c"), ("stick4", "d")];
    let members = members(&names);
    let more = [&words(&members)[..], &SMALL].concat();
    try_preset("adata-4x", 6, &more, &Cut::Jobs(&["raid0 64K"]));
}

#[test]
fn cruzer_6x() {
    skip_unless_root!();
    skip_without!("bonnie++", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs");
    let at_one = ["stick1", "stick2", "stick3", "stick4", "stick5", "stick6"].map(|one| (one, "a"));
    let at_two = ["moved4", "moved5", "moved6"].map(|one| (one, "b"));
    let members = members(&[&at_one[..], &at_two].concat());
    let more = [&words(&members)[..], &["--scale", "0.4", "--repetitions", "1"]].concat();
    let cut = Cut::Jobs(&["one bus 64K*", "two buses 64K × 6, alternate"]);
    try_preset("cruzer-6x", 8, &more, &cut);
}
