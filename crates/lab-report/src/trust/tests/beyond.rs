//! Reads of areas that were never written, and writes of a tool beyond its region.

use super::*;
use braid_lab::campaign::FileSystem;

#[test]
fn what_reads_on_beyond_the_region_is_doubted() {
    let hdparm = |bytes: u64| {
        let mut lab = Lab::new().each(|trial| set(trial, Metric::BytesRead, bytes as f64));
        lab.workload.tool = "hdparm".into();
        lab.found("unwritten")
    };
    assert_eq!(hdparm(1000 * MIB), None);
    let finding = hdparm(1002 * MIB).unwrap();
    assert_eq!(finding.standing, Suspect);
    assert!(finding.why.contains("first 1002 MiB, and the region is the first 1000 MiB"));
    // fio reads its region again and again.
    let again = Lab::new().each(|trial| set(trial, Metric::BytesRead, 4e9));
    assert_eq!(again.found("unwritten"), None);
}

#[test]
fn what_was_never_written_is_doubted() {
    let found =
        |content: Option<RegionContent>| Lab::new().each(|trial| trial.evidence.content = content);
    let holes =
        |holes: u64| found(Some(RegionContent::Found { holes: holes * MIB, bytes: 1000 * MIB }));
    assert_eq!((holes(0).found("unwritten"), holes(99).found("unwritten")), (None, None));
    let finding = holes(100).found("unwritten").unwrap();
    assert_eq!(finding.standing, Suspect);
    assert!(finding.why.starts_with("100 MiB of the first 1000 MiB (10 %)"), "{}", finding.why);
    // The content of a disk is unknown, unless it is a rotating one, for which it does not matter.
    assert_eq!(found(None).judge().unchecked["unwritten"], 3);
    let mut unknown = found(Some(RegionContent::Unknown));
    assert_eq!(unknown.judge().unchecked["unwritten"], 3);
    let Place::Disk(disk) = &mut unknown.facts[0].members[0].place else { panic!() };
    disk.rotational = true;
    assert_eq!(unknown.judge().unchecked.get("unwritten"), None);
    unknown.facts[0].members[0].member = "./file on it".into();
    assert_eq!(unknown.judge().unchecked["unwritten"], 3);
    // Writing, on a file system, on a model: it does not matter.
    let mut writes = found(None).each(write_instead);
    writes.workload.settings = writes.workload.settings.with("op", Value::Word("write".into()));
    assert_eq!(writes.judge().unchecked.get("unwritten"), None);
    let files = found(None).setup(|setup| setup.filesystem = FileSystem::Ext4);
    assert_eq!(files.judge().unchecked.get("unwritten"), None);
    let mut model = found(None);
    model.subjects[0].1 = Source::Stack("model(hdd, size=1G)".into());
    assert_eq!(model.judge().unchecked.get("unwritten"), None);
}

#[test]
fn a_ramp_is_only_that_of_tools_that_have_one() {
    let mut lab = Lab::new().each(|trial| trial.evidence.target = Some(read(2500 * MIB)));
    lab.ramp_s = 10.0;
    lab.workload.tool = "sysbench".into();
    assert_eq!(lab.standing("another-writer"), Some(Suspect));
}
