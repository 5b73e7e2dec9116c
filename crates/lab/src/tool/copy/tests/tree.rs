use super::super::*;
use crate::tool::tests::support::{commands, folder, listed, run_times, settings, trial};

#[test]
fn trees_are_put_there_and_copied_on_the_subject() {
    let (values, target) = (settings(&CP_TREE, "size = \"1M\""), folder());
    let spec = TrialSpec { room_bytes: 6 << 20, ..trial(&values, &target, 2) };
    let script = CP_TREE.plan(&spec).unwrap();
    assert_eq!(
        commands(&script),
        "cp -r --reflink=never /mnt/t/tree1 /mnt/t/copy1\n\
         cp -r --reflink=never /mnt/t/tree2 /mnt/t/copy2"
    );
    let prepared: Vec<String> = script
        .prepare
        .iter()
        .map(|step| match step {
            Step::Run(command) => command.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        prepared,
        [
            "cp -r --reflink=never /src/tree-1M /mnt/t/tree1",
            "cp -r --reflink=never /src/tree-1M /mnt/t/tree2",
        ]
    );
    let removed = ["tree1", "copy1", "tree2", "copy2"]
        .map(|name| Step::Remove(std::path::Path::new("/mnt/t").join(name)));
    assert_eq!(script.clean_up, removed);
    assert!(script.sync && script.warm.is_empty());
    assert_eq!(CP_TREE.work(&values, 1).source, Some(SourceData::Tree(1 << 20)));
    assert_eq!(CP_TREE.work(&values, 2).writes, Writes::Bytes(4 << 20));
    let small = TrialSpec { room_bytes: (6 << 20) - 1, ..spec };
    assert!(CP_TREE.plan(&small).unwrap_err().contains("larger region"));
}

#[test]
fn what_is_copied_is_read_and_written() {
    let (values, target) = (settings(&CP_TREE, "size = \"1M\"\nsync = false"), folder());
    let spec = trial(&values, &target, 1);
    let measured = CP_TREE.parse(&spec, &run_times(&[4.0])).unwrap();
    let expected = [
        ("seconds", 4.0),
        ("throughput", 262_144.0),
        ("bytes_read", 1_048_576.0),
        ("bytes_written", 1_048_576.0),
    ];
    assert_eq!(listed(&measured), expected);
    assert_eq!(CP_TREE.label(&values), "cp-tree 1M, no sync");
    assert_eq!(CP_TREE.label(&settings(&CP_TREE, "")), "cp-tree");
    assert_eq!(CP_TREE.parse(&spec, &run_times(&[])), Err(ToolError::Nothing { tool: "cp-tree" }));
}
