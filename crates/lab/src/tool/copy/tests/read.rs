use super::super::*;
use crate::tool::tests::support::{commands, folder, listed, run_times, settings, trial};

#[test]
fn files_are_made_before_and_read() {
    let (values, target) = (settings(&CP_READ, "size = \"512K\""), folder());
    let script = CP_READ.plan(&trial(&values, &target, 2)).unwrap();
    assert_eq!(
        commands(&script),
        "cp --reflink=never /mnt/t/file1 /dev/null\ncp --reflink=never /mnt/t/file2 /dev/null"
    );
    let file = |name: &str, seed| Step::MakeFile { path: name.into(), bytes: 512 << 10, seed };
    assert_eq!(script.prepare, [file("/mnt/t/file1", 7), file("/mnt/t/file2", 8)]);
    assert!(script.warm.is_empty() && !script.sync);
    assert_eq!(script.clean_up.len(), 2);
    assert!(CP_READ.plan(&trial(&values, &target, 3)).unwrap_err().contains("larger region"));
}

#[test]
fn bytes_are_read() {
    let (values, target) = (settings(&CP_READ, "size = \"512K\""), folder());
    let measured = CP_READ.parse(&trial(&values, &target, 1), &run_times(&[0.5])).unwrap();
    let expected = [("seconds", 0.5), ("throughput", 1_048_576.0), ("bytes_read", 524_288.0)];
    assert_eq!(listed(&measured), expected);
    assert_eq!(CP_READ.label(&settings(&CP_READ, "")), "cp-read");
}
