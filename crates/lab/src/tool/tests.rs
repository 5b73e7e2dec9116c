//! Tests of every tool.

use proptest::prelude::*;

pub(super) mod support;

use super::registry::TOOLS;
use super::*;
use crate::settings::{Kind, Value};
use braid_stack::ByteSize;

/// Returns every tool except the stand-ins of other tests, which have no package.
fn real() -> impl Iterator<Item = &'static dyn Tool> {
    TOOLS.iter().copied().filter(|tool| tool.about().package != "none")
}

/// Returns the defaults, and the first word of a choice without a default.
fn usual(tool: &dyn Tool) -> Settings {
    let mut settings = Settings::defaults(tool.parameters());
    for parameter in tool.parameters().iter().filter(|p| p.default.is_none()) {
        if let Kind::Choice(words) = parameter.kind {
            settings = settings.with(parameter.name, Value::Word(words[0].to_owned()));
        }
    }
    settings
}

fn values(kind: Kind) -> Vec<Value> {
    match kind {
        Kind::Flag => vec![Value::Flag(false), Value::Flag(true)],
        Kind::Count { min, max } => [min, min + 1, max].map(Value::Count).to_vec(),
        Kind::Size { min, max, unit } => {
            [min, min + unit, max].map(|size| Value::Size(ByteSize(size))).to_vec()
        }
        Kind::Choice(words) => words.iter().map(|&w| Value::Word(w.to_owned())).collect(),
        Kind::Text => {
            vec![Value::Word("/a".to_owned()), Value::Word("/b".to_owned())]
        }
    }
}

#[test]
fn settings_that_differ_have_labels_that_differ() {
    for tool in real() {
        let usual = usual(tool);
        let mut labels = BTreeMap::from([(tool.label(&usual), usual.clone())]);
        for parameter in tool.parameters() {
            for value in values(parameter.kind) {
                let settings = usual.clone().with(parameter.name, value);
                let label = tool.label(&settings);
                if let Some(other) = labels.insert(label.clone(), settings.clone()) {
                    assert_eq!(other, settings, "{}: {label:?} is both", tool.name());
                }
            }
        }
    }
}

#[test]
fn only_what_fio_drives_has_a_ramp() {
    for tool in real() {
        let wanted = if tool.about().program == "fio" { 2.5 } else { 0.0 };
        assert_eq!(tool.ramp_s(2.5), wanted, "{}", tool.name());
    }
}

#[test]
fn tools_and_what_they_say_are_unique() {
    let abouts: std::collections::BTreeSet<&str> =
        real().map(|tool| tool.about().summary).collect();
    assert_eq!(abouts.len(), real().count());
    for tool in real() {
        assert_eq!(find(tool.name()).map(Tool::name), Some(tool.name()), "twice");
        assert!(!tool.about().package.is_empty());
    }
    assert!(find("none").is_none());
}

proptest! {
    /// Any output and files of a program give numbers or an error.
    #[test]
    fn no_output_of_any_tool_panics(
        stdout in "\\PC{0,80}",
        stderr in "\\PC{0,80}",
        wall_s in prop::num::f64::ANY,
        processes in 0..4_u32,
    ) {
        for tool in real() {
            let settings = usual(tool).with("series_ms", Value::Count(10));
            let target = support::folder();
            let spec = support::trial(&settings, &target, processes);
            let one = ToolOutput {
                stderr: stderr.clone(),
                wall_s,
                ..support::output(&stdout)
            };
            let files = BTreeMap::from([("fio_bw.1.log".to_owned(), stdout.clone())]);
            let run = RunOutput { processes: vec![one; processes as usize], wall_s, files };
            if let Ok(measured) = tool.parse(&spec, &run) {
                prop_assert!(measured.samples.iter().all(|sample| sample.value.is_finite()));
                prop_assert!(processes > 0, "{} measured nothing", tool.name());
            }
            drop(tool.parse_version(&support::output(&stdout)));
        }
    }

    /// Any settings and room give a script or a reason.
    #[test]
    fn no_plan_panics(
        picks in prop::collection::vec(any::<prop::sample::Index>(), 12),
        region_bytes in any::<u64>(),
        processes in 1..300_u32,
        seed in any::<u64>(),
    ) {
        for tool in real() {
            let mut settings = usual(tool);
            for (parameter, pick) in tool.parameters().iter().zip(&picks) {
                let value = pick.get(&values(parameter.kind)).clone();
                settings = settings.with(parameter.name, value);
            }
            for target in [support::folder(), support::device()] {
                let spec = TrialSpec {
                    region_bytes,
                    room_bytes: region_bytes,
                    seed,
                    ..support::trial(&settings, &target, processes)
                };
                if tool.check(&settings, processes).is_ok()
                    && let Ok(script) = tool.plan(&spec)
                {
                    prop_assert!(!script.measured.is_empty(), "{}", tool.name());
                }
            }
            let _work = tool.work(&settings, processes);
        }
    }
}

#[test]
fn versions_of_gnu_programs() {
    let version = |text: &str| Version::Gnu.read("x", &support::output(text));
    assert_eq!(version("dd (coreutils) 9.1\nmore").unwrap(), "coreutils-9.1");
    assert_eq!(version("tar (GNU tar) 1.34").unwrap(), "tar-1.34");
    assert_eq!(version("cp (uutils coreutils) 0.2.2").unwrap(), "uutils-coreutils-0.2.2");
    for bad in ["", "bsdtar 3.6.2 - libarchive", "cp (x)", "cp (x) y", ")("] {
        assert_eq!(version(bad), None, "{bad:?}");
    }
}

#[test]
fn every_parameter_is_declared_once_and_has_a_default_of_its_kind() {
    for tool in real() {
        let mut seen = std::collections::BTreeSet::new();
        for parameter in tool.parameters() {
            assert!(seen.insert(parameter.name), "{}: {}", tool.name(), parameter.name);
            let defaults = Settings::defaults(&[*parameter]);
            assert_eq!(
                defaults.get(parameter.name).is_some(),
                parameter.default.is_some(),
                "{}: the default of {} is not of its kind",
                tool.name(),
                parameter.name
            );
        }
        assert!(
            tool.check(&Settings::defaults(tool.parameters()), 1).is_ok()
                || tool.parameters().iter().any(|p| p.default.is_none())
        );
    }
}
