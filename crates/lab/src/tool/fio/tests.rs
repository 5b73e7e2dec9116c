use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::command::{Step, Target};
use crate::tool::tests::support::{
    changed, commands, device, folder, listed, output, run_of, settings, trial, value,
};

/// Output of fio 3.33 for a random read of a file.
const READ: &str = include_str!("../../../testdata/fio-3.33-randread-file.json");
/// Output of fio 3.33 for a sequential write through NBD, with messages before the JSON.
const WRITE: &str = include_str!("../../../testdata/fio-3.33-write-nbd.txt");
/// Output of fio 3.33 for two processes that read 70 % and write 30 %, with these logs.
const MIXED: &str = include_str!("../../../testdata/fio-3.33-mixed-2-processes.json");

macro_rules! log {
    ($kind:literal, $job:literal) => {
        include_str!(concat!(
            "../../../testdata/fio-3.33-mixed-2-processes_",
            $kind,
            ".",
            $job,
            ".log"
        ))
    };
}

fn logs() -> BTreeMap<String, String> {
    let logs = [
        ("fio_bw.1.log", log!("bw", "1")),
        ("fio_bw.2.log", log!("bw", "2")),
        ("fio_iops.1.log", log!("iops", "1")),
        ("fio_iops.2.log", log!("iops", "2")),
        ("fio_clat.1.log", log!("clat", "1")),
        ("fio_clat.2.log", log!("clat", "2")),
        ("other.txt", "not a log"),
    ];
    logs.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

fn parse_with(
    values: &str,
    text: &str,
    files: BTreeMap<String, String>,
) -> Result<Measured, ToolError> {
    let settings = settings(&Fio, values);
    let run = RunOutput { files, ..run_of(vec![output(text)]) };
    Fio.parse(&trial(&settings, &device(), 1), &run)
}

fn parse(op: &str, text: &str) -> Result<Measured, ToolError> {
    parse_with(&format!("pattern = \"rand\"\nop = {op:?}"), text, BTreeMap::new())
}

fn plan(values: &str, target: &Target, processes: u32) -> Result<Script, String> {
    let settings = settings(&Fio, values);
    Fio.plan(&trial(&settings, target, processes))
}

#[test]
fn a_read_gives_every_metric() {
    let measured = parse("read", READ).unwrap();
    let expected = [
        ("throughput", 118_976_512.0 / 0.201),
        ("iops", 29_047.0 / 0.201),
        ("requests", 29_047.0),
        ("bytes_read", 118_976_512.0),
        ("tool_cpu_user", 11.5),
        ("tool_cpu_system", 23.5),
        ("latency_mean", 53_324.912_934),
        ("latency_min", 13_766.0),
        ("latency_p50", 49_408.0),
        ("latency_p95", 66_048.0),
        ("latency_p99", 81_408.0),
        ("latency_p99_9", 839_680.0),
        ("latency_max", 2_344_950.0),
    ];
    assert_eq!(listed(&measured), expected);
    let [bins] = measured.latencies.as_slice() else { panic!("{:?}", measured.latencies) };
    assert_eq!((bins.op, bins.bins.len(), bins.bins[0]), ("read", 152, (13_760, 2)));
    assert_eq!(bins.bins.iter().map(|(_, count)| count).sum::<u64>(), 29_047);
    assert!(bins.bins.is_sorted());
    assert!(measured.series.is_empty());
}

#[test]
fn what_fio_says_before_the_json_is_skipped() {
    let measured = parse("write", WRITE).unwrap();
    assert_eq!(value(&measured, Metric::Throughput), 767_557_632.0 / 0.202);
    assert_eq!(value(&measured, Metric::BytesWritten), 767_557_632.0);
    assert_eq!(value(&measured, Metric::LatencyP99), 6_193_152.0);
    assert_eq!(measured.latencies[0].op, "write");
}

#[test]
fn processes_and_directions_are_added() {
    let measured = parse("mixed", MIXED).unwrap();
    // 568 and 572 ms: the longer one is the time of both.
    let expected = [
        ("throughput", 869_400_576.0 / 0.572 + 378_077_184.0 / 0.572),
        ("iops", 13_260.0 / 0.572 + 5_769.0 / 0.572),
        ("requests", 19_029.0),
        ("bytes_read", 869_400_576.0),
        ("bytes_written", 378_077_184.0),
        ("tool_cpu_user", 1.940035 + 0.525394),
        ("tool_cpu_system", 9.876543 + 11.908932),
        ("latency_mean", 162_196.716_206_893_47),
        ("latency_min", 17_192.0),
        ("latency_p50", 142_336.0),
        ("latency_p95", 199_680.0),
        ("latency_p99", 305_152.0),
        ("latency_p99_9", 4_882_432.0),
        ("latency_max", 9_627_915.0),
    ];
    for ((name, is), (wanted, value)) in listed(&measured).into_iter().zip(expected) {
        assert_eq!(name, wanted);
        assert!((is - value).abs() <= value.abs() * 1e-12, "{name} is {is} instead of {value}");
    }
    assert_eq!(value(&measured, Metric::SpreadOfProcesses), 624_689_152.0 / 622_788_608.0);
    assert!((value(&measured, Metric::Fairness) - 0.999_997_7).abs() < 1e-7);
    assert_eq!(measured.samples.len(), expected.len() + 2);
    let [reads, writes] = measured.latencies.as_slice() else { panic!() };
    assert_eq!(
        (reads.op, reads.bins.len(), writes.op, writes.bins.len()),
        ("read", 213, "write", 183)
    );
}

#[test]
fn slices_of_all_processes_are_added() {
    let values = "pattern = \"rand\"\nop = \"mixed\"\nseries_ms = 100";
    let series = parse_with(values, MIXED, logs()).unwrap().series;
    // The first process has no fourth slice, so there is none.
    let [throughput, iops, latency] = series.as_slice() else { panic!("{series:?}") };
    assert_eq!(throughput.metric, Metric::Throughput);
    assert_eq!(
        throughput.points,
        [
            (100, 1024.0 * (944_000.0 + 446_080.0 + 982_400.0 + 401_280.0)),
            (200, 1024.0 * (1_196_160.0 + 528_640.0 + 1_198_720.0 + 519_040.0)),
            (300, 1024.0 * (1_111_680.0 + 482_560.0 + 1_124_480.0 + 480_640.0)),
        ]
    );
    assert_eq!(iops.metric, Metric::Iops);
    assert_eq!(iops.points[0], (100, 14_780.0 + 6_970.0 + 15_350.0 + 6_270.0));
    let longest = [(100, 9_627_915.0), (200, 255_258.0), (300, 6_520_890.0)];
    assert_eq!((latency.metric, latency.points.as_slice()), (Metric::LatencyMax, &longest[..]));
}

#[test]
fn a_missing_slice_is_a_stall() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let files = BTreeMap::from([
        file("fio_bw.1.log", "100, 4, 1, 0, 0\n405, 8, 1, 0, 0\n"),
        file("fio_iops.1.log", "100, 1, 1, 0, 0\n405, 2, 1, 0, 0\n"),
        file("fio_clat.1.log", "100, 7, 1, 0, 0\n398, 300000000, 1, 0, 0\n512, 1, 1, 0, 0\n"),
    ]);
    let series = series::parse_series(&files, 100).unwrap();
    assert_eq!(series[0].points, [(100, 4096.0), (200, 0.0), (300, 0.0), (400, 8192.0)]);
    assert_eq!(series[2].points, [(100, 7.0), (400, 3e8)]);
}

#[test]
fn logs_that_are_missing_or_something_else_are_malformed() {
    let values = "pattern = \"rand\"\nop = \"mixed\"\nseries_ms = 100";
    let refused = |files| parse_with(values, MIXED, files).unwrap_err().to_string();
    assert!(refused(BTreeMap::new()).contains("it left no fio_bw.*.log"));
    for bad in ["100, x, 0", "100", "-1, 2, 0", "100, inf, 0", "{}"] {
        let mut files = logs();
        files.insert("fio_iops.2.log".to_owned(), bad.to_owned());
        assert!(refused(files).contains("fio_iops.2.log holds"), "{bad}");
    }
}

#[test]
fn a_run_without_requests_is_an_error() {
    assert_eq!(parse("write", READ), Err(ToolError::Nothing { tool: "fio" }));
    assert_eq!(parse("read", "{\"jobs\": []}"), Err(ToolError::Nothing { tool: "fio" }));
}

#[test]
fn io_errors_are_told() {
    let failed = READ.replacen("\"error\" : 0", "\"error\" : 5", 1);
    let error = parse("read", &failed).unwrap_err().to_string();
    assert_eq!(error, "fio met I/O errors: error 5, 0 errors in all");
    let failed = READ.replacen("\"error\" : 0", "\"error\" : 0, \"total_err\" : 3", 1);
    assert!(matches!(parse("read", &failed), Err(ToolError::IoErrors { .. })));
    let second = MIXED.rfind("\"error\" : 0").unwrap();
    let failed = format!("{}\"error\" : 5{}", &MIXED[..second], &MIXED[second + 11..]);
    assert!(matches!(parse("mixed", &failed), Err(ToolError::IoErrors { .. })), "of any process");
}

#[test]
fn another_versions_fields_are_malformed_or_ignored() {
    for (field, other) in [
        ("\"io_bytes\"", "\"bytes\""),
        ("\"runtime\" :", "\"run_time\" :"),
        ("\"clat_ns\"", "\"clat_us\""),
        ("\"bins\"", "\"buckets\""),
        ("\"N\"", "\"n\""),
        ("\"jobs\"", "\"tasks\""),
    ] {
        let error = parse("read", &READ.replace(field, other)).unwrap_err();
        assert!(matches!(error, ToolError::Malformed { .. }), "{field}: {error}");
    }
    let more = READ.replace("\"usr_cpu\"", "\"new_field\" : {\"x\" : []}, \"usr_cpu\"");
    assert_eq!(parse("read", &more), parse("read", READ));
}

#[test]
fn numbers_that_make_no_sense_are_malformed() {
    for (field, other) in [
        ("\"runtime\" : 201", "\"runtime\" : 0"),
        ("\"total_ios\" : 29047", "\"total_ios\" : -1"),
        ("\"total_ios\" : 29047", "\"total_ios\" : 1e999"),
        ("\"13760\" :", "\"x\" :"),
    ] {
        assert!(READ.contains(field), "{field}");
        let error = parse("read", &READ.replace(field, other)).unwrap_err();
        assert!(matches!(error, ToolError::Malformed { .. }), "{other}: {error}");
    }
}

#[test]
fn versions_are_read_exactly() {
    assert_eq!(Fio.parse_version(&output("fio-3.33\n")), Ok("fio-3.33".to_owned()));
    for bad in ["", "fio", "fio-x", "fio-3.33\nfio-3.34", "sh: fio: not found"] {
        assert!(Fio.parse_version(&output(bad)).is_err(), "{bad:?}");
    }
}

#[test]
fn a_random_write_is_planned_exactly() {
    let target = Target::Device("/dev/x:1".into());
    let settings =
        settings(&Fio, "pattern = \"rand\"\nop = \"write\"\nflush_every = 8\ncompressible = 50");
    let spec = TrialSpec { ramp_s: 0.5, seed: u64::MAX, ..trial(&settings, &target, 2) };
    let script = Fio.plan(&spec).unwrap();
    assert_eq!(
        commands(&script),
        "fio --name=trial --thread=1 '--filename=/dev/x\\:1' --ioengine=libaio --allow_file_create=0 \
         --direct=1 --rw=randwrite --bs=4096 --iodepth=32 --size=1048576 --numjobs=2 \
         --norandommap=1 --refill_buffers=1 --fsync=8 --buffer_compress_percentage=50 --end_fsync=1 \
         --randrepeat=0 --randseed=9223372036854775807 --time_based=1 --runtime=1000ms --ramp_time=500ms --output-format=json+ \
         --eta=never"
    );
    assert!(script.prepare.is_empty() && script.clean_up.is_empty() && !script.sync);
}

#[test]
fn streams_have_parts_of_their_own() {
    let target = Target::Nbd("nbd+unix:///?socket=/x".into());
    let script =
        plan("pattern = \"seq\"\nop = \"read\"\nblock_size = \"64K\"", &target, 3).unwrap();
    // A third of 1 MiB in whole blocks of 64 KiB is five blocks.
    assert_eq!(
        commands(&script),
        "fio --name=trial --thread=1 --ioengine=nbd '--uri=nbd+unix:///?socket=/x' --rw=read \
         --bs=65536 --iodepth=32 --size=327680 --offset_increment=327680 --numjobs=3 \
         --randrepeat=0 --randseed=3 --time_based=1 --runtime=1000ms --output-format=json+ --eta=never"
    );
    let refused =
        plan("pattern = \"seq\"\nop = \"read\"\nblock_size = \"512K\"", &target, 3).unwrap_err();
    assert_eq!(refused, "1048576 bytes do not hold 3 blocks of 524288 bytes");
}

#[test]
fn a_folder_gets_a_file_first() {
    let values = "pattern = \"seq\"\nop = \"mixed\"\nread_percent = 40\nblock_size = \"256K\"\ndirect = false";
    let script = plan(values, &folder(), 1).unwrap();
    assert_eq!(
        commands(&script),
        "fio --name=trial --thread=1 --filename=/mnt/t/fio.data --ioengine=libaio --allow_file_create=0 \
         --direct=0 --rw=rw --bs=262144 --iodepth=8 --size=1048576 --rwmixread=40 \
         --refill_buffers=1 --end_fsync=1 --randrepeat=0 --randseed=3 --time_based=1 --runtime=1000ms --output-format=json+ --eta=never"
    );
    let path = std::path::PathBuf::from("/mnt/t/fio.data");
    let file = Step::MakeFile { path: path.clone(), bytes: 1 << 20, seed: 7 };
    assert_eq!(script.prepare, [file]);
    assert_eq!(script.clean_up, [Step::Remove(path)]);
}

#[test]
fn a_course_over_time_is_logged_into_the_scratch_folder() {
    let values = "pattern = \"rand\"\nop = \"read\"\nseries_ms = 250\n";
    let command = commands(&plan(values, &device(), 1).unwrap());
    let logs = "--write_bw_log=/scratch/fio --write_iops_log=/scratch/fio \
                --write_lat_log=/scratch/fio --log_avg_msec=250 --bwavgtime=250 --iopsavgtime=250";
    assert!(command.contains(&format!("{logs} --log_max_value=1 --output")), "{command}");
    let refused = plan("pattern = \"rand\"\nop = \"read\"\nseries_ms = 1001", &device(), 1);
    assert_eq!(refused.unwrap_err(), "a trial of 1 s has no slice of 1001 ms");
}

#[test]
fn contradictions_are_refused() {
    let check = |values: &str| Fio.check(&settings(&Fio, values), 1);
    for writes in ["flush_every = 1", "compressible = 1"] {
        let values = format!("pattern = \"seq\"\nop = \"read\"\n{writes}");
        assert!(check(&values).unwrap_err().contains("is about writes"), "{writes}");
        assert_eq!(check(&values.replace("\"read\"", "\"mixed\"")), Ok(()));
    }
}

#[test]
fn labels_tell_what_differs() {
    let label = |values: &str| Fio.label(&settings(&Fio, values));
    assert_eq!(label("pattern = \"rand\"\nop = \"read\""), "random read 4K, depth 32");
    assert_eq!(
        label(
            "pattern = \"seq\"\nop = \"write\"\nblock_size = \"1M\"\nflush_every = 2\ncompressible = 30"
        ),
        "sequential write 1M, depth 8, flush every 2, 30 % compressible"
    );
    assert_eq!(
        label("pattern = \"rand\"\nop = \"mixed\"\niodepth = 1\ndirect = false\nseries_ms = 100"),
        "random mixed 70/30 4K, depth 1, buffered, max latency by 100 ms"
    );
    let headline = |values: &str| Fio.work(&settings(&Fio, values), 1).headline;
    assert_eq!(headline("pattern = \"rand\"\nop = \"read\""), Metric::Iops);
    assert_eq!(
        headline("pattern = \"rand\"\nop = \"read\"\nblock_size = \"1M\""),
        Metric::Throughput
    );
    assert_eq!(headline("pattern = \"seq\"\nop = \"read\""), Metric::Throughput);
}

#[test]
fn safety_knows_what_is_written_and_what_must_be_there() {
    let of = |op: &str| {
        let settings = settings(&Fio, &format!("op = {op:?}"));
        let work = Fio.work(&settings, 1);
        (work.writes, work.reads_raw)
    };
    assert_eq!(of("read"), (Writes::Nothing, true));
    assert_eq!(of("write"), (Writes::UntilTime, false));
    assert_eq!(of("mixed"), (Writes::UntilTime, true));
}

proptest! {
    #[test]
    fn a_truncated_output_is_an_error(cut in 0..READ.len() - 3) {
        prop_assert!(parse("read", &READ[..cut]).is_err());
    }

    #[test]
    fn a_changed_byte_never_panics(at in any::<usize>(), byte in 32..127_u8) {
        drop(parse("read", &changed(READ, at, byte)));
        drop(parse("mixed", &changed(MIXED, at, byte)));
    }

    #[test]
    fn a_changed_log_never_panics(at in any::<usize>(), byte in 32..127_u8, ms in 1_u64..2000) {
        let mut files = logs();
        for text in files.values_mut() {
            *text = changed(text, at, byte);
        }
        let values = format!("pattern = \"rand\"\nop = \"mixed\"\nseries_ms = {ms}");
        drop(parse_with(&values, MIXED, files));
    }

    #[test]
    fn no_text_panics(text in "\\{?\\PC{0,200}") {
        drop(parse("write", &text));
    }
}

const JOBS: &str = r#"
jobs = """
[global]
ioengine=libaio
direct=1
[popular]
rw=randrw
rwmixread=80
random_distribution=zipf:0.9
iodepth=8
runtime=5m
[log]
rw=write
bs=64k
offset=256k
size=512k
fsync=4
direct=0
"""
"#;

#[test]
fn the_sections_of_a_job_file_are_planned_exactly() {
    let settings = settings(&FioJobs, JOBS);
    assert_eq!(FioJobs.check(&settings, 1), Ok(()));
    let target = Target::Device("/dev/x".into());
    let spec = TrialSpec { ramp_s: 0.5, ..trial(&settings, &target, 1) };
    let script = FioJobs.plan(&spec).unwrap();
    assert_eq!(
        commands(&script),
        "fio --name=global --thread=1 --filename=/dev/x --ioengine=libaio --allow_file_create=0 \
         --randrepeat=0 --randseed=3 --time_based=1 --runtime=1000ms --ramp_time=500ms \
         --name=popular --rw=randrw --rwmixread=80 --bs=4096 --iodepth=8 --direct=1 --size=1048576 \
         --random_distribution=zipf:0.9 --refill_buffers=1 --end_fsync=1 \
         --name=log --rw=write --bs=65536 --iodepth=1 --direct=0 --offset=262144 --size=524288 \
         --fsync=4 --refill_buffers=1 --end_fsync=1 --output-format=json+ --eta=never"
    );
    assert_eq!(
        FioJobs.label(&settings),
        "popular: Zipf 0.9 mixed 80/20 4K, depth 8 + log: sequential write 64K of 512K from 256K, \
         depth 1, buffered, flush every 4"
    );
    let work = FioJobs.work(&settings, 1);
    assert_eq!((work.writes, work.reads_raw), (Writes::UntilTime, true));
    assert_eq!(work.headline, Metric::Throughput);
    let short = TrialSpec { region_bytes: 600 << 10, ..spec };
    let refused = FioJobs.plan(&short).unwrap_err();
    assert_eq!(
        refused,
        "job log uses 512K from 256K on, in blocks of 64K, and there are 614400 bytes"
    );
}

#[test]
fn a_job_file_in_a_folder_has_a_file_and_only_reads_if_it_says_so() {
    let settings = settings(&FioJobs, "jobs = \"[a]\\nrw=randread\\nnorandommap\\nnumjobs=2\"");
    let script = FioJobs.plan(&trial(&settings, &folder(), 1)).unwrap();
    let command = commands(&script);
    assert!(command.contains("--numjobs=2 --direct=0 --size=1048576 --norandommap=1"), "{command}");
    assert!(!command.contains("end_fsync"), "{command}");
    let path = std::path::PathBuf::from("/mnt/t/fio.data");
    assert_eq!(script.clean_up, [Step::Remove(path)]);
    let work = FioJobs.work(&settings, 1);
    assert_eq!((work.writes, work.headline), (Writes::Nothing, Metric::Iops));
}

#[test]
fn job_files_that_say_nothing_or_too_much_are_refused() {
    let check = |jobs: &str, processes: u32| {
        let word = crate::settings::Value::Word(jobs.to_owned());
        FioJobs.check(&Settings::default().with("jobs", word), processes).unwrap_err()
    };
    assert!(check("", 1).contains("jobs is missing"));
    assert!(check("[a]\nrw=randread\nrate=5m\n", 1).contains("line 3, column 1"));
    assert_eq!(check("[a]\n[b]\n[a]\n", 1), "jobs has two sections called \"a\"");
    assert!(check("[a]\n", 2).contains("numjobs"));
}
