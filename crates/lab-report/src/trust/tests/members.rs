use super::*;
use braid_lab::campaign::Health;
use proptest::prelude::*;

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// `single` at 100 MiB/s and an array over it and others, at so many times that.
fn array(stack: &str, times: f64, write: bool) -> Lab {
    let mut lab = Lab::new();
    lab.add("second", Source::Path("/dev/sdb".into()), &["sdb"]);
    lab.add("array", Source::Stack(stack.into()), &["sda", "sdb"]);
    lab.each(|trial| {
        if write {
            write_instead(trial);
        }
        if trial.subject == "array" {
            set(trial, Metric::Throughput, times * (100 * MIB) as f64);
        }
    })
}

fn standing(stack: &str, times: f64, write: bool) -> Option<Standing> {
    array(stack, times, write)
        .found_about("array", "faster-than-members")
        .map(|finding| finding.standing)
}

#[test]
fn a_stripe_is_no_faster_than_its_members_together() {
    let of = |times| standing("raid0(/dev/sda, /dev/sdb)", times, false);
    assert_eq!(
        [of(2.0), of(2.19), of(2.21), of(2.99), of(3.01)],
        [None, None, Some(Suspect), Some(Suspect), Some(Invalid)]
    );
    let finding = array("raid0(/dev/sda, /dev/sdb)", 4.0, false)
        .found_about("array", "faster-than-members")
        .unwrap();
    assert!(finding.why.contains("400 MiB/s are 200 %"), "{finding:?}");
    assert!(finding.why.contains("(200 MiB/s)"), "{finding:?}");
}

/// The least factor at which each level is doubted.
#[test]
fn each_level_has_its_own_bound() {
    let bound = |stack: &str, write, times: f64| {
        assert_eq!(standing(stack, times * 1.09, write), None, "{stack}");
        assert!(standing(stack, times * 1.11, write).is_some(), "{stack}");
    };
    bound("raid1(/dev/sda, /dev/sdb)", false, 2.0);
    bound("raid1(/dev/sda, /dev/sdb)", true, 1.0);
    bound("raid1(/dev/sda, missing)", true, 1.0);
    bound("raid1(/dev/sda, missing)", false, 1.0);
    bound("linear(/dev/sda, /dev/sdb)", true, 2.0);
    bound("raid10(/dev/sda, /dev/sdb)", true, 1.0);
    bound("raid10(/dev/sda, /dev/sdb, /dev/sdc, missing)", true, 2.0);
    bound("raid5(/dev/sda, /dev/sdb, /dev/sdc)", false, 3.0);
    bound("raid5(/dev/sda, /dev/sdb, /dev/sdc)", true, 2.0);
    bound("raid5(/dev/sda, /dev/sdb, missing)", true, 2.0);
    bound("raid6(/dev/sda, /dev/sdb, /dev/sdc, /dev/sdd)", true, 2.0);
    bound("raid0(raid1(/dev/sda, /dev/sdb), /dev/sdc)", true, 2.0);
}

/// Two readers on a mirror: each has a disk of its own, and a disk with both of them seeks all the time. The bound
/// is what disks do with one reader each; without that number there is a doubt at most.
#[test]
fn readers_may_have_a_member_each() {
    let of = |times: f64, one_stream: Option<f64>| {
        let mut lab = array("raid1(/dev/sda, /dev/sdb)", times, false);
        lab.also = vec![lab.workload.clone()];
        let mut lab = lab.setup(|setup| setup.processes = 2);
        if let Some(rate) = one_stream {
            let alone = lab.trials.iter().filter(|trial| trial.subject != "array");
            let mut alone: Vec<_> = alone.cloned().collect();
            for trial in &mut alone {
                trial.workload = lab.also[0].label();
                trial.number += 100;
                set(trial, Metric::Throughput, rate * (100 * MIB) as f64);
            }
            lab.trials.append(&mut alone);
        }
        lab.found_about("array", "faster-than-members").map(|finding| finding.standing)
    };
    assert_eq!([of(2.0, None), of(14.0, None)], [None, Some(Suspect)]);
    assert_eq!([of(14.0, Some(8.0)), of(17.0, Some(8.0))], [None, None]);
    assert_eq!([of(18.0, Some(8.0)), of(25.0, Some(8.0))], [Some(Suspect), Some(Invalid)]);
}

#[test]
fn members_that_were_not_measured_only_allow_a_doubt() {
    let lab = array("raid0(/dev/sda, /dev/sdx)", 9.0, false);
    let finding = lab.found_about("array", "faster-than-members").unwrap();
    assert_eq!(finding.standing, Suspect);
    assert!(finding.why.contains("those that were not measured"), "{finding:?}");
    // Nothing is known of any member.
    assert_eq!(standing("raid0(/dev/sdx, /dev/sdy)", 99.0, false), None);
    // Nor of what the members say they are.
    assert_eq!(standing("md(/dev/sda, /dev/sdb)", 99.0, false), None);
}

/// The array's lowest value is held against the members' highest.
#[test]
fn intervals_that_touch_are_no_contradiction() {
    let mut lab = array("raid0(/dev/sda, /dev/sdb)", 3.5, false);
    let slow = lab.trials.iter_mut().find(|trial| trial.subject == "array").unwrap();
    set(slow, Metric::Throughput, (210 * MIB) as f64);
    assert_eq!(lab.found_about("array", "faster-than-members"), None);
}

#[test]
fn one_repetition_needs_a_wide_margin() {
    let of = |times| {
        let mut lab = array("raid0(/dev/sda, /dev/sdb)", times, false);
        lab.trials.retain(|trial| trial.number % 3 == 1);
        lab.found_about("array", "faster-than-members").map(|finding| finding.standing)
    };
    assert_eq!([of(2.9), of(3.1), of(9.0)], [None, Some(Suspect), Some(Suspect)]);
}

#[test]
fn a_single_member_is_not_bounded_by_itself() {
    let lab = array("raid0(/dev/sda, /dev/sdb)", 2.0, false);
    assert_eq!(lab.found("faster-than-members"), None);
}

/// A model declares 23.4 MB/s reading and 14 MB/s writing.
#[test]
fn nothing_is_faster_than_its_model() {
    let of = |stack: &str, rate: f64, write: bool| {
        let mut lab = Lab::new();
        lab.subjects[0].1 = Source::Stack(stack.into());
        let lab = lab.each(|trial| {
            if write {
                write_instead(trial);
            }
            set(trial, Metric::Throughput, rate);
            let leaves = stack.matches("model(").count();
            trial.evidence.models = vec![(23_380_000, 14_000_000); leaves];
        });
        lab.standing("faster-than-members")
    };
    let one = "model(usb-flash, size=1G)";
    assert_eq!([of(one, 25.7e6, false), of(one, 25.8e6, false)], [None, Some(Invalid)]);
    assert_eq!([of(one, 15.3e6, true), of(one, 15.5e6, true)], [None, Some(Invalid)]);
    let two = "raid0(model(usb-flash, size=1G), model(usb-flash, size=1G))";
    assert_eq!([of(two, 51.4e6, false), of(two, 51.5e6, false)], [None, Some(Invalid)]);
    let mirror = "raid1(model(usb-flash, size=1G), model(usb-flash, size=1G))";
    assert_eq!([of(mirror, 15.3e6, true), of(mirror, 15.5e6, true)], [None, Some(Invalid)]);
}

const MB: f64 = 1e6;

/// An array of models with these rates in MB/s, reading and writing alike, in a state.
fn modelled(level: &str, rates: &[u64], health: Health, rate: f64) -> Option<Finding> {
    let models: Vec<String> = rates
        .iter()
        .map(|rate| format!("model(usb-flash, size=256M, read={rate}MB/s, write={rate}MB/s)"))
        .collect();
    let mut lab = Lab::new().setup(|setup| setup.health = health);
    lab.subjects[0].1 = Source::Stack(format!("{level}({})", models.join(", ")).into());
    let declared: Vec<(u64, u64)> =
        rates.iter().map(|rate| (rate * 1_000_000, rate * 1_000_000)).collect();
    lab.each(|trial| {
        write_instead(trial);
        set(trial, Metric::Throughput, rate * MB);
        trial.evidence.models = declared.clone();
    })
    .found("faster-than-members")
}

/// The slow member is the first, which is the one that is hurt.
#[test]
fn a_member_that_is_out_holds_nothing_up() {
    use Health::{Degraded, Healthy, Rebuilding, Scrubbing, Story};
    let mirror = |health, rate| modelled("raid1", &[5, 30], health, rate).is_some();
    assert!(mirror(Healthy, 29.8) && mirror(Scrubbing, 29.8));
    for health in [Degraded, Rebuilding, Story] {
        assert!(!mirror(health, 29.8) && !mirror(health, 32.9), "{health:?}");
        assert!(mirror(health, 33.1), "{health:?}");
    }
    let parity = |health, rate| modelled("raid5", &[100, 500, 500], health, rate).is_some();
    // Each member is written half as much as the array: 2 · 100 with all of them, and 2 · 500 without
    // the slow one.
    assert_eq!([parity(Healthy, 219.0), parity(Healthy, 221.0)], [false, true]);
    for health in [Degraded, Rebuilding, Story] {
        assert_eq!([parity(health, 1099.0), parity(health, 1101.0)], [false, true], "{health:?}");
    }
}

/// The fast member is the one that is hurt; a slow one holds the array up with it and without it.
#[test]
fn a_fast_member_helps_no_array_that_a_slow_one_holds_up() {
    use Health::{Degraded, Healthy, Rebuilding, Story};
    for health in [Healthy, Degraded, Rebuilding, Story] {
        for level in ["raid6", "raid10"] {
            let doubted = |rate| modelled(level, &[900, 100, 100, 100], health, rate).is_some();
            assert_eq!([doubted(219.0), doubted(221.0)], [false, true], "{level} {health:?}");
        }
    }
}

/// The array's lowest value, or the lower end of its interval, as for members that were measured.
#[test]
fn models_too_bound_the_lower_end() {
    let mut lab = Lab::new();
    lab.subjects[0].1 = Source::Stack("model(usb-flash, size=1G)".into());
    let mut lab = lab.each(|trial| {
        set(trial, Metric::Throughput, 12.0 * MB);
        trial.evidence.models = vec![(10_000_000, 10_000_000)];
    });
    assert_eq!(lab.standing("faster-than-members"), Some(Invalid));
    set(&mut lab.trials[1], Metric::Throughput, 10.9 * MB);
    assert_eq!(lab.standing("faster-than-members"), None);
}

#[test]
fn models_that_nobody_declared_are_not_checked() {
    let mut lab = Lab::new();
    lab.subjects[0].1 = Source::Stack("model(usb-flash, size=1G)".into());
    assert_eq!(lab.found("faster-than-members"), None);
    assert_eq!(lab.judge().unchecked["faster-than-members"], 1);
}

proptest! {
    /// Whatever the numbers are, the judgement is a value, and the same one again.
    #[test]
    fn no_number_makes_a_rule_panic(
        values in prop::collection::vec((0..braid_lab::metric::METRICS.len(), -1e300..1e300_f64), 0..20),
        tiny in prop::collection::vec(0.0..1e-300_f64, 3),
        moved in any::<[u64; 4]>(),
        share in -2.0..2.0_f64,
        region in any::<u64>(),
    ) {
        let mut lab = array("raid0(/dev/sda, /dev/sdb)", 1.0, false);
        for trial in &mut lab.trials {
            for (metric, value) in &values {
                set(trial, braid_lab::metric::METRICS[*metric], *value);
            }
            set(trial, Metric::Throughput, tiny[trial.repetition as usize % 3]);
            trial.region_bytes = region;
            let [read_bytes, written_bytes, busy_ms, other] = moved;
            trial.evidence.target = Some(Moved { read_bytes, written_bytes, busy_ms });
            trial.evidence.strangers = vec![("x".into(), other), ("y".into(), 1)];
            trial.evidence.cpu_busy = Some(share);
            trial.evidence.tool_cores = Some(share * GIB);
            trial.evidence.cpu_count = Some(0);
        }
        prop_assert_eq!(lab.judge(), lab.judge());
    }
}

/// The finding of a rule about the campaign.
fn said(lab: &Lab, rule: &str) -> Option<String> {
    let findings = lab.judge().campaign;
    findings.into_iter().find(|finding| finding.rule == rule).map(|finding| finding.why)
}

/// 1000 MiB of each are used; the array is 64 GiB.
#[test]
fn members_behind_all_that_is_used_are_idle() {
    let of = |stack: &str| {
        let mut lab = Lab::new();
        lab.add("array", Source::Stack(stack.into()), &["sda", "sdb"]);
        said(&lab, "unreached-members")
    };
    let why = of("linear(/dev/sda, /dev/sdb, /dev/sdc)").unwrap();
    assert!(
        why.contains("uses 1000 MiB, all of it on 1 of its 3 members; the others are idle"),
        "{why}"
    );
    let of_two = of("linear(ram(600M), ram(400M), ram(1G))").unwrap();
    assert!(of_two.contains("on 2 of its 3 members; the other is idle"), "{of_two}");
    assert_eq!(of("linear(ram(600M), ram(600M))"), None);
    assert_eq!(of("raid0(/dev/sda, /dev/sdb)"), None);
}

#[test]
fn many_ways_of_sharing_are_one_sentence() {
    let sharing = |arrays: u32| {
        let mut lab = Lab::new();
        for more in 0..arrays {
            let disks = vec!["sda"; more as usize + 2];
            let stack = format!("raid0({})", vec!["/dev/sda"; disks.len()].join(", "));
            lab.add(&format!("array {more}"), Source::Stack(stack.as_str().into()), &disks);
        }
        said(&lab, "shared-device").unwrap()
    };
    assert_eq!(sharing(3).matches("array").count(), 3);
    let many = sharing(9);
    assert!(many.starts_with("Members of 9 subjects share hardware. For example array "), "{many}");
    assert_eq!(many.matches("array").count(), 1, "{many}");
}
