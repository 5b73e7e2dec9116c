//! The metrics of the dashboard and the alert rules exist: a renamed metric must not leave a panel empty or an
//! alert silent.

use std::collections::BTreeSet;
use std::path::Path;

use braid_metrics::render;

/// Names of metrics in the text of a file, without what a histogram's samples add.
fn names(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c));
    let metrics = words.filter(|word| word.starts_with("braid_") || word.starts_with("node_md_"));
    metrics.map(ToOwned::to_owned).collect()
}

#[test]
fn what_the_dashboard_and_the_rules_name_is_rendered() {
    let full = serde_json::from_str(include_str!("full.json")).expect("a status");
    let text = render(&[full], &["away".to_owned()]);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let there: BTreeSet<String> =
        lines.filter_map(|line| Some(line.split_once('{')?.0.to_owned())).collect();
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    for file in
        ["grafana/braid.json", "prometheus/braid.rules.yml", "prometheus/braid.rules.test.yml"]
    {
        let text = std::fs::read_to_string(packaging.join(file)).expect("a packaged file");
        let named = names(&text);
        assert!(named.len() > 10, "{file} names {named:?}");
        let missing: Vec<&String> = named.difference(&there).collect();
        assert!(missing.is_empty(), "{file} asks for {missing:?}, which nothing says");
    }
}

#[test]
fn every_alert_has_a_test_that_sees_it_fire_and_one_that_sees_it_silent() {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/prometheus");
    let read = |file| std::fs::read_to_string(packaging.join(file)).expect("a packaged file");
    let (rules, tests) = (read("braid.rules.yml"), read("braid.rules.test.yml"));
    let alerts = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    for alert in alerts {
        assert_eq!(tests.matches(&format!("alertname: {alert}}}")).count(), 1, "{alert} silent");
        assert_eq!(tests.matches(&format!("alertname: {alert}\n")).count(), 1, "{alert} fires");
    }
}
