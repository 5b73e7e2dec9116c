use super::*;
use crate::trust::levels::least_written;
use braid_lab::campaign::Health;

fn target(bytes: u64) -> impl FnMut(&mut StoredTrial) {
    move |trial| trial.evidence.target = Some(read(bytes))
}

#[test]
fn bytes_that_the_device_never_moved_came_from_a_cache() {
    let of = |mib: u64| Lab::new().buffered().each(target(mib * MIB)).standing("page-cache");
    assert_eq!(
        [of(0), of(499), of(500), of(899), of(900), of(3000)],
        [Some(Invalid), Some(Invalid), Some(Suspect), Some(Suspect), None, None]
    );
}

#[test]
fn o_direct_that_was_ignored_is_said() {
    let finding = Lab::new().each(target(0)).found("page-cache").unwrap();
    assert_eq!(finding.standing, Invalid);
    assert!(finding.why.contains("although O_DIRECT was asked for"), "{}", finding.why);
}

#[test]
fn a_cache_that_was_asked_for_is_no_cheat() {
    let lab = Lab::new().buffered().each(target(0)).setup(|setup| setup.drop_caches = false);
    let finding = lab.found("page-cache").unwrap();
    assert_eq!(finding.standing, Suspect);
    assert!(finding.why.contains("kept as asked for"), "{}", finding.why);
    // No question is about writes that stay in memory.
    let writes = Lab::new().buffered().each(write_instead).each(target(0));
    let writes = writes.setup(|setup| setup.drop_caches = false);
    assert_eq!(writes.standing("page-cache"), Some(Invalid));
    // With O_DIRECT, the cache was not to be measured.
    let lab = Lab::new().each(target(0)).setup(|setup| setup.drop_caches = false);
    assert_eq!(lab.standing("page-cache"), Some(Invalid));
}

#[test]
fn writes_that_are_still_in_memory_are_found() {
    let of = |mib: u64| {
        let lab = Lab::new().buffered().each(write_instead);
        lab.each(|trial| trial.evidence.target = Some(written(mib * MIB))).found("page-cache")
    };
    let finding = of(20).unwrap();
    assert_eq!(finding.standing, Invalid);
    assert!(finding.why.contains("claims 1000 MiB written"), "{}", finding.why);
    assert!(finding.why.contains("in memory when the clock stopped"), "{}", finding.why);
    assert_eq!(of(1000), None);
    // Reads are no substitute for writes.
    let lab = Lab::new().buffered().each(write_instead).each(target(1000 * MIB));
    assert_eq!(lab.standing("page-cache"), Some(Invalid));
}

#[test]
fn the_members_witness_where_there_is_no_device() {
    let of = |mib: u64| {
        let lab = Lab::new().each(|trial| trial.evidence.target = None);
        lab.each(|trial| trial.evidence.members[0].1 = read(mib * MIB)).found("page-cache")
    };
    assert_eq!(of(100).unwrap().standing, Invalid);
    assert!(of(100).unwrap().why.contains("the members' disks moved 100 MiB"));
    assert_eq!(of(950), None);
}

/// The device passes requests on and counts none, so the counters of the disks below it are used.
#[test]
fn the_kernels_linear_is_no_witness() {
    let of = |array: &str, mib: u64| {
        let mut lab = Lab::new().buffered().each(target(0));
        lab.subjects[0].1 = Source::Kernel(array.into());
        lab.each(|trial| trial.evidence.members[0].1 = read(mib * MIB)).found("page-cache")
    };
    assert_eq!(of("linear(/dev/sda, /dev/sdb)", 950), None);
    let finding = of("linear(/dev/sda, /dev/sdb)", 100).unwrap();
    assert_eq!(finding.standing, Invalid);
    assert!(finding.why.contains("the members' disks moved 100 MiB"), "{}", finding.why);
    let finding = of("raid0(chunk=64K, /dev/sda, /dev/sdb)", 950).unwrap();
    assert!(finding.why.contains("its device moved 0.0 MiB"), "{}", finding.why);
}

/// A loop device over a file: the device received all requests, the disk only few.
#[test]
fn a_cache_below_the_subject_is_a_doubt_and_no_more() {
    let of = |mib: u64| {
        Lab::new().each(|trial| trial.evidence.members[0].1 = read(mib * MIB)).found("page-cache")
    };
    let finding = of(499).unwrap();
    assert_eq!(finding.standing, Suspect);
    assert!(finding.why.contains("a cache below it answered"), "{}", finding.why);
    assert!(finding.action.contains("--direct-io=on"), "{}", finding.action);
    assert_eq!(of(501), None);
}

/// Half of the array is memory, so the disk moves half: the expected amount is unknown.
#[test]
fn members_in_memory_prove_nothing() {
    let mut lab = Lab::new().each(|trial| trial.evidence.members[0].1 = read(0));
    lab.facts[0].members.push(Placed { member: "ram(1G)".into(), place: Place::Memory });
    assert_eq!(lab.standing("page-cache"), None);
    let lab = lab.each(|trial| trial.evidence.target = None);
    assert_eq!(lab.standing("page-cache"), None);
    assert_eq!(lab.judge().unchecked["page-cache"], 3);
}

#[test]
fn a_claim_of_nearly_nothing_is_not_compared() {
    let of = |bytes: f64| {
        let lab = Lab::new().each(|trial| set(trial, Metric::BytesRead, bytes));
        lab.each(target(0)).standing("page-cache")
    };
    assert_eq!([of(1_048_575.0), of(1_048_576.0)], [None, Some(Invalid)]);
}

fn reread(lab: Lab) -> Lab {
    lab.each(|trial| {
        trial.region_bytes = 500 * MIB;
        trial.evidence.target = None;
        trial.evidence.members.clear();
    })
}

#[test]
fn data_that_fit_memory_are_doubted_when_nobody_saw_the_device() {
    let lab = reread(Lab::new().buffered());
    let finding = lab.found("page-cache").unwrap();
    assert_eq!(finding.standing, Suspect);
    assert!(finding.why.contains("the data are 500 MiB and the memory is 8192 MiB"), "{finding:?}");
    // The file is read only once, after caches were dropped; or past the cache.
    let once = lab.each(|trial| trial.region_bytes = 1000 * MIB);
    assert_eq!(once.standing("page-cache"), None);
    assert_eq!(reread(Lab::new()).standing("page-cache"), None);
    // The caches are kept: earlier content may answer the first read.
    let kept = once.setup(|setup| setup.drop_caches = false);
    assert_eq!(kept.standing("page-cache"), Some(Suspect));
}

#[test]
fn data_of_twice_the_memory_do_not_fit() {
    let of = |memory: u64| {
        let lab = reread(Lab::new().buffered());
        lab.each(|trial| trial.evidence.memory_bytes = Some(memory)).standing("page-cache")
    };
    assert_eq!([of(250 * MIB), of(250 * MIB + 1)], [None, Some(Suspect)]);
}

/// The device's counters are better than an estimate from sizes.
#[test]
fn a_device_that_moved_it_all_ends_the_doubt() {
    let lab = Lab::new().buffered().each(|trial| trial.region_bytes = 500 * MIB);
    assert_eq!(lab.standing("page-cache"), None);
}

#[test]
fn bonnie_reads_back_what_it_wrote() {
    let mut lab = Lab::new().buffered().each(|trial| {
        trial.evidence.target = None;
        trial.measured = measured(&[(Metric::BonnieRead, 1e9)]);
    });
    lab.workload.settings = lab.workload.settings.with("size", Value::Size(ByteSize(4 << 30)));
    assert_eq!(lab.standing("page-cache"), Some(Suspect));
    lab.workload.settings = lab.workload.settings.with("size", Value::Size(ByteSize(16 << 30)));
    assert_eq!(lab.standing("page-cache"), None);
}

/// Files of 3 GiB are below twice the memory of 8 GiB; six of them, one for each process, are not.
#[test]
fn each_process_has_files_of_its_own() {
    let of = |name: &str, processes: u32| {
        let mut lab = reread(Lab::new().buffered()).each(|trial| {
            trial.measured = measured(&[(Metric::BonnieRead, 1e9)]);
        });
        lab.workload.settings = lab.workload.settings.with(name, Value::Size(ByteSize(3 << 30)));
        lab.setup(|setup| setup.processes = processes).standing("page-cache")
    };
    assert_eq!([of("size", 1), of("size", 6)], [Some(Suspect), None]);
    assert_eq!([of("file_size", 1), of("file_size", 6)], [Some(Suspect), None]);
    assert_eq!(of("total_size", 6), Some(Suspect));
}

/// The tool counts 1000 MiB in 10 s. In a ramp of the same length it moves as much, or at least half of it if
/// it is delayed: the device moves 1500 MiB and more.
#[test]
fn the_ramps_bytes_are_expected_too() {
    let of = |mib: u64| Lab::new().ramped(10.0).each(target(mib * MIB)).found("page-cache");
    let standing = |mib| of(mib).map(|finding| finding.standing);
    assert_eq!(
        [standing(749), standing(750), standing(920), standing(1349), standing(1350)],
        [Some(Invalid), Some(Suspect), Some(Suspect), Some(Suspect), None]
    );
    let why = of(920).unwrap().why;
    assert!(why.contains("1000 MiB read, at least 1500 MiB with its ramp, and its dev"), "{why}");
    assert!(why.contains("moved 920 MiB of them (61 %)"), "{why}");
    // A tool without a ramp moves exactly the amount that it reports.
    let mut lab = Lab::new().ramped(10.0);
    lab.workload.tool = "sysbench".into();
    assert_eq!(lab.standing("page-cache"), None);
}

/// The bytes that reach the members' disks if 1000 MiB are written to a mirror, without a device between.
#[test]
fn copies_are_expected_of_the_members() {
    let of = |stack: &str, health: Health, disks_mib: u64| {
        let mut lab = Lab::new();
        lab.add("array", Source::Stack(stack.into()), &["sda", "sdb"]);
        let lab = lab.each(write_instead).each(|trial| {
            if trial.subject == "array" {
                trial.evidence.target = None;
                trial.evidence.members =
                    ["sda", "sdb"].map(|d| (d.to_owned(), written(disks_mib / 2 * MIB))).to_vec();
            }
        });
        let lab = lab.setup(|setup| setup.health = health);
        lab.found_about("array", "page-cache")
    };
    let mirror = "raid1(/dev/sda, /dev/sdb)";
    let healthy = |mib| of(mirror, Health::Healthy, mib).map(|finding| finding.standing);
    assert_eq!(
        [healthy(920), healthy(1000), healthy(1798), healthy(1800)],
        [Some(Invalid), Some(Suspect), Some(Suspect), None]
    );
    let why = of(mirror, Health::Healthy, 920).unwrap().why;
    assert!(why.contains("written, at least 2000 MiB with copies or parity, and"), "{why}");
    // After a ramp of the same length, half of that amount is also on the disks twice.
    let mut lab = Lab::new();
    lab.add("array", Source::Stack(mirror.into()), &["sda", "sdb"]);
    let lab = lab.ramped(10.0).each(write_instead).each(|trial| {
        trial.evidence.target = None;
        let disk = |d: &str| (d.to_owned(), written(460 * MIB));
        trial.evidence.members = ["sda", "sdb"].map(disk).to_vec();
    });
    let finding = lab.found_about("array", "page-cache").unwrap();
    assert_eq!(finding.standing, Invalid);
    assert!(finding.why.contains("3000 MiB with its ramp and copies"), "{}", finding.why);
    // Without one of its members the mirror has one copy; while that member is filled, it may have two.
    for health in [Health::Degraded, Health::Rebuilding, Health::Story] {
        assert_eq!(of(mirror, health, 900), None, "{health:?}");
        assert_eq!(of(mirror, health, 498).unwrap().standing, Invalid, "{health:?}");
    }
    // Reads move no copies.
    let mut lab = Lab::new();
    lab.add("array", Source::Stack(mirror.into()), &["sda", "sdb"]);
    let lab = lab.each(|trial| trial.evidence.target = None);
    assert_eq!(lab.found_about("array", "page-cache"), None);
}

/// The kernel's md counts the requests it received, and its members' disks twice as many.
#[test]
fn copies_below_a_device_are_expected_too() {
    let of = |mib: u64| {
        let mut lab = Lab::new();
        lab.add("array", Source::Kernel("raid1(/dev/sda, /dev/sdb)".into()), &["sda", "sdb"]);
        let lab = lab.each(write_instead).each(|trial| {
            trial.evidence.members =
                ["sda", "sdb"].map(|d| (d.to_owned(), written(mib / 2 * MIB))).to_vec();
        });
        lab.found_about("array", "page-cache")
    };
    let finding = of(998).unwrap();
    assert_eq!(finding.standing, Suspect);
    assert!(finding.why.contains("a cache below it answered"), "{}", finding.why);
    assert_eq!(of(1000), None);
}

#[test]
fn levels_have_a_least_as_well() {
    let of = |text: &str| least_written(&braid_stack::Stack::parse(text).unwrap());
    assert_eq!(of("/dev/a"), 1.0);
    assert_eq!(of("linear(/dev/a, raid1(/dev/b, /dev/c))"), 1.0);
    assert_eq!(of("raid0(raid1(/dev/a, /dev/b), raid1(/dev/c, /dev/d))"), 2.0);
    assert_eq!(of("raid1(/dev/a, /dev/b, missing)"), 2.0);
    assert!((of("raid10(layout=n3, /dev/a, /dev/b, /dev/c, /dev/d)") - 3.0).abs() < 1e-6);
    assert_eq!(of("raid10(/dev/a, /dev/b, missing, /dev/d)"), 1.5);
    assert_eq!(of("raid5(/dev/a, /dev/b, /dev/c, /dev/d, /dev/e)"), 1.25);
    assert_eq!(of("raid5(/dev/a, /dev/b, missing)"), 1.0);
    assert_eq!(of("raid6(/dev/a, /dev/b, /dev/c, /dev/d)"), 2.0);
    assert_eq!(of("raid6(/dev/a, /dev/b, /dev/c, missing)"), 1.5);
    assert_eq!(of("md(/dev/a, /dev/b)"), 1.0);
    // One and a half on its members, and one on the other disk.
    assert_eq!(of("raid1(raid5(/dev/a, /dev/b, /dev/c), /dev/d)"), 2.5);
}
