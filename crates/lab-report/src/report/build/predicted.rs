//! The marks of predictions: every part of a report, also a part that is cut out, says that nothing was
//! measured.
//!
//! Invariant: the title, the subtitle, the answer, each heading over numbers and each axis of values says
//! "predicted"; the interval of repetitions is never mentioned, because there are none.

use super::{Context, about};
use crate::report::model::{Block, Chart, Report, Table};

/// Tables whose numbers are what was asked for, and not predicted.
const GIVEN: [&str; 1] = ["subjects"];

/// Marks a report, if its numbers were predicted.
pub(super) fn mark(report: &mut Report, context: &Context<'_>) {
    let Some(prediction) = context.results.prediction() else { return };
    let size = prediction.size();
    report.title += ", predicted";
    report.subtitle = about::subtitle_of_predictions(context);
    if let Some(first) = report.answer.first_mut() {
        *first = format!("Predicted, not measured: {first}");
    }
    report.trust.is_predicted = true;
    mark_table(&mut report.table, &size);
    report.picture.iter_mut().for_each(mark_chart);
    for section in &mut report.sections {
        section.title = section.title.replace("measured", "predicted");
        section.lead = without_repetitions(&section.lead, &size);
        for block in &mut section.blocks {
            match block {
                Block::Table(table) => mark_table(table, &size),
                Block::Chart(chart) => mark_chart(chart),
            }
        }
    }
}

fn mark_table(table: &mut Table, size: &str) {
    table.note = without_repetitions(&table.note, size);
    if GIVEN.contains(&table.id.as_str()) {
        return;
    }
    for column in table.columns.iter_mut().filter(|column| column.numeric) {
        column.heading += ", predicted";
    }
}

fn mark_chart(chart: &mut Chart) {
    chart.title = match chart.title.as_str() {
        "" => "predicted".to_owned(),
        title => format!("{title}, predicted"),
    };
    chart.y.label = match chart.y.label.as_str() {
        "" => "predicted".to_owned(),
        label => format!("{label}, predicted"),
    };
}

/// A text about repetitions, changed into one about predictions.
fn without_repetitions(text: &str, size: &str) -> String {
    let range = format!("range of what models are off by, {size}");
    text.replace("95 % interval", &range)
        .replace(", made within each repetition", "")
        .replace("Medians of the repetitions, with their range", "One number each")
        .replace("Medians, and from where to where the repetitions lie", "One number each")
}
