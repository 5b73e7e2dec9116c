use super::super::*;
use crate::tool::tests::support::{commands, folder, listed, run_times, settings, trial};

#[test]
fn the_source_is_warm_and_the_copies_are_apart() {
    let (values, target) = (settings(&CP_CACHED, "size = \"512K\""), folder());
    let script = CP_CACHED.plan(&trial(&values, &target, 2)).unwrap();
    assert_eq!(
        commands(&script),
        "cp --reflink=never /src/random-512K.bin /mnt/t/copy1\n\
         cp --reflink=never /src/random-512K.bin /mnt/t/copy2"
    );
    assert!(script.prepare.is_empty() && script.sync);
    assert_eq!(script.warm, [Step::ReadAll("/src/random-512K.bin".into())]);
    let removed = [Step::Remove("/mnt/t/copy1".into()), Step::Remove("/mnt/t/copy2".into())];
    assert_eq!(script.clean_up, removed);
    assert_eq!(CP_CACHED.work(&values, 1).source, Some(SourceData::File(512 << 10)));
    assert!(CP_CACHED.plan(&trial(&values, &target, 3)).unwrap_err().contains("larger region"));
}

#[test]
fn bytes_are_written() {
    let (values, target) = (settings(&CP_CACHED, "size = \"512K\"\nsync = false"), folder());
    let spec = trial(&values, &target, 2);
    let measured = CP_CACHED.parse(&spec, &run_times(&[1.0, 1.0])).unwrap();
    let expected = [
        ("seconds", 1.0),
        ("throughput", 1_048_576.0),
        ("spread_of_processes", 1.0),
        ("fairness", 1.0),
        ("bytes_written", 1_048_576.0),
    ];
    assert_eq!(listed(&measured), expected);
    assert_eq!(CP_CACHED.label(&values), "cp-cached 512K, no sync");
    assert!(!CP_CACHED.plan(&spec).unwrap().sync);
}
