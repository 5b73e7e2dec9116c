//! The uses of results after a campaign.

use super::{Lab, read};
use crate::common::{Output, skip_without};

fn campaign(latency: &str) -> String {
    let model =
        format!("model(usb-flash, size=32M, read=800MB/s, write=800MB/s, latency={latency})");
    format!(
        "name = \"before-and-after\"\nrepetitions = 6\nruntime_s = 0.4\nregion = \"8M\"\n\
         drop_caches = false\n\
         [[member]]\nname = \"m\"\ndevice = \"{model}\"\n\
         [[subject]]\nname = \"single\"\nstack = \"{{m}}\"\nbaseline = true\n\
         [[job]]\npattern = \"rand\"\nop = \"read\"\nblock_size = \"4K\"\niodepth = 1\n"
    )
}

fn run_into(lab: &Lab, folder: &str, latency: &str) -> Output {
    let file = lab.campaign(&campaign(latency));
    lab.run(&["run", &file, "--out", folder, "--quiet", "--format", "json,csv"]).ok()
}

#[test]
fn a_slower_device_is_a_regression_and_the_same_one_is_not() {
    skip_without!("fio");
    let lab = Lab::new();
    run_into(&lab, "before", "1ms");
    run_into(&lab, "same", "1ms");
    run_into(&lab, "slower", "20ms");
    lab.run(&["compare", "before", "same"]).ok();
    let output = lab.run(&["compare", "before", "slower"]).fails(1, &["something got worse"]);
    assert!(output.out.contains("random read 4K"), "{output}");
    let json = lab.run(&["compare", "before", "slower", "--json"]);
    assert_eq!(json.json()["output_version"], 4, "{json}");
    // The other way round it is an improvement.
    lab.run(&["compare", "slower", "before"]).ok();

    let listed = lab.run(&["list"]).ok();
    for name in ["before", "same", "slower"] {
        assert!(listed.out.contains(name), "{listed}");
    }
    let shown = lab.run(&["show", "before", "*random*"]).ok();
    assert!(shown.out.contains("fio ") && shown.out.contains("single"), "{shown}");
}

/// A gate that finds nothing to look at does not pass.
#[test]
fn what_finds_nothing_says_so_and_fails() {
    skip_without!("fio");
    let lab = Lab::new();
    std::fs::create_dir(lab.scratch.join("empty")).unwrap();
    let listed = lab.run(&["list", "empty"]).ok();
    assert!(listed.out.contains("no results in empty"), "{listed}");
    assert_eq!(lab.run(&["list", "empty", "--json"]).ok().json()["results"], serde_json::json!([]));

    run_into(&lab, "before", "10us");
    let renamed = campaign("10us").replace("\"single\"", "\"alone\"");
    let file = lab.campaign(&renamed);
    lab.run(&["run", &file, "--out", "renamed", "--quiet", "--format", "json"]).ok();
    for json in [&[][..], &["--json"]] {
        let compare = [&["compare", "before", "renamed"], json].concat();
        lab.run(&compare).fails(2, &["nothing in common", "subjects and workloads"]);
    }
    let shown = lab.run(&["show", "before", "nothere"]);
    let shown = shown.fails(1, &["nothing matches \"nothere\"", "single: random read 4K"]);
    assert_eq!(shown.out, "", "{shown}");
}

#[test]
fn only_the_formats_that_are_wanted_are_written() {
    skip_without!("fio");
    let lab = Lab::new();
    run_into(&lab, "results", "10us");
    let there = |name: &str| lab.scratch.join("results").join(name).exists();
    assert!(there("report.json") && there("samples.csv"));
    assert!(!there("report.html") && !there("report.xlsx") && !there("charts"));
    lab.run(&["report", "results", "--format", "html"]).ok();
    let page = read(&lab.scratch.join("results/report.html"));
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
}
