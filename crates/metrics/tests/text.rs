//! The text is what Prometheus reads, whatever volumes say: by a reader of our own here, by `promtool` in
//! the whole-system tests.

use std::collections::{BTreeMap, BTreeSet};

use braid_control::{Latencies, Status};
use braid_metrics::render;
use proptest::prelude::*;

/// A volume that has all there is.
fn full() -> Status {
    serde_json::from_str(include_str!("full.json")).expect("a status")
}

/// A sample as it was read: its name, its labels in order of their names, its value as text.
#[derive(Clone, Debug)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: String,
}

impl Sample {
    fn number(&self) -> f64 {
        self.value.parse().expect("a number")
    }
}

/// Reads the text strictly: families, each with HELP, TYPE and then its samples.
fn read(text: &str) -> Vec<(String, String, Vec<Sample>)> {
    let mut families: Vec<(String, String, Vec<Sample>)> = Vec::new();
    let mut helped = None;
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a name and a text");
            assert!(!help.is_empty(), "{line}");
            helped = Some(name.to_owned());
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a name and a type");
            assert_eq!(helped.take().as_deref(), Some(name), "HELP stands before TYPE");
            assert!(families.iter().all(|(other, ..)| other != name), "{name} twice");
            families.push((name.to_owned(), kind.to_owned(), Vec::new()));
        } else {
            let sample = read_sample(line);
            let (family, kind, samples) = families.last_mut().expect("a family");
            let rest = sample.name.strip_prefix(family.as_str());
            let is_its = match kind.as_str() {
                "histogram" => matches!(rest, Some("_bucket" | "_sum" | "_count")),
                _ => rest == Some(""),
            };
            assert!(is_its, "{line} in {family}");
            samples.push(sample);
        }
    }
    families
}

fn read_sample(line: &str) -> Sample {
    let (name, mut rest) = line.split_once('{').expect("labels");
    assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{line}");
    let mut labels = BTreeMap::new();
    loop {
        let (key, after) = rest.split_once("=\"").expect("a label");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().expect("a closing quote") {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next().expect("what is escaped").1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    other => panic!("\\{other} in {line}"),
                }),
                (_, c) => value.push(c),
            }
        };
        assert!(labels.insert(key.to_owned(), value).is_none(), "{key} twice in {line}");
        rest = &after[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => break,
        }
    }
    let value = rest.strip_prefix("} ").expect("a value").to_owned();
    let sample = Sample { name: name.to_owned(), labels, value };
    assert!(sample.number().is_finite(), "{line}");
    sample
}

/// The rules that any page must obey.
fn check(text: &str) {
    let families = read(text);
    let mut seen = BTreeSet::new();
    for (name, kind, samples) in &families {
        assert!(!samples.is_empty(), "{name} has no samples");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
        for sample in samples {
            assert!(seen.insert((sample.name.clone(), sample.labels.clone())), "twice: {sample:?}");
        }
        if kind == "histogram" {
            check_histograms(name, samples);
        }
    }
}

fn check_histograms(name: &str, samples: &[Sample]) {
    let mut series: BTreeMap<BTreeMap<String, String>, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        let mut labels = sample.labels.clone();
        labels.remove("le");
        series.entry(labels).or_default().push(sample);
    }
    for (labels, samples) in series {
        let of = |part: &str| -> Vec<&&Sample> {
            samples.iter().filter(|one| one.name == format!("{name}_{part}")).collect()
        };
        let (buckets, sum, count) = (of("bucket"), of("sum"), of("count"));
        assert_eq!((sum.len(), count.len()), (1, 1), "{labels:?}");
        let bounds: Vec<f64> =
            buckets.iter().map(|one| one.labels["le"].parse().expect("a bound")).collect();
        assert!(bounds.is_sorted_by(|one, next| one < next), "{bounds:?}");
        let counts: Vec<f64> = buckets.iter().map(|one| one.number()).collect();
        assert!(counts.is_sorted(), "{counts:?}");
        let last = buckets.last().expect("a bucket");
        assert_eq!(last.labels["le"], "+Inf");
        assert_eq!(last.value, count[0].value);
    }
}

fn find<'a>(families: &'a [(String, String, Vec<Sample>)], name: &str, label: &str) -> &'a Sample {
    let all = families.iter().flat_map(|(_, _, samples)| samples).filter(|one| one.name == name);
    let mut is = all.filter(|one| one.labels.values().any(|value| value == label));
    is.next().unwrap_or_else(|| panic!("no {name} of {label}"))
}

#[test]
fn all_there_is_is_told_in_base_units() {
    let text = render(&[full()], &["away".to_owned()]);
    check(&text);
    let families = read(&text);
    for (name, label, value) in [
        ("braid_volume_up", "full", "1"),
        ("braid_volume_up", "away", "0"),
        ("braid_volume_state", "degraded", "1"),
        ("braid_volume_state", "online", "0"),
        ("braid_volume_cpu_seconds_total", "full", "1.5"),
        ("braid_attached_requests_total", "flush", "13"),
        ("braid_nbd_written_bytes_total", "full", "11"),
        ("braid_attached_in_flight", "full", "3"),
        ("braid_attached_request_seconds_sum", "read", "0.0005"),
        ("braid_attached_request_seconds_count", "write", "0"),
        ("braid_nbd_in_flight", "full", "4"),
        ("braid_nbd_request_seconds_sum", "write", "0.007"),
        ("braid_nbd_request_seconds_count", "write", "3"),
        ("braid_member_in_flight", "a", "2"),
        ("braid_member_slow", "a", "1"),
        ("braid_member_slow", "ram(1M) #2", "0"),
        ("braid_member_request_seconds_sum", "read", "5"),
        ("braid_member_waiting_seconds", "a", "1.5"),
        ("braid_member_reconnects_total", "a", "2"),
        ("braid_array_missing_members", "one", "1"),
        ("braid_array_pass_remaining_seconds", "check", "20"),
        ("braid_scrub_ended_timestamp_seconds", "repair", "1700000000.5"),
        ("braid_log_wait_seconds_total", "one", "0.5"),
        ("braid_array_member_state", "spare", "0"),
        ("braid_cache_oldest_dirty_seconds", "full", "1.5"),
        ("braid_cache_saved_seconds_total", "full", "0.0006"),
        ("braid_cache_drain_failing", "full", "1"),
        ("node_md_state", "check", "1"),
        ("node_md_state", "active", "0"),
        ("node_md_disks", "active", "3"),
        ("node_md_disks", "failed", "1"),
        ("node_md_disks", "spare", "1"),
        ("node_md_disks_required", "full", "4"),
        ("node_md_blocks", "full", "2048"),
        ("node_md_blocks_synced", "full", "512"),
    ] {
        assert_eq!(find(&families, name, label).value, value, "{name} {label}");
    }
    // 16 µs: the one below 1 µs. 32 µs: two more. 4.2 s: all but the one of a minute.
    let bucket = |le: &str| {
        let is = |one: &&Sample| {
            one.name == "braid_member_request_seconds_bucket"
                && one.labels["le"] == le
                && one.labels["op"] == "read"
        };
        let mut all = families.iter().flat_map(|(_, _, samples)| samples);
        all.find(is).map(|one| one.value.as_str())
    };
    assert_eq!(
        ["0.000016", "0.000032", "4.194304", "16.777216", "+Inf"].map(bucket),
        ["1", "3", "6", "6", "7"].map(Some)
    );
}

#[test]
fn without_a_pass_all_blocks_are_synced_and_a_resync_that_waits_has_none() {
    let mut status = full();
    let blocks = |status: &Status| {
        let families = read(&render(std::slice::from_ref(status), &[]));
        ["active", "resync"]
            .map(|state| find(&families, "node_md_state", state).value.clone())
            .into_iter()
            .chain([find(&families, "node_md_blocks_synced", "full").value.clone()])
            .collect::<Vec<_>>()
    };
    status.arrays[0].job = None;
    assert_eq!(blocks(&status), ["1", "0", "2048"]);
    status.arrays[0].resync_from_bytes = Some(0);
    assert_eq!(blocks(&status), ["0", "1", "0"]);
}

proptest! {
    /// Names may hold anything, counters anything, buckets may be cut off or not fit their number.
    #[test]
    fn whatever_volumes_say_is_read_back(
        names in prop::collection::vec("[a\"\\\\\n{},= #2é]{0,6}", 3),
        buckets in prop::collection::vec(0..1u64 << 40, 0..40),
        count in 0..1u64 << 50,
        sum_us: u64,
        bytes: u64,
    ) {
        let mut status = full();
        for (member, name) in status.members.iter_mut().zip(&names) {
            member.member.clone_from(name);
            member.io.read_bytes = bytes;
            member.io.reads = Latencies { count, sum_us, buckets: buckets.clone() };
        }
        let mut other = status.clone();
        other.name = "other".to_owned();
        let text = render(&[status, other], &[]);
        check(&text);
        let families = read(&text);
        let read = find(&families, "braid_member_read_bytes_total", &names[0]);
        prop_assert_eq!(&read.value, &bytes.to_string());
        let count = count.max(buckets.iter().sum());
        let all = find(&families, "braid_member_request_seconds_count", &names[0]);
        prop_assert_eq!(&all.value, &count.to_string());
    }
}
