//! The report as data: what was measured, what it says against the baseline, by kind of work and by
//! factor, and how far each number is believed. For programs; nothing in it is made for looking at.
//!
//! Invariant: every number is in the metric's own unit, which stands beside it.

use std::path::Path;

use serde_json::{Value, json};

use super::build::Context;
use crate::analysis::{Analysis, Cell, Contest, Factor, Finding, Outcome, Outlook, State, Unknown};
use crate::report::Report;
use crate::stats::Effect;
use braid_lab::store::Results;

/// Version of the form; it rises when a field changes its meaning or goes. Up to version 3 it was the
/// page: sections, tables and their texts.
const OUTPUT_VERSION: u32 = 4;

/// The whole document.
pub fn report_data(report: &Report, analysis: &Analysis, results: &Results, dir: &Path) -> Value {
    let context = Context::new(analysis, results, dir);
    let (name, label) = (|subject| context.subject(subject), |work| context.label(work));
    json!({
        "output_version": OUTPUT_VERSION,
        "campaign": results.campaign.name,
        "question": results.campaign.description,
        "results": dir,
        "prediction": results.prediction(),
        "answer": report.answer,
        "trials": { "done": analysis.done, "planned": analysis.planned },
        "sessions": results.sessions.iter().map(|session| json!({
            "started_unix_s": session.started_unix_s,
            "ended_unix_s": session.ended_unix_s,
            "environment": session.environment,
        })).collect::<Vec<_>>(),
        "subjects": results.subjects.iter().map(|subject| {
            let facts = results.facts.iter().find(|facts| facts.name == subject.name);
            json!({
                "name": subject.name,
                "kind": subject.source.kind(),
                "source": subject.source.text(),
                "baseline": subject.baseline,
                "control": subject.control,
                "dimensions": words(subject.dimensions.iter().map(|(k, v)| (*k, v.to_string()))),
                "size_bytes": facts.and_then(|facts| facts.size_bytes),
            })
        }).collect::<Vec<_>>(),
        "cells": analysis.cells.iter().filter(|cell| cell.state != State::NotPlanned)
            .map(|cell| cell_data(analysis, results, cell)).collect::<Vec<_>>(),
        "kinds": context.kinds.iter().zip(&context.effects).map(|(kind, effects)| json!({
            "name": kind.name,
            "workloads": kind.workloads.iter().map(|work| label(*work)).collect::<Vec<_>>(),
            "against_baseline": effects.iter().map(|one| json!({
                "subject": name(one.subject),
                "effect": effect_data(&one.effect),
                "verdict": verdict(one.outlook),
                "standing": one.standing.to_string().to_lowercase(),
                "workloads": one.shared,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "contests": context.contests.iter().map(|one| contest_data(&context, one)).collect::<Vec<_>>(),
        "factors": context.factors.iter().map(factor_data).collect::<Vec<_>>(),
        "states": context.phases.iter().map(|one| json!({
            "subject": name(one.subject),
            "direction": one.direction,
            "state": one.phase.words(),
            "of_healthy": effect_data(&one.effect),
            "standing": one.standing.to_string().to_lowercase(),
        })).collect::<Vec<_>>(),
        "rebuilds": context.rebuilds.iter().map(|one| json!({
            "subject": name(one.subject),
            "beside": label(one.workload),
            "ended_s": one.ended_s,
            "not_ended_after_s": one.unended_s,
        })).collect::<Vec<_>>(),
        "doubts": analysis.campaign.iter().map(finding_data).collect::<Vec<_>>(),
    })
}

fn contest_data(context: &Context<'_>, contest: &Contest) -> Value {
    let name = |subject| context.subject(subject);
    json!({
        "kind": contest.kind.name,
        "ranking": contest.ranking.iter().map(|subject| name(*subject)).collect::<Vec<_>>(),
        "left_out": contest.left_out.iter().map(|subject| name(*subject)).collect::<Vec<_>>(),
        "margin": effect_data(&contest.margin),
        "standing": contest.standing.to_string().to_lowercase(),
        "outcome": match contest.outcome {
            Outcome::Winner => json!({ "winner": name(contest.leader()) }),
            Outcome::Alike(apart) => json!({ "alike_within": apart }),
            Outcome::Open(why) => json!({ "open": open(why) }),
            Outcome::Unbelieved(count) => json!({ "faster_and_not_believed": count }),
        },
    })
}

fn factor_data(factor: &Factor) -> Value {
    json!({
        "dimension": factor.dimension,
        "reference": factor.levels[factor.reference].value.to_string(),
        "levels": factor.levels.iter().map(|level| json!({
            "value": level.value.to_string(),
            "effects": factor.directions.iter().zip(&level.effects)
                .filter_map(|(direction, one)| Some((direction, (*one)?)))
                .map(|(direction, one)| json!({
                    "direction": direction,
                    "effect": effect_data(&one.effect),
                    "verdict": verdict(one.outlook),
                    "lowest": one.lowest,
                    "highest": one.highest,
                    "groups": one.groups,
                    "standing": one.standing.to_string().to_lowercase(),
                })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}

fn words<'a>(pairs: impl Iterator<Item = (&'a str, String)>) -> Value {
    Value::Object(pairs.map(|(key, value)| (key.to_owned(), Value::String(value))).collect())
}

/// The reason why no subject is named, with the number that would be needed.
fn open(why: Unknown) -> Value {
    match why {
        Unknown::Few => json!({ "why": "few-repetitions", "repetitions": null }),
        Unknown::Scatter(repetitions) => json!({ "why": "scatter", "repetitions": repetitions }),
        Unknown::Close => json!({ "why": "close", "repetitions": null }),
        Unknown::Place(lead) => json!({ "why": "control", "repetitions": null, "lead": lead }),
    }
}

fn cell_data(analysis: &Analysis, results: &Results, cell: &Cell) -> Value {
    let work = &analysis.workloads[cell.workload];
    let (state, why) = match &cell.state {
        State::Measured if results.prediction().is_some() => ("predicted", None),
        State::Measured => ("measured", None),
        State::Unsettled(why) => ("unsettled", Some(why)),
        State::Failed(why) => ("failed", Some(why)),
        State::Impossible(why) => ("impossible", Some(why)),
        State::NotYet => ("not_yet", None),
        State::NotPlanned => ("not_planned", None),
    };
    let metrics = cell.estimates.iter().map(|(metric, estimate)| {
        let value = json!({
            "unit": metric.unit(),
            "median": estimate.median,
            "low": estimate.low,
            "high": estimate.high,
            "by_repetition": cell.values.get(metric),
        });
        (metric.name().to_owned(), value)
    });
    json!({
        "subject": results.subjects[cell.subject].name,
        "workload": work.label,
        "dimensions": words(work.dimensions.iter().map(|(k, v)| (k.as_str(), v.to_string()))),
        "state": state,
        "why": why,
        "standing": match results.prediction() {
            Some(_) => "predicted".to_owned(),
            None => cell.standing.to_string().to_lowercase(),
        },
        "findings": cell.findings.iter().map(finding_data).collect::<Vec<_>>(),
        "headline": cell.headline.name(),
        "metrics": Value::Object(metrics.collect()),
        "disturbed_repetitions": cell.disturbed,
        "against_baseline": cell.effect.as_ref().map(effect_data),
        "verdict": cell.outlook.map(verdict),
        "trials": cell.trials.iter().map(|trial| results.trials[*trial].number).collect::<Vec<_>>(),
    })
}

fn effect_data(effect: &Effect) -> Value {
    json!({
        "times": effect.ratio,
        "low": effect.low,
        "high": effect.high,
        "pairs": effect.pairs,
        "log_sd": effect.log_sd,
        // What a model says has no chance in it.
        "p_value": (effect.pairs > 1 || !effect.has_interval()).then_some(effect.p_value),
    })
}

fn finding_data(finding: &Finding) -> Value {
    json!({
        "rule": finding.rule,
        "standing": finding.standing.to_string().to_lowercase(),
        "why": finding.why,
        "action": finding.action,
    })
}

fn verdict(outlook: Outlook) -> &'static str {
    match outlook {
        Outlook::Better => "better",
        Outlook::Worse => "worse",
        Outlook::Same => "not_told_apart",
    }
}
