//! Order of the steps on a machine without devices: which subjects are up together, and the remains after a
//! failure at every step.

use std::collections::BTreeSet;

use braid_stack::ByteSize;

use super::things::Thing;
use super::trial::models_of;
use super::*;
use crate::campaign::{FileSystem, Setup, SubjectDecl};
use crate::matrix::Planned;
use crate::settings::Settings;
use crate::world::StopFlag;

mod machine;
mod overwrites;
use machine::{Fault, Machine};

const SERVER: &str = "nbd+unix:///?socket=/there";
const PAIR: &str = "raid1(/img/a, /img/b)";

fn campaign(sources: &[Source]) -> Campaign {
    let declare = |(index, source): (usize, &Source)| {
        SubjectDecl::new(&format!("s{index}"), source.clone(), index == 0)
    };
    Campaign {
        name: "test".into(),
        description: String::new(),
        repetitions: 1,
        seed: Some(1),
        control: None,
        runtime_s: 10.0,
        ramp_s: 0.0,
        region: ByteSize(64 << 20),
        fill: true,
        drop_caches: false,
        rounds: false,
        rest_s: 0.0,
        only: Vec::new(),
        working_dir: None,
        members: Vec::new(),
        subjects: sources.iter().enumerate().map(declare).collect(),
        jobs: Vec::new(),
    }
}

fn options() -> LabOptions {
    LabOptions {
        braid_binary: "braid".into(),
        destroy: ["/img/a", "/img/b", "/dev/sdx", SERVER].map(Into::into).to_vec(),
        stop: StopFlag::default(),
        ..LabOptions::new("results").unwrap()
    }
}

fn stack(text: &str) -> Source {
    Source::Stack(text.into())
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

/// A workload that writes nothing.
fn reading() -> Workload {
    Workload { tool: "hdparm".into(), ..raw() }
}

#[track_caller]
fn ready(result: Result<Ready, Obstacle>) -> Ready {
    result.unwrap_or_else(|obstacle| panic!("{}", LabError::from(obstacle)))
}

/// Returns the error of a subject that does not come up.
#[track_caller]
fn failure(result: Result<Ready, Obstacle>) -> LabError {
    match result {
        Err(Obstacle::Failed(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Returns every kind of source with workloads that use all of it.
fn everything() -> Vec<(Source, Workload)> {
    let ext4 = || workload(FileSystem::Ext4, Health::Healthy);
    vec![
        (stack("raid0(/img/a, /img/b)"), workload(FileSystem::Xfs, Health::Healthy)),
        (stack(PAIR), workload(FileSystem::Ext4, Health::Degraded)),
        (stack(PAIR), workload(FileSystem::Ext4, Health::Rebuilding)),
        (stack(PAIR), workload(FileSystem::None, Health::Story)),
        (stack("raid1(ram(1G), ram(1G))"), workload(FileSystem::Ext4, Health::Degraded)),
        (stack("raid1(ram(1G), ram(1G))"), workload(FileSystem::None, Health::Scrubbing)),
        // Its first member is left out, and is not to be overwritten either.
        (
            stack("raid0(raid1(/img/a, /img/b), ram(1G))"),
            workload(FileSystem::None, Health::Degraded),
        ),
        (stack("md(/img/a, /img/b)"), workload(FileSystem::None, Health::Rebuilding)),
        (Source::Path("/img/a".into()), workload(FileSystem::Xfs, Health::Healthy)),
        (Source::Path("/dev/sdx".into()), ext4()),
        (Source::Directory("/srv".into()), workload(FileSystem::Own, Health::Healthy)),
        (Source::Nbd(SERVER.into()), raw()),
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
        let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
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
                let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
                let mut machine = Machine::with_fault(step, fault, &options.stop);
                let result = subjects.bring_up(0, &workload, &mut machine);
                let struck = machine.calm_down();
                if let Err(Obstacle::Stopped) = result {
                    assert_eq!(fault, Fault::IsStopped);
                }
                // The next trial finds out whether it is repaired or gone.
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

/// Kills a run before or after any command, with its records at that moment, and also with the record of its
/// volume lost.
#[test]
fn killed_at_any_step_all_is_taken_away_by_the_next_run() {
    let dir = tempfile::tempdir().unwrap();
    let notes = dir.path().join("held.json");
    let options = LabOptions { results_dir: dir.path().to_path_buf(), ..options() };
    let mut tried = 0;
    for (source, workload) in everything() {
        let campaign = campaign(std::slice::from_ref(&source));
        let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
        let mut machine = Machine::default();
        machine.keep_moments(notes.clone());
        ready(subjects.bring_up(0, &workload, &mut machine));
        subjects.let_go(0, &mut machine).unwrap();
        subjects.take_down_all(&mut machine).unwrap();
        let moments = machine.moments();
        drop(subjects);
        assert!(!notes.exists(), "{source:?}: {:?}", std::fs::read_to_string(&notes));
        for moment in moments {
            // The remains of a volume that was coming up are found only by its name.
            let is_told = !moment.is_starting() && moment.notes.contains("\"volume\"");
            let lost = is_told.then(|| without_volumes(&moment.notes));
            for noted in std::iter::once(moment.notes.clone()).chain(lost) {
                std::fs::write(&notes, &noted).unwrap();
                let mut machine = Machine::after(&moment);
                let mut next = Subjects::new(&Planned::of(&campaign), &options).unwrap();
                let told = next.clear_what_was_left(&mut machine).unwrap();
                let case = format!("{source:?} before {}, noted {noted}: {told:#?}", moment.before);
                assert_eq!(machine.left(), BTreeSet::new(), "{case}");
                assert!(!told.iter().any(|line| line.contains("warning")), "{case}");
                drop(next);
                assert!(!notes.exists(), "{case}");
                tried += 1;
            }
        }
    }
    assert!(tried > 300, "only {tried} moments");
}

fn without_volumes(notes: &str) -> String {
    let mut all: serde_json::Value = serde_json::from_str(notes).unwrap();
    all["notes"].as_array_mut().unwrap().retain(|note| note["kind"] != "volume");
    all.to_string()
}

#[test]
fn superblocks_of_an_ambiguous_path_are_told_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let options = LabOptions {
        results_dir: dir.path().to_path_buf(),
        // The same relative path may mean another file here.
        destroy: vec!["a.img".into()],
        ..options()
    };
    let campaign = campaign(&[stack(PAIR)]);
    let journal = Journal::open(dir.path()).unwrap();
    journal.note(Thing::Superblocks { members: vec!["a.img".into()] });
    let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
    let mut machine = Machine::default();
    let told = subjects.clear_what_was_left(&mut machine).unwrap();
    assert!(
        told.iter().any(|line| line.contains("a.img may still have its superblock")),
        "{told:?}"
    );
    assert_eq!(machine.commands(), [] as [String; 0]);
}

#[test]
fn after_a_failure_the_next_trial_is_as_ever() {
    for (source, workload) in everything() {
        for step in 0.. {
            let (campaign, options) = (campaign(std::slice::from_ref(&source)), options());
            let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
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
    let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
    let mut machine = Machine::default();
    let mut up_after = |subject: usize| {
        ready(subjects.bring_up(subject, &raw(), &mut machine));
        subjects.let_go(subject, &mut machine).unwrap();
        let up: Vec<usize> = (0..4).filter(|i| subjects.states[*i].base.is_some()).collect();
        up
    };
    assert_eq!(up_after(2), [2]);
    assert_eq!(up_after(0), [0, 2]);
    // The machine refuses a member that is in use, so this also checks the order of removal.
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
    let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
    let mut machine = Machine::default();
    // The first is used between the others, so it is never taken down.
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

/// With 6 GiB: two of 2 GiB and one of 1 GiB, then subjects that need one of 5 GiB to be taken down.
#[test]
fn no_more_are_up_than_memory_holds() {
    let sources =
        ["ram(2G)", "raid1(ram(1G), ram(1G))", "ram(1G)", "ram(5G)", "ram(2G)"].map(stack);
    let (campaign, options) = (campaign(&sources), options());
    let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
    let mut machine = Machine::with_memory(6 << 20);
    let mut up_after = |subject: usize| {
        ready(subjects.bring_up(subject, &raw(), &mut machine));
        subjects.let_go(subject, &mut machine).unwrap();
        subjects.up.clone()
    };
    assert_eq!([0, 1, 2].map(&mut up_after)[2], [0, 1, 2]);
    assert_eq!(up_after(3), [2, 3]);
    assert_eq!(up_after(4), [4]);
    subjects.take_down_all(&mut machine).unwrap();
}

#[test]
fn an_array_that_heals_stays_up_and_one_in_memory_changes_its_form() {
    let sources = [stack(PAIR), stack("raid1(ram(1G), ram(1G))")];
    let (campaign, options) = (campaign(&sources), options());
    let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
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
    let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
    let mut machine = Machine::default();
    ready(subjects.bring_up(0, &reading(), &mut machine));
    let up = machine.commands().into_iter().find(|text| text.contains(" up ")).unwrap();
    assert!(up.contains("--force /img/a") && !up.contains("--force /img/other"), "{up}");
    assert!(up.contains("--read-only"), "{up}");
    subjects.take_down_all(&mut machine).unwrap();
}

/// The second line of defence: it does not depend on the campaign's plan.
#[test]
fn whatever_writes_is_refused_where_a_member_was_not_named() {
    let ext4 = workload(FileSystem::Ext4, Health::Healthy);
    let hurt = workload(FileSystem::None, Health::Degraded);
    for (source, workload) in [
        (stack("raid0(/img/a, /img/other)"), raw()),
        (stack("/img/other"), ext4.clone()),
        (Source::Path("/img/other".into()), ext4),
        (Source::Path("/dev/other".into()), raw()),
        (Source::Nbd("nbd://other".into()), raw()),
        (stack("md(/img/a, /img/other)"), hurt),
        // These write although the tool reads.
        (stack("raid1(/img/a, /img/other)"), reading()),
        (stack("raid1(/img/other, missing)"), reading()),
        (Source::Kernel("raid0(/img/a, /img/other)".into()), reading()),
    ] {
        let (campaign, options) = (campaign(std::slice::from_ref(&source)), options());
        let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
        let mut machine = Machine::default();
        let error = failure(subjects.bring_up(0, &workload, &mut machine));
        assert!(matches!(&error, LabError::WouldDestroy { paths } if paths.len() == 1), "{error}");
        assert!(error.to_string().contains("other"), "{error}");
        assert_eq!(machine.commands(), [] as [&str; 0], "{source:?}");
    }
    let (campaign, options) = (campaign(&[Source::Path("/dev/other".into())]), options());
    let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
    let mut machine = Machine::default();
    ready(subjects.bring_up(0, &reading(), &mut machine));
    assert!(matches!(
        subjects.fill(0, &mut machine),
        Err(Obstacle::Failed(LabError::WouldDestroy { .. }))
    ));
    assert_eq!(machine.fills(), 0);
    subjects.take_down_all(&mut machine).unwrap();
}

/// A stack that is read, then written: it comes up again for the second.
#[test]
fn what_is_only_read_is_served_for_reading_only() {
    let (campaign, options) = (campaign(&[stack("raid0(/img/a, /img/b)")]), options());
    let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
    let mut machine = Machine::default();
    for workload in [reading(), reading(), raw()] {
        ready(subjects.bring_up(0, &workload, &mut machine));
        subjects.let_go(0, &mut machine).unwrap();
    }
    let ups = machine.commands().into_iter().filter(|text| text.contains(" up "));
    let read_only: Vec<bool> = ups.map(|text| text.contains("--read-only")).collect();
    assert_eq!(read_only, [true, false]);
    subjects.take_down_all(&mut machine).unwrap();
}

#[test]
fn a_server_that_died_is_named_once() {
    for through_nbd in [false, true] {
        let (campaign, options) = (campaign(&[stack("ram(1G)")]), options());
        let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
        subjects.through_nbd = through_nbd;
        let mut machine = Machine::default();
        ready(subjects.bring_up(0, &raw(), &mut machine));
        subjects.let_go(0, &mut machine).unwrap();
        machine.kill_volumes();
        let error = failure(subjects.bring_up(0, &raw(), &mut machine));
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
    let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
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
    let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
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

/// The commands name the file system of a folder, and no others.
#[test]
fn a_folder_is_taken_as_it_is() {
    let (campaign, options) = (campaign(&[Source::Directory("/srv".into())]), options());
    let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
    let mut machine = Machine::default();
    let own = workload(FileSystem::Own, Health::Healthy);
    let told = ready(subjects.bring_up(0, &own, &mut machine)).commands;
    assert!(told.iter().any(|text| text.starts_with("# /srv lies on ")), "{told:?}");
    subjects.let_go(0, &mut machine).unwrap();
    let noatime = Setup { mount: "noatime".into(), ..own.setup.clone() };
    for setup in [noatime, workload(FileSystem::Xfs, Health::Healthy).setup] {
        let other = Workload { setup, ..own.clone() };
        match subjects.bring_up(0, &other, &mut machine) {
            Err(Obstacle::Impossible(why)) => {
                assert!(why.contains("keeps its file system"), "{why}")
            }
            other => panic!("{other:?}"),
        }
    }
    subjects.take_down_all(&mut machine).unwrap();
    assert_eq!(machine.left(), BTreeSet::new());
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
        let mut subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
        let mut machine = Machine::default();
        machine.take_root_away();
        match subjects.bring_up(0, &raw(), &mut machine) {
            Err(Obstacle::Impossible(why)) => assert!(why.contains("needs root"), "{why}"),
            _ => panic!("{source:?} came up"),
        }
        assert!(machine.commands().is_empty());
    }
}
