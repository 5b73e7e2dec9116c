use super::*;
use crate::campaign::Campaign;
use crate::command::minutes;
use crate::matrix::{Planned, parse_campaign};
use crate::preset::{Choices, Preset, quick_campaign};

/// Returns a plan of a campaign that has not begun.
fn plan_new(planned: Planned) -> Plan {
    plan_campaign(planned, &Earlier::default(), &[])
}

#[test]
fn quick_takes_about_two_minutes_and_says_what_it_destroys() {
    let subjects = [("stripe".to_owned(), "raid0(chunk=64K, a.img, b.img)".to_owned())];
    let plan = plan_new(Planned::of(&quick_campaign("a.img", &subjects).unwrap()));
    assert!(plan.duration < Duration::from_secs(150), "{:?}", plan.duration);
    assert_eq!(plan.overwrites, ["a.img", "b.img"]);
    // Single: 4 kinds of writes, 5 seconds each; the stripe writes to both members.
    assert_eq!(plan.written["a.img"].seconds, 40.0);
    assert_eq!(plan.written["b.img"].seconds, 20.0);
    // Filled once: wholly as a single, by half as a member.
    assert_eq!(plan.written["a.img"].bytes, (256 << 20) as f64 * 1.5);
    let text = render_plan(&plan);
    for part in [
        "80 trials",
        "--destroy a.img --destroy b.img",
        "seed drawn by the run",
        "(baseline)",
        "random write 4K",
        "b.img: 128 MiB, and as much as it takes in 20 s",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

/// Names come from files and must not control the terminal.
#[test]
fn names_do_not_act_on_the_terminal() {
    let subjects = [("a\u{1b}[31m\u{7}".to_owned(), "raid0(chunk=64K, a.img, b.img)".to_owned())];
    let campaign = quick_campaign("a.img", &subjects).unwrap();
    let text = render_plan(&plan_new(Planned::of(&campaign)));
    assert!(text.contains("a\\u{1b}[31m\\u{7}"), "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn what_is_impossible_is_said_before_it_starts() {
    let preset = Preset::find("cruzer-6x").unwrap();
    let choices = Choices {
        modelled: true,
        members: vec![("stick6".into(), "model(usb-flash, size=2G)".into())],
        ..Choices::default()
    };
    let mut campaign = preset.campaign(&choices).unwrap();
    campaign.members.truncate(4);
    let text = render_plan(&plan_new(Planned::of(&campaign)));
    assert!(text.contains("impossible, and left out"), "{text}");
    assert!(text.contains("it needs 6 members and there are 4"), "{text}");
}

#[test]
fn times_are_readable() {
    assert_eq!(minutes(Duration::from_secs(69)), "69 s");
    assert_eq!(minutes(Duration::from_secs(121)), "3 min");
    assert_eq!(minutes(Duration::from_secs(9000)), "2.5 h");
}

/// Returns the plan of a campaign of these subjects and jobs; the first subject is the baseline.
fn plan_of(head: &str, subjects: &[&str], jobs: &str) -> Plan {
    let mut text = format!("name = 'p'\nrepetitions = 3\nruntime_s = 2\n{head}\n");
    for (index, subject) in subjects.iter().enumerate() {
        let baseline = index == 0;
        text += &format!("[[subject]]\nname = 's{index}'\nbaseline = {baseline}\n{subject}\n");
    }
    plan_new(Planned::of(&parse_campaign(&(text + jobs), "test").unwrap()))
}

fn bytes_of(plan: &Plan, member: &str) -> u64 {
    plan.written[member].bytes as u64
}

const MIB: u64 = 1 << 20;

/// Makes a file of so many MiB, without any allocated.
fn sparse(dir: &tempfile::TempDir, name: &str, mib: u64) -> String {
    let path = dir.path().join(name);
    std::fs::File::create(&path).unwrap().set_len(mib * MIB).unwrap();
    path.display().to_string()
}

#[test]
fn a_region_ends_where_its_subject_does() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| sparse(&dir, name, 64));
    let subjects = [
        format!("stack = '{a}'"),
        format!("stack = 'raid0({a}, {b})'"),
        "stack = 'ram(32M)'".to_owned(),
    ];
    let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
    let jobs = "[[job]]\npattern = 'seq'\nop = ['read', 'write']\n";
    let plan = plan_of("region = '1T'", &subjects, jobs);
    // Filled once as a single and once as a half of the stripe.
    assert_eq!(bytes_of(&plan, &a), 128 * MIB);
    assert_eq!(bytes_of(&plan, &b), 64 * MIB);
    assert_eq!(bytes_of(&plan, "ram(32M)"), 32 * MIB);
    // 18 trials, and 224 MiB of filling at 100 MB/s.
    let trials = 18.0 * 2.6;
    let filling = (224 * MIB) as f64 / 100e6;
    let error = plan.duration.as_secs_f64() - trials - filling;
    assert!(error.abs() < 0.001, "{:?}", plan.duration);
}

#[test]
fn models_are_not_filled_and_nobody_writes_to_who_is_missing() {
    let model = "model(hdd, size=1G)";
    let single = format!("stack = '{model}'");
    let subjects = [single.as_str(), "stack = 'raid1(./a, missing)'"];
    let jobs = "[[job]]\ntool = 'dd'\nop = ['read', 'write']\nsize = '4M'\nbs = '1M'\n";
    let plan = plan_of("region = '8M'", &subjects, jobs);
    assert_eq!(bytes_of(&plan, model), 3 * 4 * MIB);
    assert_eq!(bytes_of(&plan, "./a"), (8 + 3 * 4) * MIB);
    assert_eq!(plan.written.len(), 2, "{:?}", plan.written);
}

/// fio reads a file in a folder: each repetition creates it, and nothing is filled.
#[test]
fn files_that_are_laid_out_count_in_bytes_and_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let a = sparse(&dir, "a", 512);
    let subject = format!("path = '{a}'");
    let job = "[[job]]\npattern = 'seq'\nop = 'read'\nfilesystem = 'ext4'\n";
    let plan = plan_of("region = '64M'", &[&subject], job);
    assert_eq!(bytes_of(&plan, &a), 3 * 64 * MIB);
    let expected = 3.0 * (2.0 + 0.6 + 0.7 + (64 * MIB) as f64 / 100e6);
    assert!((plan.duration.as_secs_f64() - expected).abs() < 0.001, "{:?}", plan.duration);
    // The region is more than a trial may use of the file system.
    let small = plan_of("region = '1T'", &[&subject], job);
    assert!(bytes_of(&small, &a) <= 3 * 512 * MIB * 45 / 100);
    let reads = "[[job]]\ntool = 'dd'\nop = 'read'\nsize = '4M'\nbs = '1M'\nprocesses = 2\n\
                 filesystem = 'ext4'\n";
    assert_eq!(bytes_of(&plan_of("region = '64M'", &[&subject], reads), &a), 3 * 2 * 4 * MIB);
    let sysbench = "[[job]]\ntool = 'sysbench'\nmode = ['seqrd', 'rndwr']\ntotal_size = '16M'\n";
    assert_eq!(bytes_of(&plan_of("region = '64M'", &[&subject], sysbench), &a), 3 * 2 * 16 * MIB);
}

#[test]
fn a_member_that_is_filled_again_counts_whole() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|name| sparse(&dir, name, 64));
    let subject = format!("stack = 'raid1({a}, {b})'\n");
    let single = format!("stack = '{c}'\n");
    let job = "[[job]]\ntool = 'dd'\nop = 'write'\nsize = '4M'\nbs = '1M'\nsubjects = ['s1']\n\
               health = ['healthy', 'degraded', 'rebuilding', 'scrubbing']\n\
               [[job]]\ntool = 'hdparm'\nsubjects = ['s0']\n";
    let plan = plan_of("region = '8M'", &[&single, &subject], job);
    assert_eq!(bytes_of(&plan, &b), 3 * 4 * 4 * MIB);
    assert_eq!(bytes_of(&plan, &a), (3 * 4 * 4 + 3 * 2 * 64) * MIB);
    assert_eq!((bytes_of(&plan, &c), plan.written[&c].seconds), (0, 0.0));
    let text = render_plan(&plan);
    assert!(text.contains("not counted: superblocks"), "{text}");
}

#[test]
fn a_subject_that_is_compared_with_nothing_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let folder = format!("directory = '{}'", dir.path().display());
    let job = "[[job]]\npattern = 'seq'\nop = 'read'\n";
    let note = |subjects: &[&str], job: &str| {
        let text = render_plan(&plan_of("region = '4M'", subjects, job));
        let at = text.find("note on ").map(|at| at..text.len());
        at.map(|at| text[at].to_owned()).unwrap_or_default()
    };
    let ram = "stack = 'ram(8M)'";
    let said = note(&[&folder, ram], job);
    assert!(said.starts_with("note on s1: It is compared with nothing"), "{said}");
    assert!(said.contains("the baseline (s0)"), "{said}");
    assert_eq!(note(&[&folder, &folder], job), "");
    assert_eq!(note(&[ram, ram], job), "");
    // One job in common is enough; a job of its own is not.
    let random = job.replace("seq", "rand");
    let two = format!("{job}subjects = ['s1']\n{random}");
    assert_eq!(note(&[ram, ram], &two), "");
    let apart = format!("{job}subjects = ['s1']\n{random}subjects = ['s0']\n");
    assert!(note(&[ram, ram], &apart).starts_with("note on s1: "));
}

#[test]
fn what_will_hardly_find_room_is_said_before_it_starts() {
    let dir = tempfile::tempdir().unwrap();
    let a = sparse(&dir, "a", 600);
    let subjects = [format!("path = '{a}'"), "stack = 'ram(2G)'".to_owned()];
    let notes = |size: &str, rest: &str| {
        let job = format!("[[job]]\ntool = 'dd'\nop = 'write'\nsize = '{size}'\nbs = '1M'\n{rest}");
        plan_of("region = '1G'", &[&subjects[0], &subjects[1]], &job).notes
    };
    // The file system leaves 510 of 600 MiB, less a tenth for itself.
    let ext4 = "filesystem = 'ext4'\nprocesses = [1, 2]\n";
    let [(name, why)] = &notes("256M", ext4)[..] else { panic!("one is tight") };
    assert_eq!(name, "s0");
    assert!(why.starts_with("Probably impossible: dd write 1M, 256M each"), "{why}");
    assert!(why.contains("× 2, ext4: it needs 512 MiB and has 459"), "{why}");
    assert!(notes("228M", ext4).is_empty());
    // Raw: all of it.
    assert!(notes("600M", "").is_empty());
    assert!(notes("601M", "")[0].1.contains("it needs 601 MiB and has 600 MiB"));
    assert_eq!(notes("1025M", "").len(), 2);
}

/// A mirror has two cells, and a stripe one: it cannot be degraded.
#[test]
fn only_what_will_run_is_counted() {
    let jobs = "[[job]]\npattern = 'rand'\nop = 'read'\nhealth = ['healthy', 'degraded']\n";
    let stripe = "stack = 'raid0(ram(64M), ram(64M))'";
    let plan = plan_of("region = '8M'", &[stripe, "stack = 'raid1(ram(64M), ram(64M))'"], jobs);
    assert_eq!((plan.planned.trials.len(), plan.possible, plan.to_run), (12, 9, 9));
    let text = render_plan(&plan);
    assert!(text.contains("3 cells × 3 repetitions = 9 trials"), "{text}");
}

#[test]
fn what_is_measured_already_is_not_estimated_again() {
    let jobs = "[[job]]\npattern = 'rand'\nop = 'read'\n";
    let planned = |plan: Plan| {
        let measured = plan.planned.trials[..2].iter().map(|trial| (trial.number, 7.0)).collect();
        let earlier = Earlier { measured, around_s: 0.5 };
        plan_campaign(plan.planned, &earlier, &[])
    };
    let plan = planned(plan_of("region = '8M'", &["stack = 'ram(64M)'"], jobs));
    assert_eq!((plan.possible, plan.to_run, plan.basis), (3, 1, Basis::Measured));
    assert_eq!(plan.duration, Duration::from_secs_f64(7.5));
    let text = render_plan(&plan);
    assert!(
        text.contains("of the remaining 1 (2 are measured already): 7 s, as earlier"),
        "{text}"
    );
}

#[test]
fn models_take_the_time_that_they_say() {
    let dd = "[[job]]\ntool = 'dd'\nop = ['read', 'write']\nsize = '400M'\nbs = '1M'\n";
    let stick = "model(usb-flash, size=1G, read=20MiB/s, write=10MiB/s)";
    let single = format!("stack = '{stick}'");
    let plan = plan_of("region = '1G'", &[&single], dd);
    // 400 MiB read at 20 and written at 10, and 0.6 s around each; three times.
    assert_eq!(plan.duration.as_secs_f64().round(), (3.0 * (20.0 + 40.0 + 1.2_f64)).round());
    assert_eq!(plan.basis, Basis::Known);
    assert!(!render_plan(&plan).contains("MB/s"), "nothing is assumed");
    let stripe = format!("stack = 'raid0({stick}, {stick})'");
    let plan = plan_of("region = '1G'", &[&stripe], dd);
    assert_eq!(plan.duration.as_secs_f64().round(), (3.0 * (10.0 + 20.0 + 1.2_f64)).round());
}

#[test]
fn what_is_over_too_soon_is_said_before_it_starts() {
    let stick = "stack = 'model(usb-flash, size=1G, read=20MiB/s, write=10MiB/s)'";
    let note = |size: &str, op: &str| {
        let job = format!("[[job]]\ntool = 'dd'\nop = '{op}'\nsize = '{size}'\nbs = '1M'\n");
        plan_of("region = '1G'", &[stick], &job).notes
    };
    let [(name, why)] = &note("4M", "read")[..] else { panic!("one is short") };
    assert_eq!(name, "s0");
    assert!(why.contains("too short to be believed: dd read 1M, 4M"), "{why}");
    assert!(why.contains("takes about 0.20 s"), "{why}");
    assert!(note("40M", "read").is_empty() && note("40M", "write").is_empty());
    let job = "[[job]]\npattern = 'seq'\nop = 'read'\n";
    let short = plan_of("region = '8M'\nramp_s = 0", &["stack = 'ram(64M)'"], job);
    assert!(short.notes.is_empty());
    let campaign = Campaign { runtime_s: 0.5, ..short.planned.campaign };
    let notes = plan_new(Planned::of(&campaign)).notes;
    assert!(notes[0].1.contains("take --runtime 1 or more"), "{notes:?}");
}

#[test]
fn what_was_named_to_be_overwritten_is_not_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| sparse(&dir, name, 64));
    let subject = format!("stack = 'raid0({a}, {b})'");
    let jobs = "[[job]]\npattern = 'rand'\nop = 'write'\n";
    let planned = plan_of("region = '8M'", &[&subject], jobs).planned;
    let text = |destroy: &[PathBuf]| {
        render_plan(&plan_campaign(planned.clone(), &Earlier::default(), destroy))
    };
    let one = text(&[PathBuf::from(&a)]);
    assert!(one.contains(&format!("as --destroy says\n  {a}\n")), "{one}");
    assert!(one.contains(&format!("to agree, add\n  --destroy {b}\n")), "{one}");
    assert!(!text(&[a.into(), b.into()]).contains("to agree"));
}
