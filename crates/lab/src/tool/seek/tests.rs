use proptest::prelude::*;

use super::*;
use crate::command::Target;
use crate::tool::testing::{changed, commands, device, listed, output, run_of, settings, trial};

/// Written by fio 3.33 for reads of 4 KiB at random on a loop device.
const SEEK: &str = include_str!("../../../testdata/fio-3.33-seek.json");

fn parse(text: &str) -> Result<Measured, ToolError> {
    let settings = settings(&Seek, "");
    Seek.parse(&trial(&settings, &device(), 1), &run_of(vec![output(text)]))
}

#[test]
fn seeks_are_counted_and_timed() {
    let measured = parse(SEEK).unwrap();
    let expected = [
        ("seek_rate", 3455.0 / 0.202),
        ("requests", 3455.0),
        ("bytes_read", 14_151_680.0),
        ("tool_cpu_user", 0.0),
        ("tool_cpu_system", 20.895522),
        ("seek_time", 57_840.096093),
        ("latency_min", 10_530.0),
        ("latency_p50", 19_328.0),
        ("latency_p95", 33_024.0),
        ("latency_p99", 864_256.0),
        ("latency_p99_9", 6_586_368.0),
        ("latency_max", 10_960_263.0),
    ];
    assert_eq!(listed(&measured), expected);
    assert_eq!(measured.latencies[0].bins.len(), 189);
}

#[test]
fn one_read_is_in_flight_on_the_whole_region() {
    let values = settings(&Seek, "block_size = \"512\"");
    let target = device();
    let spec = TrialSpec { region_bytes: 1_000_000, ramp_s: 0.25, ..trial(&values, &target, 2) };
    assert_eq!(
        commands(&Seek.plan(&spec).unwrap()),
        "fio --name=trial --thread=1 --filename=/dev/sdx --ioengine=psync --direct=1 \
         --allow_file_create=0 --rw=randread --bs=512 --iodepth=1 --size=999936 --numjobs=2 \
         --randrepeat=0 --randseed=3 --norandommap=1 --time_based=1 --runtime=1000ms --ramp_time=250ms \
         --output-format=json+ --eta=never"
    );
    let nbd = Target::Nbd("nbd://h".to_owned());
    let command = commands(&Seek.plan(&trial(&values, &nbd, 1)).unwrap());
    assert!(command.contains("--ioengine=nbd --uri=nbd://h --rw=randread"), "{command}");
    let small = TrialSpec { region_bytes: 511, ..trial(&values, &target, 1) };
    assert_eq!(Seek.plan(&small).unwrap_err(), "511 bytes do not hold 512 bytes");
    assert_eq!(Seek.label(&values), "seek 512");
}

#[test]
fn errors_are_seeks_own() {
    assert_eq!(parse("{\"jobs\": []}"), Err(ToolError::Nothing { tool: "seek" }));
    assert!(parse("").unwrap_err().to_string().starts_with("seek wrote something"));
    let failed = SEEK.replacen("\"error\" : 0", "\"error\" : 5", 1);
    assert!(matches!(parse(&failed), Err(ToolError::IoErrors { tool: "seek", .. })));
}

proptest! {
    #[test]
    fn a_changed_or_cut_output_never_panics(at in any::<usize>(), byte in 32..127_u8) {
        drop(parse(&changed(SEEK, at, byte)));
        prop_assert!(parse(&SEEK[..at % (SEEK.len() - 3)]).is_err());
    }
}
