use super::*;
use crate::campaign::Health;
use crate::matrix::parse_campaign;
use crate::preset::quick_campaign;

fn quick() -> Campaign {
    let subjects = [("stripe".to_owned(), "raid0(chunk=64K, a.img, b.img)".to_owned())];
    quick_campaign("a.img", &subjects).unwrap()
}

fn with_jobs(subjects: &str, jobs: &str) -> Campaign {
    parse_campaign(&format!("name = \"t\"\n{subjects}\n{jobs}"), "test").unwrap()
}

fn through_nbd(campaign: &Campaign) -> bool {
    goes_through_nbd(&Planned::of(campaign).workloads)
}

const SINGLE: &str = "[[subject]]\nname = \"single\"\nstack = \"a.img\"\nbaseline = true\n";

#[test]
fn quick_is_sixteen_cells_and_eighty_trials() {
    assert_eq!(Planned::of(&quick()).cells.len(), 16);
    assert_eq!(Planned::of(&quick()).trials.len(), 80);
}

#[test]
fn repetitions_are_shuffled_differently_and_the_seed_alone_decides() {
    let campaign = quick();
    let trials = Planned::of(&campaign).trials;
    let order = |block: &[Trial]| -> Vec<(usize, usize)> {
        block.iter().map(|t| (t.cell.workload_index, t.cell.subject)).collect()
    };
    assert_ne!(order(&trials[..16]), order(&trials[16..32]));
    assert_eq!(Planned::of(&campaign).trials, trials);
    let other = Campaign { seed: Some(campaign.seed() + 1), ..campaign };
    assert_ne!(Planned::of(&other).trials, trials);
}

#[test]
fn compared_pairs_share_their_offsets() {
    let trials = Planned::of(&quick()).trials;
    for trial in &trials {
        let twin = trials.iter().find(|other| {
            other.repetition == trial.repetition
                && other.cell.workload_index == trial.cell.workload_index
                && other.cell.subject != trial.cell.subject
        });
        assert_eq!(twin.unwrap().seed, trial.seed);
    }
}

#[test]
fn every_list_is_a_dimension() {
    let campaign = with_jobs(
        SINGLE,
        "[[job]]\ntool = \"dd\"\nop = [\"read\", \"write\"]\nbs = [\"64K\", \"1M\"]\nfilesystem = [\"ext4\", \"xfs\"]\n\
         mount = [\"\", \"sync\"]\nreadahead = [\"128K\", \"1M\"]\nprocesses = [1, 2, 3]\n",
    );
    let workloads = Planned::of(&campaign).workloads;
    assert_eq!(workloads.len(), 2 * 2 * 2 * 2 * 2 * 3);
    let labels: std::collections::BTreeSet<String> =
        workloads.iter().map(Workload::label).collect();
    assert_eq!(labels.len(), workloads.len(), "labels tell them apart");
    assert_eq!(workloads[0].dimensions()["filesystem"], Value::Word("ext4".into()));
}

#[test]
fn what_cannot_be_is_in_the_matrix_with_its_reason() {
    let campaign = with_jobs(
        &format!(
            "{SINGLE}[[subject]]\nname = \"folder\"\ndirectory = \"/srv\"\n\
             [[subject]]\nname = \"far\"\nnbd = \"nbd://h\"\n"
        ),
        "[[job]]\ntool = \"hdparm\"\n[[job]]\ntool = \"cp-read\"\nhealth = [\"healthy\", \"degraded\"]\n",
    );
    let cells = Planned::of(&campaign).cells;
    let why = |subject: usize, tool: &str, health: Health| {
        let mut found = cells.iter().filter(|cell| {
            let work = &cell.workload;
            cell.subject == subject && work.tool == tool && work.setup.health == health
        });
        found.next().unwrap().impossible.clone()
    };
    assert!(why(1, "hdparm", Health::Healthy).unwrap().contains("raw device"));
    assert!(why(2, "hdparm", Health::Healthy).unwrap().contains("attach it first"));
    assert_eq!(why(0, "hdparm", Health::Healthy), None);
    assert_eq!(why(1, "cp-read", Health::Healthy), None);
    assert!(why(1, "cp-read", Health::Degraded).unwrap().contains("not an array"));
}

#[test]
fn one_way_for_all_stacks_of_a_campaign() {
    assert!(through_nbd(&quick()));
    let fio = "[[job]]\npattern = \"seq\"\nop = \"read\"\nblock_size = \"1M\"\n";
    let campaign = with_jobs(SINGLE, &format!("{fio}[[job]]\ntool = \"hdparm\"\n"));
    assert!(!through_nbd(&campaign));
    let campaign = with_jobs(SINGLE, &format!("{fio}filesystem = \"ext4\"\n"));
    assert!(!through_nbd(&campaign));
}

proptest::proptest! {
    /// For every seed, each repetition is a permutation of the matrix and the numbers are consecutive.
    #[test]
    fn every_schedule_is_complete(seed: u64, repetitions in 1_u32..6) {
        let campaign = Campaign { seed: Some(seed >> 1), repetitions, ..quick() };
        let trials = Planned::of(&campaign).trials;
        let mut seen = std::collections::BTreeSet::new();
        for (index, trial) in trials.iter().enumerate() {
            proptest::prop_assert_eq!(trial.number as usize, index + 1);
            proptest::prop_assert_eq!(trial.repetition as usize, index / 16 + 1);
            let key = (trial.repetition, trial.cell.workload_index, trial.cell.subject);
            proptest::prop_assert!(seen.insert(key));
        }
        proptest::prop_assert_eq!(seen.len(), 16 * repetitions as usize);
    }
}

/// Returns a campaign with so many subjects and workloads.
fn square(subjects: usize, workloads: usize) -> Campaign {
    let subject = |index: usize| {
        let baseline = index == 0;
        format!("[[subject]]\nname = \"s{index}\"\npath = \"/d{index}\"\nbaseline = {baseline}\n")
    };
    let sizes: Vec<String> = (1..=workloads).map(|size| format!("\"{}K\"", 4 * size)).collect();
    let subjects: String = (0..subjects).map(subject).collect();
    let sizes = sizes.join(", ");
    with_jobs(
        &subjects,
        &format!("[[job]]\npattern = \"seq\"\nop = \"read\"\nblock_size = [{sizes}]\n"),
    )
}

proptest::proptest! {
    /// Each of two cells comes first equally often, except for the last of an odd number of repetitions.
    /// Over a whole square, within each workload, each subject stands equally often at each place, and directly
    /// behind each other subject.
    #[test]
    fn orders_are_balanced(
        seed in 0..u64::MAX / 2,
        count in 2_usize..8,
        workloads in 1_usize..4,
        repetitions in 1_u32..8,
    ) {
        let of = |repetitions: u32| {
            let campaign = Campaign { seed: Some(seed), repetitions, ..square(count, workloads) };
            Planned::of(&campaign).trials
        };
        let mut ahead = BTreeMap::new();
        let trials = of(repetitions);
        for (index, first) in trials.iter().enumerate() {
            for later in trials[index + 1..].iter().take_while(|t| t.repetition == first.repetition) {
                let (one, other) = (first.cell.place(), later.cell.place());
                let sign = if one < other { 1 } else { -1 };
                *ahead.entry((one.min(other), one.max(other))).or_insert(0_i32) += sign;
            }
        }
        let most = i32::from(repetitions % 2 == 1);
        proptest::prop_assert!(ahead.values().all(|by| by.abs() == most), "{ahead:?}");

        let whole = if count % 2 == 0 { count } else { 2 * count };
        let trials = of(whole as u32);
        for workload in 0..workloads {
            let row = |repetition: u32| -> Vec<usize> {
                let own = trials.iter().filter(|t| t.cell.workload_index == workload);
                own.filter(|t| t.repetition == repetition).map(|t| t.cell.subject).collect()
            };
            let rows: Vec<Vec<usize>> = (1..=whole as u32).map(row).collect();
            for subject in 0..count {
                for place in 0..count {
                    let there = rows.iter().filter(|row| row[place] == subject).count();
                    proptest::prop_assert_eq!(there, whole / count);
                }
                for before in (0..count).filter(|before| *before != subject) {
                    let behind = |row: &Vec<usize>| row.windows(2).any(|two| two == [before, subject]);
                    let there = rows.iter().filter(|row| behind(row)).count();
                    proptest::prop_assert_eq!(there, whole / count);
                }
            }
        }
    }
}

const FOLDERS: &str = "[[subject]]\nname = \"one\"\ndirectory = \"/srv\"\nbaseline = true\n\
                       [[subject]]\nname = \"two\"\ndirectory = \"/home\"\n";

/// Returns the label of each workload of each subject, and the reason if it is impossible.
fn cells_of(campaign: &Campaign) -> Vec<(usize, String, Option<String>)> {
    let cells = Planned::of(campaign).cells.into_iter();
    cells.map(|cell| (cell.subject, cell.workload.label(), cell.impossible)).collect()
}

/// No file system is made in a folder, so no label may claim one.
#[test]
fn folders_are_measured_on_their_own_file_system_and_say_so() {
    for job in ["tool = \"cp-read\"", "tool = \"dd\"\nop = \"write\""] {
        let campaign = with_jobs(FOLDERS, &format!("[[job]]\n{job}\n"));
        let workloads = Planned::of(&campaign).workloads;
        assert_eq!(workloads.len(), 1, "both are compared on one workload");
        let cells = cells_of(&campaign);
        assert_eq!(cells.len(), 2);
        for (_, label, impossible) in cells {
            assert!(label.ends_with(", the folder's file system"), "{label}");
            assert_eq!(impossible, None);
        }
    }
}

#[test]
fn what_is_made_on_a_device_is_not_compared_with_what_a_folder_has() {
    let mixed = format!("{SINGLE}{}", FOLDERS.replace("baseline = true", ""));
    let jobs = "[[job]]\ntool = \"cp-read\"\n[[job]]\ntool = \"hdparm\"\n";
    let campaign = with_jobs(&mixed, jobs);
    let cells = cells_of(&campaign);
    let labels = |subject: usize| -> Vec<String> {
        let mine = cells.iter().filter(|cell| cell.0 == subject && cell.2.is_none());
        mine.map(|cell| cell.1.clone()).collect()
    };
    assert_eq!(labels(0).len(), 2);
    assert!(labels(0)[0].ends_with(", ext4"), "{:?}", labels(0));
    assert_eq!(labels(1).len(), 1);
    assert!(labels(1)[0].ends_with(", the folder's file system"), "{:?}", labels(1));
    assert_eq!(cells.len(), 1 + 2 + 3, "hdparm on a folder is there, and impossible");
    // A folder among the subjects does not change the access to a stack.
    let fio = "[[job]]\npattern = \"seq\"\nop = \"read\"\n";
    assert!(through_nbd(&with_jobs(&mixed, fio)));
}

#[test]
fn a_file_system_cannot_be_asked_of_a_folder() {
    let mixed = format!("{SINGLE}{}", FOLDERS.replace("baseline = true", ""));
    for wanted in ["filesystem = [\"ext4\", \"xfs\"]", "mkfs = \"-m 0\"", "mount = \"noatime\""] {
        let campaign = with_jobs(&mixed, &format!("[[job]]\ntool = \"cp-read\"\n{wanted}\n"));
        for (subject, label, impossible) in cells_of(&campaign) {
            match subject {
                0 => assert_eq!(impossible, None, "{label}"),
                _ => assert!(
                    impossible.unwrap().contains("keeps its file system"),
                    "{wanted}: {label}"
                ),
            }
        }
    }
}

/// Cells that are impossible on every machine are not planned with times, bytes and `--destroy`.
#[test]
fn what_no_machine_can_do_is_known_to_the_plan() {
    let subjects = "[[subject]]\nname = \"stripe\"\nstack = \"raid0(./a, ./b)\"\nbaseline = true\n\
        [[subject]]\nname = \"nested\"\nkernel = \"raid0(raid1(./c, ./d), raid1(./e, ./f))\"\n";
    let job = "[[job]]\npattern = \"rand\"\nop = \"write\"\nhealth = [\"healthy\", \"degraded\"]\n";
    let campaign = with_jobs(subjects, job);
    let possible: Vec<(usize, Health)> = Planned::of(&campaign)
        .cells
        .into_iter()
        .filter(|cell| cell.impossible.is_none())
        .map(|cell| (cell.subject, cell.workload.setup.health))
        .collect();
    assert_eq!(possible, [(0, Health::Healthy)]);
    assert_eq!(crate::safety::plan_overwrites(&Planned::of(&campaign)), ["./a", "./b"]);
}
