use super::*;
use crate::campaign::{FileSystem, Health};
use crate::trust::others::amplification;

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
    // Nobody asks for writes that stay in memory.
    let writes = Lab::new().buffered().each(write_instead).each(target(0));
    let writes = writes.setup(|setup| setup.drop_caches = false);
    assert_eq!(writes.standing("page-cache"), Some(Invalid));
    // With O_DIRECT nobody asked for the cache.
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
    // Reading is no substitute for writing.
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

/// It passes requests on and counts none, so the disks below it are asked.
#[test]
fn the_kernels_linear_is_no_witness() {
    let of = |array: &str, mib: u64| {
        let mut lab = Lab::new().buffered().each(target(0));
        lab.subjects[0].1 = Source::Kernel(array.to_owned());
        lab.each(|trial| trial.evidence.members[0].1 = read(mib * MIB)).found("page-cache")
    };
    assert_eq!(of("linear(/dev/sda, /dev/sdb)", 950), None);
    let finding = of("linear(/dev/sda, /dev/sdb)", 100).unwrap();
    assert_eq!(finding.standing, Invalid);
    assert!(finding.why.contains("the members' disks moved 100 MiB"), "{}", finding.why);
    let finding = of("raid0(chunk=64K, /dev/sda, /dev/sdb)", 950).unwrap();
    assert!(finding.why.contains("its device moved 0.0 MiB"), "{}", finding.why);
}

/// A loop device over a file: the device was asked for everything, the disk for little.
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

/// Half of the array is memory, so the disk moves half: nobody knows what it should be.
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
    let finding = lab.found("fits-cache").unwrap();
    assert_eq!(finding.standing, Suspect);
    assert!(finding.why.contains("the data are 500 MiB and the memory is 8192 MiB"), "{finding:?}");
    // Read once only, after caches were dropped; or past the cache.
    let once = lab.each(|trial| trial.region_bytes = 1000 * MIB);
    assert_eq!(once.standing("fits-cache"), None);
    assert_eq!(reread(Lab::new()).standing("fits-cache"), None);
    // Caches kept: what was there before may answer the first time.
    let kept = once.setup(|setup| setup.drop_caches = false);
    assert_eq!(kept.standing("fits-cache"), Some(Suspect));
}

#[test]
fn data_of_twice_the_memory_do_not_fit() {
    let of = |memory: u64| {
        let lab = reread(Lab::new().buffered());
        lab.each(|trial| trial.evidence.memory_bytes = Some(memory)).standing("fits-cache")
    };
    assert_eq!([of(250 * MIB), of(250 * MIB + 1)], [None, Some(Suspect)]);
}

/// The device's counters are better than a guess from sizes.
#[test]
fn a_device_that_moved_it_all_ends_the_doubt() {
    let lab = Lab::new().buffered().each(|trial| trial.region_bytes = 500 * MIB);
    assert_eq!(lab.standing("fits-cache"), None);
    let lab = lab.each(target(899 * MIB));
    assert_eq!(lab.standing("fits-cache"), Some(Suspect));
}

#[test]
fn bonnie_reads_back_what_it_wrote() {
    let mut lab = Lab::new().buffered().each(|trial| {
        trial.evidence.target = None;
        trial.measured = measured(&[(Metric::BonnieRead, 1e9)]);
    });
    lab.workload.settings = lab.workload.settings.with("size", Value::Size(ByteSize(4 << 30)));
    assert_eq!(lab.standing("fits-cache"), Some(Suspect));
    lab.workload.settings = lab.workload.settings.with("size", Value::Size(ByteSize(16 << 30)));
    assert_eq!(lab.standing("fits-cache"), None);
}

/// Files of 3 GiB are below twice the memory of 8 GiB; six of them, one a process, are not.
#[test]
fn each_process_has_files_of_its_own() {
    let of = |name: &str, processes: u32| {
        let mut lab = reread(Lab::new().buffered()).each(|trial| {
            trial.measured = measured(&[(Metric::BonnieRead, 1e9)]);
        });
        lab.workload.settings = lab.workload.settings.with(name, Value::Size(ByteSize(3 << 30)));
        lab.setup(|setup| setup.processes = processes).standing("fits-cache")
    };
    assert_eq!([of("size", 1), of("size", 6)], [Some(Suspect), None]);
    assert_eq!([of("file_size", 1), of("file_size", 6)], [Some(Suspect), None]);
    assert_eq!(of("total_size", 6), Some(Suspect));
}

#[test]
fn the_volumes_own_cache_counts_in_spite_of_o_direct() {
    let of = |cache: u64| {
        let lab = Lab::new().each(|trial| trial.evidence.cache_bytes = Some(cache));
        lab.standing("fits-cache")
    };
    assert_eq!([of(1000 * MIB), of(1000 * MIB - 1)], [Some(Suspect), None]);
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
    let mut lab = Lab::new().each(target(2500 * MIB));
    assert_eq!(lab.standing("another-writer"), Some(Suspect));
    lab.ramp_s = 10.0;
    assert_eq!(lab.standing("another-writer"), None);
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
        let found = amplification(&braid_stack::Stack::parse(text).unwrap());
        (found.written, found.read_to_write)
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
    // What a rebuild moves nobody can say.
    assert_eq!(of(&format!("raid0({disks})"), 9000, Health::Rebuilding), None);
}

/// As when a mirror fills itself while it is read: nobody asked for a single write.
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
