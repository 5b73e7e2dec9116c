//! fio's draws follow the trial's seed: the offsets, and the contents of its writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use braid_lab::SystemWorld;
use braid_lab::command::{CommandLine, Target};
use braid_lab::tool::TrialSpec;

use super::{play, settings, tool};

/// Plays fio's script with a seed on a file, with the options in `more`. Returns the contents of the scratch
/// folder, and of the file.
fn with_seed(
    values: &str,
    processes: u32,
    seed: u64,
    more: &[&str],
) -> Option<(BTreeMap<String, String>, Vec<u8>)> {
    let tool = tool("fio")?;
    let settings = settings(tool, values);
    let (file, scratch) = (tempfile::NamedTempFile::new().unwrap(), tempfile::tempdir().unwrap());
    file.as_file().set_len(1 << 20).unwrap();
    let target = Target::Device(file.path().to_owned());
    let spec = TrialSpec {
        settings: &settings,
        target: &target,
        processes,
        region_bytes: 1 << 20,
        room_bytes: 1 << 20,
        runtime_s: 60.0,
        ramp_s: 0.0,
        seed,
        scratch: scratch.path(),
        sources: Path::new("/nonexistent"),
    };
    let mut script = tool.plan(&spec).unwrap();
    let log = format!("--write_lat_log={}", scratch.path().join("log").display());
    // A fixed number of requests, and not as many as fit into a time.
    let own = ["--time_based=0", log.as_str(), "--log_offset=1"];
    let more = own.into_iter().chain(more.iter().copied());
    script.measured = script
        .measured
        .into_iter()
        .map(|command| more.clone().fold(command, CommandLine::arg))
        .collect();
    let run = play(&mut SystemWorld::new(), &script, scratch.path());
    Some((run.files, fs::read(file.path()).unwrap()))
}

/// Returns the offsets that each process used, in order.
fn offsets(files: &BTreeMap<String, String>) -> Vec<Vec<&str>> {
    let logs = files.iter().filter(|(name, _)| name.starts_with("log_lat"));
    // Time, latency, direction, block size, offset, priority.
    logs.map(|(_, text)| text.lines().map(|line| line.split(", ").nth(4).unwrap()).collect())
        .collect()
}

#[test]
fn offsets_follow_the_seed() {
    for op in ["read", "write"] {
        let values = format!("pattern = \"rand\"\nop = {op:?}\niodepth = 1\ndirect = false");
        for processes in [1, 2] {
            let run = |seed: u64| {
                // Two seeds that differ only in the lowest bit are one seed to fio.
                with_seed(&values, processes, seed << 1, &["--number_ios=20"])
            };
            let (Some(a), Some(again), Some(b)) = (run(8), run(8), run(7)) else { return };
            let (a, again, b) = (offsets(&a.0), offsets(&again.0), offsets(&b.0));
            assert_eq!(a.len(), processes as usize);
            assert!(a.iter().all(|process| process.len() == 20), "{a:?}");
            assert_eq!(a, again, "{op}: one seed");
            for (a, b) in a.iter().zip(&b) {
                assert_ne!(a, b, "{op}, {processes} processes: two seeds");
            }
        }
    }
}

#[test]
fn no_two_blocks_that_fio_writes_are_alike() {
    let values = "pattern = \"seq\"\nop = \"write\"\niodepth = 1\ndirect = false";
    let run = |seed: u64| with_seed(values, 1, seed << 1, &["--number_ios=256"]);
    let (Some((_, a)), Some((_, again)), Some((_, b))) = (run(8), run(8), run(7)) else { return };
    // A compressor would find a piece that occurs twice.
    let pieces: BTreeSet<&[u8]> = a.chunks(64).chain(b.chunks(64)).collect();
    assert_eq!(pieces.len(), 2 * (1 << 20) / 64);
    assert!(a == again, "one seed has one content");
}
