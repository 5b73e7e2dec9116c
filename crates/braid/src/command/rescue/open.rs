//! `braid rescue open`: how the arrays are read, what is in doubt, and the expression that reads a volume.

use std::process::ExitCode;

use braid_rescue::Array;
use braid_rescue::assemble::{Claimant, Doubt, Half, Opening};
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::Failure;
use braid_shell::{shell_path, shell_word, shown};
use clap::Parser;
use serde_json::{Value, json};

use super::answer::{By, Opened, ReadArray, Volume, opened};
use super::{exit, words};
use crate::cli::{Cli, Command, Meant, RescueOpen, Up};
use crate::command::{serve, up};

pub(super) fn open(arguments: &RescueOpen) -> Result<ExitCode, Failure> {
    let opened = opened(&arguments.case, &arguments.meant)?;
    match arguments.json {
        true => print_json(&opened),
        false => print(&opened, arguments),
    }
    if arguments.attach.is_some() || !arguments.nbd.is_empty() {
        let stack = opened.volume(&arguments.case)?.stack.clone();
        let is_in_doubt = is_in_doubt(&opened);
        // The members are opened again.
        drop(opened);
        serve_read_only(arguments, &stack)?;
        return Ok(exit(is_in_doubt));
    }
    Ok(exit(is_in_doubt(&opened)))
}

/// True if something of the volume that is meant, or of any one, is in doubt.
fn is_in_doubt(opened: &Opened) -> bool {
    match opened.chosen() {
        Some(volume) => !volume.doubts.is_empty(),
        None => {
            let mut arrays = opened.arrays.iter();
            !opened.unread.is_empty() || arrays.any(|one| !one.doubts.is_empty())
        }
    }
}

/// Serves or attaches the stack.
fn serve_read_only(arguments: &RescueOpen, stack: &str) -> Result<(), Failure> {
    let name = match arguments.case.file_stem() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => "rescue".to_owned(),
    };
    let nbd = arguments.nbd.iter().flat_map(|address| ["--nbd".to_owned(), address.clone()]);
    let served = match arguments.attach {
        Some(_) => "up",
        None => "serve",
    };
    let words = ["braid", served, stack].map(str::to_owned).into_iter().chain(nbd);
    let words = words.chain(["--read-only".to_owned(), "--name".to_owned(), name]);
    let cli = Cli::try_parse_from(words).map_err(|error| Failure::failed(error.to_string()))?;
    match cli.command {
        Command::Up(up) => up::up(&Up { attach: arguments.attach, ..up }),
        Command::Serve(serve) => serve::serve(&serve),
        _ => Err(Failure::failed("the command that serves is `up` or `serve`")),
    }
}

fn print(opened: &Opened, arguments: &RescueOpen) {
    for array in &opened.arrays {
        print_array(array);
        println!("");
    }
    for why in &opened.unread {
        println!("Not read: {}", shown(why));
    }
    if !opened.unread.is_empty() {
        println!("");
    }
    let name = shell_path(&arguments.case);
    let option = options(&arguments.meant);
    if opened.volumes.len() > 1 {
        println!("Volumes");
        print_volumes(&opened.volumes);
        println!("");
    }
    let Some(volume) = opened.chosen() else {
        println!("Next: braid rescue open {name}{option} --volume NAME");
        return;
    };
    if opened.volumes.len() > 1 {
        println!("Volume {}, {}", shown(&volume.name), words::size(volume.size));
    }
    print_doubts(&volume.doubts);
    match volume.contains.is_empty() {
        false => println!("At its start: {}.", shown(&volume.contains)),
        true => println!(
            "Nothing that is known lies at its start. If a file system should, the array may have been created \
             anew: braid rescue solve."
        ),
    }
    println!("");
    println!("It is read, without writing to a member, by this stack:");
    println!("  {}", shown(&volume.stack));
    println!("");
    if volume.doubts.iter().any(Doubt::is_of_geometry) {
        println!("Next: braid rescue solve {name}");
        println!(
            "or, if that is the geometry of the data: braid rescue copy {name}{option} --to FILE.img"
        );
        return;
    }
    println!("Next: braid rescue copy {name}{option} --to FILE.img");
    println!(
        "or, as root, as a read-only block device: braid rescue open {name}{option} --attach auto"
    );
}

/// The options that name what is meant.
pub(super) fn options(meant: &Meant) -> String {
    let array = meant.array.as_ref().map(|text| format!(" --array {}", shell_word(text)));
    let hypothesis = meant.hypothesis.map(|number| format!(" --hypothesis {number}"));
    let volume = meant.volume.as_ref().map(|text| format!(" --volume {}", shell_word(text)));
    [array, hypothesis, volume].into_iter().flatten().collect()
}

fn print_array(array: &ReadArray) {
    let size = words::size(array.size);
    match &array.by {
        By::Superblocks { array, opening } => {
            let superblock = &array.claimants[opening.freshest].superblock;
            println!("Array {}, {size}", words::array(array, superblock));
            println!("  {}", words::identity(superblock));
            words::print_table(&words::table(&array.claimants, &opening.seats, &opening.left_out));
        }
        By::Reshape { array, halves } => {
            let at = words::size(halves.position);
            println!("Array {}, in the middle of a reshape, {size}", shown(&array.label()));
            let above = (&halves.above, "above", halves.position < halves.size);
            let below = (&halves.below, "below", halves.position > 0);
            for (half, where_is, _) in [below, above].into_iter().filter(|(_, _, is_any)| *is_any) {
                let Half { claimants, opening } = half;
                let superblock = &claimants[opening.freshest].superblock;
                println!("  {where_is} {at}: {}", words::array(array, superblock));
                words::print_table(&words::table(claimants, &opening.seats, &opening.left_out));
            }
        }
        By::Evidence { number, ranked } => {
            println!("Hypothesis {number}: {}, {size}", ranked.geometry);
        }
    }
}

/// A table of volumes.
fn print_volumes(volumes: &[Volume]) {
    let width = volumes.iter().map(|one| one.name.chars().count()).fold(6, usize::max);
    println!("  {:width$}  {:>10}  {:8}  contains", "volume", "size", "in doubt");
    for one in volumes.iter().filter(|one| !one.is_divided) {
        let (name, size) = (shown(&one.name), words::size(one.size));
        let doubt = if one.doubts.is_empty() { "no" } else { "yes" };
        let contains = match one.contains.as_str() {
            "" => "nothing that is known".into(),
            text => shown(text),
        };
        println!("  {name:width$}  {size:>10}  {doubt:8}  {contains}");
    }
}

/// Says what is in doubt, or that nothing is.
pub(super) fn print_doubts(doubts: &[Doubt]) {
    match doubts.is_empty() {
        true => println!("In doubt: nothing."),
        false => println!("In doubt:"),
    }
    doubts.iter().for_each(|doubt| println!("  * {}", words::doubt(doubt)));
}

fn print_json(opened: &Opened) {
    let chosen = opened.chosen();
    println!(
        "{}",
        json!({
            "output_version": OUTPUT_VERSION,
            "arrays": opened.arrays.iter().map(json_of_array).collect::<Vec<Value>>(),
            "not_read": opened.unread,
            "volumes": opened.volumes.iter().map(|one| json_of_volume(opened, one)).collect::<Vec<Value>>(),
            "volume": chosen.map(|one| &one.name),
            "doubts": chosen.map(|one| json_of_doubts(&one.doubts)),
            "stack": chosen.map(|one| &one.stack),
        })
    );
}

fn json_of_volume(opened: &Opened, volume: &Volume) -> Value {
    let arrays = volume.arrays.iter().map(|index| &opened.arrays[*index].name);
    json!({
        "name": volume.name,
        "arrays": arrays.collect::<Vec<_>>(),
        "size_bytes": volume.size,
        "contains": volume.contains,
        "is_divided": volume.is_divided,
        "doubts": json_of_doubts(&volume.doubts),
        "stack": volume.stack,
    })
}

fn json_of_doubts(doubts: &[Doubt]) -> Vec<Value> {
    let pair = |range: &std::ops::Range<u64>| json!([range.start, range.end - range.start]);
    let json = |doubt: &Doubt| {
        let ranges = doubt.ranges().map(|ranges| ranges.iter().map(pair).collect::<Vec<_>>());
        json!({ "text": words::doubt(doubt), "ranges": ranges })
    };
    doubts.iter().map(json).collect()
}

fn json_of_array(read: &ReadArray) -> Value {
    let mut value = match &read.by {
        By::Superblocks { array, opening } => json_by_superblocks(array, &array.claimants, opening),
        By::Reshape { array, halves } => {
            let half = |half: &Half| json_by_superblocks(array, &half.claimants, &half.opening);
            json!({
                "uuid": array.uuid.to_string(),
                "name": array.name,
                "reshape_position_bytes": halves.position,
                "below": half(&halves.below),
                "above": half(&halves.above),
            })
        }
        By::Evidence { number, ranked } => {
            json!({ "hypothesis": number, "geometry": ranked.geometry })
        }
    };
    value["size_bytes"] = json!(read.size);
    value["doubts"] = json!(json_of_doubts(&read.doubts));
    value["stack"] = json!(read.stack);
    value
}

fn json_by_superblocks(array: &Array, claimants: &[Claimant], opening: &Opening) -> Value {
    let superblock = &claimants[opening.freshest].superblock;
    let members: Vec<_> = opening
        .seats
        .iter()
        .enumerate()
        .map(|(role, seat)| {
            let seat = seat.as_ref();
            json!({
                "role": role,
                "path": seat.map(|seat| &claimants[seat.claimant].path),
                "label": seat.map(|seat| &claimants[seat.claimant].label),
                "standing": seat.map(words::standing),
            })
        })
        .collect();
    let left_out: Vec<_> = opening
        .left_out
        .iter()
        .map(|one| json!({ "label": claimants[one.claimant].label, "why": one.why.to_string() }))
        .collect();
    json!({
        "uuid": array.uuid.to_string(),
        "name": array.name,
        "level": superblock.level.to_string(),
        "members": members,
        "left_out": left_out,
    })
}
