//! A campaign writes only members that had to be named: every trial of random campaigns, on a machine that
//! records each written member.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::matrix::{Planned, parse_campaign};
use crate::safety::{check_overwrites, plan_overwrites};
use crate::tool::Writes;

/// Subjects in campaign syntax, without the name.
const SUBJECTS: &[&str] = &[
    "stack = '/img/a'",
    "stack = 'raid0(/img/a, /img/b)'",
    "stack = 'raid1(/img/a, /img/b)'",
    "stack = 'raid1(/img/c, ram(1G))'",
    "stack = 'linear(/img/c, raid0(/img/d, ram(1G)))'",
    "stack = 'md(/img/e, /img/f)'",
    "stack = 'ram(1G)'",
    "stack = 'model(hdd, size=1G)'",
    "path = '/img/b'",
    "path = '/img/d'",
    "path = '/dev/sdx'",
    "kernel = 'raid0(/img/c, /dev/sdx)'",
    "nbd = 'nbd://host/x'",
    "directory = '/srv'",
    "tmpfs = '64M'",
];

const JOBS: &[&str] = &[
    "pattern = 'seq'\nop = 'read'",
    "pattern = 'seq'\nop = 'write'",
    "pattern = 'rand'\nop = ['read', 'mixed']",
    "pattern = 'rand'\nop = 'read'\nfilesystem = 'ext4'",
    "tool = 'dd'\nop = 'read'",
    "tool = 'dd'\nop = 'write'\nfilesystem = ['none', 'xfs']",
    "tool = 'hdparm'",
    "tool = 'seek'",
];

/// Returns campaigns of subjects and jobs, with the subjects of each job.
fn campaigns() -> impl Strategy<Value = Campaign> {
    let subjects = proptest::sample::subsequence(SUBJECTS.to_vec(), 1..5);
    let jobs = proptest::sample::subsequence(JOBS.to_vec(), 1..4);
    let made = (subjects, jobs, any::<[usize; 4]>(), any::<bool>());
    // A job with a file system for folders only is refused.
    made.prop_filter_map("it makes sense", |(subjects, jobs, who, fill)| {
        let mut text = format!("name = 'made up'\nrepetitions = 2\nfill = {fill}\n");
        for (index, subject) in subjects.iter().enumerate() {
            let first = index == 0;
            text += &format!("[[subject]]\nname = 's{index}'\nbaseline = {first}\n{subject}\n");
        }
        for (job, who) in jobs.iter().zip(who) {
            // At least one.
            let mine = (0..subjects.len())
                .filter(|one| *one == who % subjects.len() || who >> (8 + one) & 1 == 1);
            let mine: Vec<String> = mine.map(|index| format!("'s{index}'")).collect();
            text += &format!("[[job]]\n{job}\nsubjects = [{}]\n", mine.join(", "));
        }
        parse_campaign(&text, "test").ok()
    })
}

/// Runs every trial as the runner does; returns the written members.
fn write_all(campaign: &Campaign, options: &LabOptions) -> BTreeSet<String> {
    let mut subjects = Subjects::new(&Planned::of(campaign), options).unwrap();
    let mut machine = Machine::default();
    for trial in Planned::of(campaign).trials {
        if trial.cell.impossible.is_some() {
            continue;
        }
        let (subject, workload) = (trial.cell.subject, &trial.cell.workload);
        let ready = ready(subjects.bring_up(subject, workload, &mut machine));
        if workload.work().unwrap().writes != Writes::Nothing {
            machine.write(&ready.target);
        }
        subjects.let_go(subject, &mut machine).unwrap();
    }
    subjects.take_down_all(&mut machine).unwrap();
    assert_eq!(machine.left(), BTreeSet::new());
    machine.written()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_written_is_what_had_to_be_named(campaign in campaigns()) {
        let named = plan_overwrites(&Planned::of(&campaign));
        let options = LabOptions {
            destroy: named.iter().map(Into::into).collect(),
            ..options()
        };
        check_overwrites(&Planned::of(&campaign), &options.destroy).unwrap();
        let written = write_all(&campaign, &options);
        prop_assert_eq!(&written, &named.iter().cloned().collect::<BTreeSet<_>>());
        for left_out in 0..options.destroy.len() {
            let mut fewer = options.destroy.clone();
            fewer.remove(left_out);
            prop_assert!(check_overwrites(&Planned::of(&campaign), &fewer).is_err());
        }
    }
}
