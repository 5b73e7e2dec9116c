use super::super::*;
use crate::tool::tests::support::{commands, folder, listed, run_times, settings, trial};

const SMALL: &str = "size = \"1M\"";

fn roomy<'a>(
    settings: &'a Settings,
    target: &'a crate::command::Target,
    processes: u32,
) -> TrialSpec<'a> {
    TrialSpec { room_bytes: 3 << 20, ..trial(settings, target, processes) }
}

#[test]
fn each_process_unpacks_into_its_own_folder() {
    let (values, target) = (settings(&UNTAR, SMALL), folder());
    let script = UNTAR.plan(&roomy(&values, &target, 2)).unwrap();
    assert_eq!(
        commands(&script),
        "tar -x --force-local --file=/src/tree-1M.tar --directory=/mnt/t/tree1\n\
         tar -x --force-local --file=/src/tree-1M.tar --directory=/mnt/t/tree2"
    );
    let (one, two): (std::path::PathBuf, std::path::PathBuf) =
        ("/mnt/t/tree1".into(), "/mnt/t/tree2".into());
    assert_eq!(script.prepare, [Step::MakeFolder(one.clone()), Step::MakeFolder(two.clone())]);
    assert_eq!(script.warm, [Step::ReadAll("/src/tree-1M.tar".into())]);
    assert_eq!(script.clean_up, [Step::Remove(one), Step::Remove(two)]);
    assert!(script.sync);
    assert_eq!(UNTAR.work(&values, 1).source, Some(SourceData::Archive(1 << 20)));
    assert_eq!(UNTAR.work(&values, 2).writes, Writes::Bytes(2 << 20));
    let refused = UNTAR.plan(&roomy(&values, &target, 3)).unwrap_err();
    assert!(refused.contains("it needs 4.5 MiB and has 3 MiB"), "{refused}");
    assert!(UNTAR.plan(&trial(&values, &crate::tool::tests::support::device(), 1)).is_err());
}

#[test]
fn the_wall_time_counts_and_the_slowest_is_compared() {
    let (values, target) = (settings(&UNTAR, SMALL), folder());
    let mut run = run_times(&[2.0, 1.0]);
    run.wall_s = 2.5; // with the sync
    let measured = UNTAR.parse(&roomy(&values, &target, 2), &run).unwrap();
    let expected = [
        ("seconds", 2.5),
        ("throughput", 2_097_152.0 / 2.5),
        ("spread_of_processes", 2.0),
        ("fairness", 0.9),
        ("bytes_written", 2_097_152.0),
    ];
    assert_eq!(listed(&measured), expected);
    let none = UNTAR.parse(&roomy(&values, &target, 1), &run_times(&[]));
    assert_eq!(none, Err(ToolError::Nothing { tool: "untar" }));
    let no_time = UNTAR.parse(&roomy(&values, &target, 1), &run_times(&[0.0]));
    assert!(matches!(no_time, Err(ToolError::Malformed { .. })));
}

#[test]
fn labels() {
    let label = |values: &str| UNTAR.label(&settings(&UNTAR, values));
    assert_eq!((label(""), label(SMALL)), ("untar".to_owned(), "untar 1M".to_owned()));
}
