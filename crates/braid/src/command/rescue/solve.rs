//! `braid rescue solve`: the geometry of an array without superblocks, from blocks that say where they belong.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use braid_holes::{Map, State};
use braid_level::Shape;
use braid_rescue::assemble::{array_text, member_text};
use braid_rescue::{Answer, Case, Examined, Fixed, Hypothesis, content, question, solve as answer};
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::Failure;
use braid_shell::{shell_word, shown};
use serde_json::json;

use super::examined::{failure, of_case};
use super::{exit, words};
use crate::cli::RescueSolve;

/// The most alternatives that are shown.
const SHOWN: usize = 4;

pub(super) fn solve(arguments: &RescueSolve) -> Result<ExitCode, Failure> {
    let (case, members) = of_case(&arguments.case)?;
    let RescueSolve { level, chunk, members: count, .. } = arguments;
    let chunk = chunk.map(|chunk| chunk.bytes());
    let fixed = Fixed { level: *level, layout: None, chunk, members: *count };
    let (asked, known) = question(&members, fixed);
    let rows = |member: usize, at: u64, length: usize| content(&members, member, at, length);
    let answer = answer(&asked, &rows);
    let maps = maps(&case, &members).map_err(|error| failure(&arguments.case, &error))?;
    let text = |one: &Hypothesis| stack(one, &members, &maps);
    let is_decided = matches!(answer, Answer::Decided { .. });
    if arguments.json {
        print_json(&answer, &text);
        return Ok(exit(!is_decided));
    }
    let kinds = known.iter().map(|one| format!("{:?}", one.anchor().structure));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    println!("{} blocks say where they belong, of: {}", asked.clues.len(), kinds);
    println!("");
    match &answer {
        Answer::Decided { first, second, .. } => {
            println!("Decided; the best other one has {:.0} % of its evidence:", second * 100.0);
            print(first, &members, &text(first));
            println!("Next: braid cat {} >FILE.img", shell_word(&text(first)));
        }
        Answer::Reshaping(reshape) => {
            let position = &reshape.position;
            println!(
                "A reshape stopped between bytes {} and {} of the array.",
                position.start, position.end
            );
            println!("Below:");
            print(&reshape.below, &members, &text(&reshape.below));
            println!("Above:");
            print(&reshape.above, &members, &text(&reshape.above));
        }
        Answer::Undecided { alternatives, would_decide } => {
            println!("Not decided.");
            for one in alternatives.iter().take(SHOWN) {
                print(one, &members, &text(one));
            }
            would_decide.iter().for_each(|what| println!("It would be decided by {}", shown(what)));
            println!("Next: the same with --level, --chunk or --members, if you know one of them");
        }
    }
    Ok(exit(!is_decided))
}

/// Writes maps of the members that have holes.
fn maps(
    case: &Case,
    members: &[Examined],
) -> Result<Vec<Option<PathBuf>>, braid_rescue::CaseError> {
    let write = |(index, member): (usize, &Examined)| {
        if member.holes.is_empty() {
            return Ok(None);
        }
        let mut map = Map::new(member.patient.size(), State::Finished);
        member.holes.iter().for_each(|hole| map.set(hole.clone(), State::Bad));
        let path = case.write(&format!("maps/solve-{index}.map"), &map.to_string())?;
        Ok(Some(std::path::absolute(&path).unwrap_or(path)))
    };
    members.iter().enumerate().map(write).collect()
}

/// The expression by which a hypothesis is read.
fn stack(one: &Hypothesis, members: &[Examined], maps: &[Option<PathBuf>]) -> String {
    let pattern = one.pattern;
    let seats = one.seats.iter().flatten();
    let room = seats.map(|seat| members[seat.member].patient.size() - seat.data_offset).min();
    let unit = pattern.chunk.max(4096);
    let common = one.component.or(room).unwrap_or(0) / unit * unit;
    let texts = one.seats.iter().map(|seat| match seat {
        None => "missing".to_owned(),
        Some(seat) => {
            let member = &members[seat.member];
            let own = (member.patient.size() - seat.data_offset) / unit * unit;
            let length = match pattern.level.is_redundant() {
                true => common,
                false => seat.length.unwrap_or(own),
            };
            let map: Option<&Path> = maps[seat.member].as_deref();
            member_text(&member.path, seat.data_offset, length, map)
        }
    });
    let texts: Vec<String> = texts.collect();
    let (level, layout, chunk) = (pattern.level, pattern.layout, pattern.chunk);
    array_text(Shape { level, layout, chunk }, &texts)
}

fn print(one: &Hypothesis, members: &[Examined], stack: &str) {
    println!("  {}: {} blocks fit, {} contradict", one.pattern, one.satisfied, one.contradicted);
    for (role, seat) in one.seats.iter().enumerate() {
        match seat {
            None => println!("    role {role}: missing"),
            Some(seat) => println!(
                "    role {role}: {}, data at byte {}; {} blocks fit",
                shown(&members[seat.member].label),
                seat.data_offset,
                seat.satisfied
            ),
        }
    }
    for left in &one.left_over {
        let label = shown(&members[left.member].label).into_owned();
        println!("    not used: {label}: {}", words::reason(left.reason, members));
    }
    println!("  stack: {}", shown(stack));
}

fn print_json(answer: &Answer, text: &dyn Fn(&Hypothesis) -> String) {
    let of = |one: &Hypothesis| {
        json!({
            "pattern": one.pattern.to_string(),
            "satisfied": one.satisfied,
            "contradicted": one.contradicted,
            "stack": text(one),
        })
    };
    let (state, all): (&str, Vec<&Hypothesis>) = match answer {
        Answer::Decided { first, rest, .. } => {
            ("decided", std::iter::once(&**first).chain(rest).collect())
        }
        Answer::Reshaping(reshape) => ("reshaping", vec![&reshape.below, &reshape.above]),
        Answer::Undecided { alternatives, .. } => ("undecided", alternatives.iter().collect()),
    };
    let would_decide = match answer {
        Answer::Undecided { would_decide, .. } => would_decide.clone(),
        _ => Vec::new(),
    };
    let all: Vec<_> = all.into_iter().take(SHOWN).map(of).collect();
    println!(
        "{}",
        json!({ "output_version": OUTPUT_VERSION, "state": state, "hypotheses": all, "would_decide": would_decide })
    );
}
