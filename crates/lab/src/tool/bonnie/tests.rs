use proptest::prelude::*;

use super::*;
use crate::command::ToolOutput;
use crate::tool::tests::support::{
    changed, commands, folder, listed, output, run_of, settings, trial, value,
};

/// Output of bonnie++ 2.00a: two at once on one disk, the first without the phases per character.
const FIRST: &str = include_str!("../../../testdata/bonnie-2.00a-process-1.txt");
const SECOND: &str = include_str!("../../../testdata/bonnie-2.00a-process-2.txt");
/// Output for a file so small that almost every phase is too fast.
const FAST: &str = include_str!("../../../testdata/bonnie-2.00a-too-fast.txt");
/// Output without phases of files.
const NO_FILES: &str = include_str!("../../../testdata/bonnie-2.00a-no-files.txt");
/// Output without a folder, with status 1.
const USAGE: &str = include_str!("../../../testdata/bonnie-2.00a-usage.txt");

fn process(stdout: &str, wall_s: f64) -> ToolOutput {
    ToolOutput { wall_s, ..output(stdout) }
}

fn parse(processes: Vec<ToolOutput>) -> Result<Measured, ToolError> {
    let settings = settings(&Bonnie, "");
    Bonnie.parse(&trial(&settings, &folder(), processes.len() as u32), &run_of(processes))
}

const KIB: f64 = 1024.0;

#[test]
fn one_process_gives_every_phase_that_it_timed() {
    let measured = parse(vec![process(SECOND, 80.5)]).unwrap();
    let expected = [
        ("seconds", 80.5),
        ("bonnie_putc", 322.0 * KIB),
        ("bonnie_write", 152_237.0 * KIB),
        ("bonnie_rewrite", 754_791.0 * KIB),
        ("bonnie_getc", 685.0 * KIB),
        ("bonnie_read", 1_666_592.0 * KIB),
        ("bonnie_seeks", 2778.0),
        ("bonnie_seq_create", 2145.0),
        ("bonnie_seq_delete", 26_416.0),
        ("bonnie_ran_create", 1024.0),
        ("bonnie_putc_latency", 314e6),
        ("bonnie_write_latency", 723e6),
        ("bonnie_rewrite_latency", 31_373e3),
        ("bonnie_getc_latency", 120e6),
        ("bonnie_read_latency", 76_029e3),
        ("bonnie_seek_latency", 28_863e3),
        ("bonnie_seq_create_latency", 48_208e3),
        ("bonnie_seq_stat_latency", 24_026e3),
        ("bonnie_seq_delete_latency", 40_292e3),
        ("bonnie_ran_create_latency", 108e6),
        ("bonnie_ran_stat_latency", 16_978e3),
        ("bonnie_ran_delete_latency", 24_485e3),
    ];
    assert_eq!(listed(&measured), expected);
}

#[test]
fn rates_are_added_and_the_longest_wait_counts() {
    let measured = parse(vec![process(FIRST, 60.0), process(SECOND, 80.5)]).unwrap();
    let expected = [
        ("seconds", 80.5),
        ("bonnie_write", (144_966.0 + 152_237.0) * KIB),
        ("bonnie_rewrite", (516_007.0 + 754_791.0) * KIB),
        ("bonnie_read", (1_813_498.0 + 1_666_592.0) * KIB),
        ("bonnie_seeks", 2094.0 + 2778.0),
        ("bonnie_seq_create", 3718.0 + 2145.0),
        ("bonnie_seq_delete", 26_626.0 + 26_416.0),
        ("bonnie_ran_create", 31_212.0 + 1024.0),
        ("bonnie_write_latency", 723e6),
        ("bonnie_rewrite_latency", 94_918e3),
        ("bonnie_read_latency", 76_029e3),
        ("bonnie_seek_latency", 28_863e3),
        ("bonnie_seq_create_latency", 88_045e3),
        ("bonnie_seq_stat_latency", 24_026e3),
        ("bonnie_seq_delete_latency", 40_292e3),
        ("bonnie_ran_create_latency", 108e6),
        ("bonnie_ran_stat_latency", 16_978e3),
        ("bonnie_ran_delete_latency", 24_485e3),
        ("spread_of_processes", 80.5 / 60.0),
        ("fairness", value(&measured, Metric::Fairness)),
    ];
    assert_eq!(listed(&measured), expected);
}

#[test]
fn phases_too_fast_or_left_out_have_no_number() {
    let fast = parse(vec![process(FAST, 7.0)]).unwrap();
    let rates: Vec<&str> = listed(&fast)
        .into_iter()
        .filter_map(|(name, _)| (!name.ends_with("latency")).then_some(name))
        .collect();
    assert_eq!(rates, ["seconds", "bonnie_putc", "bonnie_getc", "bonnie_seq_create"]);
    let no_files = parse(vec![process(NO_FILES, 7.0)]).unwrap();
    assert_eq!(no_files.get(Metric::BonnieSeqCreateLatency), None);
    assert!(no_files.get(Metric::BonnieSeekLatency).is_some());
}

#[test]
fn other_formats_and_garbage_are_malformed() {
    let told = |text: &str| match parse(vec![process(text, 1.0)]) {
        Err(ToolError::Malformed { reason, .. }) => reason,
        other => panic!("{text:?}: {other:?}"),
    };
    assert!(told("").contains("no line of values in nothing"));
    assert!(told("Can't open file ./Bonnie.1\n").contains("no line of values"));
    // 1.03 begins with the name of the machine and has 27 columns.
    assert!(told("1.96,1.96,host,1,1,16M,,1,1").contains("\"1.96\", known is 1.98"));
    assert!(told(SECOND.trim_end().rsplit_once(',').unwrap().0).contains("49 columns"));
    assert!(told(&format!("{},1", SECOND.trim_end())).contains("51 columns"));
    for (from, to) in [("152237", "fast"), ("152237", "-1"), ("152237", "inf"), ("723ms", "723")] {
        assert!(told(&SECOND.replace(from, to)).contains("neither"), "{to}");
    }
    assert_eq!(parse(Vec::new()), Err(ToolError::Nothing { tool: "bonnie++" }));
    let one_bad = parse(vec![process(FIRST, 1.0), process("", 1.0)]);
    assert!(one_bad.is_err(), "every process counts");
}

#[test]
fn each_process_works_in_its_own_folder() {
    let values = settings(&Bonnie, "size = \"16M\"\nfiles = 1");
    let target = folder();
    let spec =
        TrialSpec { room_bytes: 32 << 20, seed: (1 << 31) + 7, ..trial(&values, &target, 2) };
    let script = Bonnie.plan(&spec).unwrap();
    assert_eq!(
        commands(&script),
        "bonnie++ -d /mnt/t/bonnie1 -s 16:8192 -r 8 -n 1 -u root -z 7 -m lab -q\n\
         bonnie++ -d /mnt/t/bonnie2 -s 16:8192 -r 8 -n 1 -u root -z 8 -m lab -q"
    );
    let folders = ["/mnt/t/bonnie1", "/mnt/t/bonnie2"];
    assert_eq!(script.prepare, folders.map(|path| Step::MakeFolder(path.into())));
    assert_eq!(script.clean_up, folders.map(|path| Step::Remove(path.into())));
    let three = TrialSpec { processes: 3, ..spec };
    assert!(Bonnie.plan(&three).unwrap_err().contains("larger region"));
    let values = "size = \"16M\"\nchunk = \"64K\"\nram = \"4M\"\nfiles = 0\nper_char = false";
    let values = settings(&Bonnie, values);
    let spec =
        TrialSpec { region_bytes: 32 << 20, room_bytes: 32 << 20, ..trial(&values, &target, 1) };
    assert_eq!(
        commands(&Bonnie.plan(&spec).unwrap()),
        "bonnie++ -d /mnt/t/bonnie1 -s 16:65536 -r 4 -n 0 -u root -z 7 -m lab -q -f"
    );
    assert_eq!(Bonnie.label(&values), "bonnie++ 16M, chunk 64K, 0x1024 files, ram 4M, blocks only");
    assert_eq!(Bonnie.label(&settings(&Bonnie, "size = \"512M\"")), "bonnie++ 512M");
}

#[test]
fn checks_and_versions() {
    let check = |values: &str| Bonnie.check(&settings(&Bonnie, values), 1);
    assert_eq!(check("size = \"16M\"\nram = \"8M\""), Ok(()));
    assert!(check("size = \"16M\"\nram = \"9M\"").unwrap_err().contains("at least twice ram"));
    let usage = ToolOutput { stderr: USAGE.to_owned(), ..output("") };
    assert_eq!(Bonnie.parse_version(&usage), Ok("bonnie++-2.00a".to_owned()));
    assert!(Bonnie.parse_version(&output("Version: ?")).is_err());
}

proptest! {
    #[test]
    fn no_output_panics(text in "\\PC{0,200}", at in any::<usize>(), byte in 32..127_u8) {
        drop(parse(vec![process(&text, 1.0)]));
        drop(parse(vec![process(&format!("1.98,{text}"), 1.0)]));
        drop(parse(vec![process(&changed(SECOND, at, byte), 1.0), process(FIRST, 1.0)]));
        prop_assert!(parse(vec![process(&SECOND[..at % (SECOND.len() - 6)], 1.0)]).is_err());
    }
}
