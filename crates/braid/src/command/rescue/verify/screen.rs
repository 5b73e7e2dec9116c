//! The answer of `verify` for people: one screen.

use braid_rescue::{BadFile, Checked, Compared, Outcome, Sampled, Verdict, Verified};
use braid_shell::{shell_path, shown};

use super::super::answer::{By, Opened, Volume};
use super::super::examined::labels;
use super::super::open::{options, print_doubts};
use super::super::words;
use crate::cli::RescueVerify;

/// Bad files that are listed.
const BAD_FILES: usize = 5;

pub(super) fn print(
    opened: &Opened,
    volume: &Volume,
    verified: &Verified,
    arguments: &RescueVerify,
) {
    for index in &volume.arrays {
        let read = &opened.arrays[*index];
        let size = words::size(read.size);
        match &read.by {
            By::Superblocks { array, opening } => {
                let superblock = &array.claimants[opening.freshest].superblock;
                println!("Array {}, {size}", words::array(array, superblock));
            }
            By::Reshape { array, .. } => {
                println!("Array {}, in the middle of a reshape, {size}", shown(&array.label()));
            }
            By::Evidence { number, ranked } => {
                println!("Hypothesis {number}: {}, {size}", ranked.geometry);
            }
        }
    }
    if opened.volumes.len() > 1 {
        println!("Volume {}, {}", shown(&volume.name), words::size(volume.size));
    }
    match &verified.compared {
        Some(compared) => print_compared(compared),
        None => println!("Parity:  neither parity nor copies that can be compared."),
    }
    match &verified.checker {
        Some(checked) => print_checked(checked),
        None => println!("Checker: no file system is known at the start of the volume."),
    }
    if let Some(sampled) = &verified.samples {
        print_sampled(sampled);
    }
    if !volume.doubts.is_empty() {
        print_doubts(&volume.doubts);
    }
    println!("");
    println!("{}", verdict(verified));
    let case = shell_path(&arguments.case);
    let options = options(&arguments.meant);
    let copy = format!("braid rescue copy {case}{options} --to FILE.img");
    let suspect = verified.samples.as_ref().and_then(|sampled| sampled.suspect.as_ref());
    if let Some(suspect) = suspect {
        let labels = labels(&opened.case.members);
        let others = opened.case.members.iter().zip(&labels).filter(|(_, label)| *label != suspect);
        let others: Vec<String> = others.map(|(member, _)| shell_path(&member.path)).collect();
        println!("Next: the same without {}:", shown(suspect));
        println!("  braid rescue scan {case}-without {}", others.join(" "));
        return;
    }
    match verified.verdict {
        Verdict::Right | Verdict::Doubtful => println!("Next: {copy}"),
        Verdict::Wrong => println!("Next: braid rescue solve {case}"),
        Verdict::Unknown => {
            println!("Next: {copy}, then look at the files; or braid rescue solve {case}");
        }
    }
}

fn print_compared(compared: &Compared) {
    let Compared { agreeing, differing, unknown, cells } = compared;
    println!("Parity:  0% |{}| 100%", cells.iter().map(letter).collect::<String>());
    println!(
        "         = agrees   + differs in places   ! differs   . cannot be compared: a member is missing"
    );
    println!(
        "         {agreeing} samples agree, {differing} differ, {unknown} cannot be compared."
    );
}

/// A region as a letter.
fn letter(cell: &(u64, u64, u64)) -> char {
    match *cell {
        (0, 0, _) => '.',
        (_, 0, _) => '=',
        (agreeing, differing, _) if agreeing > differing => '+',
        _ => '!',
    }
}

fn print_checked(checked: &Checked) {
    let Checked { program, outcome, complaints, more, notes } = checked;
    let outcome = match outcome {
        Outcome::Clean => format!("{program} finds no errors."),
        Outcome::Errors => format!("{program} finds errors."),
        Outcome::Failed => format!("{program} cannot check it: this is no sound file system."),
        Outcome::Unfinished => format!(
            "{program} did not end in time, and complained of what is listed. --all waits for it."
        ),
        Outcome::Skipped => "the file system was not checked.".to_owned(),
    };
    println!("Checker: {outcome}");
    notes.iter().for_each(|note| println!("         Note: {}", shown(note)));
    complaints.iter().for_each(|line| println!("         | {}", shown(line)));
    if *more > 0 {
        println!("         | and {more} more lines");
    }
}

fn print_sampled(sampled: &Sampled) {
    let Sampled { how, good, bad, unchecked, interval, files, suspect, mended } = sampled;
    match interval {
        None if *unchecked == 0 => {
            println!("Samples: no files with checksums of their own were found, {how}.");
        }
        None => println!("Samples: 0 of {unchecked} files could be checked, {how}."),
        Some((least, most)) => println!(
            "Samples: {good} of {} files are good: with a confidence of 95 %, {:.1} to {:.1} % of such files.",
            good + bad,
            least * 100.0,
            most * 100.0
        ),
    }
    if interval.is_some() {
        let more = match unchecked {
            0 => String::new(),
            count => format!("; {count} could not be checked"),
        };
        println!("         Found {how}{more}.");
    }
    for BadFile { name, format, why, ranges, members } in files.iter().take(BAD_FILES) {
        let (name, why) = (shown(name), shown(why));
        let place = ranges.first().map(|(at, length)| format!(", bytes {at}+{length}"));
        let place = place.unwrap_or_default();
        let on = match members.as_slice() {
            [one] => format!(", on {}", shown(one)),
            _ => String::new(),
        };
        println!("         | {name}: {format}: {why}{place}{on}");
    }
    if *bad > BAD_FILES as u64 {
        println!("         | and {} more; --json lists {}", bad - BAD_FILES as u64, files.len());
    }
    match (suspect.as_ref().map(|member| shown(member)), mended) {
        (Some(member), Some((count, tried))) => println!(
            "         Computed without {member}, {count} of {tried} bad files are good: it is stale or damaged."
        ),
        (Some(member), None) => println!(
            "         All bad ranges lie on {member}: it is stale, damaged or in the wrong place."
        ),
        (None, _) => {}
    }
}

/// The verdict in a sentence.
fn verdict(verified: &Verified) -> &'static str {
    match verified.verdict {
        Verdict::Right => "Verdict: right. Nothing that was checked contradicts it.",
        Verdict::Doubtful => "Verdict: doubtful. Some of what was checked is bad.",
        Verdict::Wrong => {
            "Verdict: wrong. Most of what was checked is bad: an order, an offset or a member is not that of the data."
        }
        Verdict::Unknown => {
            "Verdict: unknown. No file could be checked, and parity agrees in any order of the members."
        }
    }
}
