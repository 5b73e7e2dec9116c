//! Judgements as JSON.

use braid_predict::off::Evidence;
use serde_json::{Value, json};

use crate::judge::{Decision, Judged, JudgedClaim, JudgedRow};
use crate::study::{Claim, Role};

/// Version of the output format.
const OUTPUT_VERSION: u32 = 1;

/// Returns rows and claims of all files, a summary of each file, and what predictions are off by. Values are in `unit`; what
/// has none is null, with the reason. A claim that is not judged has no `holds`.
pub fn json(judged: &[Judged], evidence: &[Evidence]) -> Value {
    let rows = judged.iter().flat_map(|one| one.model.rows.iter().map(|row| of_row(one, row)));
    let claims = judged.iter().flat_map(|one| {
        let claims = one.model.claims.iter().map(|claim| of_claim(one, claim));
        claims.chain(one.model.not_judged.iter().map(|claim| not_judged(one, claim)))
    });
    json!({
        "output_version": OUTPUT_VERSION,
        "off_by": evidence.iter().map(off_by).collect::<Vec<_>>(),
        "files": judged.iter().map(file).collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
        "claims": claims.collect::<Vec<_>>(),
    })
}

/// The error of predictions of a family of devices, by the series that are built in.
fn off_by(evidence: &Evidence) -> Value {
    let said = evidence.off_by();
    json!({
        "devices": evidence.family.name(),
        "rows_held_out": evidence.held_out.rows,
        "rows_in_view": evidence.in_view.rows,
        "percent": said.as_ref().map(|said| said.percent()),
        "grounds": said.map(|said| said.grounds),
    })
}

fn file(judged: &Judged) -> Value {
    let model = &judged.model;
    let predicted = model.predictions();
    let calibration = model.summary(|role| matches!(role, Role::Calibration(_)));
    let null_means = judged.null.iter().map(|(null, summary)| {
        (null.name().to_owned(), json!(summary.map(|summary| summary.mean)))
    });
    let null_means: serde_json::Map<_, _> = null_means.collect();
    let (held, published) = model.held();
    json!({
        "file": model.study,
        "title": model.title,
        "mean": predicted.map(|summary| summary.mean),
        "median": predicted.map(|summary| summary.median),
        "rows_scored": predicted.map_or(0, |summary| summary.scored),
        "rows_missing": model.missing(),
        "calibration_mean": calibration.map(|summary| summary.mean),
        "calibration_median": calibration.map(|summary| summary.median),
        "null_means": null_means,
        "claims_held": held,
        "claims_published": published,
        "claims_not_judged": model.not_judged.len(),
        "passed_over": model.passed_over.iter().map(passed_over).collect::<Vec<_>>(),
    })
}

fn passed_over((id, reason): &(String, String)) -> Value {
    json!({ "id": id, "reason": reason })
}

fn of_row(judged: &Judged, row: &JudgedRow) -> Value {
    json!({
        "file": judged.model.study,
        "id": row.id,
        "role": row.role.text(),
        "held_out": row.held_out,
        "published": row.published,
        "model": row.model.as_ref().ok(),
        "unit": row.unit.text(),
        "score": row.score,
        "reason": row.model.as_ref().err().map(ToString::to_string),
    })
}

fn not_judged(judged: &Judged, claim: &Claim) -> Value {
    json!({
        "file": judged.model.study,
        "id": claim.id,
        "judged": false,
        "statement": claim.statement,
        "predicate": claim.predicate,
    })
}

fn of_claim(judged: &Judged, claim: &JudgedClaim) -> Value {
    let (seen, reason) = match &claim.in_model {
        Decision::Holds(seen) | Decision::Fails(seen) => (Some(seen), None),
        Decision::Undecided(why) => (None, Some(why.to_string())),
    };
    json!({
        "file": judged.model.study,
        "id": claim.id,
        "judged": true,
        "holds": claim.in_model.holds(),
        "holds_in_print": claim.is_published(),
        "statement": claim.statement,
        "predicate": claim.predicate,
        "compared": seen,
        "reason": reason,
        "published_values_of": claim.taken,
    })
}
