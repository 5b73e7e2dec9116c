//! An entry point for fuzzers and property tests: what programs may print, to every parser.
//!
//! Beyond "does not panic" it asserts what [`Measured`] promises: finite numbers, each metric
//! once, bins and points that rise.
//!
//! Absent on purpose: a fuzzer. `fuzz/` has the target for libFuzzer.

use std::collections::BTreeMap;
use std::path::Path;

use braid_lab::command::{Exit, Target, ToolOutput};
use braid_lab::metric::Measured;
use braid_lab::settings::{Kind, Settings, Value};
use braid_lab::tool::{RunOutput, Tool, TrialSpec};

/// Any bytes as the output of two processes of each tool: standard output, standard error and a
/// log of slices, parted by NUL. Every word of a choice is tried.
pub(crate) fn fuzz_output(data: &[u8]) {
    let text = String::from_utf8_lossy(data).into_owned();
    let mut parts = text.split('\0');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let one = ToolOutput { exit: Exit::Code(0), stdout: next(), stderr: next(), wall_s: 1.0 };
    let log = next();
    let names = ["fio_bw.1.log", "fio_iops.1.log", "fio_clat.1.log"];
    let files: BTreeMap<String, String> =
        names.into_iter().map(|name| (name.to_owned(), log.clone())).collect();
    for tool in braid_lab::tool::all() {
        // A version is read or refused.
        drop(tool.parse_version(&one));
        for settings in variants(tool) {
            for processes in [1, 2] {
                let processes = vec![one.clone(); processes];
                parse(tool, &settings, RunOutput { processes, wall_s: 1.5, files: files.clone() });
            }
        }
    }
}

/// The defaults with each word of each choice, with a course over time where there is one.
fn variants(tool: &dyn Tool) -> Vec<Settings> {
    let mut usual = Settings::defaults(tool.parameters());
    for parameter in tool.parameters() {
        if parameter.name == "series_ms" {
            usual = usual.with(parameter.name, Value::Count(100));
        }
    }
    let mut all = vec![usual.clone()];
    for parameter in tool.parameters() {
        if let Kind::Choice(words) = parameter.kind {
            let word = |word: &&str| Value::Word((*word).to_owned());
            all.extend(words.iter().map(|w| usual.clone().with(parameter.name, word(w))));
        }
    }
    all
}

fn parse(tool: &dyn Tool, settings: &Settings, run: RunOutput) {
    let target = Target::Folder("/".into());
    let spec = TrialSpec {
        settings,
        target: &target,
        processes: run.processes.len() as u32,
        region_bytes: 1 << 30,
        room_bytes: 1 << 30,
        runtime_s: 1.0,
        ramp_s: 0.0,
        seed: 1,
        scratch: Path::new("/"),
        sources: Path::new("/"),
    };
    if let Ok(measured) = tool.parse(&spec, &run) {
        check(tool.name(), &measured);
    }
}

fn check(tool: &str, measured: &Measured) {
    for (index, sample) in measured.samples.iter().enumerate() {
        assert!(sample.value.is_finite(), "{tool}: {sample:?}");
        let before = measured.samples.iter().take(index);
        assert!(before.clone().all(|other| other.metric != sample.metric), "{tool}: {sample:?}");
    }
    for latency in &measured.latencies {
        assert!(latency.bins.is_sorted_by(|a, b| a.0 < b.0), "{tool}: {latency:?}");
    }
    for series in &measured.series {
        assert!(series.points.is_sorted_by(|a, b| a.0 < b.0), "{tool}: {series:?}");
        assert!(series.points.iter().all(|(_, value)| value.is_finite()), "{tool}: {series:?}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The output of real programs: standard output, standard error, a log.
    const REAL: &[&str] = &[
        include_str!("../../../lab/testdata/fio-3.33-seek.json"),
        concat!(
            include_str!("../../../lab/testdata/fio-3.33-mixed-2-processes.json"),
            "\0\0",
            include_str!("../../../lab/testdata/fio-3.33-mixed-2-processes_clat.1.log")
        ),
        include_str!("../../../lab/testdata/sysbench-1.0.20-rndwr.txt"),
        include_str!("../../../lab/testdata/bonnie-2.00a-process-2.txt"),
        include_str!("../../../lab/testdata/hdparm-9.65-tT.txt"),
        concat!("\0", include_str!("../../../lab/testdata/dd-9.1-write.txt")),
    ];

    #[test]
    fn what_real_programs_print_holds() {
        for text in REAL {
            fuzz_output(text.as_bytes());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn changed_bytes_hold(
            which in 0..REAL.len(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            cut in any::<Option<prop::sample::Index>>(),
        ) {
            let mut bytes = REAL[which].as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Some(cut) = cut {
                let length = cut.index(bytes.len());
                bytes.truncate(length);
            }
            fuzz_output(&bytes);
        }

        #[test]
        fn bytes_hold(data in prop::collection::vec(any::<u8>(), 0..300)) {
            fuzz_output(&data);
        }

        /// Digits changed to digits: numbers that make no sense in a text that does.
        #[test]
        fn other_numbers_hold(which in 0..REAL.len(), seed in any::<u64>()) {
            let mut rng = braid_seed::Rng::new(seed);
            let bytes: Vec<u8> = REAL[which]
                .bytes()
                .map(|b| if b.is_ascii_digit() && rng.index(9) == 0 { b"0123456789e-."[rng.index(13)] } else { b })
                .collect();
            fuzz_output(&bytes);
        }
    }
}
