use super::*;
use crate::trust::levels::most_of;
use braid_lab::campaign::{FileSystem, Health};

fn target(bytes: u64) -> impl FnMut(&mut StoredTrial) {
    move |trial| trial.evidence.target = Some(read(bytes))
}

/// 1.5 times the bytes, 32 MiB, and 2 MiB in each of 10.2 seconds: 1552 MiB.
#[test]
fn a_device_that_moved_more_was_used_by_others() {
    let of = |mib: u64| {
        let lab = Lab::new().each(target(mib * MIB));
        lab.each(|trial| trial.evidence.strangers = vec![("tar".into(), 700 * MIB)])
            .found("another-writer")
    };
    let finding = of(1553).unwrap();
    assert_eq!(finding.standing, Suspect);
    assert!(finding.why.contains("accounts for 1000 MiB"), "{}", finding.why);
    assert!(finding.why.contains("tar moved 700 MiB"), "{}", finding.why);
    assert_eq!(of(1552), None);
    // Writing beside a tool that only reads.
    let lab = Lab::new().each(|trial| {
        trial.evidence.target =
            Some(Moved { read_bytes: 1000 * MIB, written_bytes: 60 * MIB, busy_ms: 0 });
    });
    assert!(lab.found("another-writer").unwrap().why.contains("wrote 60.0 MiB"));
}

#[test]
fn the_ramp_moves_bytes_too() {
    let lab = Lab::new().each(target(2500 * MIB));
    assert_eq!(lab.standing("another-writer"), Some(Suspect));
    assert_eq!(lab.ramped(10.0).standing("another-writer"), None);
    // A campaign's ramp is nothing to a tool that has none.
    let mut lab = Lab::new().ramped(10.0).each(target(2500 * MIB));
    lab.workload.tool = "sysbench".into();
    assert_eq!(lab.standing("another-writer"), Some(Suspect));
}

#[test]
fn reading_ahead_and_journals_are_nobody_else() {
    // 1000 random requests of 4 KiB, buffered: each may become 128 KiB.
    let random = |lab: Lab| {
        lab.each(|trial| {
            set(trial, Metric::BytesRead, 4_096_000.0);
            set(trial, Metric::Throughput, 409_600.0);
            trial.evidence.members[0].1 = read(120 * MIB);
        })
        .each(target(120 * MIB))
    };
    assert_eq!(random(Lab::new().buffered()).standing("another-writer"), None);
    assert_eq!(random(Lab::new()).standing("another-writer"), Some(Suspect));
    let journaled = |lab: Lab| {
        lab.each(write_instead).each(|trial| {
            trial.evidence.target = Some(written(2000 * MIB));
            trial.evidence.members[0].1 = written(2000 * MIB);
        })
    };
    let ext4 = Lab::new().setup(|setup| setup.filesystem = FileSystem::Ext4);
    assert_eq!(journaled(ext4).standing("another-writer"), None);
    assert_eq!(journaled(Lab::new()).standing("another-writer"), Some(Suspect));
}

#[test]
fn levels_upon_levels_multiply() {
    let of = |text: &str| {
        let found = most_of(&braid_stack::Stack::parse(text).unwrap());
        (found.written, found.read)
    };
    assert_eq!(of("/dev/a"), (1.0, 0.0));
    assert_eq!(of("linear(/dev/a, /dev/b)"), (1.0, 0.0));
    assert_eq!(of("raid5(/dev/a, /dev/b, /dev/c)"), (4.0, 3.0));
    assert_eq!(of("raid6(/dev/a, /dev/b, /dev/c, /dev/d)"), (6.0, 4.0));
    assert_eq!(of("md(/dev/a, /dev/b)"), (6.0, 2.0));
    // Each copy reads for itself.
    assert_eq!(of("raid1(raid5(/dev/a, /dev/b, /dev/c), /dev/d)"), (8.0, 6.0));
    assert_eq!(of("raid10(/dev/a, /dev/b, /dev/c)"), (2.0, 0.0));
}

#[test]
fn copies_and_parity_are_nobody_else() {
    let of = |stack: &str, each_mib: u64, health| {
        let mut lab = Lab::new();
        lab.add("array", Source::Stack(stack.into()), &["sda", "sdb", "sdc", "sdd"]);
        let lab = lab.each(write_instead).each(|trial| {
            if trial.subject == "array" {
                let four = ["sda", "sdb", "sdc", "sdd"];
                trial.evidence.members =
                    four.map(|name| (name.to_owned(), written(each_mib * MIB))).to_vec();
            }
        });
        let lab = lab.setup(|setup| setup.health = health);
        lab.found_about("array", "another-writer").map(|finding| finding.standing)
    };
    let healthy = Health::Healthy;
    let disks = "/dev/sda, /dev/sdb, /dev/sdc, /dev/sdd";
    // Four copies of 1000 MiB, twice for bitmaps, 1.5 times, 52 MiB: 3013 MiB on each of four.
    assert_eq!(of(&format!("raid1({disks})"), 3013, healthy), None);
    assert_eq!(of(&format!("raid1({disks})"), 3014, healthy), Some(Suspect));
    // A stripe has one copy: 763 MiB on each.
    assert_eq!(of(&format!("raid0({disks})"), 763, healthy), None);
    assert_eq!(of(&format!("raid0({disks})"), 764, healthy), Some(Suspect));
    assert_eq!(of(&format!("raid5({disks})"), 3013, healthy), None);
    assert_eq!(of(&format!("raid10({disks})"), 1600, healthy), Some(Suspect));
    assert_eq!(
        of("raid1(raid0(/dev/sda, /dev/sdb), raid0(/dev/sdc, /dev/sdd))", 1500, healthy),
        None
    );
    // The bytes of a rebuild are unknown.
    assert_eq!(of(&format!("raid0({disks})"), 9000, Health::Rebuilding), None);
}

/// Like a mirror that fills itself while it is read: the tool requested no writes.
#[test]
fn writes_under_a_tool_that_only_reads_are_not_its_own() {
    let of = |mib: u64| {
        let lab = Lab::new().each(|trial| {
            set(trial, Metric::Requests, 1e6);
            trial.evidence.members[0].1.written_bytes = mib * MIB;
        });
        lab.found("another-writer")
    };
    assert_eq!(of(52), None);
    assert!(of(53).unwrap().why.contains("wrote 53.0 MiB, and the trial accounts for 0.0 MiB"));
    // A buffered write of part of a page reads it; a read writes nothing.
    let partly = |lab: Lab| {
        lab.each(write_instead).each(|trial| {
            set(trial, Metric::Requests, 100_000.0);
            for moved in trial.evidence.target.iter_mut().chain([&mut trial.evidence.members[0].1])
            {
                moved.read_bytes = 390 * MIB;
            }
        })
    };
    assert_eq!(partly(Lab::new().buffered()).standing("another-writer"), None);
    assert_eq!(partly(Lab::new()).standing("another-writer"), Some(Suspect));
}

#[test]
fn strangers_count_where_no_device_was_seen() {
    let of = |mib: u64| {
        let lab = Lab::new().each(|trial| {
            trial.evidence.target = None;
            trial.evidence.members.clear();
            trial.evidence.strangers = vec![("dd".into(), mib * MIB)];
        });
        lab.found("another-writer")
    };
    let finding = of(100).unwrap();
    assert_eq!(finding.standing, Suspect);
    assert!(finding.why.contains("dd (100 MiB)"), "{}", finding.why);
    assert_eq!(of(99), None);
    // The devices' counters agree with the tool, so the strangers were elsewhere.
    let seen = Lab::new().each(|t| t.evidence.strangers = vec![("dd".into(), 9000 * MIB)]);
    assert_eq!(seen.standing("another-writer"), None);
    // A subject in memory does not care about disks.
    let mut lab = Lab::new().each(|trial| {
        trial.evidence.members.clear();
        trial.evidence.strangers = vec![("dd".into(), 9000 * MIB)];
    });
    lab.facts[0].members = vec![Placed { member: "ram(1G)".into(), place: Place::Memory }];
    assert_eq!(lab.standing("another-writer"), None);
}
