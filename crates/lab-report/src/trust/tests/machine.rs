use super::*;
use braid_lab::campaign::Health;
use braid_lab::evidence::Heat;
use braid_lab::metric::TimeSeries;

fn mount(text: &str) -> impl FnMut(&mut StoredTrial) {
    move |trial| trial.evidence.mount = Some(text.to_owned())
}

/// With another tool, and settings of it.
fn with(tool: &str, settings: &[(&str, Value)]) -> Lab {
    let mut lab = Lab::new().each(write_instead);
    lab.workload.tool = tool.into();
    lab.workload.settings = settings
        .iter()
        .fold(Settings::default(), |all, (name, value)| all.with(name, value.clone()));
    lab
}

fn word(word: &str) -> Value {
    Value::Word(word.into())
}

/// dd as published tests used it.
fn zeros() -> Lab {
    with("dd", &[("op", word("write")), ("source", word("zero"))])
}

#[test]
fn zeros_on_a_file_system_that_compresses_store_nothing() {
    let of = |text: &str| zeros().each(mount(text)).standing("compressible");
    assert_eq!(of("btrfs rw,relatime,compress=zstd:3"), Some(Invalid));
    assert_eq!(of("btrfs rw,compress-force=lzo"), Some(Invalid));
    assert_eq!(of("f2fs rw,compress_algorithm=lz4,compress_extension=*"), Some(Invalid));
    assert_eq!(of("zfs rw,xattr"), Some(Invalid));
    assert_eq!(of("btrfs rw,relatime,space_cache=v2"), None);
    assert_eq!(of("btrfs rw,compress=no"), None);
    assert_eq!(of("f2fs rw,compress_algorithm=lz4"), None);
    assert_eq!(of("ext4 rw,nocompress"), None);
}

#[test]
fn each_tool_says_what_it_writes() {
    let of = |tool: &str, settings: &[(&str, Value)]| {
        with(tool, settings).each(mount("btrfs rw,compress=zstd")).standing("compressible")
    };
    let write = ("op", word("write"));
    assert_eq!(of("dd", &[write.clone(), ("source", word("file"))]), None);
    assert_eq!(of("dd", &[write.clone(), ("source", word("zero"))]), Some(Invalid));
    assert_eq!(of("dd", &[("op", word("read")), ("source", word("zero"))]), None);
    // They say nothing of bytes written, or only read what they wrote before.
    assert_eq!(of("sysbench", &[("mode", word("seqrd"))]), Some(Invalid));
    assert_eq!(of("sysbench", &[("mode", word("rndwr"))]), Some(Invalid));
    assert_eq!(of("bonnie", &[]), Some(Invalid));
    assert_eq!(of("cp-cached", &[]), None);
    assert_eq!(of("cp-read", &[]), None);
    assert_eq!(of("fio", &[write]), None);
    // Text is what such a file system is for.
    assert_eq!(of("cp-tree", &[]), None);
    assert_eq!(of("untar", &[]), None);
}

#[test]
fn what_was_asked_for_counts_where_nobody_saw_the_mount() {
    let lab = zeros().setup(|setup| setup.mount = "noatime,compress=zstd".into());
    assert_eq!(lab.standing("compressible"), Some(Invalid));
    assert_eq!(lab.each(mount("btrfs rw,noatime")).standing("compressible"), None);
}

#[test]
fn compressible_percents_are_doubted_from_a_tenth_on() {
    let of = |percent: u64| {
        let of = |op: &str| {
            let settings = [("op", word(op)), ("compressible", Value::Count(percent))];
            with("fio", &settings).each(mount("btrfs rw,compress=zstd")).standing("compressible")
        };
        assert_eq!(of("read"), None);
        of("write")
    };
    assert_eq!(
        [of(0), of(10), of(11), of(99), of(100)],
        [None, None, Some(Suspect), Some(Suspect), Some(Invalid)]
    );
}

#[test]
fn zram_compresses_without_a_file_system() {
    let on = |source: Source| {
        let mut lab = zeros();
        lab.subjects[0].1 = source;
        lab.standing("compressible")
    };
    assert_eq!(on(Source::Zram("1G".into())), Some(Invalid));
    assert_eq!(on(Source::Path("/dev/zram0".into())), Some(Invalid));
    assert_eq!(on(Source::Stack("raid0(/dev/sda, /dev/zram1)".into())), Some(Invalid));
    assert_eq!(on(Source::Stack("raid0(/dev/sda, /srv/zram1)".into())), None);
    assert_eq!(on(Source::Tmpfs("1G".into())), None);
}

/// The tool's own clock: bytes over rate.
#[test]
fn a_trial_below_a_second_is_short() {
    let of = |seconds: f64| {
        Lab::new()
            .each(|trial| set(trial, Metric::Throughput, (1000 * MIB) as f64 / seconds))
            .standing("too-short")
    };
    assert_eq!(
        [of(0.29), of(0.31), of(0.94), of(0.96)],
        [Some(Invalid), Some(Suspect), Some(Suspect), None]
    );
}

/// 30 ms of start-up are a tenth of 0.3 s.
#[test]
fn a_copy_that_is_mostly_start_up_is_short() {
    let of = |seconds: f64| {
        Lab::new().each(|trial| set(trial, Metric::Seconds, seconds)).found("too-short")
    };
    assert_eq!(of(0.29).unwrap().standing, Invalid);
    assert!(of(0.29).unwrap().why.contains("it took 0.29 s"), "{:?}", of(0.29));
    assert_eq!(of(0.31).unwrap().standing, Suspect);
    assert_eq!(of(0.94).unwrap().standing, Suspect);
    assert_eq!(of(0.96), None);
    // Without any clock but the wall's.
    let wall = Lab::new().each(|trial| {
        trial.measured = measured(&[(Metric::BonnieSeqCreate, 5.0)]);
        trial.duration_s = 0.2;
    });
    assert_eq!(wall.standing("too-short"), Some(Invalid));
}

#[test]
fn few_requests_are_too_few() {
    let of = |requests: f64| {
        Lab::new().each(|trial| set(trial, Metric::Requests, requests)).standing("too-short")
    };
    assert_eq!(
        [of(4.0), of(5.0), of(29.0), of(30.0)],
        [Some(Invalid), Some(Suspect), Some(Suspect), None]
    );
    // The graver of the two reasons is told.
    let both = Lab::new().each(|trial| {
        set(trial, Metric::Requests, 4.0);
        set(trial, Metric::Throughput, (2000 * MIB) as f64);
    });
    assert!(both.found("too-short").unwrap().why.contains("4 requests"));
}

#[test]
fn processes_that_end_far_apart_are_doubted() {
    let of = |tool: &str, processes: u32, spread: f64| {
        let mut lab = Lab::new()
            .setup(|setup| setup.processes = processes)
            .each(|trial| set(trial, Metric::SpreadOfProcesses, spread));
        lab.workload.tool = tool.into();
        lab.found("processes-unfair")
    };
    let standing = |processes, spread| of("dd", processes, spread).map(|found| found.standing);
    assert_eq!(
        [standing(2, 1.49), standing(2, 1.5), standing(1, 9.0)],
        [None, Some(Suspect), None]
    );
    // fio's processes all run to the end: nothing is wrong with their rate.
    let uneven = of("fio", 3, 1.6).unwrap();
    assert_eq!(uneven.standing, Remark);
    assert!(uneven.why.contains("one of them got 1.6 times as much"), "{uneven:?}");
    assert!(!uneven.action.contains("runs for a time"), "{uneven:?}");
    assert_eq!(of("fio", 3, 1.49), None);
}

#[test]
fn an_activity_that_nobody_asked_for_is_invalid() {
    let of = |health: Health, activity: &str| {
        Lab::new()
            .setup(|setup| setup.health = health)
            .each(|trial| trial.evidence.activities = vec![activity.to_owned()])
            .found("rebuilding")
            .map(|finding| finding.standing)
    };
    let rebuild = "md0: recovery 12.6 %";
    let check = "md0: check 6.3 %";
    assert_eq!(of(Health::Healthy, rebuild), Some(Invalid));
    assert_eq!(of(Health::Healthy, check), Some(Invalid));
    assert_eq!(of(Health::Degraded, "rebuild 43 %"), Some(Invalid));
    assert_eq!(of(Health::Rebuilding, rebuild), None);
    assert_eq!(of(Health::Rebuilding, check), Some(Invalid));
    assert_eq!(of(Health::Scrubbing, check), None);
    assert_eq!(of(Health::Scrubbing, rebuild), Some(Invalid));
    assert_eq!(of(Health::Story, rebuild), None);
    let lab = Lab::new().each(|trial| trial.evidence.activities = vec![rebuild.into()]);
    assert!(lab.found("rebuilding").unwrap().why.contains("was to be healthy"));
}

/// Debian checks the system's arrays once a month, whatever is measured meanwhile.
#[test]
fn work_on_an_array_that_may_be_another_is_a_doubt_at_most() {
    let of = |place: Option<Place>| {
        let mut lab =
            Lab::new().each(|trial| trial.evidence.elsewhere = vec!["md0: check 6.3 %".into()]);
        let members = place.map(|place| vec![Placed { member: "it".into(), place }]);
        match members {
            Some(members) => lab.facts[0].members = members,
            None => lab.facts.clear(),
        }
        lab.found("rebuilding")
    };
    assert_eq!(of(Some(Place::Memory)), None);
    assert_eq!(of(Some(Place::Bus("of member 1".into()))), None);
    assert_eq!(of(Some(disk("sda").place)), None);
    for place in
        [Some(Place::Remote("nbd://far".into())), Some(Place::Unknown("btrfs".into())), None]
    {
        let finding = of(place).unwrap();
        assert_eq!(finding.standing, Suspect);
        assert!(finding.why.contains("md0: check 6.3 %"), "{finding:?}");
        assert!(finding.why.contains("cannot be told"), "{finding:?}");
    }
    // What the volume says of itself is about itself.
    let mut own = Lab::new().each(|trial| trial.evidence.activities = vec!["recovery".into()]);
    own.facts[0].members = vec![Placed { member: "ram(1G)".into(), place: Place::Memory }];
    assert_eq!(own.standing("rebuilding"), Some(Invalid));
    // A state that was asked for is the subject's; another array's check is still a doubt.
    let lab = Lab::new().setup(|setup| setup.health = Health::Scrubbing);
    let mut lab = lab.each(|trial| trial.evidence.elsewhere = vec!["md0: check 6.3 %".into()]);
    lab.facts.clear();
    assert_eq!(lab.standing("rebuilding"), Some(Suspect));
}

#[test]
fn a_tool_without_a_core_left_may_be_the_limit() {
    let of = |cores: f64, processes: u32, threads: u64| {
        let mut lab = Lab::new()
            .setup(|setup| setup.processes = processes)
            .each(|trial| trial.evidence.tool_cores = Some(cores));
        lab.workload.settings = lab.workload.settings.with("threads", Value::Count(threads));
        lab.standing("cpu-bound-client")
    };
    assert_eq!([of(0.89, 1, 1), of(0.9, 1, 1)], [None, Some(Suspect)]);
    assert_eq!([of(1.79, 2, 1), of(1.81, 2, 1)], [None, Some(Suspect)]);
    assert_eq!([of(1.79, 1, 2), of(1.81, 1, 2)], [None, Some(Suspect)]);
    // There are only four.
    assert_eq!([of(3.5, 16, 4), of(3.61, 16, 4)], [None, Some(Suspect)]);
}

#[test]
fn the_tools_own_word_counts_where_nobody_looked() {
    let lab = |user: f64| {
        Lab::new().each(|trial| {
            trial.evidence.tool_cores = None;
            set(trial, Metric::ToolCpuUser, user);
            set(trial, Metric::ToolCpuSystem, 60.0);
        })
    };
    assert_eq!(lab(29.0).standing("cpu-bound-client"), None);
    assert_eq!(lab(31.0).standing("cpu-bound-client"), Some(Suspect));
    // The kernel's count is better.
    let both = lab(31.0).each(|trial| trial.evidence.tool_cores = Some(0.5));
    assert_eq!(both.standing("cpu-bound-client"), None);
}

#[test]
fn a_full_machine_is_told_with_whose_it_was() {
    let of = |busy: f64, server_s: f64| {
        Lab::new()
            .each(|trial| {
                trial.evidence.cpu_busy = Some(busy);
                trial.evidence.server_cpu_s = Some(server_s);
            })
            .found("cpu-bound-client")
    };
    assert_eq!(of(0.94, 0.0), None);
    let others = of(0.96, 10.2).unwrap();
    assert_eq!(others.standing, Suspect);
    assert!(others.action.contains("stop what else runs"), "{others:?}");
    assert!(others.why.contains("had 1.2 of 4"), "{others:?}");
    let own = of(0.96, 30.6).unwrap();
    assert_eq!(own.standing, Remark);
    assert!(own.why.contains("what the processors allow"), "{own:?}");
    assert_eq!(of(0.96, 28.9).unwrap().standing, Suspect);
    // The owner of the processor time is unknown.
    let unknown = Lab::new().each(|trial| {
        trial.evidence.cpu_busy = Some(0.95);
        trial.evidence.tool_cores = None;
    });
    assert_eq!(unknown.standing("cpu-bound-client"), Some(Suspect));
}

#[test]
fn throttling_and_heat_are_doubts() {
    let of = |throttled: Option<u64>, celsius: f64| {
        let heat = Heat { sensor: "nvme".into(), celsius, limit_celsius: 82.0 };
        Lab::new()
            .each(|trial| {
                trial.evidence.throttled = throttled;
                trial.evidence.heat = Some(heat.clone());
            })
            .found("throttled")
    };
    assert_eq!(of(Some(0), 81.9), None);
    assert_eq!(of(None, 81.9), None);
    assert!(of(Some(3), 50.0).unwrap().why.contains("3 times"));
    let hot = of(Some(0), 82.0).unwrap().why;
    assert_eq!(hot.split(" (").next(), Some("nvme was at 82 °C, and its limit is 82 °C"));
}

fn course(values: &[f64]) -> impl FnMut(&mut StoredTrial) {
    let points: Vec<(u64, f64)> =
        values.iter().enumerate().map(|(index, value)| (index as u64 * 100, *value)).collect();
    move |trial| {
        trial.measured.series =
            vec![TimeSeries { metric: Metric::Throughput, points: points.clone() }];
    }
}

#[test]
fn a_rate_that_falls_all_the_time_is_not_steady() {
    let falling =
        |step: f64| -> Vec<f64> { (0..10).map(|i| 100.0 - step * f64::from(i)).collect() };
    let of = |values: &[f64]| Lab::new().each(course(values)).found("not-steady");
    let finding = of(&falling(4.0)).unwrap();
    assert_eq!(finding.standing, Suspect);
    assert!(finding.why.contains("the rate fell by 39 %"), "{finding:?}");
    // Slices 97, 91, 85, ...: 3 a step is 24 of 86.5, 28 %.
    assert_eq!(of(&falling(3.0)), None);
    assert!(of(&falling(3.4)).is_some());
    let rising: Vec<f64> = falling(4.0).into_iter().rev().collect();
    assert!(of(&rising).unwrap().why.contains("rose"));
}

#[test]
fn one_slow_part_is_no_trend_but_may_be_wide() {
    let of = |last: f64| {
        let mut values = [100.0; 10];
        values[8] = last;
        values[9] = last;
        Lab::new().each(course(&values)).found("not-steady")
    };
    // Four slices of 100 and one of 37: 63 of 87.4 are 72 %; of 34, 66 of 86.8 are 76 %.
    assert_eq!(of(37.0), None);
    assert!(of(34.0).unwrap().why.contains("parts of the trial differ by 76 %"));
}

#[test]
fn a_course_that_is_short_or_meant_to_change_is_not_judged() {
    let falling: Vec<f64> = (0..10).map(|i| 100.0 - 9.0 * f64::from(i)).collect();
    let short = Lab::new().each(course(&falling[..9]));
    assert_eq!(short.standing("not-steady"), None);
    assert_eq!(short.judge().unchecked["not-steady"], 3);
    let story = Lab::new().each(course(&falling)).setup(|setup| setup.health = Health::Story);
    assert_eq!(story.standing("not-steady"), None);
    let zero = Lab::new().each(course(&[0.0; 10]));
    assert_eq!(zero.standing("not-steady"), None);
}
