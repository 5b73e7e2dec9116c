//! `braid rescue open`: the array that the members give, what is in doubt, and the expression that reads it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use braid_holes::{Map, State};
use braid_rescue::assemble::{self, Doubt, Opening, Seat};
use braid_rescue::{
    Array, Case, Examined, Given, Pattern, QUICK, Source, arrays, contradicted, gather,
};
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::{Context, Failure};
use braid_service::volume::IoMode;
use braid_shell::{shell_path, shell_word, shown};
use clap::Parser;
use serde_json::json;

use super::examined::{failure, of_case};
use super::{exit, hypotheses, words};
use crate::cli::{Cli, Command, RescueOpen};
use crate::command::{cat, files, serve, stacks, up};

/// An array that can be read.
pub(super) struct Opened {
    pub(super) case: Case,
    pub(super) members: Vec<Examined>,
    pub(super) array: Array,
    pub(super) opening: Opening,
    /// The expression that `braid cat` takes.
    pub(super) stack: String,
    /// True if the members are of other arrays, too.
    is_one_of_several: bool,
}

impl Opened {
    /// The doubts, in sentences.
    pub(super) fn doubts(&self) -> Vec<String> {
        self.opening.doubts.iter().map(words::doubt).collect()
    }

    /// The option by which the array is meant, where there are several.
    fn choice(&self) -> String {
        match self.is_one_of_several {
            true => format!(" --array {}", self.array.uuid),
            false => String::new(),
        }
    }
}

pub(super) fn open(arguments: &RescueOpen) -> Result<ExitCode, Failure> {
    if let Some(number) = arguments.hypothesis {
        return open_hypothesis(arguments, number);
    }
    let opened = opened(&arguments.case, arguments.array.as_deref())?;
    match arguments.json {
        true => print_json(&opened),
        false => print(&opened, &arguments.case),
    }
    serve_read_only(arguments, &opened.stack)?;
    Ok(exit(!opened.opening.doubts.is_empty()))
}

/// Opens the array that an answer of `solve` describes.
fn open_hypothesis(arguments: &RescueOpen, number: usize) -> Result<ExitCode, Failure> {
    let (_, ranked) = hypotheses::chosen(&arguments.case, number)?;
    if arguments.json {
        println!("{}", json!({ "output_version": OUTPUT_VERSION, "hypothesis": ranked }));
    } else {
        println!("Hypothesis {number}: {}", ranked.geometry);
        print_doubts(&ranked.doubts);
        println!("{}", shown(&start(&ranked.stack)));
        println!("");
        println!("It is read, without writing to a member, by this stack:");
        println!("  {}", shown(&ranked.stack));
        println!("");
        let name = shell_path(&arguments.case);
        println!("Next: braid rescue copy {name} --hypothesis {number} --to FILE.img");
    }
    serve_read_only(arguments, &ranked.stack)?;
    Ok(exit(!ranked.doubts.is_empty()))
}

/// Serves or attaches the stack, if that is asked for.
fn serve_read_only(arguments: &RescueOpen, stack: &str) -> Result<(), Failure> {
    let name = match arguments.case.file_stem() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => "rescue".to_owned(),
    };
    let nbd = arguments.nbd.iter().flat_map(|address| ["--nbd".to_owned(), address.clone()]);
    let served = match arguments.attach {
        Some(_) => {
            vec!["up".to_owned(), stack.to_owned(), "--attach".to_owned(), "auto".to_owned()]
        }
        None if arguments.nbd.is_empty() => return Ok(()),
        None => vec!["serve".to_owned(), stack.to_owned()],
    };
    let words = ["braid".to_owned()].into_iter().chain(served).chain(nbd);
    let words = words.chain(["--read-only".to_owned(), "--name".to_owned(), name]);
    let cli = Cli::try_parse_from(words).map_err(|error| Failure::failed(error.to_string()))?;
    match &cli.command {
        Command::Up(up) => up::up(up),
        Command::Serve(serve) => serve::serve(serve),
        _ => Err(Failure::failed("the command that serves is `up` or `serve`")),
    }
}

/// Opens the case, and decides how its array, or the one that is meant, is read.
pub(super) fn opened(name: &Path, meant: Option<&str>) -> Result<Opened, Failure> {
    let (case, members) = of_case(name)?;
    let arrays = arrays(&members);
    let is_one_of_several = arrays.len() > 1;
    let array = choose(name, arrays, meant)?;
    let mut opening = assemble::open(&array.claimants).map_err(|error| {
        Failure::failed(format!("{}: {error}", shown(&array.label())))
            .next(format!("braid rescue solve {}", shell_path(name)))
    })?;
    opening.doubts.extend(contradiction(&members, &array, &opening));
    let maps =
        write_maps(&case, &members, &array, &opening).map_err(|error| failure(name, &error))?;
    let stack = opening.expression(&array.claimants, &|role, _| maps[role].clone());
    Ok(Opened { case, members, array, opening, stack, is_one_of_several })
}

/// Compares the superblocks with blocks that say where they belong: those that `mdadm --create` wrote anew look sound.
fn contradiction(members: &[Examined], array: &Array, opening: &Opening) -> Option<Doubt> {
    let superblock = &array.claimants[opening.freshest].superblock;
    let seat = |seat: &Seat| {
        let one = &array.claimants[seat.claimant];
        (one.member, one.start + one.superblock.data_offset)
    };
    let pattern = Pattern {
        level: superblock.level,
        layout: superblock.layout,
        chunk: superblock.chunk,
        members: opening.seats.len(),
    };
    let used = opening.seats.iter().flatten();
    let used = used.map(|seat| array.claimants[seat.claimant].superblock.used()).min()?;
    let component = if superblock.level.is_redundant() { superblock.component_size } else { used };
    let seats = opening.seats.iter().map(|one| one.as_ref().map(seat)).collect();
    let sources: Vec<Source<'_>> = members.iter().map(Source::of).collect();
    let given = Given { pattern, seats, component };
    let roles = contradicted(&gather(&sources, QUICK).question, &given)?;
    (!roles.is_empty()).then_some(Doubt::Contradicted { roles })
}

/// The only array, or the one that is meant.
fn choose(name: &Path, mut arrays: Vec<Array>, meant: Option<&str>) -> Result<Array, Failure> {
    let case = shell_path(name);
    if let Some(meant) = meant {
        arrays.retain(|array| array.is_called(meant));
    }
    let labels = arrays.iter().map(|one| format!("{} ({})", one.label(), one.uuid));
    let labels = labels.collect::<Vec<_>>().join(", ");
    match (arrays.len(), meant) {
        (1, _) => Ok(arrays.remove(0)),
        (0, Some(meant)) => Err(Failure::usage(format!("the case has no array {}", shown(meant)))
            .next(format!("braid rescue scan {case}"))),
        (0, None) => Err(Failure::failed("no member has an md superblock that can be used")
            .next(format!("braid rescue solve {case}"))),
        _ => {
            let next = arrays.iter().map(|one| {
                let uuid = shell_word(&one.uuid.to_string());
                format!("braid rescue open {case} --array {uuid}")
            });
            let next = next.collect::<Vec<_>>().join("\n");
            let text = format!("the members are of several arrays: {}", shown(&labels));
            Err(Failure::usage(text).next(next))
        }
    }
}

/// Writes the maps of the members that have holes; returns their paths by role.
fn write_maps(
    case: &Case,
    members: &[Examined],
    array: &Array,
    opening: &Opening,
) -> Result<Vec<Option<PathBuf>>, braid_rescue::CaseError> {
    let write = |(role, seat): (usize, &Option<Seat>)| {
        let Some(seat) = seat.as_ref().filter(|seat| !seat.holes.is_empty()) else {
            return Ok(None);
        };
        let member = &members[array.claimants[seat.claimant].member];
        let mut map = Map::new(member.patient.size(), State::Finished);
        for hole in Opening::holes_of(&array.claimants, seat) {
            map.set(hole.start..hole.end.min(member.patient.size()), State::Bad);
        }
        let name = format!("maps/{}-{role}.map", array.uuid.to_string().replace(':', ""));
        let path = case.write(&name, &map.to_string())?;
        Ok(Some(std::path::absolute(&path).unwrap_or(path)))
    };
    opening.seats.iter().enumerate().map(write).collect()
}

fn print(opened: &Opened, name: &Path) {
    let Opened { array, opening, stack, .. } = opened;
    let superblock = &array.claimants[opening.freshest].superblock;
    println!("Array {}, {}", words::array(array, superblock), words::size(opening.size));
    println!("  {}", words::identity(superblock));
    words::print_table(&words::table(&array.claimants, &opening.seats, &opening.left_out));
    println!("");
    print_doubts(&opened.doubts());
    println!("{}", shown(&start(&opened.stack)));
    println!("");
    println!("It is read, without writing to a member, by this stack:");
    println!("  {}", shown(stack));
    println!("");
    let (name, array) = (shell_path(name), opened.choice());
    println!("Next: braid rescue copy {name}{array} --to FILE.img");
    println!(
        "or, as root, as a read-only block device: braid rescue open {name}{array} --attach auto"
    );
}

/// The content at the start of the array in words: superblocks that `mdadm --create` wrote anew look sound.
fn start(stack: &str) -> String {
    let open = || {
        let opened = cat::open_stack(&stacks::parse_for(stack, true)?, IoMode::Auto)?;
        files::signatures(opened).context("cannot read the start of the array")
    };
    match open() {
        Err(failure) => failure.text(),
        Ok(found) if found.is_empty() => {
            "Nothing that is known lies at its start. If a file system should, the array \
             may have been created anew: braid rescue solve."
                .to_owned()
        }
        Ok(found) => {
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            format!("At its start: {}.", found.join(", "))
        }
    }
}

/// Says what is in doubt, or that nothing is.
pub(super) fn print_doubts(doubts: &[String]) {
    match doubts.is_empty() {
        true => println!("In doubt: nothing."),
        false => println!("In doubt:"),
    }
    doubts.iter().for_each(|doubt| println!("  * {}", shown(doubt)));
}

fn print_json(opened: &Opened) {
    let Opened { array, opening, stack, .. } = opened;
    let superblock = &array.claimants[opening.freshest].superblock;
    let members: Vec<_> = opening
        .seats
        .iter()
        .enumerate()
        .map(|(role, seat)| {
            let seat = seat.as_ref();
            json!({
                "role": role,
                "path": seat.map(|seat| &array.claimants[seat.claimant].path),
                "label": seat.map(|seat| &array.claimants[seat.claimant].label),
                "standing": seat.map(words::standing),
            })
        })
        .collect();
    let left_out: Vec<_> = opening.left_out.iter().map(|one| {
        json!({ "label": array.claimants[one.claimant].label, "why": one.why.to_string() })
    }).collect();
    let doubts: Vec<_> = opening
        .doubts
        .iter()
        .map(|doubt| {
            let ranges = doubt.ranges().map(|ranges| {
                ranges
                    .iter()
                    .map(|range| json!([range.start, range.end - range.start]))
                    .collect::<Vec<_>>()
            });
            json!({ "text": words::doubt(doubt), "ranges": ranges })
        })
        .collect();
    println!(
        "{}",
        json!({
            "output_version": OUTPUT_VERSION,
            "uuid": array.uuid.to_string(),
            "name": array.name,
            "level": superblock.level.to_string(),
            "size_bytes": opening.size,
            "members": members,
            "left_out": left_out,
            "doubts": doubts,
            "stack": stack,
        })
    );
}
