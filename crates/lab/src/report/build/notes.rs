//! What limits the numbers, as sentences.

use std::collections::BTreeSet;

use super::Context;
use super::answer::enumerate;
use crate::analysis::Standing;
use crate::campaign::Source;
use crate::evidence::RegionContent;
use crate::facts::note_on_sharing;
use crate::metric::{Measured, Metric};
use crate::report::units::{digits, quantity};
use crate::stats::{BOOTSTRAP_FROM, IntervalKind};
use crate::store::Outcome;
use crate::tool::Effort;
use braid_stack::ByteSize;

/// An interval wider than this part of its median is named.
const WIDE: f64 = 0.5;
/// A trial shorter than this is named.
const SHORT_S: f64 = 5.0;
/// A tool that uses more of its core is named, in percent.
const BUSY: f64 = 90.0;
/// So many cells are named one by one.
const FEW: usize = 5;

/// The sentences, those on the whole campaign first.
pub(super) fn sentences(context: &Context<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(on_progress(context));
    notes.extend(on_repetitions(context));
    notes.extend(on_runtime(context));
    notes.extend(on_region(context));
    notes.extend(on_close(context));
    notes.extend(on_differing_regions(context));
    notes.extend(on_sharing(context));
    notes.extend(on_paths(context));
    notes.extend(on_sessions(context));
    notes.extend(on_wide_intervals(context));
    notes.extend(on_odd_repetitions(context));
    notes.extend(on_busy_tool(context));
    notes.extend(on_remarks(context));
    notes.extend(on_unchecked(context));
    notes
}

fn on_progress(context: &Context<'_>) -> Option<String> {
    let (done, planned) = (context.analysis.done, context.analysis.planned);
    (done < planned).then(|| {
        format!(
            "{} of {planned} trials are missing or failed; run the campaign into the same \
             directory to complete it.",
            planned - done
        )
    })
}

fn on_repetitions(context: &Context<'_>) -> Vec<String> {
    let n = context.results.campaign.repetitions as usize;
    if n == 1 {
        let text = "With one repetition nothing is known about the spread; take at least three, \
                    and six for 95 % intervals.";
        return vec![text.to_owned()];
    }
    let kind = if n < BOOTSTRAP_FROM { IntervalKind::Range(n) } else { IntervalKind::Bootstrap95 };
    let chance = 1.0 - kind.confidence();
    let comparisons = context.analysis.cells.iter().filter(|cell| cell.ratio.is_some()).count();
    let mut notes = Vec::new();
    if n < BOOTSTRAP_FROM {
        notes.push(format!(
            "With {n} repetitions an interval is the range, smallest to largest, and the true \
             median lies outside it with a chance of {} %. From {BOOTSTRAP_FROM} repetitions on \
             intervals are 95 %.",
            digits(chance * 100.0),
        ));
    }
    if comparisons > 0 {
        notes.push(format!(
            "Each colour in a table is one comparison by itself: were all subjects equal, about \
             {:.0} of {comparisons} would be coloured by chance. Only where a winner is named are \
             all comparisons counted.",
            (chance * comparisons as f64).ceil()
        ));
    }
    notes
}

fn on_runtime(context: &Context<'_>) -> Option<String> {
    let campaign = &context.results.campaign;
    let timed = context.analysis.workloads.iter().any(|work| {
        let setup = &work.workload.setup;
        let effort =
            |tool: &dyn crate::tool::Tool| tool.effort(&work.workload.settings, setup.processes);
        work.workload.tool().is_some_and(|tool| effort(tool) == Effort::Runtime)
    });
    (timed && campaign.runtime_s < SHORT_S).then(|| {
        format!(
            "A trial measured {} s. That shows large differences; caches, garbage collection and \
             heat need minutes to show.",
            campaign.runtime_s
        )
    })
}

/// A file system takes the whole subject, so this is of raw ones only.
fn on_region(context: &Context<'_>) -> Option<String> {
    let campaign = &context.results.campaign;
    let raw = |work: &crate::analysis::Work| {
        let word = crate::settings::Value::Word("none".to_owned());
        work.dimensions.get("filesystem").is_none_or(|value| *value == word)
    };
    let mut raw = context.analysis.workloads.iter().filter(|work| raw(work)).peekable();
    raw.peek()?;
    let reads_on = raw.any(|work| work.workload.tool().is_some_and(|t| t.reads_past_region()));
    Some(format!(
        "Of a raw subject the first {:#} are used{}{}: what fits a device's cache is measured in it.",
        campaign.region,
        on_fill(context),
        if reads_on { " (hdparm reads on for its three seconds)" } else { "" }
    ))
}

/// Which of what was read raw the campaign had written before.
fn on_fill(context: &Context<'_>) -> String {
    let (mut filled, mut other) = (BTreeSet::new(), BTreeSet::new());
    for trial in context.results.trials.iter().filter(|trial| trial.outcome == Outcome::Ok) {
        match trial.evidence.content {
            Some(RegionContent::Filled) => filled.insert(trial.subject.as_str()),
            Some(RegionContent::Found { .. } | RegionContent::Unknown) => {
                other.insert(trial.subject.as_str())
            }
            None => false,
        };
    }
    let other: Vec<&str> = other.into_iter().collect();
    match (filled.is_empty(), other.is_empty()) {
        (true, true) => String::new(),
        (false, true) => ", written once before they are read".to_owned(),
        (true, false) => ", not written before they are read".to_owned(),
        (false, false) => {
            format!(", written once before they are read (but not {})", enumerate(&other))
        }
    }
}

/// The last close of a block device writes back what is left, and dd tells its time after that.
fn on_close(context: &Context<'_>) -> Option<String> {
    let on_device = crate::settings::Value::Word("none".to_owned());
    let is_folder = |name: &str| {
        let mut subjects = context.results.subjects.iter();
        let named = subjects.find(|subject| subject.name == name);
        named.is_some_and(|subject| matches!(subject.source, Source::Directory(_)))
    };
    let closes = |trial: &crate::store::StoredTrial| {
        let word = |name: &str| trial.dimensions.get(name).map(ToString::to_string);
        trial.outcome == Outcome::Ok
            && trial.dimensions.get("filesystem") == Some(&on_device)
            && [word("tool"), word("op"), word("sync")].map(Option::unwrap_or_default)
                == ["dd", "write", "none"]
            && !is_folder(&trial.subject)
    };
    context.results.trials.iter().any(closes).then(|| {
        "dd without a sync call on a raw subject: the device is written back when dd closes it, and \
         dd's time holds that."
            .to_owned()
    })
}

/// A smaller region is seeked over in less time.
fn on_differing_regions(context: &Context<'_>) -> Option<String> {
    let trials = &context.results.trials;
    let mut regions: Vec<(&str, u64)> = Vec::new();
    let raw = |trial: &&crate::store::StoredTrial| {
        let on_device = crate::settings::Value::Word("none".to_owned());
        trial.outcome == Outcome::Ok && trial.dimensions.get("filesystem") == Some(&on_device)
    };
    for trial in trials.iter().filter(raw) {
        if !regions.iter().any(|(subject, _)| *subject == trial.subject) {
            regions.push((&trial.subject, trial.region_bytes));
        }
    }
    let (smallest, largest) =
        (regions.iter().map(|(_, b)| *b).min()?, regions.iter().map(|(_, b)| *b).max()?);
    if smallest == largest {
        return None;
    }
    let sizes: Vec<String> = regions
        .iter()
        .map(|(subject, bytes)| format!("{subject} {:#}", ByteSize(*bytes)))
        .collect();
    Some(format!(
        "The subjects were used to differing extents, because some are smaller than the region: \
         {}. Set region to the smallest.",
        sizes.join(", ")
    ))
}

/// Subjects whose members share a device alike are named together.
fn on_sharing(context: &Context<'_>) -> Vec<String> {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for facts in &context.results.facts {
        let Some(note) = note_on_sharing(&facts.members) else { continue };
        match notes.iter_mut().find(|(other, _)| *other == note) {
            Some((_, names)) => names.push(&facts.name),
            None => notes.push((note, vec![&facts.name])),
        }
    }
    notes.into_iter().map(|(note, names)| format!("{}: {note}", enumerate(&names))).collect()
}

fn on_paths(context: &Context<'_>) -> Option<String> {
    let through_nbd = crate::matrix::goes_through_nbd(&context.results.workloads);
    let kinds: BTreeSet<&str> =
        context.results.subjects.iter().map(|subject| subject.source.kind()).collect();
    let (path, stack) = (Source::Path(String::new()), Source::Stack("".into()));
    (kinds.contains(path.kind()) && kinds.contains(stack.kind())).then(|| {
        let how = if through_nbd { "reached through NBD" } else { "attached as block devices" };
        format!(
            "Subjects of kind path are opened by the tool itself, stacks are {how}: the difference \
             includes the export."
        )
    })
}

fn on_sessions(context: &Context<'_>) -> Option<String> {
    let sessions = &context.results.sessions;
    let (last, earlier) = sessions.split_last()?;
    let differences = earlier.iter().find_map(|session| {
        let found = session.environment.differences(&last.environment);
        (!found.is_empty()).then_some(found)
    })?;
    Some(format!(
        "The campaign was measured in {} sessions on differing systems ({}): do not compare \
         across them.",
        sessions.len(),
        differences.join("; ")
    ))
}

fn on_wide_intervals(context: &Context<'_>) -> Option<String> {
    let cells = &context.analysis.cells;
    let wide: Vec<String> = cells
        .iter()
        .filter(|cell| cell.main().is_some_and(|main| main.relative_width() > WIDE))
        .map(|cell| format!("{} ({})", context.subject(cell.subject), context.label(cell.workload)))
        .collect();
    Some(format!(
        "Unsteady, the interval is wider than half of the median: {}. Something else used the \
         machine, or the trials were too short.",
        some_of(&wide)?
    ))
}

fn on_odd_repetitions(context: &Context<'_>) -> Option<String> {
    let odd: Vec<String> = context
        .analysis
        .cells
        .iter()
        .flat_map(|cell| cell.odd.iter().map(move |odd| (cell, odd)))
        .map(|(cell, odd)| {
            format!(
                "{} ({}) repetition {}: {}",
                context.subject(cell.subject),
                context.label(cell.workload),
                odd.repetition,
                quantity(cell.headline, odd.value)
            )
        })
        .collect();
    Some(format!(
        "Repetitions that stand out from the others of their cell, and count all the same (by chance \
         alone about one cell in eight has one): {}.",
        some_of(&odd)?
    ))
}

/// A tool that uses its core up measures itself.
fn on_busy_tool(context: &Context<'_>) -> Option<String> {
    let used = |measured: &Measured| -> Option<f64> {
        let user = measured.get(Metric::ToolCpuUser)?;
        Some(user + measured.get(Metric::ToolCpuSystem).unwrap_or(0.0))
    };
    let trials = &context.results.trials;
    let busy = trials.iter().filter(|t| used(&t.measured).is_some_and(|cpu| cpu > BUSY)).count();
    (busy > 0).then(|| {
        format!(
            "In {busy} of {} trials the tool used more than {BUSY} % of a core: there the tool may \
             be the limit, and a subject may be faster than its number.",
            trials.len()
        )
    })
}

/// What the rules of trust saw and hold nothing against.
fn on_remarks(context: &Context<'_>) -> Vec<String> {
    let mut remarks: Vec<(&'static str, &str, usize)> = Vec::new();
    let findings = context.analysis.cells.iter().flat_map(|cell| &cell.findings);
    // A campaign of one repetition has its own note on that.
    let is_said = |rule| rule == "few-repetitions" && context.results.campaign.repetitions == 1;
    let remarked = findings.filter(|finding| finding.standing == Standing::Ok);
    for finding in remarked.filter(|finding| !is_said(finding.rule)) {
        match remarks.iter_mut().find(|(rule, ..)| *rule == finding.rule) {
            Some((_, _, more)) => *more += 1,
            None => remarks.push((finding.rule, &finding.why, 0)),
        }
    }
    let words = |(rule, why, more): (&str, &str, usize)| match more {
        0 => format!("Remark ({rule}): {why}"),
        1 => format!("Remark ({rule}, and likewise of 1 more number): {why}"),
        more => format!("Remark ({rule}, and likewise of {more} more numbers): {why}"),
    };
    remarks.into_iter().map(words).collect()
}

/// Silence of a rule that could not look is no proof.
fn on_unchecked(context: &Context<'_>) -> Option<String> {
    let unchecked = &context.analysis.unchecked;
    let rules: Vec<String> =
        unchecked.iter().map(|(rule, times)| format!("{rule} ({times} times)")).collect();
    (!rules.is_empty()).then(|| {
        format!("Not checked, because the system did not show what it takes: {}.", rules.join(", "))
    })
}

/// The first few, and how many more; `None` of nothing.
fn some_of(names: &[String]) -> Option<String> {
    match names.len() {
        0 => None,
        count if count <= FEW => Some(names.join("; ")),
        count => Some(format!("{}; and {} more", names[..FEW].join("; "), count - FEW)),
    }
}
