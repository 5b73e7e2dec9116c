use proptest::prelude::*;

use super::*;
use braid_stack::ByteSize;

/// Written by fio 3.33 for a random read of a file.
const READ: &str = include_str!("../../../testdata/fio-3.33-randread-file.json");
/// Written by fio 3.33 for a sequential write through NBD; fio talks before the JSON.
const WRITE: &str = include_str!("../../../testdata/fio-3.33-write-nbd.txt");

fn value(samples: &[Sample], metric: Metric) -> f64 {
    samples.iter().find(|sample| sample.metric == metric).map(|sample| sample.value).unwrap()
}

fn workload(pattern: Pattern, op: Op) -> Workload {
    Workload {
        tool: "fio".into(),
        pattern,
        op,
        block_size: ByteSize(4096),
        iodepth: 32,
        processes: 1,
        direct: true,
        flush_every: 0,
    }
}

#[test]
fn a_read_gives_every_metric() {
    let samples = parse_output(Op::Read, READ).unwrap();
    assert_eq!(value(&samples, Metric::Throughput), 591_922_945.0);
    assert_eq!(value(&samples, Metric::Iops), 144_512.437_811);
    assert_eq!(value(&samples, Metric::LatencyMean), 53_324.912_934);
    assert_eq!(value(&samples, Metric::LatencyP50), 49_408.0);
    assert_eq!(value(&samples, Metric::LatencyP95), 66_048.0);
    assert_eq!(value(&samples, Metric::LatencyP99), 81_408.0);
    assert_eq!(value(&samples, Metric::LatencyP999), 839_680.0);
    assert_eq!(value(&samples, Metric::LatencyMax), 2_344_950.0);
    assert_eq!(value(&samples, Metric::ToolCpuUser), 11.5);
    assert_eq!(value(&samples, Metric::ToolCpuSystem), 23.5);
    assert_eq!(value(&samples, Metric::Requests), 29_047.0);
}

#[test]
fn what_fio_says_before_the_json_is_skipped() {
    let samples = parse_output(Op::Write, WRITE).unwrap();
    assert_eq!(value(&samples, Metric::Throughput), 3_799_790_257.0);
    assert_eq!(value(&samples, Metric::LatencyP99), 6_193_152.0);
}

#[test]
fn a_run_without_requests_is_an_error() {
    assert_eq!(parse_output(Op::Write, READ), Err(ToolError::Nothing { tool: "fio" }));
}

#[test]
fn io_errors_are_told() {
    let failed = READ.replacen("\"error\" : 0", "\"error\" : 5", 1);
    assert!(matches!(parse_output(Op::Read, &failed), Err(ToolError::IoErrors { .. })));
}

#[test]
fn a_missing_percentile_is_malformed() {
    let without = READ.replace("\"99.900000\"", "\"99.8\"");
    assert!(matches!(parse_output(Op::Read, &without), Err(ToolError::Malformed { .. })));
}

#[test]
fn the_command_says_what_the_workload_says() {
    let spec = |workload: &Workload, target: &Target| {
        Fio.trial_command(&TrialSpec {
            workload,
            target,
            region_bytes: 1 << 20,
            runtime_s: 1.0,
            ramp_s: 0.5,
            seed: u64::MAX,
        })
        .to_string()
    };
    let random = spec(&workload(Pattern::Rand, Op::Write), &Target::Path("/dev/x:1".into()));
    for part in [
        "rw=randwrite",
        "'--filename=/dev/x\\:1'",
        "direct=1",
        "end_fsync=1",
        "randseed=9223372036854775807",
        "runtime=1000ms",
        "ramp_time=500ms",
    ] {
        assert!(random.contains(part), "{part} is missing in {random}");
    }
    let mut streams = workload(Pattern::Seq, Op::Read);
    streams.processes = 4;
    let uri = "nbd+unix:///?socket=/x";
    let sequential = spec(&streams, &Target::Nbd(uri.into()));
    for part in ["--ioengine=nbd", uri, "numjobs=4", "offset_increment=262144", "--size=262144"] {
        assert!(sequential.contains(part), "{part} is missing in {sequential}");
    }
    assert!(!sequential.contains("end_fsync"), "{sequential}");
}

proptest! {
    #[test]
    fn a_truncated_output_is_an_error(cut in 0..READ.len() - 3) {
        prop_assert!(parse_output(Op::Read, &READ[..cut]).is_err());
    }

    #[test]
    fn a_changed_byte_never_panics(at in 0..READ.len(), byte in 32..127_u8) {
        let mut bytes = READ.as_bytes().to_vec();
        bytes[at] = byte;
        drop(parse_output(Op::Read, &String::from_utf8(bytes).unwrap()));
    }

    #[test]
    fn no_text_panics(text in "\\{?\\PC{0,200}") {
        drop(parse_output(Op::Write, &text));
    }
}
