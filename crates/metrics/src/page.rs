//! The text format, version 0.0.4: families, samples, labels, histograms.
//!
//! Source: <https://prometheus.io/docs/instrumenting/exposition_formats/>, "Text-based format".

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use braid_control::Latencies;
use braid_status::{Figure, Figures, Kind, Measure, Value};

/// The content type of an HTTP answer with this text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The bounds of a histogram's buckets: 2^i µs for these i, from 16 µs to 16.8 s. The same for all,
/// so that buckets of several series can be added up.
const BOUNDS: std::ops::RangeInclusive<u32> = 4..=24;

/// The kind of number of a family.
#[derive(Clone, Copy)]
enum FamilyKind {
    Number(Kind),
    Histogram,
}

/// µs in seconds.
fn micros(us: u64) -> f64 {
    us as f64 / 1e6
}

struct Family {
    help: &'static str,
    kind: FamilyKind,
    samples: String,
}

/// All families so far.
#[derive(Default)]
pub(crate) struct Page {
    families: BTreeMap<Cow<'static, str>, Family>,
}

/// A name and a value of a label.
pub(crate) type Label<'a> = (&'a str, &'a str);

/// A page on which all samples are of one volume, or one part of it.
pub(crate) struct Of<'a> {
    page: &'a mut Page,
    labels: Vec<(&'static str, String)>,
}

impl Page {
    pub(crate) fn of(&mut self, volume: &str) -> Of<'_> {
        Of { page: self, labels: vec![("volume", volume.to_owned())] }
    }

    pub(crate) fn gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[Label<'_>],
        value: impl Measure,
    ) {
        let samples = self.family(name.into(), help, FamilyKind::Number(Kind::Gauge));
        value.measure().into_iter().for_each(|value| sample(samples, name, labels, value));
    }

    fn family(
        &mut self,
        name: Cow<'static, str>,
        help: &'static str,
        kind: FamilyKind,
    ) -> &mut String {
        let new = || Family { help, kind, samples: String::new() };
        &mut self.families.entry(name).or_insert_with(new).samples
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (name, Family { help, kind, samples }) in &self.families {
            let kind = match kind {
                FamilyKind::Number(Kind::Gauge) => "gauge",
                FamilyKind::Number(Kind::Counter) => "counter",
                FamilyKind::Histogram => "histogram",
            };
            let help = help.replace('\\', "\\\\").replace('\n', "\\n");
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}"));
        }
        text
    }
}

impl Of<'_> {
    /// All of it.
    pub(crate) fn all(&mut self) -> Of<'_> {
        Of { page: self.page, labels: self.labels.clone() }
    }

    /// A part of it: with another label.
    pub(crate) fn part(&mut self, label: &'static str, value: &str) -> Of<'_> {
        let mut labels = self.labels.clone();
        labels.push((label, value.to_owned()));
        Of { page: self.page, labels }
    }

    pub(crate) fn gauge(&mut self, name: &'static str, help: &'static str, value: impl Measure) {
        value.measure().into_iter().for_each(|value| self.add(name, help, Kind::Gauge, value));
    }

    pub(crate) fn counter(&mut self, name: &'static str, help: &'static str, value: impl Measure) {
        value.measure().into_iter().for_each(|value| self.add(name, help, Kind::Counter, value));
    }

    /// A sample for each of `states`, 1 for the one that it is in and 0 for the others.
    pub(crate) fn states(
        &mut self,
        name: &'static str,
        help: &'static str,
        states: &[&str],
        is: &str,
    ) {
        for state in states {
            self.part("state", state).gauge(name, help, is == *state);
        }
    }

    /// A histogram. `le` is "at most" where [`Latencies`] has "less than": the clock's step apart.
    pub(crate) fn histogram(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        help: &'static str,
        latencies: &Latencies,
    ) {
        let name = name.into();
        let labels: Vec<Label<'_>> = self.labels.iter().map(|(key, at)| (*key, &**at)).collect();
        let samples = self.page.family(name.clone(), help, FamilyKind::Histogram);
        let bucket = format!("{name}_bucket");
        let mut below = 0;
        let mut counts = latencies.buckets.iter();
        for exponent in 0..=*BOUNDS.end() {
            below += counts.next().unwrap_or(&0);
            if BOUNDS.contains(&exponent) {
                let bound = micros(1 << exponent).to_string();
                let labels = [&labels[..], &[("le", &*bound)]].concat();
                sample(samples, &bucket, &labels, Value::Whole(below));
            }
        }
        // The number and the buckets may have been read a request apart.
        let count = latencies.count.max(latencies.buckets.iter().sum());
        sample(samples, &bucket, &[&labels[..], &[("le", "+Inf")]].concat(), Value::Whole(count));
        sample(samples, &format!("{name}_sum"), &labels, Value::Real(micros(latencies.sum_us)));
        sample(samples, &format!("{name}_count"), &labels, Value::Whole(count));
    }

    /// All numbers of `of`; `prefix` is of those whose metrics have the end of a name.
    pub(crate) fn figures(&mut self, prefix: &str, of: &impl Figures) {
        of.each(&mut |one| self.figure(prefix, one));
    }

    /// One number; see [`Of::figures`].
    pub(crate) fn figure(&mut self, prefix: &str, one: Figure) {
        match prefix {
            "" => self.add(one.metric, one.help, one.kind, one.value),
            prefix => self.add(format!("{prefix}{}", one.metric), one.help, one.kind, one.value),
        }
    }

    fn add(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        help: &'static str,
        kind: Kind,
        value: Value,
    ) {
        let name = name.into();
        let labels: Vec<Label<'_>> = self.labels.iter().map(|(key, at)| (*key, &**at)).collect();
        sample(
            self.page.family(name.clone(), help, FamilyKind::Number(kind)),
            &name,
            &labels,
            value,
        );
    }
}

fn sample(out: &mut String, name: &str, labels: &[Label<'_>], value: Value) {
    let label = |(key, value): &Label<'_>| format!("{key}=\"{}\"", escaped(value));
    let labels: Vec<String> = labels.iter().map(label).collect();
    let value = match value {
        Value::Whole(value) => value.to_string(),
        Value::Real(value) => value.to_string(),
    };
    writeln!(out, "{name}{{{}}} {value}", labels.join(",")).expect("a string takes everything");
}

fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            // Prometheus takes any other text, and a terminal would be steered by it.
            c if braid_shell::is_odd(c) => {
                write!(out, "\\\\u{:04x}", u32::from(c)).expect("a string takes everything");
            }
            c => out.push(c),
        }
    }
    out
}
