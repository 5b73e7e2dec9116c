//! `braid rescue verify`: whether an answer is right.
//!
//! ```text
//!   array  ──▶ parity or copies, compared in all regions ──▶ a strip      ─┐
//!   volume ──▶ the file system's own checker, over an overlay             ─┼─▶ a verdict, noted in the case
//!          └─▶ files that carry checksums, a sample ──▶ a rate, bad files ─┘
//! ```

mod checker;
mod samples;
mod screen;
mod served;

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use braid_probe::{Class, scan_signatures};
use braid_rescue::assemble::Doubt;
use braid_rescue::samples::Places;
use braid_rescue::{Compared, MemberRow, Outcome, Patient, Verdict, Verified};
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::{Context, Failure};
use braid_service::volume::IoMode;
use serde_json::json;

use super::answer::{By, Opened, Volume, opened};
use super::examined::failure;
use super::{exit, hypotheses, words};
use crate::cli::RescueVerify;
use crate::command::{cat, stacks};

pub(super) use served::run_checker;

use samples::{Source, samples};

/// The time that a checker has.
const LIMIT: Duration = Duration::from_secs(600);
/// Files that cannot be checked, and none that is good: no accident.
const MANY: u64 = 5;
/// The time that it has if everything is to be read.
const LONG: Duration = Duration::from_secs(7 * 24 * 3600);

pub(super) fn verify(arguments: &RescueVerify) -> Result<ExitCode, Failure> {
    let opened = opened(&arguments.case, &arguments.meant)?;
    let volume = opened.volume(&arguments.case)?;
    let compared = compared(&opened, volume, arguments.all)?;
    let stack = &volume.stack;
    let parsed = stacks::parse_for(stack, true)?;
    let device = cat::open_stack(&parsed, IoMode::Auto)?;
    let found = scan_signatures(&device).context("cannot read the volume")?;
    let source = Source { device: &device, stack: &parsed, opened: &opened, all: arguments.all };
    let sampled = samples(&source);
    drop(device);
    let format = found.iter().find(|one| one.class == Class::FileSystem).map(|one| one.name);
    let limit = if arguments.all { LONG } else { LIMIT };
    let checker = format.map(|format| checker::check(stack, format, opened.case.folder(), limit));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut verified = Verified {
        volume: volume.name.clone(),
        stack: stack.clone(),
        size_bytes: volume.size,
        at_s: now.as_secs(),
        verdict: Verdict::Unknown,
        doubts: volume.doubts.iter().map(words::doubt).collect(),
        members: members(&opened, volume),
        compared,
        checker,
        samples: Some(sampled),
    };
    verified.verdict = verdict(&verified, &volume.doubts);
    verified.clone().note(&opened.case).map_err(|error| failure(&arguments.case, &error))?;
    if verified.verdict == Verdict::Right
        && let [By::Evidence { number, .. }] =
            opened.arrays.iter().map(|one| &one.by).collect::<Vec<_>>()[..]
    {
        hypotheses::note_verified(&opened.case, &arguments.case, *number)?;
    }
    match arguments.json {
        true => {
            let mut text = json!(verified);
            text["output_version"] = OUTPUT_VERSION.into();
            println!("{text}");
        }
        false => screen::print(&opened, volume, &verified, arguments),
    }
    Ok(exit(verified.verdict != Verdict::Right || !volume.doubts.is_empty()))
}

/// The members of the arrays on which the volume lies, as `open` shows them.
fn members(opened: &Opened, volume: &Volume) -> Vec<MemberRow> {
    let mut rows = Vec::new();
    for index in &volume.arrays {
        let By::Superblocks { array, opening } = &opened.arrays[*index].by else { continue };
        let lines = words::table(&array.claimants, &opening.seats, &opening.left_out);
        rows.extend(lines.into_iter().map(|line| {
            let words::Line { role, member, events, written, how } = line;
            MemberRow { role, member, events, written, how }
        }));
    }
    rows
}

/// Compares parity or copies of the arrays on which the volume lies; `None` if they have neither.
fn compared(opened: &Opened, volume: &Volume, all: bool) -> Result<Option<Compared>, Failure> {
    let members: Vec<&Patient> = opened.members.iter().map(|member| &member.patient).collect();
    let read = |path: &str, at: u64, bytes: &mut [u8]| {
        let end = at.saturating_add(bytes.len() as u64);
        let member = opened.members.iter().find(|one| one.path == path);
        member.is_some_and(|one| {
            let is_whole = !one.holes.iter().any(|hole| hole.start < end && at < hole.end);
            is_whole && one.patient.read(at, bytes).is_ok()
        })
    };
    let mut cells = Vec::new();
    for index in &volume.arrays {
        let one = &opened.arrays[*index];
        cells.extend(match &one.by {
            By::Superblocks { array, opening } => {
                opening.agreement(&array.claimants, &members, all)
            }
            By::Reshape { .. } | By::Evidence { .. } => {
                let places = Places::of(&stacks::parse_for(&one.stack, true)?);
                places.map(|places| places.agreement(&read, all)).unwrap_or_default()
            }
        });
    }
    let cells: Vec<(u64, u64, u64)> =
        cells.iter().map(|cell| (cell.agreeing, cell.differing, cell.unknown)).collect();
    Ok((!cells.is_empty()).then(|| Compared {
        agreeing: cells.iter().map(|cell| cell.0).sum(),
        differing: cells.iter().map(|cell| cell.1).sum(),
        unknown: cells.iter().map(|cell| cell.2).sum(),
        cells,
    }))
}

/// The verdict of all that was checked. Parity that agrees is no proof: it agrees in any order of the members.
fn verdict(verified: &Verified, doubts: &[Doubt]) -> Verdict {
    let (mut good, mut bad, mut worst) = (false, false, false);
    if let Some(one) = &verified.compared {
        bad |= one.differing > 0;
        worst |= one.differing > one.agreeing;
    }
    let is_clean = verified.checker.as_ref().is_some_and(|one| one.outcome == Outcome::Clean);
    if let Some(one) = &verified.samples {
        good |= one.good > 0;
        // Files that lie in one chunk are good in any order of the members; those in several are not.
        bad |= one.bad > 0 || !is_clean && one.unchecked >= MANY && one.unchecked > one.good;
        worst |= one.bad > one.good || (one.good == 0 && one.unchecked >= MANY);
    }
    match verified.checker.as_ref().map(|one| one.outcome) {
        Some(Outcome::Clean) => good = true,
        Some(Outcome::Errors) => bad = true,
        // A superblock is there, and the file system behind it is not.
        Some(Outcome::Failed) => worst = true,
        Some(Outcome::Unfinished | Outcome::Skipped) | None => {}
    }
    worst |= doubts.iter().any(|doubt| matches!(doubt, Doubt::Contradicted { .. }));
    match (worst, bad, good) {
        (true, _, _) => Verdict::Wrong,
        (_, true, _) => Verdict::Doubtful,
        (_, _, true) => Verdict::Right,
        _ => Verdict::Unknown,
    }
}
