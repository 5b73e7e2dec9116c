//! The recipe of a trial can be run in a shell.

use std::fs;
use std::process::Command;

use braid_lab::command::{Step, Target};
use braid_lab::tool::source::make_source;
use braid_lab::tool::{SourceData, Tool, TrialSpec, places_in_shell};
use braid_lab::{StopFlag, SystemWorld};

use super::{settings, tool};

/// Runs lines in one shell that stops at the first failure.
fn paste(lines: &[String]) {
    let text = lines.join("\n");
    let done = Command::new("sh").args(["-e", "-c", &text]).output().unwrap();
    assert!(done.status.success(), "{text}\n{}", String::from_utf8_lossy(&done.stderr));
}

/// Runs the lines of a trial, and checks their files before they clean up.
fn type_it(tool: &dyn Tool, values: &str, processes: u32, left: &str) {
    let name = tool.name();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let settings = settings(tool, values);
    // A blank and a quote, which a shell would split at.
    let folder = path("it's a folder");
    let (target, scratch) = (Target::Folder(folder.clone()), path("scratch"));
    let sources = path("sources");
    fs::create_dir(&sources).unwrap();
    // The shell makes files of noise by itself.
    let is_noise = |data: &SourceData| matches!(data, SourceData::File(..));
    let source = tool.work(&settings, processes).source;
    if let Some(data) = source.filter(|data| !is_noise(data)) {
        make_source(data, &sources, 1, &StopFlag::default(), &mut SystemWorld::new()).unwrap();
    }
    let spec = TrialSpec {
        settings: &settings,
        target: &target,
        processes,
        region_bytes: 8 << 20,
        room_bytes: 8 << 20,
        runtime_s: 0.2,
        ramp_s: 0.0,
        seed: 3,
        scratch: &scratch,
        sources: &sources,
    };
    let script = tool.plan(&spec).unwrap();
    let told = |steps: &[Step]| steps.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut lines = places_in_shell(&spec, &script, source);
    lines.extend(told(&script.prepare));
    lines.extend(told(&script.warm));
    lines.extend(script.measured_in_shell());
    lines.extend(script.sync_in_shell(&target));
    paste(&lines);
    assert!(folder.join(left).exists(), "{name}: {lines:?}");
    assert_eq!(lines.iter().any(|line| line.ends_with("# counted")), script.sync, "{name}");
    paste(&told(&script.clean_up));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{name}");
}

#[test]
fn what_a_trial_tells_to_type_can_be_typed() {
    for (name, values, left) in [
        ("cp-cached", "size = \"1M\"", "copy2"),
        ("cp-read", "size = \"1M\"", "file2"),
        ("cp-tree", "size = \"1M\"", "copy2"),
        ("untar", "size = \"1M\"\nsync = false", "tree2"),
        ("command", "command = \"cp a b\"\nprepare = \"echo 'it is' >{folder}/a\"", "run2/b"),
        ("dd", "op = \"write\"\nsize = \"1M\"\nsource = \"file\"", "dd2"),
        ("dd", "op = \"read\"\nsize = \"1M\"", "dd2"),
        (
            "sysbench",
            "mode = \"rndwr\"\ntotal_size = \"1M\"\nfiles = 2\nevents = 9\ndirect = false",
            "test_file.1",
        ),
        ("fio", "pattern = \"rand\"\nop = \"read\"\nseries_ms = 100\ndirect = false", "fio.data"),
    ] {
        let Some(tool) = tool(name) else { continue };
        // A shell does not report the exits of processes that it waits for, so a single one is tried as well.
        type_it(tool, values, 1, &left.replace('2', "1"));
        type_it(tool, values, 2, left);
    }
}
