use proptest::prelude::*;

use super::*;
use crate::command::ToolOutput;
use crate::tool::tests::support::{
    changed, commands, device, folder, listed, output, run_of, settings, trial,
};

/// Output of hdparm 9.65 for a loop device of 200 MiB.
const BOTH: &str = include_str!("../../../testdata/hdparm-9.65-tT.txt");

fn parse(values: &str, stdout: &str, stderr: &str) -> Result<Measured, ToolError> {
    let settings = settings(&Hdparm, values);
    let process = ToolOutput { stderr: stderr.to_owned(), ..output(stdout) };
    Hdparm.parse(&trial(&settings, &device(), 1), &run_of(vec![process]))
}

#[test]
fn both_timings_are_read() {
    let expected = [
        ("throughput", 613.81 * MIB),
        ("bytes_read", 200.0 * MIB),
        ("cached_throughput", 10_990.15 * MIB),
    ];
    assert_eq!(listed(&parse("", BOTH, "").unwrap()), expected);
    assert_eq!(listed(&parse("cached = false", BOTH, "").unwrap()), expected[..2]);
}

#[test]
fn slow_devices_and_direct_reads_read_alike() {
    let slow = " Timing buffered disk reads:   2 MB in  3.01 seconds = 680.53 kB/sec\n";
    let measured = parse("cached = false", slow, "").unwrap();
    assert_eq!(measured.get(Metric::Throughput), Some(680.53 * 1024.0));
    let direct = " Timing O_DIRECT cached reads:   19240 MB in  1.99 seconds = 9646.92 MB/sec\n \
                  Timing O_DIRECT disk reads: 200 MB in  0.03 seconds = 5995.74 MB/sec\n";
    let measured = parse("direct = true", direct, "").unwrap();
    assert_eq!(measured.get(Metric::Throughput), Some(5995.74 * MIB));
    // It did not come from the page cache.
    assert_eq!(measured.get(Metric::CachedThroughput), None);
    assert_eq!(measured.get(Metric::DirectCachedThroughput), Some(9646.92 * MIB));
}

#[test]
fn what_is_no_timing_is_refused() {
    // Output of 9.65 for a file.
    let half = "\n/tmp/disk.img:\n Timing buffered disk reads: ";
    let without_cached = BOTH.replace("cached", "cashed");
    let other_unit = BOTH.replace("MB/sec", "MiB/s");
    let infinite = BOTH.replace("613.81", "inf");
    for bad in ["", "garbage", half, &without_cached, &other_unit, &infinite] {
        let error = parse("", bad, "").unwrap_err();
        assert!(matches!(error, ToolError::Malformed { .. }), "{bad:?}: {error}");
    }
    let zero = BOTH.replace("613.81", "0.00");
    assert_eq!(parse("", &zero, ""), Err(ToolError::Nothing { tool: "hdparm" }));
    let error = parse("", BOTH, "read() failed: Input/output error\n").unwrap_err();
    assert!(matches!(error, ToolError::IoErrors { .. }), "{error}");
    // Loop and virtual disks do not support the query of their identity; that is no error.
    assert!(parse("", BOTH, "HDIO_DRIVE_CMD(identify) failed: Inappropriate ioctl").is_ok());
}

#[test]
fn only_block_devices_are_planned() {
    let plan = |values: &str, target: &Target| {
        let settings = settings(&Hdparm, values);
        Hdparm.plan(&TrialSpec { region_bytes: PIECE, ..trial(&settings, target, 1) })
    };
    assert_eq!(commands(&plan("", &device()).unwrap()), "hdparm -tT /dev/sdx");
    let direct = plan("cached = false\ndirect = true", &device()).unwrap();
    assert_eq!(commands(&direct), "hdparm -t --direct /dev/sdx");
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = plan("", &Target::Device(file.path().to_owned())).unwrap_err();
    assert!(refused.contains("block devices only, and"), "{refused}");
    assert!(plan("", &folder()).is_err());
    let (values, target) = (settings(&Hdparm, ""), device());
    let small = Hdparm.plan(&trial(&values, &target, 1)).unwrap_err();
    assert_eq!(small, "hdparm reads pieces of 2 MiB, and there are 1048576 bytes");
    assert!(Hdparm.check(&settings(&Hdparm, ""), 2).unwrap_err().contains("processes = 1"));
}

#[test]
fn versions_and_labels() {
    assert_eq!(Hdparm.parse_version(&output("hdparm v9.65\n")), Ok("hdparm-9.65".to_owned()));
    for bad in ["", "hdparm", "hdparm vx"] {
        assert!(Hdparm.parse_version(&output(bad)).is_err(), "{bad:?}");
    }
    let label = |values: &str| Hdparm.label(&settings(&Hdparm, values));
    assert_eq!((label(""), label("cached = false")), ("hdparm -tT".into(), "hdparm -t".into()));
    assert_eq!(label("direct = true"), "hdparm -tT, direct");
}

proptest! {
    #[test]
    fn no_output_panics(text in "\\PC{0,100}", at in any::<usize>(), byte in 32..127_u8) {
        drop(parse("", &text, &text));
        drop(parse("", &changed(BOTH, at, byte), ""));
        drop(parse("", &BOTH[..at % BOTH.len()], ""));
        drop(parse("", &format!(" Timing buffered disk reads:{text}"), ""));
    }
}
