//! Reports of predictions.

use super::*;
use crate::fixture::predicted;
use crate::report::render::{render_html, render_markdown, render_terminal};
use crate::report::{report_data, tidy_rows};

const PLAN: &str = r#"
name = "plan"
repetitions = 1
[[subject]]
name = "single"
stack = "model(rally2, size=1G)"
baseline = true
[[subject]]
name = "double"
stack = "raid0(model(rally2, size=1G, bus=a), model(rally2, size=1G, bus=a))"
[[subject]]
name = "tenth more"
stack = "model(adata, size=1G)"
[[job]]
tool = "meter"
op = ["read", "write"]
pattern = ["seq", "rand"]
"#;

/// Doubled, a tenth more, and no random writes.
fn held() -> Results {
    predicted(results(&campaign(PLAN), |subject, workload, _| {
        let is_random_write =
            workload.settings.word("op") == "write" && workload.settings.word("pattern") == "rand";
        match subject.name.as_str() {
            _ if is_random_write => Given::Impossible("not predicted: too hard"),
            "double" => headline(workload, 2e6),
            "tenth more" => headline(workload, 1.1e6),
            _ => headline(workload, 1e6),
        }
    }))
}

/// A table or a chart that is cut out still contains the word.
#[test]
fn every_heading_and_axis_says_predicted() {
    let results = held();
    let report = report_of(&results);
    assert!(report.title.ends_with(", predicted"));
    assert!(report.subtitle.contains("nothing measured"), "{}", report.subtitle);
    assert!(report.answer[0].starts_with("Predicted, not measured: "), "{:?}", report.answer);
    let columns = report.tables().filter(|table| table.id != "subjects");
    let numeric = columns.flat_map(|table| &table.columns).filter(|column| column.numeric);
    let headings: Vec<&str> = numeric.map(|column| column.heading.as_str()).collect();
    assert!(headings.len() > 6 && headings.iter().all(|one| one.ends_with(", predicted")));
    for chart in report.charts() {
        assert!(chart.title.ends_with("predicted") && chart.y.label.ends_with("predicted"));
    }
    for page in [
        render_html(&report).unwrap(),
        render_markdown(&report).unwrap(),
        render_terminal(&report, false, "all"),
    ] {
        assert!(page.contains("Predicted, not measured: "), "{page}");
        assert!(!page.contains("95 % interval") && !page.contains("repetitions lie"), "{page}");
    }
}

/// A column of gaps would say so in every row.
#[test]
fn work_that_nothing_is_predicted_of_is_a_line_and_no_column() {
    let table = report_of(&held()).table;
    let headings: Vec<&str> = table.columns.iter().map(|column| column.heading.as_str()).collect();
    assert_eq!(headings.len(), 4, "{headings:?}");
    assert!(!headings.iter().any(|one| one.contains("random writes")), "{headings:?}");
    assert!(table.note.ends_with("No number of random writes (too hard)."), "{}", table.note);
}

/// Measuring again does not name a winner by less than anybody would choose by.
#[test]
fn what_is_next_to_equal_is_not_to_be_measured() {
    let told = |tenth: f64| {
        let results = predicted(results(&campaign(PLAN), |subject, workload, _| {
            headline(workload, if subject.name == "double" { tenth } else { 1e6 })
        }));
        report_of(&results).answer.join(" ")
    };
    let (close, open) = (told(1.01e6), told(1.1e6));
    assert!(close.contains("No winner in") && !close.contains("lab run"), "{close}");
    assert!(open.contains("Measuring the two would tell: `braid lab run`"), "{open}");
}

#[test]
fn programs_are_told_as_well() {
    let results = held();
    let analysis = analyse(&results);
    let data = report_data(&report_of(&results), &analysis, &results, Path::new("results"));
    assert_eq!(data["prediction"]["profiles"][0], "rally2");
    for cell in data["cells"].as_array().unwrap() {
        match cell["state"].as_str().unwrap() {
            "predicted" => assert_eq!(cell["standing"], "predicted"),
            _ => assert!(cell["why"].as_str().unwrap().starts_with("not predicted: ")),
        }
    }
    let rows = tidy_rows(&analysis, &results);
    assert!(!rows.is_empty() && rows.iter().all(|row| row.verdict == "predicted"));
}

/// Two predictions differ if they differ by more than models are off.
#[test]
fn a_difference_is_one_beyond_the_error_of_the_models() {
    let results = held();
    let analysis = analyse(&results);
    let [double, tenth] = [1, 2].map(|subject| analysis.cell(0, subject));
    assert_eq!(double.outlook, Some(crate::analysis::Outlook::Better));
    assert_eq!(tenth.outlook, Some(crate::analysis::Outlook::Same));
    let effect = tenth.effect.unwrap();
    assert!(effect.low < 1.0 && effect.high > 1.2 && effect.has_interval());
    assert!(report_of(&results).answer[0].contains("Take double: 2.00 times"));
}

/// There is nothing that a rule could look at: too short, one repetition, no evidence.
#[test]
fn no_number_is_doubted_by_what_did_not_happen() {
    let results = held();
    let analysis = analyse(&results);
    assert!(analysis.cells.iter().all(|cell| cell.standing == Standing::Ok));
    assert!(analysis.cells.iter().all(|cell| cell.findings.is_empty()));
    let said: Vec<&str> = analysis.campaign.iter().map(|finding| finding.rule).collect();
    assert_eq!(said[0], "predicted");
    assert!(
        said.iter().all(|rule| ["predicted", "shared-device", "unreached-members"].contains(rule)),
        "{said:?}"
    );
    assert!(analysis.unchecked.is_empty(), "{:?}", analysis.unchecked);
}
