//! `braid rescue solve`: the geometry of an array, from what lies on its members.

use std::process::ExitCode;

use braid_level::{Level, layout};
use braid_rescue::assemble::{Ranges, joined};
use braid_rescue::{
    ALL, Answer, Case, Claim, Examined, Fixed, Gathered, Hypothesis, Named, QUICK, Reshape, Rows,
    Source, claims, gather, overwritten, own_tables, samples::witnesses, solve_by_files, stale,
};
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::Failure;
use braid_shell::{shell_path, shown};
use serde_json::{Value, json};

use super::examined::{failure, of_case, write_map};
use super::{exit, hypotheses, words};
use crate::cli::RescueSolve;

/// Hypotheses that are shown beside the first.
const SHOWN: usize = 3;

pub(super) fn solve(arguments: &RescueSolve) -> Result<ExitCode, Failure> {
    let (case, mut members) = of_case(&arguments.case)?;
    let fixed = fixed(arguments)?;
    take_out_overwritten(&mut members);
    let (mut gathered, mut answer) = answer(&members, fixed);
    // The answer may lie below a resync that no block contradicts.
    if matches!(answer, Answer::Undecided { .. }) && has_raid6(&members) {
        let before: Vec<Ranges> = members.iter().map(|one| one.holes.clone()).collect();
        let gone = overwritten(&members, None);
        take_out(&mut members, gone);
        match self::answer(&members, fixed) {
            (below, Answer::Decided { first, rest, second }) if !is_claimed(&first, &below) => {
                (gathered, answer) = (below, Answer::Decided { first, rest, second });
            }
            _ => members.iter_mut().zip(before).for_each(|(one, holes)| one.holes = holes),
        }
    }
    let named = named(&case, &members).map_err(|error| failure(&arguments.case, &error))?;
    let named = before_tables(named, &answer, &gathered);
    let mut doubts = doubts(&answer);
    doubts.extend(too_short(&answer, &gathered, &named));
    doubts.extend(with_own_content(&answer, &gathered, &named));
    let mut found = hypotheses::of(&answer, &named, &doubts);
    hypotheses::store(&case, &arguments.case, &mut found)?;
    let ranked = found.ranked;
    let report = Report {
        arguments,
        members: &members,
        gathered: &gathered,
        answer: &answer,
        doubts: &doubts,
    };
    match arguments.json {
        true => report.print_json(&ranked),
        false => report.print(&ranked),
    }
    let is_sure = matches!(&answer, Answer::Decided { first, .. } if first.is_readable);
    Ok(exit(!is_sure || !doubts.is_empty()))
}

/// Returns the evidence on the members, and the geometry that it tells.
fn answer(members: &[Examined], fixed: Fixed) -> (Gathered, Answer) {
    let sources: Vec<Source<'_>> = members.iter().map(Source::of).collect();
    let mut gathered = gather(&sources, ALL);
    gathered.question.fixed = fixed;
    gathered.question.stale = stale(members);
    gathered.question.claims = claims(members);
    let rows = |member: usize, at: u64, length: usize| sources.as_slice().read(member, at, length);
    let answer = solve_by_files(&gathered.question, &rows, &witnesses);
    (gathered, doubt_one_geometry(answer, members))
}

/// True if superblocks name the same members in the same roles: then the array was not created anew over another one.
fn is_claimed(one: &Hypothesis, gathered: &Gathered) -> bool {
    let members: Vec<Option<usize>> =
        one.seats.iter().map(|seat| seat.map(|seat| seat.member)).collect();
    let is_same = |claim: &Claim| claim.pattern == one.pattern && claim.roles == members;
    gathered.question.claims.iter().any(is_same)
}

/// Takes the bytes for unreadable that a partition table overwrote, or the resync of an array that was created anew.
fn take_out_overwritten(members: &mut [Examined]) {
    let tables = members.iter().map(|one| own_tables(&one.patient)).collect();
    take_out(members, tables);
    if !has_raid6(members) {
        return;
    }
    let sources: Vec<Source<'_>> = members.iter().map(Source::of).collect();
    let gone = overwritten(members, Some(&gather(&sources, QUICK).question));
    take_out(members, gone);
}

/// Takes these bytes of each member for unreadable.
fn take_out(members: &mut [Examined], gone: Vec<Ranges>) {
    for (member, gone) in members.iter_mut().zip(gone) {
        member.holes = joined(member.holes.drain(..).chain(gone).collect());
    }
}

fn has_raid6(members: &[Examined]) -> bool {
    let mut superblocks = members.iter().flat_map(|one| &one.findings.superblocks);
    superblocks.any(|found| found.result.as_ref().is_ok_and(|one| one.level == Level::Raid6))
}

/// Sentences about a decided answer: rows that its geometry does not explain.
fn doubts(answer: &Answer) -> Vec<String> {
    let Answer::Decided { first, .. } = answer else { return Vec::new() };
    let mut doubts = Vec::new();
    let (differ, all) = (first.agreement.differ, first.agreement.agree + first.agreement.differ);
    if differ > 0 {
        doubts.push(format!(
            "{differ} of {all} rows differ from parity or copies: a member is stale, or was overwritten in places"
        ));
    }
    if let (whole, damaged @ 1..) = first.files {
        doubts.push(format!("{damaged} of {} files with checksums are not whole", whole + damaged));
    }
    doubts
}

/// A sentence about a decided answer whose members are shorter than what lies on them: bytes behind the end of one are lost,
/// and without redundancy others are sought in wrong places.
fn too_short(answer: &Answer, gathered: &Gathered, named: &[Named]) -> Option<String> {
    let Answer::Decided { first, .. } = answer else { return None };
    let (end, room) = end_and_room(first, gathered, named)?;
    // The end of a raid1 may not be that of a block.
    (end > room + 4096).then(|| format!(
        "the content ends at byte {end}, and the array at byte {room}: a member is shorter than it was. Without redundancy, \
         what lies behind its end may be read from other places"
    ))
}

/// A sentence about a decided answer that uses a member with a file system of its own, made over the array's data: nothing
/// says where it was written, unless redundancy does.
fn with_own_content(answer: &Answer, gathered: &Gathered, named: &[Named]) -> Option<String> {
    /// The share of a device, as a divisor, by which a file system on it is smaller: ext leaves out a last group that is small.
    const NEAR: u64 = 8;
    let Answer::Decided { first, .. } = answer else { return None };
    let clues = gathered.question.clues.iter();
    let mut own = clues.filter(|clue| {
        let size = gathered.question.anchors[clue.anchor].size.unwrap_or(0);
        let room = named[clue.member].size;
        let is_as_large = size <= room && size >= room - room / NEAR;
        is_as_large && first.bases[clue.anchor].is_none()
    });
    let is_used = |member| first.seats.iter().flatten().any(|seat| seat.member == member);
    let clue = own.find(|clue| is_used(clue.member))?;
    (first.agreement.agree == 0).then(|| {
        let path = &named[clue.member].path;
        format!(
            "{} has a file system of its own, as after mkfs on this member, and without redundancy nothing tells which \
             bytes that overwrote",
            shown(path)
        )
    })
}

/// The byte at which the content ends, and the size of the array.
fn end_and_room(
    hypothesis: &Hypothesis,
    gathered: &Gathered,
    named: &[Named],
) -> Option<(u64, u64)> {
    let room = hypothesis.pattern.shape().size_over(&hypothesis.lengths(named))?;
    let anchors = hypothesis.bases.iter().zip(&gathered.question.anchors);
    let ends = anchors.filter_map(|(base, anchor)| (*base)?.checked_add(anchor.size?));
    Some((ends.max()?, room))
}

/// The members up to the partition tables at their ends, if the content has room there: their superblocks said where the
/// data end.
fn before_tables(named: Vec<Named>, answer: &Answer, gathered: &Gathered) -> Vec<Named> {
    let cut = |one: &Named| {
        let table = one.holes.last().filter(|hole| hole.end == one.size);
        Named { size: table.map_or(one.size, |table| table.start), ..one.clone() }
    };
    let cut: Vec<Named> = named.iter().map(cut).collect();
    let best = match answer {
        Answer::Decided { first, .. } => Some(&**first),
        Answer::Undecided { alternatives, .. } => alternatives.first(),
        Answer::Reshaping(_) => None,
    };
    let ends = best.and_then(|best| end_and_room(best, gathered, &cut));
    if ends.is_some_and(|(end, room)| end <= room) { cut } else { named }
}

/// One geometry does not explain an array whose superblocks say that a reshape stopped.
fn doubt_one_geometry(answer: Answer, members: &[Examined]) -> Answer {
    let superblocks = members.iter().flat_map(|one| &one.findings.superblocks);
    let reshapes = superblocks.filter_map(|found| found.result.as_ref().ok()?.reshape.as_ref());
    let position = reshapes.map(|reshape| reshape.position).min();
    match (answer, position) {
        (Answer::Decided { first, rest, .. }, Some(position)) => Answer::Undecided {
            alternatives: std::iter::once(*first).chain(rest).collect(),
            would_decide: vec![format!(
                "blocks on both sides of byte {position} of the array, where superblocks say that a reshape stopped: \
                 one geometry alone was found"
            )],
        },
        (answer, _) => answer,
    }
}

/// The parameters that are not in question.
fn fixed(arguments: &RescueSolve) -> Result<Fixed, Failure> {
    let RescueSolve { level, layout: text, chunk, members, .. } = arguments;
    let layout = match (level, text) {
        (Some(level), Some(text)) => {
            let number = layout::number_of(*level, Some(text));
            Some(number.ok_or_else(|| {
                let text = format!("{level} has no layout {}", shown(text));
                Failure::usage(text).next(layout::choices(*level))
            })?)
        }
        _ => None,
    };
    Ok(Fixed { level: *level, layout, chunk: chunk.map(|size| size.0), members: *members })
}

/// The members as expressions name them; the maps of those with holes are written to the case.
fn named(case: &Case, members: &[Examined]) -> Result<Vec<Named>, braid_rescue::CaseError> {
    let name = |(index, one): (usize, &Examined)| {
        let (size, holes) = (one.patient.size(), one.holes.clone());
        let map = write_map(case, &format!("member-{index}"), size, &holes)?;
        Ok(Named { path: one.path.clone(), size, holes, map })
    };
    members.iter().enumerate().map(name).collect()
}

/// An answer with what it is about.
struct Report<'a> {
    arguments: &'a RescueSolve,
    members: &'a [Examined],
    gathered: &'a Gathered,
    answer: &'a Answer,
    doubts: &'a [String],
}

impl Report<'_> {
    fn print(&self, ranked: &[hypotheses::Ranked]) {
        self.print_evidence();
        println!("");
        match self.answer {
            Answer::Decided { first, second, .. } => {
                println!("Decided: {}", first.pattern);
                self.print_hypothesis(first);
                match *second > 0.0 {
                    true => println!(
                        "  The best answer with other content has {:.0} % of its evidence.",
                        100.0 * second
                    ),
                    false => println!("  No other answer with other content has any evidence."),
                }
                self.doubts.iter().for_each(|doubt| println!("  In doubt: {doubt}."));
            }
            Answer::Reshaping(reshape) => self.print_reshape(reshape),
            Answer::Undecided { alternatives, would_decide } => {
                println!("Not decided. What would decide:");
                would_decide.iter().for_each(|text| println!("  * {}", shown(text)));
                for (number, one) in (1..).zip(alternatives.iter().take(SHOWN)) {
                    println!("");
                    println!("Possible {number}: {}", one.pattern);
                    self.print_hypothesis(one);
                }
            }
        }
        let name = shell_path(&self.arguments.case);
        let Some(first) = ranked.first() else {
            println!("Next: braid rescue scan {name} with the members that are not in the case");
            return;
        };
        println!("");
        println!("It is read, without writing to a member, by this stack:");
        println!("  {}", shown(&first.stack));
        println!("");
        match matches!(self.answer, Answer::Undecided { .. }) {
            true => println!(
                "Next: braid rescue open {name} --hypothesis 1, and others by their number"
            ),
            false => println!("Next: braid rescue open {name} --hypothesis 1"),
        }
    }

    /// The structures that were found, with the number of blocks that say where they belong.
    fn print_evidence(&self) {
        let question = &self.gathered.question;
        println!("Evidence");
        let mut any = false;
        for (index, anchor) in question.anchors.iter().enumerate() {
            let clues = question.clues.iter().filter(|clue| clue.anchor == index);
            let mut on: Vec<usize> = clues.clone().map(|clue| clue.member).collect();
            let count = on.len();
            if count == 0 {
                continue;
            }
            on.dedup();
            let size =
                anchor.size.map_or(String::new(), |size| format!(" of {}", words::size(size)));
            let (kind, on) = (format!("{:?}", anchor.structure).to_lowercase(), on.len());
            println!(
                "  {kind}{size}: blocks that say where they belong: {count}, on members: {on}"
            );
            any = true;
        }
        if !any {
            println!(
                "  none: no block of a file system or another structure that is known says where it belongs"
            );
        }
    }

    fn print_hypothesis(&self, one: &Hypothesis) {
        let label = |member: usize| shown(&self.members[member].label).into_owned();
        let width = self.members.iter().map(|one| one.label.chars().count()).fold(6, usize::max);
        println!("  {:>4}  {:width$}  {:>12}  evidence", "role", "member", "data from");
        for (role, seat) in one.seats.iter().enumerate() {
            match seat {
                None => println!("  {role:>4}  {:width$}  {:>12}  missing", "-", ""),
                Some(seat) => {
                    let offset = format!("{}", braid_stack::ByteSize(seat.data_offset));
                    println!(
                        "  {role:>4}  {:width$}  {offset:>12}  {}",
                        label(seat.member),
                        support(seat, one.files.0)
                    );
                }
            }
        }
        for left in &one.left_over {
            let why = words::reason(left.reason, self.members);
            println!("  {:>4}  {:width$}  {:>12}  not used: {why}", "-", label(left.member), "");
        }
        let (fit, not) = (one.satisfied, one.contradicted);
        let rows = one.agreement;
        print!("  {fit} blocks lie where they must, {not} do not");
        match rows.agree + rows.differ {
            0 => println!("; redundancy could not be compared."),
            all => {
                println!("; of {all} rows compared, {} agree with parity or copies.", rows.agree)
            }
        }
        let (whole, damaged) = one.files;
        if whole + damaged > 0 {
            println!("  {whole} files are whole, {damaged} are not.");
        }
        if !one.is_readable {
            println!("  More members are missing than the level can bear: it cannot be read.");
        }
    }

    fn print_reshape(&self, reshape: &Reshape) {
        let (start, end) = (words::size(reshape.position.start), words::size(reshape.position.end));
        println!("An array in the middle of a reshape, which stopped between {start} and {end}.");
        println!("Below: {}", reshape.below.pattern);
        self.print_hypothesis(&reshape.below);
        println!("Above: {}", reshape.above.pattern);
        self.print_hypothesis(&reshape.above);
        println!("  What lies between both places is in doubt.");
    }

    fn print_json(&self, ranked: &[hypotheses::Ranked]) {
        let question = &self.gathered.question;
        let evidence = question.anchors.iter().enumerate().map(|(index, anchor)| {
            let count = question.clues.iter().filter(|clue| clue.anchor == index).count();
            let kind = format!("{:?}", anchor.structure).to_lowercase();
            json!({ "structure": kind, "size_bytes": anchor.size, "blocks": count })
        });
        let (verdict, would_decide) = match self.answer {
            Answer::Decided { .. } => ("decided", &[][..]),
            Answer::Reshaping(_) => ("reshaping", &[][..]),
            Answer::Undecided { would_decide, .. } => ("undecided", would_decide.as_slice()),
        };
        println!(
            "{}",
            json!({
                "output_version": OUTPUT_VERSION,
                "answer": verdict,
                "would_decide": would_decide,
                "evidence": evidence.collect::<Vec<Value>>(),
                "hypotheses": ranked,
            })
        );
    }
}

/// The support of a seat in a few words.
fn support(seat: &braid_rescue::Seat, files: u32) -> String {
    let mut text = match seat.satisfied {
        0 if seat.is_verified && files > 0 => "files are whole with it".to_owned(),
        0 if seat.is_verified => "redundancy predicts its content".to_owned(),
        0 => "none of its own".to_owned(),
        count => format!("{count} blocks"),
    };
    if seat.contradicted > 0 {
        text += &format!(", {} missing", seat.contradicted);
    }
    text
}
