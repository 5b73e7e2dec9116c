//! Every sample as a row of its own, with all its conditions, for spreadsheets and other programs.

use std::collections::HashMap;

use crate::analysis::Analysis;
use crate::report::render::TidyRow;
use braid_lab::store::Results;

/// One row for each number of each successful trial, in the order of the schedule. The verdict is that of the
/// sample's cell in the report: "ok", "suspect" or "invalid"; "unsettled" for a round that does not count, and
/// "predicted" for a predicted number.
pub fn tidy_rows(analysis: &Analysis, results: &Results) -> Vec<TidyRow> {
    let mut verdicts: HashMap<usize, String> = HashMap::new();
    for cell in &analysis.cells {
        let word = match results.prediction() {
            Some(_) => "predicted".to_owned(),
            None => cell.standing.to_string().to_lowercase(),
        };
        verdicts.extend(cell.trials.iter().map(|trial| {
            let counts = cell.counts(results.trials[*trial].repetition);
            (*trial, if counts { word.clone() } else { "unsettled".to_owned() })
        }));
    }
    let mut rows = Vec::new();
    for (index, trial) in results.trials.iter().enumerate() {
        let mut dimensions = vec![
            ("subject".to_owned(), trial.subject.clone()),
            ("workload".to_owned(), trial.workload.clone()),
        ];
        let others = trial.dimensions.iter();
        dimensions.extend(others.map(|(name, value)| (name.clone(), value.to_string())));
        for sample in &trial.measured.samples {
            rows.push(TidyRow {
                dimensions: dimensions.clone(),
                metric: sample.metric.name().to_owned(),
                value: sample.value,
                unit: sample.metric.unit().to_owned(),
                trial: trial.number,
                repetition: trial.repetition,
                verdict: verdicts.get(&index).cloned().unwrap_or_else(|| "ok".to_owned()),
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyse;
    use crate::fixture::{Given, campaign, headline, results};

    #[test]
    fn each_sample_is_a_row_with_its_conditions() {
        let campaign = campaign(
            "name = \"rows\"\nrepetitions = 2\n[[subject]]\nname = \"a, \\\"b\\\"\"\n\
             path = \"/dev/sda\"\n[[job]]\ntool = \"meter\"\nop = [\"read\", \"write\"]\n\
             iodepth = [1, 4]\n",
        );
        let results = results(&campaign, |_, workload, repetition| match repetition {
            2 if workload.settings.word("op") == "write" => Given::Failed("gone"),
            _ => headline(workload, f64::from(repetition)),
        });
        let rows = tidy_rows(&analyse(&results), &results);
        assert_eq!(rows.len(), 6);
        let of = |row: &TidyRow, name: &str| {
            row.dimensions.iter().find(|(key, _)| key == name).unwrap().1.clone()
        };
        for row in &rows {
            assert_eq!(of(row, "subject"), "a, \"b\"");
            assert_eq!((row.metric.as_str(), row.unit.as_str()), ("throughput", "B/s"));
            assert_eq!(row.value, f64::from(row.repetition));
            assert_eq!(of(row, "tool"), "meter");
            assert!(["1", "4"].contains(&of(row, "iodepth").as_str()));
        }
    }
}
