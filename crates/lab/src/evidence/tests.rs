//! Parsers with texts of real kernels, and two snapshots of a machine made of files.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::counters::{Processors, find_disk, parse_processors};
use super::heat::parse_millidegrees;
use super::mdstat::parse_mdstat;
use super::process::{Mover, Movers, ProcessStat, parse_io, parse_process};
use super::*;

const DISKSTATS: &str = include_str!("../../testdata/evidence/diskstats");
const RECOVERY: &str = include_str!("../../testdata/evidence/mdstat-recovery");
const CHECK: &str = include_str!("../../testdata/evidence/mdstat-check");
const STAT: &str = "cpu  258195 427 48422 191881 6188 0 796 2995 9 9\n\
                    cpu0 124650 150 21274 104227 2376 0 291 1495 0 0\n\
                    cpu1 133545 276 27148 87654 3811 0 505 1499 0 0\n\
                    intr 644 370\nctxt 12\n";
const KTHREADD: &str = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 14 0 0 \
                        18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 0 1 0 0 0 0 0 0 0";
const IO: &str = "rchar: 6976\nwchar: 0\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\n\
                  write_bytes: 8192\ncancelled_write_bytes: 99\n";

#[test]
fn a_disk_is_found_by_its_whole_name() {
    let moved = find_disk(DISKSTATS, "vda").unwrap();
    assert_eq!(moved.read_bytes, 11791858 * 512);
    assert_eq!(moved.written_bytes, 126715437 * 512);
    assert_eq!(moved.busy_ms, 114180);
    assert_eq!(find_disk(DISKSTATS, "vd"), None);
    assert_eq!(find_disk(DISKSTATS, "vda1"), None);
    // 6.1 has three fields fewer than the newest kernels, with the same first ones.
    let old = "  98  0 ubda 717 0 89656 1472 25 0 31 2 0 70 1476 0 0 0 0 47 1\n";
    assert_eq!(
        find_disk(old, "ubda"),
        Some(Moved { read_bytes: 89656 * 512, written_bytes: 31 * 512, busy_ms: 70 })
    );
    assert_eq!(find_disk("8 0 sda 1 2 3", "sda"), None);
    assert_eq!(find_disk("8 0 sda 0 0 18446744073709551615 0 0 0 0 0 0 0 0", "sda"), None);
}

#[test]
fn processors_are_busy_unless_idle_or_waiting() {
    let now = parse_processors(STAT).unwrap();
    assert_eq!(now.busy, 258_195 + 427 + 48_422 + 796 + 2_995);
    assert_eq!(now.total, now.busy + 191_881 + 6_188);
    assert_eq!(now.count, 2);
    let look = |busy, total| Processors { busy, total, count: 2 };
    assert_eq!(look(160, 300).busy_since(&look(100, 200)), Some(0.6));
    assert_eq!(look(100, 200).busy_since(&look(100, 200)), None);
    assert_eq!(look(90, 300).busy_since(&look(100, 200)), None);
    // Idle time was corrected backwards by a tick.
    assert_eq!(look(201, 300).busy_since(&look(100, 200)), Some(1.0));
    assert_eq!(parse_processors("cpu  1 2 3 4\n"), None);
    assert_eq!(parse_processors("cpu0 1 2 3 4 5 6 7 8\n"), None);
}

#[test]
fn work_of_md_is_told_with_its_devices() {
    let [activity] = parse_mdstat(RECOVERY).try_into().unwrap();
    assert_eq!(activity.text, "md0: recovery 12.6 %");
    assert_eq!(activity.devices, ["md0", "ubdc", "ubda"]);
    assert_eq!(parse_mdstat(CHECK)[0].text, "md0: check 6.3 %");
    let full = RECOVERY.replace("recovery = 12.6%", "reshape =100.0%");
    assert_eq!(parse_mdstat(&full)[0].text, "md0: reshape 100 %");
}

#[test]
fn arrays_that_wait_or_rest_do_nothing() {
    let waits = "md1 : active (auto-read-only) raid5 sdb1[1] sda1[0]\n      \
                 20 blocks level 5, 64k chunk, algorithm 2 [3/3] [UUU]\n      \tresync=DELAYED\n      \
                 bitmap: 0/1 pages [0KB], 65536KB chunk\n";
    assert!(parse_mdstat(waits).is_empty());
    assert!(parse_mdstat(&waits.replace("DELAYED", "PENDING")).is_empty());
}

#[test]
fn a_process_is_read_behind_its_name() {
    let kernel = parse_process(KTHREADD).unwrap();
    assert!(kernel.is_kernel);
    assert_eq!((kernel.name.as_str(), kernel.parent, kernel.started), ("kthreadd", 0, 14));
    let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 31 11 5 6 20 0 1 0 50 1 1";
    let process = parse_process(stat).unwrap();
    assert_eq!(process.name, "a) b (c");
    assert_eq!((process.ticks, process.children_ticks, process.started), (42, 11, 50));
    assert!(!process.is_kernel);
    assert_eq!(parse_process("7 (x) S 1"), None);
    assert_eq!(parse_io(IO), Some(12_288));
    assert_eq!(parse_io("read_bytes: 1\n"), None);
    assert_eq!(parse_io("read_bytes: 18446744073709551615\nwrite_bytes: 1\n"), None);
}

#[test]
fn temperatures_are_thousandths() {
    assert_eq!(parse_millidegrees("41850\n"), Some(41.85));
    assert_eq!(parse_millidegrees("-5000"), Some(-5.0));
    assert_eq!(parse_millidegrees("-274000"), None);
    assert_eq!(parse_millidegrees("2147483647"), None);
    assert_eq!(parse_millidegrees("warm"), None);
}

const MIB: u64 = 1 << 20;

/// Returns processes with their parent and MiB moved.
fn movers(processes: &[(u32, u32, u64)]) -> Movers {
    let mut movers = Movers::default();
    for &(process, parent, mib) in processes {
        let stat = ProcessStat {
            name: format!("p{process}"),
            parent,
            is_kernel: process == 2,
            ticks: 0,
            children_ticks: 0,
            started: u64::from(process),
        };
        movers.parents.insert(process, parent);
        movers.all.insert(process, Mover { bytes: mib * MIB, stat });
    }
    movers
}

fn strangers(before: &[(u32, u32, u64)], after: &[(u32, u32, u64)]) -> Vec<(String, u64)> {
    let found = movers(after).strangers_since(&movers(before), &[100]);
    found.into_iter().map(|(name, bytes)| (name, bytes / MIB)).collect()
}

#[test]
fn strangers_are_who_moved_bytes_meanwhile() {
    let before = [(10, 1, 5), (11, 1, 7)];
    let after = [(10, 1, 9), (11, 1, 7), (12, 1, 3)];
    assert_eq!(strangers(&before, &after), [("p10".to_owned(), 4), ("p12".to_owned(), 3)]);
}

#[test]
fn own_processes_and_the_kernel_are_no_strangers() {
    // 100 is this process; 101 its tool, 102 the tool's child; 2 is the kernel.
    let after = [(2, 0, 50), (100, 1, 50), (101, 100, 50), (102, 101, 50), (103, 1, 50)];
    assert_eq!(strangers(&[], &after), [("p103".to_owned(), 50)]);
    // A child of the tool whose parent has ended belongs to the first process.
    let before = [(100, 1, 50), (101, 100, 50)];
    assert_eq!(strangers(&before, &[(100, 1, 50), (101, 1, 90)]), []);
}

#[test]
fn what_a_child_moved_before_is_not_its_parents_new_work() {
    // The kernel adds the counts of a child that has ended to its parent's.
    let before = [(10, 1, 1024), (11, 10, 3072)];
    assert_eq!(strangers(&before, &[(10, 1, 4096)]), []);
    assert_eq!(strangers(&before, &[(10, 1, 4101)]), [("p10".to_owned(), 5)]);
    // Two generations at once.
    let before = [(10, 1, 0), (11, 10, 20), (12, 11, 30)];
    assert_eq!(strangers(&before, &[(10, 1, 55)]), [("p10".to_owned(), 5)]);
}

#[test]
fn a_process_number_that_is_used_again_is_another_process() {
    let mut now = movers(&[(10, 1, 9)]);
    now.all.get_mut(&10).unwrap().stat.started = 99;
    let found = now.strangers_since(&movers(&[(10, 1, 8)]), &[]);
    assert_eq!(found, [("p10".to_owned(), 9 * MIB)]);
}

/// Makes a machine of files.
fn machine(root: &Path, sectors: u64, ticks: u64, throttled: u64) -> Roots {
    let roots = Roots { proc: root.join("proc"), sys: root.join("sys") };
    let write = |path: std::path::PathBuf, text: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let own = std::process::id();
    let disk = |name: &str| format!("8 0 {name} 1 0 {sectors} 9 1 0 {} 9 0 5 9\n", 2 * sectors);
    write(roots.proc.join("diskstats"), &format!("{}{}", disk("md0"), disk("ubda")));
    write(roots.proc.join("stat"), &format!("cpu  {ticks} 0 0 {ticks} 0 0 0 0\ncpu0 1\n"));
    write(roots.proc.join("meminfo"), "MemTotal:       2048 kB\n");
    write(roots.proc.join("mdstat"), RECOVERY);
    write(roots.proc.join("self/mountinfo"), "1 1 9:0 / /mnt rw - ext4 /dev/md0 rw\n");
    let stat = |children: u64, own: u64| {
        format!("1 (x) S 1 7 7 0 -1 0 1 0 0 0 {own} 0 {children} 0 20 0 1 0 50 1 1")
    };
    write(roots.proc.join(format!("{own}/stat")), &stat(ticks, 0));
    write(roots.proc.join("77/stat"), &stat(0, 2 * ticks));
    for (number, process) in [("88", 8), ("89", 9)] {
        let stat = format!("{process} (tar) S 1 7 7 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 50 1 1");
        write(roots.proc.join(number).join("stat"), &stat);
        let io = format!("read_bytes: {}\nwrite_bytes: 0\n", sectors * MIB);
        write(roots.proc.join(number).join("io"), &io);
    }
    for cpu in ["cpu0", "cpu1"] {
        let counts = roots.sys.join("devices/system/cpu").join(cpu).join("thermal_throttle");
        write(counts.join("core_throttle_count"), &throttled.to_string());
        write(counts.join("package_throttle_count"), &throttled.to_string());
    }
    for (number, name, now) in
        [("0", "acpitz", "99000"), ("1", "nvme", "70000"), ("2", "coretemp", "60000")]
    {
        let sensor = roots.sys.join("class/hwmon").join(format!("hwmon{number}"));
        write(sensor.join("name"), &format!("{name}\n"));
        write(sensor.join("temp1_input"), now);
        write(sensor.join("temp1_max"), "80000\n");
        write(sensor.join("temp1_crit"), "100000\n");
    }
    roots
}

fn watch() -> Watch {
    Watch {
        target: Some("md0".into()),
        members: vec!["ubda".into(), "ubda".into(), "gone".into()],
        server_pid: Some(77),
        mountpoint: Some("/mnt".into()),
        models: vec![(5, 6)],
        ..Watch::default()
    }
}

#[test]
fn two_looks_make_evidence() {
    let [first, second] = [1, 2].map(|_| tempfile::tempdir().unwrap());
    let before = take_under(&machine(first.path(), 10, 100, 3), &watch());
    let after = take_under(&machine(second.path(), 30, 150, 5), &watch());
    let evidence = Evidence::between(&before, &after);
    let moved = Moved { read_bytes: 20 * 512, written_bytes: 40 * 512, busy_ms: 0 };
    assert_eq!(evidence.target, Some(moved));
    // Each disk once; the bytes of an absent disk are unknown.
    assert_eq!(evidence.members, [("ubda".to_owned(), moved)]);
    assert_eq!(evidence.models, [(5, 6)]);
    assert_eq!(evidence.cpu_busy, Some(0.5));
    assert_eq!(evidence.cpu_count, Some(1));
    let span_s = evidence.span_s.unwrap();
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    assert_eq!(evidence.tool_cores, Some(50.0 / per_second / span_s));
    assert_eq!(evidence.server_cpu_s, Some(100.0 / per_second));
    assert_eq!(evidence.memory_bytes, Some(2 * MIB));
    assert_eq!(evidence.activities, ["md0: recovery 12.6 %"]);
    assert_eq!(evidence.mount.as_deref(), Some("ext4 rw"));
    // Two cores with 2 each, and the package with 2, which both report.
    assert_eq!(evidence.throttled, Some(6));
    let heat = evidence.heat.unwrap();
    assert_eq!((heat.sensor.as_str(), heat.celsius, heat.limit_celsius), ("nvme", 70.0, 80.0));
    assert_eq!(evidence.strangers, [("tar".to_owned(), 20 * MIB), ("tar".to_owned(), 20 * MIB)]);
}

/// A single sensor: 85 °C, with a "max" of 80 °C and a "crit" of 100 °C.
#[test]
fn each_driver_has_its_own_limit() {
    let limit = |driver: &str, files: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let sensor = dir.path().join("class/hwmon/hwmon3");
        fs::create_dir_all(&sensor).unwrap();
        fs::write(sensor.join("name"), format!("{driver}\n")).unwrap();
        fs::write(sensor.join("temp1_input"), "85000\n").unwrap();
        for file in files {
            let limit = if file.ends_with("crit") { "100000\n" } else { "80000\n" };
            fs::write(sensor.join(file), limit).unwrap();
        }
        super::heat::read_heat(dir.path()).map(|heat| heat.limit_celsius)
    };
    let both = ["temp1_max", "temp1_crit"];
    assert_eq!([limit("coretemp", &both), limit("k10temp", &both)], [Some(100.0); 2]);
    assert_eq!([limit("nvme", &both), limit("drivetemp", &both)], [Some(80.0); 2]);
    // No limit replaces another: at the fans' limit a processor is not slowed down.
    assert_eq!([limit("coretemp", &both[..1]), limit("k10temp", &both[..1])], [None; 2]);
    assert_eq!([limit("nvme", &both[1..]), limit("drivetemp", &both[1..])], [None; 2]);
    assert_eq!(limit("acpitz", &both), None);
}

#[test]
fn what_is_not_there_is_none() {
    let nowhere = Roots { proc: "/nonexistent".into(), sys: "/nonexistent".into() };
    let [before, after] = [1, 2].map(|_| take_under(&nowhere, &watch()));
    let evidence = Evidence::between(&before, &after);
    let expected =
        Evidence { span_s: evidence.span_s, models: vec![(5, 6)], ..Evidence::default() };
    assert!(evidence.span_s.is_some());
    assert_eq!(evidence, expected);
}

#[test]
fn counters_that_went_back_tell_nothing() {
    let [first, second] = [1, 2].map(|_| tempfile::tempdir().unwrap());
    let before = take_under(&machine(first.path(), 30, 150, 5), &watch());
    let after = take_under(&machine(second.path(), 10, 100, 3), &watch());
    let evidence = Evidence::between(&before, &after);
    assert_eq!((evidence.target, evidence.throttled, evidence.cpu_busy), (None, None, None));
    assert_eq!((evidence.tool_cores, evidence.server_cpu_s), (None, None));
    assert!(evidence.members.is_empty() && evidence.strangers.is_empty());
}

#[test]
fn only_arrays_near_the_subject_count() {
    let dir = tempfile::tempdir().unwrap();
    let roots = machine(dir.path(), 1, 1, 0);
    let activities = |target: Option<&str>, members: &[&str]| {
        let watch = Watch {
            target: target.map(str::to_owned),
            members: members.iter().map(|name| (*name).to_owned()).collect(),
            ..Watch::default()
        };
        let look = take_under(&roots, &watch);
        let evidence = Evidence::between(&look, &look);
        assert_eq!(evidence.activities.len() + evidence.elsewhere.len(), 1, "{evidence:?}");
        evidence.activities.len()
    };
    assert_eq!(activities(Some("md0"), &[]), 1);
    assert_eq!(activities(None, &["ubdc"]), 1);
    assert_eq!(activities(Some("md1"), &["sda"]), 0);
    // `ubd` is no disk of which `ubdc` is a partition.
    assert_eq!(activities(Some("ubd"), &[]), 0);
    // Nothing is known of the subject: the array may be its own.
    assert_eq!(activities(None, &[]), 0);
    let partitions = RECOVERY.replace("ubdc[2]", "nvme0n1p2[2]").replace("ubda[0]", "sdb1[0]");
    fs::write(roots.proc.join("mdstat"), partitions).unwrap();
    assert_eq!(activities(None, &["nvme0n1"]), 1);
    assert_eq!(activities(None, &["sdb"]), 1);
    assert_eq!(activities(None, &["nvme0n11"]), 0);
}

#[test]
fn this_machine_can_be_looked_at() {
    let watch = Watch { mountpoint: Some("/".into()), ..Watch::default() };
    let before = take(&watch);
    let evidence = Evidence::between(&before, &take(&watch));
    assert!(evidence.memory_bytes.unwrap() > 1 << 20);
    assert!(evidence.cpu_count.unwrap() > 0);
    assert!(evidence.mount.is_some());
}

#[test]
fn evidence_of_an_earlier_version_is_read() {
    let json =
        r#"{"span_s":1.5,"members":[["sda",{"read_bytes":1,"written_bytes":2,"busy_ms":3}]]}"#;
    let evidence: Evidence = serde_json::from_str(json).unwrap();
    assert_eq!(evidence.span_s, Some(1.5));
    assert_eq!(evidence.heat, None);
    let again = serde_json::to_string(&evidence).unwrap();
    assert_eq!(serde_json::from_str::<Evidence>(&again).unwrap(), evidence);
}

/// Returns a real text with a part of it replaced.
fn spoilt(text: &'static str) -> impl Strategy<Value = String> {
    (0..text.len(), 0..40_usize, ".{0,12}|[0-9]{1,25}").prop_map(move |(from, length, new)| {
        let end = (from + length).min(text.len());
        let head = String::from_utf8_lossy(&text.as_bytes()[..from]);
        let tail = String::from_utf8_lossy(&text.as_bytes()[end..]);
        format!("{head}{new}{tail}")
    })
}

fn parse_all(text: &str) {
    find_disk(text, "vda");
    parse_processors(text);
    parse_mdstat(text);
    crate::facts::mount_of(Path::new("/"), text);
    parse_process(text);
    parse_io(text);
    parse_millidegrees(text);
    crate::evidence::find_memory_bytes(text);
}

proptest! {
    #[test]
    fn garbage_is_no_panic(text in any::<String>()) {
        parse_all(&text);
    }

    #[test]
    fn nearly_right_texts_are_no_panic(
        text in prop_oneof![
            spoilt(DISKSTATS), spoilt(RECOVERY), spoilt(STAT), spoilt(KTHREADD), spoilt(IO),
            spoilt("MemTotal:       2048 kB\n"),
            spoilt("36 35 98:0 / / rw,noatime master:1 - btrfs /dev/sdb rw,compress=zstd:3\n"),
        ]
    ) {
        parse_all(&text);
    }

    #[test]
    fn any_disk_that_is_written_down_is_found(name in "[a-z]{1,8}[0-9]{0,2}", counts in any::<[u32; 11]>()) {
        let fields: Vec<String> = counts.iter().map(u32::to_string).collect();
        let line = format!("{DISKSTATS} 8 0 {name}X {0}\n 8 0 {name}Y {0}\n", fields.join(" "));
        prop_assert_eq!(find_disk(&line, &format!("{name}Y")), Some(Moved {
            read_bytes: u64::from(counts[2]) * 512,
            written_bytes: u64::from(counts[6]) * 512,
            busy_ms: counts[9].into(),
        }));
    }
}
