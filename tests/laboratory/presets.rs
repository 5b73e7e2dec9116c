//! Every preset, at a small scale.

use super::{Lab, all, read};
use crate::common::{skip_unless_root, skip_without};

/// A modelled member that is quick enough to try things out.
fn stick(bus: &str) -> String {
    format!(
        "model(usb-flash, size=640M, bus={bus}, bus_rate=2GB/s, read=900MB/s, write=700MB/s, latency=30us)"
    )
}

/// Runs a preset and looks at what it leaves.
fn try_preset(name: &str, more: &[&str], cut: &[&str]) {
    let lab = Lab::new();
    let results = lab.results().display().to_string();
    let mut words = vec!["run", name, "--out", &results, "--quiet"];
    words.extend(more);
    if !all() {
        words.extend(cut);
    }
    let output = lab.run(&words).ok();
    for file in ["report.html", "report.xlsx", "report.md", "report.json", "samples.csv"] {
        assert!(lab.results().join(file).is_file(), "{file} is missing after {output}");
    }
    let page = read(&lab.results().join("report.html"));
    assert!(page.contains("<svg"), "the page has no chart");
    let samples = read(&lab.results().join("samples.csv"));
    assert!(samples.lines().count() > 4, "{samples}");
    let charts = std::fs::read_dir(lab.results().join("charts")).expect("charts").count();
    assert!(charts > 0, "no chart was written");
    if all() {
        keep(&lab, name);
    }
}

/// What somebody wants to look at afterwards.
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
    let more = ["--baseline", &one, "--subject", &two, "--runtime", "0.3", "--region", "16M"];
    try_preset("quick", &more, &[]);
}

#[test]
fn crystal_and_steady() {
    skip_without!("fio");
    let one = stick("a");
    let more = ["--baseline", &one, "--runtime", "0.2", "--region", "16M", "--repetitions"];
    try_preset("crystal", &[&more[..], &["2"]].concat(), &[]);
    try_preset("steady", &[&more[..], &["6"]].concat(), &[]);
}

#[test]
fn two_disk_levels() {
    skip_unless_root!();
    skip_without!("bonnie++", "mkfs.ext3", "tar");
    let members = members(&[("disk1", "a"), ("disk2", "b")]);
    let more = [&words(&members)[..], &SMALL].concat();
    try_preset("two-disk-levels", &more, &["--only", "raid1"]);
}

#[test]
fn rally2() {
    skip_unless_root!();
    skip_without!("fio", "hdparm", "mkfs.xfs");
    let members = members(&[("stick1", "a"), ("stick2", "b")]);
    let more = [&words(&members)[..], &SMALL].concat();
    try_preset("rally2", &more, &[]);
}

#[test]
fn rapiddisk() {
    skip_unless_root!();
    skip_without!("fio", "mkfs.ext4");
    try_preset("rapiddisk", &["--scale", "0.05", "--repetitions", "1"], &["--only", "loop*"]);
}

#[test]
fn adata_4x() {
    skip_unless_root!();
    skip_without!("sysbench", "hdparm", "mkfs.ext4");
    let names = [("stick1", "a"), ("stick2", "b"), ("stick3", "c"), ("stick4", "d")];
    let members = members(&names);
    let more = [&words(&members)[..], &SMALL].concat();
    try_preset("adata-4x", &more, &["--only", "raid0 64K"]);
}

#[test]
fn cruzer_6x() {
    skip_unless_root!();
    skip_without!("bonnie++", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs");
    let names = ["stick1", "stick2", "stick3", "stick4", "stick5", "stick6"];
    let buses = ["a", "a", "a", "b", "b", "b"];
    let pairs: Vec<(&str, &str)> = names.into_iter().zip(buses).collect();
    let members = members(&pairs);
    let more = [&words(&members)[..], &SMALL].concat();
    let cut = ["--only", "one bus 64K*", "--only", "two buses 64K × 6, alternate"];
    try_preset("cruzer-6x", &more, &cut);
}
