//! The bytes written according to `plan`, compared with the bytes written to block devices: small campaigns on
//! loop devices, whose own counters are read before and after.

use std::collections::BTreeMap;

use super::{Lab, tally};
use crate::common::{LoopDevice, MIB, skip_unless_root, skip_without, with_files_open};

/// The own writes of mdadm, braid and mkfs: superblocks, and areas that they clear.
const SUPERBLOCKS: u64 = MIB;

/// Bytes that were written to a block device so far.
fn written_to(device: &LoopDevice) -> u64 {
    let name = device.text().trim_start_matches("/dev/");
    let path = format!("/sys/block/{name}/stat");
    let text = with_files_open(|| std::fs::read_to_string(&path)).expect("a device has counters");
    // The seventh counts sectors of 512 bytes.
    let sectors = text.split_whitespace().nth(6).and_then(|word| word.parse::<u64>().ok());
    sectors.expect("a number of sectors") * 512
}

struct Case {
    subject: &'static str,
    job: &'static str,
    /// The permitted excess over the plan for each device: as a part of the plan, and in bytes.
    beyond: (f64, u64),
    /// The permitted shortfall.
    short: u64,
}

const RAW: &str =
    "tool = \"dd\"\nop = [\"read\", \"write\"]\nsize = \"4M\"\nbs = \"1M\"\ndirect = true";
const EXACT: (f64, u64) = (0.0, 0);

const CASES: &[Case] = &[
    Case { subject: "path = \"A\"", job: RAW, beyond: EXACT, short: 0 },
    Case { subject: "stack = \"raid0(chunk=64K, A, B)\"", job: RAW, beyond: EXACT, short: 0 },
    Case { subject: "stack = \"linear(A, B)\"", job: RAW, beyond: EXACT, short: 0 },
    Case {
        subject: "stack = \"raid10(chunk=64K, layout=n3, A, B, C)\"",
        job: RAW,
        beyond: (0.0, SUPERBLOCKS),
        short: 0,
    },
    Case { subject: "kernel = \"raid1(A, B)\"", job: RAW, beyond: (0.0, SUPERBLOCKS), short: 0 },
    Case {
        subject: "stack = \"raid1(A, B)\"",
        job: "tool = \"dd\"\nop = \"write\"\nsize = \"4M\"\nbs = \"1M\"\nhealth = \"rebuilding\"",
        beyond: (0.0, 2 * SUPERBLOCKS),
        // The member that is filled again has not what the tool writes before it is in; and what
        // lies before its data is not filled.
        short: 2 * (4 * MIB + 2 * MIB),
    },
    // Inode tables and a journal, for each of the repetitions.
    Case {
        subject: "path = \"A\"",
        job: "pattern = \"seq\"\nop = \"read\"\nfilesystem = \"ext4\"",
        beyond: (0.25, 4 * MIB),
        short: 0,
    },
];

#[test]
fn what_is_planned_is_what_is_written() {
    skip_unless_root!();
    skip_without!("losetup", "dd", "fio", "mkfs.ext4");
    for case in CASES {
        let lab = Lab::new();
        let mut devices = BTreeMap::new();
        for name in ["A", "B", "C"] {
            let file = lab.scratch.sparse(&format!("{name}.img"), 96 * MIB);
            let Some(device) = LoopDevice::attach(&file) else { return };
            devices.insert(name, device);
        }
        check(&lab, case, &devices);
    }
}

fn check(lab: &Lab, case: &Case, devices: &BTreeMap<&str, LoopDevice>) {
    let mut subject = case.subject.to_owned();
    for (name, device) in devices {
        subject = subject.replace(name, device.text());
    }
    let text = format!(
        "name = \"amounts\"\nrepetitions = 2\nruntime_s = 0.2\nregion = \"16M\"\n\
         [[subject]]\nname = \"it\"\nbaseline = true\n{subject}\n[[job]]\n{}\n",
        case.job
    );
    let campaign = braid_lab::matrix::parse_campaign(&text, "test").expect("a campaign");
    let options = braid_lab::LabOptions::new(lab.results()).expect("this program");
    let plan = braid_lab::plan(&campaign, &options).expect("a plan");
    let before: Vec<u64> = devices.values().map(written_to).collect();
    let file = lab.campaign(&text);
    let results = lab.results().display().to_string();
    let destroy = plan.overwrites.iter().flat_map(|path| ["--destroy", path.as_str()]);
    let words = ["run", &file, "--out", &results, "--quiet"].into_iter().chain(destroy);
    let ran = lab.run(&words.collect::<Vec<_>>());
    let found = tally(&lab.results());
    if !found.impossible.is_empty() {
        println!("skipped: {subject}: {:?}", found.impossible);
        return;
    }
    ran.ok();
    assert_eq!(found.measured, found.planned, "{found:?}");
    for (device, before) in devices.values().zip(before) {
        let written = written_to(device) - before;
        let planned = plan.written.get(device.text()).map_or(0, |told| told.bytes as u64);
        let beyond = (planned as f64 * case.beyond.0) as u64 + case.beyond.1;
        assert!(
            (planned.saturating_sub(case.short)..=planned + beyond).contains(&written),
            "{subject}\n{}\n{}: planned {planned}, written {written}",
            case.job,
            device.text()
        );
    }
}

/// Stacks on which no trial could ever be measured.
#[test]
fn a_stack_that_nothing_can_serve_is_refused_by_plan_and_run() {
    let lab = Lab::new();
    for (stack, said) in [
        ("ram(900T)", ["ram(900T) is more than the", "next: smaller sizes"]),
        ("raid0(model(rally2, size=900T), ram(1M))", ["memory of this stack is more", "next:"]),
        ("model(nobody, size=1G)", ["there is no model called \"nobody\"", "braid model list"]),
        ("model(./no.toml, size=1G)", ["no.toml cannot be read", "braid model fit"]),
        ("model(host-2007, size=1G)", ["of kind host, no device", "braid model show"]),
    ] {
        for word in ["plan", "run"] {
            let refused = lab.run(&[word, "quick", "--baseline", stack, "--out", "none"]);
            refused.fails(1, &["nothing was measured: subject \"single\"", said[0], said[1]]);
        }
    }
    lab.run(&["plan", "quick", "--baseline", "ram(900T, overcommit)"]).ok();
    assert!(!lab.scratch.join("none").exists(), "a folder was made");
}
