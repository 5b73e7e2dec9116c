use proptest::prelude::*;

use super::*;
use crate::metric::Metric;
use crate::tool::tests::support::{
    changed, commands, device, folder, listed, output, run_of, settings, trial, value,
};

/// Output of sysbench 1.0.20: two threads read at random, 64 KiB each, for a second.
const READ: &str = include_str!("../../../testdata/sysbench-1.0.20-rndrd.txt");
/// Output of one thread that writes at random, 16 KiB each, until 2000 events.
const WRITE: &str = include_str!("../../../testdata/sysbench-1.0.20-rndwr.txt");

const RNDRD: &str = "mode = \"rndrd\"\nblock_size = \"64K\"\ntotal_size = \"1M\"\nfiles = 4";

fn parse(values: &str, threads: u32, text: &str) -> Result<Measured, ToolError> {
    let settings = settings(&Sysbench, values);
    Sysbench.parse(&trial(&settings, &folder(), threads), &run_of(vec![output(text)]))
}

/// Asserts equality except for the last digits of a sum of floating-point numbers.
fn assert_listed(measured: &Measured, expected: &[(&str, f64)]) {
    let listed = listed(measured);
    assert_eq!(listed.len(), expected.len(), "{listed:?}");
    for ((name, is), (wanted, value)) in listed.into_iter().zip(expected) {
        assert_eq!(name, *wanted);
        assert!((is - value).abs() <= value * 1e-9, "{name} is {is} instead of {value}");
    }
}

#[test]
fn reads_are_measured() {
    let measured = parse(RNDRD, 2, READ).unwrap();
    let (mean, deviation) = (20_979.5_f64, 517.5_f64);
    let fairness = mean.powi(2) / (mean.powi(2) + deviation.powi(2));
    assert_listed(
        &measured,
        &[
            ("throughput", 41_698.78 * 65_536.0),
            ("iops", 41_698.78),
            ("requests", 41_959.0),
            ("bytes_read", 41_959.0 * 65_536.0),
            ("fairness", fairness),
            ("latency_mean", 1989.28 / 41_959.0 * 1e6),
            ("latency_min", 0.02e6),
            ("latency_max", 8.10e6),
            ("latency_p50", 37_000.0),
            ("latency_p95", 65_000.0),
            ("latency_p99", 147_000.0),
            ("latency_p99_9", 3_187_000.0),
        ],
    );
    let [bins] = measured.latencies.as_slice() else { panic!() };
    assert_eq!((bins.op, bins.bins.len(), bins.bins[0]), ("read", 241, (16_000, 4)));
    assert_eq!(bins.bins.iter().map(|(_, count)| count).sum::<u64>(), 41_959);
    // 0.07 is sysbench's own figure, rounded.
    assert_eq!((value(&measured, Metric::LatencyP95) / 1e4).round(), 7.0);
}

#[test]
fn counted_writes_have_a_time() {
    let values = "mode = \"rndwr\"\nevents = 2000";
    let measured = parse(values, 1, WRITE).unwrap();
    assert_listed(
        &measured,
        &[
            ("throughput", 4782.30 * 16_384.0),
            ("iops", 4782.30),
            ("seconds", 0.4019),
            // 4782.30 a second for 0.4019 s; the other events were fsyncs, whose times cannot be separated from
            // those of writes.
            ("requests", 1922.0),
            ("bytes_written", 1922.0 * 16_384.0),
        ],
    );
    assert!(measured.latencies.is_empty());
    let without = WRITE.replace("198.85", "0.00");
    let measured = parse(values, 1, &without).unwrap();
    assert_eq!(measured.latencies[0].op, "write");
    assert_eq!(value(&measured, Metric::LatencyP50), 30_000.0);
    let mixed = parse("mode = \"rndrw\"", 1, &without).unwrap();
    assert!(mixed.latencies.is_empty(), "whose they are is not told");
    assert_eq!(mixed.get(Metric::Seconds), None);
}

#[test]
fn a_time_too_short_for_two_decimals_is_left_out() {
    let fast = READ.replacen("0.02\n", "0.00\n", 1);
    assert_ne!(fast, READ);
    assert_eq!(parse(RNDRD, 1, &fast).unwrap().get(Metric::LatencyMin), None);
}

#[test]
fn other_versions_and_garbage_are_malformed() {
    // 0.4.12 has other words for everything.
    let old = "Operations performed:  6000 Read, 4000 Write, 12800 Other = 22800 Total\n\
               Read 93.75Mb  Written 62.5Mb  Total transferred 156.25Mb  (26.1Mb/sec)\n";
    for bad in ["", "garbage", old, "File operations:", "File operations:\n reads/s: 1"] {
        let error = parse(RNDRD, 1, bad).unwrap_err();
        assert!(matches!(error, ToolError::Malformed { .. }), "{bad:?}: {error}");
    }
    for (from, to) in [
        ("reads/s", "read ops/s"),
        ("total number of events", "events"),
        ("fsyncs/s", "syncs/s"),
        ("41698.78", "many"),
        ("41698.78", "-1"),
        ("20979.5000/517.50", "20979.5000"),
        ("1989.28", "inf"),
        ("events (avg/stddev)", "events"),
    ] {
        let error = parse(RNDRD, 2, &READ.replace(from, to)).unwrap_err();
        assert!(matches!(error, ToolError::Malformed { .. }), "{from}: {error}");
    }
    let (_, report) = READ.split_once("File operations:").unwrap();
    let without = parse(RNDRD, 1, &format!("File operations:{report}")).unwrap_err();
    assert!(without.to_string().contains("bins of its latencies are missing"), "{without}");
    let bad = parse(RNDRD, 1, &format!("  0.1 |*** x\n{READ}")).unwrap_err();
    assert!(bad.to_string().contains("histogram holds"), "{bad}");
    let more = READ.replace("General statistics:", "    new/s:  1\n\nGeneral statistics:");
    assert_eq!(parse(RNDRD, 2, &more), parse(RNDRD, 2, READ));
}

#[test]
fn errors_and_idle_runs_are_told() {
    let fatal = format!("{READ}\nFATAL: Failed to read file! errno = 5 (Input/output error)\n");
    let error = parse(RNDRD, 1, &fatal).unwrap_err().to_string();
    assert!(error.contains("I/O errors") && error.contains("errno = 5"), "{error}");
    let idle = READ.replace("41698.78", "0.00");
    assert_eq!(parse(RNDRD, 1, &idle), Err(ToolError::Nothing { tool: "sysbench" }));
}

#[test]
fn commands_run_in_the_folder() {
    let target = folder();
    let values = settings(&Sysbench, &format!("{RNDRD}\nfsync_every = 0"));
    let spec =
        TrialSpec { runtime_s: 1.5, seed: u64::from(u32::MAX >> 1), ..trial(&values, &target, 2) };
    let script = Sysbench.plan(&spec).unwrap();
    let files = "(cd /mnt/t && sysbench fileio --file-num=4 --file-total-size=1048576";
    assert_eq!(
        commands(&script),
        format!(
            "{files} --file-block-size=65536 --file-test-mode=rndrd --file-fsync-freq=0 \
             --file-extra-flags=direct --time=2 --threads=2 --rand-seed=1 --validate=off \
             --percentile=95 --histogram=on run)"
        )
    );
    let run = |step: &[Step]| match step {
        [Step::Run(command)] => command.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(run(&script.prepare), format!("{files} prepare)"));
    assert_eq!(run(&script.clean_up), format!("{files} cleanup)"));

    let values = "mode = \"seqwr\"\ntotal_size = \"1000K\"\nfiles = 3\nevents = 50\ndirect = false";
    let values = settings(&Sysbench, values);
    // A third of 1000 KiB in blocks of 16 KiB is 320 KiB.
    let command = commands(&Sysbench.plan(&trial(&values, &target, 1)).unwrap());
    assert!(command.contains("--file-num=3 --file-total-size=983040 "), "{command}");
    assert!(
        command.contains("--file-fsync-freq=100 --events=50 --time=0 --threads=1 "),
        "{command}"
    );
    assert!(Sysbench.plan(&trial(&values, &device(), 1)).is_err());
}

#[test]
fn checks_labels_versions() {
    let with = |values: &str| settings(&Sysbench, values);
    let small = Sysbench.check(&with("mode = \"rndrd\"\ntotal_size = \"1M\""), 1).unwrap_err();
    assert!(small.contains("each of 128 files holds less than a block of 16K"), "{small}");
    let big = with("mode = \"rndrd\"");
    let refused = Sysbench.plan(&trial(&big, &folder(), 1)).unwrap_err();
    assert!(refused.contains("larger region"), "{refused}");
    let label = |values: &str| Sysbench.label(&with(values));
    assert_eq!(label("mode = \"rndrd\"\nblock_size = \"64K\""), "sysbench rndrd 64K");
    assert_eq!(
        label(
            "mode = \"rndwr\"\ntotal_size = \"2G\"\nfiles = 4\nevents = 9\ndirect = false\nfsync_every = 0"
        ),
        "sysbench rndwr 16K, 2G, 4 files, 9 events, buffered, fsync at the end"
    );
    assert_eq!(label("mode = \"rndwr\"\nfsync_every = 5"), "sysbench rndwr 16K, fsync every 5");
    let version = |text: &str| Sysbench.parse_version(&output(text));
    assert_eq!(version("sysbench 1.0.20\n"), Ok("sysbench-1.0.20".to_owned()));
    assert!(version("").is_err() && version("sysbench").is_err() && version("x 1.0").is_err());
    let written = |values: &str| Sysbench.work(&with(values), 1).writes;
    assert_eq!(written("mode = \"seqrd\""), Writes::Bytes(1 << 30));
    assert_eq!(written("mode = \"rndrw\""), Writes::UntilTime);
}

proptest! {
    #[test]
    fn no_output_panics(text in "\\PC{0,200}", at in any::<usize>(), byte in 32..127_u8) {
        drop(parse(RNDRD, 2, &text));
        drop(parse(RNDRD, 2, &changed(READ, at, byte)));
        drop(parse(RNDRD, 2, &READ[..at % READ.len()]));
        drop(parse(RNDRD, 2, &format!("{text}\nFile operations:\n{text}")));
    }
}
