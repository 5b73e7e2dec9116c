//! The overview: a line for each subject, and who is best at what.

use super::answer::{enumerate, factor, how_often, what_was_seen};
use super::cells;
use super::{Context, section as make_section};
use crate::analysis::{
    ALPHA, Cell as Measured, KindContests, Outlook, Overall, Standing as Belief, State,
    compare_kinds, pooled_baseline, pooled_speed,
};
use crate::metric::Better;
use crate::report::model::{Block, Cell, Row, Section, Table, Tone};
use crate::report::units::percent_number;
use crate::stats::{Standing, compare_with_baseline};

/// The overview, where something is compared.
pub(super) fn section(context: &Context<'_>) -> Option<Section> {
    let blocks: Vec<Block> = [against_baseline(context), best_at_what(context)]
        .into_iter()
        .flatten()
        .map(Block::Table)
        .collect();
    make_section("overview", "Overview", String::new(), blocks)
}

fn against_baseline(context: &Context<'_>) -> Option<Table> {
    let analysis = context.analysis;
    let name = context.baseline_name()?;
    let rows: Vec<Row> = (0..analysis.subjects)
        .filter(|subject| !analysis.is_baseline(*subject))
        .map(|subject| row_of(context, subject))
        .collect();
    (!rows.is_empty()).then(|| Table {
        id: "against-baseline".to_owned(),
        title: format!("Each subject against {name}"),
        note: "Counted are workloads. Percents are of the baseline's speed: 200 is twice as fast, \
               for times as well."
            .to_owned(),
        columns: vec![
            cells::column("subject"),
            cells::numbers("faster"),
            cells::numbers("slower"),
            cells::numbers("not distinguishable"),
            cells::numbers("no comparison"),
            cells::numbers("speed over all [%]"),
            cells::numbers("best [%]"),
            cells::numbers("worst [%]"),
        ],
        rows,
    })
}

fn row_of(context: &Context<'_>, subject: usize) -> Row {
    let analysis = context.analysis;
    let cells_of = || (0..analysis.workloads.len()).map(|work| analysis.cell(work, subject));
    let count = |outlook| cells_of().filter(|cell| cell.outlook() == Some(outlook)).count();
    let gains = || cells_of().filter_map(|cell| Some((cell, cell.gain()?.median)));
    let show = |found: Option<(&Measured, f64)>| match found {
        Some((cell, gain)) => Cell {
            detail: context.label(cell.workload).to_owned(),
            tone: cells::tone_of(analysis.standing_against_baseline(cell), Tone::Plain),
            ..cells::number(percent_number(gain * 100.0), gain * 100.0)
        },
        None => cells::missing(""),
    };
    let planned = cells_of().filter(|cell| cell.state != State::NotPlanned).count();
    let compared: Vec<usize> = gains().map(|(cell, _)| cell.workload).collect();
    cells::row(vec![
        cells::words(context.subject(subject)),
        cells::count(count(Outlook::Better)),
        cells::count(count(Outlook::Worse)),
        cells::count(count(Outlook::Same)),
        cells::count(planned - compared.len()),
        overall_percent(context, subject, &compared),
        show(gains().max_by(|a, b| a.1.total_cmp(&b.1))),
        show(gains().min_by(|a, b| a.1.total_cmp(&b.1))),
    ])
}

/// The geometric mean of the gains, in pairs.
fn overall_percent(context: &Context<'_>, subject: usize, workloads: &[usize]) -> Cell {
    let analysis = context.analysis;
    let baseline = pooled_baseline(analysis, workloads);
    match compare_with_baseline(&pooled_speed(analysis, subject, workloads), &[&baseline]) {
        Ok(ratio) => {
            let cells_of = workloads.iter().map(|work| analysis.cell(*work, subject));
            let standings = cells_of.map(|cell| analysis.standing_against_baseline(cell));
            let worst = standings.max().unwrap_or_default();
            cells::compared(&ratio, Better::Higher, worst)
        }
        Err(_) => cells::missing("no repetition has all workloads"),
    }
}

/// A winner for each kind of workload, or who may be it.
fn best_at_what(context: &Context<'_>) -> Option<Table> {
    let KindContests { level, contests } = compare_kinds(context.analysis);
    if contests.is_empty() {
        return None;
    }
    let rows = contests.iter().map(|(kind, overall)| {
        let name = |place: &usize| context.subject(overall.contenders[*place]).to_owned();
        let without = overall.without_belief(context.analysis).len();
        let faster = overall.faster_without_belief(context.analysis).len();
        let (best, said) = match &overall.contest.standing {
            _ if faster > 0 => {
                let why = format!("nobody is named: {faster} of those left out were faster");
                ("—".to_owned(), why)
            }
            Standing::Winner(place) => (name(place), "proven".to_owned()),
            Standing::Undecided(places) if overall.contest.can_decide() => {
                let names: Vec<&str> =
                    places.iter().map(|p| context.subject(overall.contenders[*p])).collect();
                (enumerate(&names), "cannot be told apart".to_owned())
            }
            Standing::Undecided(_) => {
                let front = overall.front_runners();
                let names: Vec<&str> = front
                    .iter()
                    .map(|(place, _)| context.subject(overall.contenders[*place]))
                    .collect();
                let seen = match front.as_slice() {
                    [(_, count)] => format!("fastest {}", how_often(overall, *count)),
                    _ => what_was_seen(context, overall),
                };
                (enumerate(&names), format!("not proven: {seen}"))
            }
        };
        let margin = margin_of(overall).filter(|_| faster == 0);
        let margin = margin.map_or_else(
            || cells::missing(""),
            |m| {
                let tone = cells::tone_of(worst_standing(context, overall), Tone::Plain);
                Cell { tone, ..cells::number(factor(m), m) }
            },
        );
        cells::row(vec![
            cells::words(kind.name.clone()),
            cells::words(best),
            cells::words(said),
            margin,
            match without {
                0 => cells::count(0),
                some => {
                    let of = format!("{some} of {}", overall.planned(context.analysis));
                    cells::number(of, some as f64)
                }
            },
            cells::count(overall.contest.comparisons.len()),
            cells::number(
                format!("{} %", percent_number(overall.contest.smallest_adjusted_p * 100.0)),
                overall.contest.smallest_adjusted_p * 100.0,
            ),
        ])
    });
    Some(Table {
        id: "best".to_owned(),
        title: "Who is best at what".to_owned(),
        note: format!(
            "Each subject is compared with each, and a winner is named only when it is better \
             than every other at a level of {}, with all comparisons counted (Holm). Left out are \
             subjects that were measured and whose numbers cannot be believed; nobody is named \
             where one of them was faster.",
            level_in_words(level, contests.len())
        ),
        columns: vec![
            cells::column("workloads"),
            cells::column("best"),
            cells::column("how sure"),
            cells::numbers("times the next"),
            cells::numbers("left out"),
            cells::numbers("comparisons"),
            cells::numbers("smallest possible p"),
        ],
        rows: rows.collect(),
    })
}

/// "5 %", or "2.50 %, which is 5 % shared among the 2 kinds of workloads that can be compared".
fn level_in_words(level: f64, kinds: usize) -> String {
    let whole = ALPHA * 100.0;
    match kinds {
        1 => format!("{whole} %"),
        many => format!(
            "{} %, which is {whole} % shared among the {many} kinds of workloads that can be \
             compared",
            percent_number(level * 100.0)
        ),
    }
}

/// That of the least believed number among those compared.
fn worst_standing(context: &Context<'_>, overall: &Overall) -> Belief {
    let analysis = context.analysis;
    let standing = |work: usize| {
        let of = |subject: &usize| analysis.cell(work, *subject).standing;
        overall.contenders.iter().map(of).max()
    };
    overall.workloads.iter().filter_map(|work| standing(*work)).max().unwrap_or_default()
}

/// How many times as fast the leader is as the next, by medians of the repetitions.
fn margin_of(overall: &Overall) -> Option<f64> {
    let mut medians: Vec<f64> = overall
        .speeds
        .iter()
        .filter_map(|speeds| crate::stats::median(&speeds.values().copied().collect::<Vec<_>>()))
        .collect();
    medians.sort_by(|a, b| b.total_cmp(a));
    Some(medians.first()? / medians.get(1)?)
}
