use proptest::prelude::*;

use super::*;
use crate::command::ToolOutput;
use crate::tool::tests::support::{
    changed, commands, device, folder, listed, output, run_of, settings, trial,
};

/// Output of dd of coreutils 9.1 for ten mebibytes.
const WRITE: &str = include_str!("../../../testdata/dd-9.1-write.txt");
/// Output for one sector: another form of the line.
const SECTOR: &str = include_str!("../../../testdata/dd-9.1-write-512.txt");
/// Output on a full file system; dd fails as well.
const FULL: &str = include_str!("../../../testdata/dd-9.1-full.txt");

fn process(stderr: &str, wall_s: f64) -> ToolOutput {
    ToolOutput { stderr: stderr.to_owned(), wall_s, ..output("") }
}

fn parse(values: &str, processes: Vec<ToolOutput>) -> Result<Measured, ToolError> {
    let settings = settings(&Dd, values);
    Dd.parse(&trial(&settings, &device(), processes.len() as u32), &run_of(processes))
}

const TEN: &str = "op = \"write\"\nsize = \"10M\"";

#[test]
fn one_dd_is_timed_by_itself() {
    let expected = [
        ("throughput", 10_485_760.0 / 0.0326939),
        ("seconds", 0.0326939),
        ("bytes_written", 10_485_760.0),
    ];
    assert_eq!(listed(&parse(TEN, vec![process(WRITE, 0.05)]).unwrap()), expected);
    let read = TEN.replace("write", "read");
    let measured = parse(&read, vec![process(WRITE, 0.05)]).unwrap();
    assert_eq!(listed(&measured)[2], ("bytes_read", 10_485_760.0));
    let sector = "op = \"write\"\nsize = \"512\"\nbs = \"512\"";
    let measured = parse(sector, vec![process(SECTOR, 0.01)]).unwrap();
    assert_eq!(measured.get(Metric::Seconds), Some(0.000158497));
}

#[test]
fn several_are_timed_by_the_wall_clock() {
    let slow = WRITE.replace("0.0326939", "6.5388e-02");
    let measured = parse(TEN, vec![process(WRITE, 0.04), process(&slow, 0.08)]).unwrap();
    let fairness = measured.get(Metric::Fairness).unwrap();
    let expected = [
        ("throughput", 20_971_520.0 / 0.08),
        ("seconds", 0.08),
        ("bytes_written", 20_971_520.0),
        ("spread_of_processes", 6.5388e-02 / 0.0326939),
        ("fairness", fairness),
    ];
    assert_eq!(listed(&measured), expected);
    // Rates of 2 to 1.
    assert!((fairness - 0.9).abs() < 1e-5, "{fairness}");
}

#[test]
fn less_than_asked_is_an_error() {
    let error = parse("op = \"read\"\nsize = \"20M\"", vec![process(WRITE, 1.0)]).unwrap_err();
    assert_eq!(error.to_string(), "dd met I/O errors: 10485760 bytes of 20971520 were copied");
    let full = parse("op = \"write\"\nsize = \"128K\"\nbs = \"64K\"", vec![process(FULL, 1.0)]);
    assert!(full.unwrap_err().to_string().contains("No space left on device"));
    assert_eq!(parse(TEN, Vec::new()), Err(ToolError::Nothing { tool: "dd" }));
}

#[test]
fn what_dd_does_not_print_is_refused() {
    let german = "10485760 Bytes (10 MB, 10 MiB) kopiert, 0,0326939 s, 321 MB/s";
    let old = WRITE.replace(" s, ", " seconds, ");
    for bad in ["", "garbage", " copied, ", "x bytes copied, 1 s, 1", german, &old] {
        let error = parse(TEN, vec![process(bad, 1.0)]).unwrap_err();
        assert!(matches!(error, ToolError::Malformed { .. }), "{bad:?}: {error}");
    }
    let no_time = WRITE.replace("0.0326939", "0");
    assert!(parse(TEN, vec![process(&no_time, 1.0)]).is_err(), "an infinite rate");
    let negative = WRITE.replace("0.0326939", "-1");
    assert!(parse(TEN, vec![process(&negative, 1.0)]).is_err());
}

#[test]
fn devices_are_cut_into_parts() {
    let values = settings(&Dd, "op = \"write\"\nbs = \"64K\"\nsize = \"500K\"");
    let target = device();
    let script = Dd.plan(&trial(&values, &target, 2)).unwrap();
    // 500 KiB contain seven blocks of 64 KiB.
    assert_eq!(
        commands(&script),
        "dd if=/dev/zero of=/dev/sdx bs=65536 count=7 seek=0 conv=notrunc,nocreat,fdatasync\n\
         dd if=/dev/zero of=/dev/sdx bs=65536 count=7 seek=7 conv=notrunc,nocreat,fdatasync"
    );
    assert!(script.prepare.is_empty() && script.clean_up.is_empty() && !script.sync);
    assert_eq!(Dd.work(&values, 2).writes, Writes::Bytes(2 * 7 * 65536));
    let refused = Dd.plan(&trial(&values, &target, 3)).unwrap_err();
    assert!(refused.contains("take a smaller size or a larger region"), "{refused}");
    let values = settings(&Dd, "op = \"read\"\nsize = \"512K\"\nbs = \"512K\"\ndirect = true");
    assert_eq!(
        commands(&Dd.plan(&trial(&values, &target, 2)).unwrap()),
        "dd if=/dev/sdx of=/dev/null bs=524288 count=1 skip=0 iflag=direct\n\
         dd if=/dev/sdx of=/dev/null bs=524288 count=1 skip=1 iflag=direct"
    );
    let work = Dd.work(&values, 2);
    assert_eq!((work.writes, work.reads_raw), (Writes::Nothing, true));
}

#[test]
fn folders_get_files() {
    let target = folder();
    let (first, second) = ("/mnt/t/dd1".into(), "/mnt/t/dd2".into());
    let values = settings(&Dd, "op = \"read\"\nsize = \"512K\"\nbs = \"64K\"");
    let script = Dd.plan(&trial(&values, &target, 2)).unwrap();
    assert_eq!(
        commands(&script),
        "dd if=/mnt/t/dd1 of=/dev/null bs=65536 count=8\n\
         dd if=/mnt/t/dd2 of=/dev/null bs=65536 count=8"
    );
    let file = |path: &std::path::PathBuf, seed| Step::MakeFile {
        path: path.clone(),
        bytes: 512 << 10,
        seed,
    };
    assert_eq!(script.prepare, [file(&first, 7), file(&second, 8)]);
    assert_eq!(script.clean_up, [Step::Remove(first), Step::Remove(second)]);

    let write = |sync: &str, direct: bool| {
        let values = format!(
            "op = \"write\"\nsize = \"64K\"\nbs = \"64K\"\nsync = {sync:?}\ndirect = {direct}"
        );
        let values = settings(&Dd, &values);
        let line = commands(&Dd.plan(&trial(&values, &target, 1)).unwrap());
        line.strip_prefix("dd if=/dev/zero of=/mnt/t/dd1 bs=65536 count=1").unwrap().to_owned()
    };
    assert_eq!(write("none", false), "");
    assert_eq!(write("fsync", true), " conv=fsync oflag=direct");
    assert_eq!(write("each", false), " oflag=sync");
    assert_eq!(write("each", true), " oflag=direct,sync");
}

#[test]
fn noise_comes_from_a_source() {
    let values = settings(&Dd, "op = \"write\"\nsize = \"1000K\"\nbs = \"64K\"\nsource = \"file\"");
    assert_eq!(Dd.work(&values, 1).source, Some(SourceData::File(960 << 10)));
    let target = device();
    let script = Dd.plan(&trial(&values, &target, 1)).unwrap();
    assert!(commands(&script).starts_with("dd if=/src/random-960K.bin of=/dev/sdx "));
    assert_eq!(script.warm, [Step::ReadAll("/src/random-960K.bin".into())]);
    assert_eq!(Dd.work(&settings(&Dd, "op = \"read\"\nsource = \"file\""), 1).source, None);
    let nbd = Target::Nbd("nbd://h".to_owned());
    assert_eq!(Dd.plan(&trial(&values, &nbd, 1)).unwrap_err(), "dd does not speak NBD");
}

#[test]
fn labels_and_checks() {
    let label = |values: &str| Dd.label(&settings(&Dd, values));
    assert_eq!(label("op = \"write\""), "dd write 1M, fdatasync");
    assert_eq!(label("op = \"read\"\nbs = \"64K\"\nsize = \"2G\""), "dd read 64K, 2G each");
    assert_eq!(
        label("op = \"write\"\nsync = \"none\"\ndirect = true\nsource = \"file\""),
        "dd write 1M, direct, no sync call, incompressible"
    );
    let small = Dd.check(&settings(&Dd, "op = \"read\"\nsize = \"64K\""), 1).unwrap_err();
    assert_eq!(small, "size is 64K and holds no block of 1M; take a larger size or a smaller bs");
}

proptest! {
    #[test]
    fn no_output_panics(text in "\\PC{0,100}", at in any::<usize>(), byte in 32..127_u8) {
        drop(parse(TEN, vec![process(&text, 1.0)]));
        drop(parse(TEN, vec![process(&changed(WRITE, at, byte), 1.0)]));
        drop(parse(TEN, vec![process(&WRITE[..at % WRITE.len()], 1.0)]));
        drop(parse(TEN, vec![process(&format!("10485760 bytes copied, {text}"), 1.0)]));
    }
}
