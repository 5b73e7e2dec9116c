//! The order of things, on a machine without devices: who is up with whom, what is left after a
//! failure at every step.

use std::path::Path;

use super::trial::{models_of, mountpoint_of};
use super::*;
use crate::campaign::{FileSystem, Setup, SubjectDecl};
use crate::settings::Settings;
use crate::world::StopFlag;

mod machine;
use machine::{Fault, Machine};

const PAIR: &str = "raid1(/img/a, /img/b)";

fn campaign(sources: &[Source]) -> Campaign {
    let declare = |(index, source): (usize, &Source)| {
        SubjectDecl::new(&format!("s{index}"), source.clone(), index == 0)
    };
    Campaign {
        name: "test".into(),
        description: String::new(),
        repetitions: 1,
        seed: 1,
        runtime_s: 10.0,
        ramp_s: 0.0,
        region: ByteSize(64 << 20),
        fill: true,
        drop_caches: false,
        rounds: false,
        rest_s: 0.0,
        only: Vec::new(),
        members: Vec::new(),
        subjects: sources.iter().enumerate().map(declare).collect(),
        jobs: Vec::new(),
    }
}

fn options() -> LabOptions {
    LabOptions {
        braid_binary: "braid".into(),
        destroy: vec!["/img/a".into(), "/img/b".into()],
        stop: StopFlag::default(),
        ..LabOptions::new("results").unwrap()
    }
}

fn stack(text: &str) -> Source {
    Source::Stack(text.to_owned())
}

fn workload(filesystem: FileSystem, health: Health) -> Workload {
    let setup = Setup {
        filesystem,
        health,
        readahead: (filesystem == FileSystem::Xfs).then_some(ByteSize(1 << 20)),
        ..Setup::default()
    };
    Workload { tool: "none".into(), settings: Settings::default(), setup }
}

fn raw() -> Workload {
    workload(FileSystem::None, Health::Healthy)
}

#[track_caller]
fn ready(result: Result<BringUp, LabError>) -> Ready {
    match result {
        Ok(BringUp::Ready(ready)) => *ready,
        Ok(BringUp::Impossible(why)) => panic!("impossible: {why}"),
        Ok(BringUp::Stopped) => panic!("stopped"),
        Err(error) => panic!("{error}"),
    }
}

/// Every kind of source with workloads that use all of it.
fn everything() -> Vec<(Source, Workload)> {
    let ext4 = || workload(FileSystem::Ext4, Health::Healthy);
    vec![
        (stack("raid0(/img/a, /img/b)"), workload(FileSystem::Xfs, Health::Healthy)),
        (stack(PAIR), workload(FileSystem::Ext4, Health::Degraded)),
        (stack(PAIR), workload(FileSystem::Ext4, Health::Rebuilding)),
        (stack(PAIR), workload(FileSystem::None, Health::Story)),
        (stack("raid1(ram(1G), ram(1G))"), workload(FileSystem::Ext4, Health::Degraded)),
        (stack("raid1(ram(1G), ram(1G))"), workload(FileSystem::None, Health::Scrubbing)),
        (stack("md(/img/a, /img/b)"), workload(FileSystem::None, Health::Rebuilding)),
        (Source::Path("/img/a".into()), workload(FileSystem::Xfs, Health::Healthy)),
        (Source::Path("/dev/sdx".into()), ext4()),
        (Source::Directory("/srv".into()), ext4()),
        (Source::Nbd("nbd+unix:///?socket=/there".into()), raw()),
        (Source::Kernel(PAIR.into()), workload(FileSystem::Ext4, Health::Rebuilding)),
        (Source::Kernel("raid0(/img/a, /dev/sdx)".into()), ext4()),
        (Source::Zram("64M".into()), ext4()),
        (Source::Tmpfs("64M".into()), ext4()),
    ]
}

#[test]
fn each_source_comes_up_and_goes_without_a_trace() {
    for (source, workload) in everything() {
        let (campaign, options) = (campaign(std::slice::from_ref(&source)), options());
        let mut subjects = Subjects::new(&campaign, &options).unwrap();
        let mut machine = Machine::default();
        for _ in 0..2 {
            let ready = ready(subjects.bring_up(0, &workload, &mut machine));
            assert_eq!(ready.folder.is_some(), workload.setup.filesystem != FileSystem::None);
            assert!(ready.region_bytes > 0 && ready.region_bytes <= campaign.region.0);
            subjects.let_go(0, &mut machine).unwrap();
            machine.check_no_trial();
        }
        subjects.take_down_all(&mut machine).unwrap();
        assert_eq!(machine.left(), BTreeSet::new(), "{source:?}");
    }
}

#[test]
fn a_failure_at_any_step_leaves_nothing() {
    let mut tried = 0;
    for (source, workload) in everything() {
        for fault in [Fault::Fails, Fault::IsStopped] {
            for step in 0.. {
                let (campaign, options) = (campaign(std::slice::from_ref(&source)), options());
                let mut subjects = Subjects::new(&campaign, &options).unwrap();
                let mut machine = Machine::with_fault(step, fault, &options.stop);
                let result = subjects.bring_up(0, &workload, &mut machine);
                let struck = machine.calm_down();
                if let Ok(BringUp::Stopped) = result {
                    assert_eq!(fault, Fault::IsStopped);
                }
                // Whether it is mended or merely gone is for the next to find out.
                let _ = subjects.let_go(0, &mut machine);
                machine.check_no_trial();
                subjects.take_down_all(&mut machine).unwrap();
                assert_eq!(
                    machine.left(),
                    BTreeSet::new(),
                    "{source:?}, step {step}: {:#?}",
                    machine.commands()
                );
                if !struck {
                    break;
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 100, "only {tried} steps were made to fail");
}

#[test]
fn after_a_failure_the_next_trial_is_as_ever() {
    for (source, workload) in everything() {
        for step in 0.. {
            let (campaign, options) = (campaign(std::slice::from_ref(&source)), options());
            let mut subjects = Subjects::new(&campaign, &options).unwrap();
            let mut machine = Machine::with_fault(step, Fault::Fails, &options.stop);
            let _ = subjects.bring_up(0, &workload, &mut machine);
            if !machine.calm_down() {
                break;
            }
            ready(subjects.bring_up(0, &workload, &mut machine));
            subjects.take_down_all(&mut machine).unwrap();
            assert_eq!(machine.left(), BTreeSet::new(), "{source:?}, step {step}");
        }
    }
}

#[test]
fn rivals_are_never_up_together_and_others_stay() {
    let sources = [
        stack("/img/a"),
        stack("raid0(/img/a, /img/b)"),
        stack("ram(1G)"),
        Source::Path("/img/b".into()),
    ];
    let (campaign, options) = (campaign(&sources), options());
    let mut subjects = Subjects::new(&campaign, &options).unwrap();
    let mut machine = Machine::default();
    let mut up_after = |subject: usize| {
        ready(subjects.bring_up(subject, &raw(), &mut machine));
        subjects.let_go(subject, &mut machine).unwrap();
        let up: Vec<usize> = (0..4).filter(|i| subjects.states[*i].base.is_some()).collect();
        up
    };
    assert_eq!(up_after(2), [2]);
    assert_eq!(up_after(0), [0, 2]);
    // The machine refuses a member that is in use, so this also says in which order they go.
    assert_eq!(up_after(1), [1, 2]);
    assert_eq!(up_after(3), [2, 3]);
    assert_eq!(up_after(0), [0, 2, 3]);
    let ups = machine.commands().iter().filter(|text| text.contains(" up ")).count();
    assert_eq!(ups, 4, "what shares nothing is not started again");
    subjects.take_down_all(&mut machine).unwrap();
    assert_eq!(machine.left(), BTreeSet::new());
}

#[test]
fn no_more_are_up_than_the_machine_can_bear() {
    let sources: Vec<Source> = (0..MOST_UP + 3).map(|_| stack("ram(1G)")).collect();
    let (campaign, options) = (campaign(&sources), options());
    let mut subjects = Subjects::new(&campaign, &options).unwrap();
    let mut machine = Machine::default();
    // The first is used between the others, so it is never the one that goes.
    for subject in (1..sources.len()).flat_map(|other| [0, other]) {
        ready(subjects.bring_up(subject, &raw(), &mut machine));
        subjects.let_go(subject, &mut machine).unwrap();
        let up = subjects.states.iter().filter(|state| state.base.is_some()).count();
        assert!(up <= MOST_UP, "{up} are up");
    }
    let up: Vec<usize> =
        (0..sources.len()).filter(|one| subjects.states[*one].base.is_some()).collect();
    assert_eq!(up, [0, 4, 5, 6, 7, 8, 9, 10]);
    subjects.take_down_all(&mut machine).unwrap();
    assert_eq!(machine.left(), BTreeSet::new());
}

#[test]
fn an_array_that_heals_stays_up_and_one_in_memory_changes_its_form() {
    let sources = [stack(PAIR), stack("raid1(ram(1G), ram(1G))")];
    let (campaign, options) = (campaign(&sources), options());
    let mut subjects = Subjects::new(&campaign, &options).unwrap();
    let mut machine = Machine::default();
    for health in [Health::Degraded, Health::Rebuilding, Health::Scrubbing, Health::Story] {
        ready(subjects.bring_up(0, &workload(FileSystem::None, health), &mut machine));
        assert_eq!(
            machine.is_degraded(),
            health == Health::Degraded || health == Health::Rebuilding
        );
        subjects.let_go(0, &mut machine).unwrap();
        assert!(!machine.is_degraded(), "{health:?}");
    }
    let count = |machine: &Machine, what: &str| {
        machine.commands().iter().filter(|text| text.contains(what)).count()
    };
    assert_eq!((count(&machine, " create "), count(&machine, " up ")), (1, 1));

    let degraded = workload(FileSystem::None, Health::Degraded);
    ready(subjects.bring_up(1, &degraded, &mut machine));
    subjects.let_go(1, &mut machine).unwrap();
    ready(subjects.bring_up(1, &degraded, &mut machine));
    assert_eq!(count(&machine, "raid1(missing, ram(1G))"), 1, "it stays as it is");
    subjects.let_go(1, &mut machine).unwrap();
    ready(subjects.bring_up(1, &raw(), &mut machine));
    assert_eq!(count(&machine, " down "), 1);
    subjects.take_down_all(&mut machine).unwrap();
    assert_eq!(machine.left(), BTreeSet::new());
}

#[test]
fn only_what_was_named_is_forced() {
    let (campaign, options) = (campaign(&[stack("raid0(/img/a, /img/other)")]), options());
    let mut subjects = Subjects::new(&campaign, &options).unwrap();
    let mut machine = Machine::default();
    ready(subjects.bring_up(0, &raw(), &mut machine));
    let up = machine.commands().into_iter().find(|text| text.contains(" up ")).unwrap();
    assert!(up.contains("--force /img/a") && !up.contains("--force /img/other"), "{up}");
    subjects.take_down_all(&mut machine).unwrap();
}

#[test]
fn a_server_that_died_is_named_once() {
    for through_nbd in [false, true] {
        let (campaign, options) = (campaign(&[stack("ram(1G)")]), options());
        let mut subjects = Subjects::new(&campaign, &options).unwrap();
        subjects.through_nbd = through_nbd;
        let mut machine = Machine::default();
        ready(subjects.bring_up(0, &raw(), &mut machine));
        subjects.let_go(0, &mut machine).unwrap();
        machine.kill_servers();
        let error = subjects.bring_up(0, &raw(), &mut machine).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("\"s0\"") && text.contains("ended by itself"), "{text}");
        ready(subjects.bring_up(0, &raw(), &mut machine));
        subjects.take_down_all(&mut machine).unwrap();
        assert_eq!(machine.left(), BTreeSet::new());
    }
}

#[test]
fn what_is_busy_is_kept_and_goes_by_force_only_at_the_end() {
    let (campaign, options) = (campaign(&[Source::Path("/img/a".into())]), options());
    let mut subjects = Subjects::new(&campaign, &options).unwrap();
    let mut machine = Machine::default();
    ready(subjects.bring_up(0, &workload(FileSystem::Ext4, Health::Healthy), &mut machine));
    machine.set_busy(true);
    let error = subjects.let_go(0, &mut machine).unwrap_err().to_string();
    assert!(error.contains("target is busy"), "{error}");
    assert!(!machine.commands().iter().any(|text| text.contains("--lazy")));
    let error = subjects.take_down_all(&mut machine).unwrap_err().to_string();
    assert!(error.contains("detached lazily"), "{error}");
    assert_eq!(machine.left(), BTreeSet::new());
    subjects.take_down_all(&mut machine).unwrap();
}

#[test]
fn a_region_is_filled_once_and_again_where_content_ends() {
    let sources = [stack("raid0(/img/a, ram(1G))"), stack("/img/a")];
    let (campaign, options) = (campaign(&sources), options());
    let mut subjects = Subjects::new(&campaign, &options).unwrap();
    let mut machine = Machine::default();
    let mut round = |subject: usize| {
        ready(subjects.bring_up(subject, &raw(), &mut machine));
        if !subjects.states[subject].is_filled {
            subjects.fill(subject, &mut machine).unwrap_or_else(|_| panic!("it cannot be filled"));
        }
        subjects.let_go(subject, &mut machine).unwrap();
        machine.fills()
    };
    assert_eq!([round(0), round(0), round(1), round(1)], [1, 1, 2, 2]);
    assert_eq!(round(0), 3, "its memory was gone");
    assert_eq!(round(1), 3, "its file was not");
    subjects.take_down_all(&mut machine).unwrap();
}

#[test]
fn a_folder_lies_on_the_longest_of_the_mounts_above_it() {
    let table = "/dev/a / ext4 rw 0 0\n/dev/b /nowhere/x ext4 rw 0 0\n\
                 /dev/c /nowhere/x\\040y xfs rw 0 0\n";
    let of = |folder: &str| mountpoint_of(Path::new(folder), table).unwrap();
    assert_eq!(of("/nowhere/x/z"), Path::new("/nowhere/x"));
    assert_eq!(of("/nowhere/x y/z"), Path::new("/nowhere/x y"));
    assert_eq!(of("/nowhere/xy"), Path::new("/"));
    assert_eq!(mountpoint_of(Path::new("/nowhere"), ""), None);
}

#[test]
fn rates_of_models_are_known_where_all_are_written() {
    let rates = |text: &str| models_of(&stack(text));
    let full = "model(hdd, size=1G, read=100M/s, write=80M/s)";
    assert_eq!(rates(&format!("raid0({full}, ram(1G))")), [(100 << 20, 80 << 20)]);
    assert!(rates(&format!("raid0({full}, model(hdd, size=1G, read=1M/s))")).is_empty());
    assert!(models_of(&Source::Path("/dev/sda".into())).is_empty());
}

#[test]
fn without_root_nothing_is_attached() {
    for source in [
        Source::Path("/img/a".into()),
        Source::Tmpfs("64M".into()),
        Source::Zram("64M".into()),
        Source::Kernel(PAIR.into()),
    ] {
        let (campaign, options) = (campaign(std::slice::from_ref(&source)), options());
        let mut subjects = Subjects::new(&campaign, &options).unwrap();
        let mut machine = Machine::default();
        machine.take_root_away();
        match subjects.bring_up(0, &raw(), &mut machine) {
            Ok(BringUp::Impossible(why)) => assert!(why.contains("needs root"), "{why}"),
            _ => panic!("{source:?} came up"),
        }
        assert!(machine.commands().is_empty());
    }
}
