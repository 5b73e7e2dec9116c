//! The answer of a case: how its arrays are read, and the volumes in them. All commands take it.
//!
//! ```text
//!   superblocks ──▶ open ───────────┐
//!   hypotheses ──▶ the decided one ─┴─▶ arrays: a stack each, and doubts ──▶ volumes: the same, of a part
//! ```
//!
//! Invariant: superblocks come first. A hypothesis is taken only if it is named, or if no array can be read by
//! superblocks and the hypothesis is decided.

use std::path::{Path, PathBuf};

use braid_holes::{Map, State};
use braid_probe::{ReadAt, scan_signatures};
use braid_rescue::assemble::{self, Doubt, Opening, Seat};
use braid_rescue::{
    Array, Case, Examined, Given, Pattern, QUICK, Source, arrays, contradicted, gather,
};
use braid_service::failure::Failure;
use braid_service::volume::IoMode;
use braid_shell::{shell_path, shell_word, shown};

use super::examined::{failure, of_case};
use super::hypotheses::{self, Ranked};
use crate::cli::Meant;
use crate::command::{cat, stacks};

/// The arrays of a case that can be read, and their volumes.
pub(super) struct Opened {
    pub(super) case: Case,
    pub(super) members: Vec<Examined>,
    /// At least one.
    pub(super) arrays: Vec<ReadArray>,
    /// Arrays that cannot be read, and why, in sentences.
    pub(super) unread: Vec<String>,
    /// At least one.
    pub(super) volumes: Vec<Volume>,
    /// The volume that is meant, or the only one.
    chosen: Option<usize>,
}

/// An array that can be read.
pub(super) struct ReadArray {
    /// Its name among the volumes: unique.
    pub(super) name: String,
    pub(super) by: By,
    /// The expression that `braid cat` takes.
    pub(super) stack: String,
    pub(super) doubts: Vec<Doubt>,
    /// Size in bytes.
    pub(super) size: u64,
}

/// What says how an array is read.
pub(super) enum By {
    /// Superblocks.
    Superblocks { array: Array, opening: Opening },
    /// The hypothesis with this number.
    Evidence { number: usize, ranked: Ranked },
}

/// An array, or a volume in one or more of them.
pub(super) struct Volume {
    /// Its name: unique.
    pub(super) name: String,
    /// Size in bytes.
    pub(super) size: u64,
    /// Its content, in words.
    pub(super) contains: String,
    /// The expression that `braid cat` takes.
    pub(super) stack: String,
    /// The doubts about its bytes. Ranges are bytes of the volume.
    pub(super) doubts: Vec<Doubt>,
    /// Indices of the arrays on which it lies.
    pub(super) arrays: Vec<usize>,
}

impl Opened {
    /// The volume that is meant, or the only one.
    pub(super) fn chosen(&self) -> Option<&Volume> {
        self.chosen.map(|index| &self.volumes[index])
    }

    /// The volume that is meant, or the only one.
    ///
    /// # Errors
    /// There are several, and none is meant.
    pub(super) fn volume(&self, name: &Path) -> Result<&Volume, Failure> {
        self.chosen().ok_or_else(|| {
            let names = self.volumes.iter().map(|one| shown(&one.name).into_owned());
            let names = names.collect::<Vec<_>>().join(", ");
            let text = format!("the case has several volumes: {names}");
            Failure::usage(text).next(format!(
                "braid rescue open {}, which lists them, then --volume NAME",
                shell_path(name)
            ))
        })
    }
}

/// Opens the case, decides how its arrays are read, and looks for volumes in them.
pub(super) fn opened(name: &Path, meant: &Meant) -> Result<Opened, Failure> {
    let (case, members) = of_case(name)?;
    let (mut read, mut unread) = (Vec::new(), Vec::new());
    if let Some(number) = meant.hypothesis {
        read.push(by_evidence(&case, name, number)?);
    } else {
        for array in meant_arrays(name, &members, meant.array.as_deref())? {
            match by_superblocks(&case, &members, name, array) {
                Ok(one) => read.push(one),
                Err(why) => unread.push(why),
            }
        }
        if read.is_empty() {
            match meant.array.is_none() && hypotheses::read(&case, name)?.is_decided {
                true => read.push(by_evidence(&case, name, 1)?),
                false => return Err(nothing(name, unread)),
            }
        }
    }
    name_apart(&mut read);
    let volumes = volumes(&mut read)?;
    let chosen = match &meant.volume {
        None => (volumes.len() == 1).then_some(0),
        Some(wanted) => {
            let found = volumes.iter().position(|one| one.name == *wanted);
            Some(found.ok_or_else(|| {
                Failure::usage(format!("the case has no volume {}", shown(wanted)))
                    .next(format!("braid rescue open {}", shell_path(name)))
            })?)
        }
    };
    let unread = unread.into_iter().map(|why| why.text()).collect();
    Ok(Opened { case, members, arrays: read, unread, volumes, chosen })
}

/// Why no array of the case can be read.
fn nothing(name: &Path, mut unread: Vec<Failure>) -> Failure {
    let solve = format!("braid rescue solve {}", shell_path(name));
    match unread.len() {
        0 => Failure::failed("no member has an md superblock that can be used").next(solve),
        1 => unread.remove(0),
        _ => {
            let texts: Vec<String> = unread.iter().map(Failure::text).collect();
            Failure::failed(texts.join("; ")).next(solve)
        }
    }
}

/// The arrays of which superblocks were found, or the one that is meant.
fn meant_arrays(
    name: &Path,
    members: &[Examined],
    meant: Option<&str>,
) -> Result<Vec<Array>, Failure> {
    let mut arrays = arrays(members);
    let Some(meant) = meant else { return Ok(arrays) };
    arrays.retain(|array| array.is_called(meant));
    let case = shell_path(name);
    match arrays.len() {
        1 => Ok(arrays),
        0 => Err(Failure::usage(format!("the case has no array {}", shown(meant)))
            .next(format!("braid rescue scan {case}"))),
        _ => {
            let next = arrays.iter().map(|one| {
                format!("braid rescue open {case} --array {}", shell_word(&one.uuid.to_string()))
            });
            let text = format!("several arrays are called {}", shown(meant));
            Err(Failure::usage(text).next(next.collect::<Vec<_>>().join("\n")))
        }
    }
}

/// The array that an answer of `solve` describes.
fn by_evidence(case: &Case, name: &Path, number: usize) -> Result<ReadArray, Failure> {
    let ranked = hypotheses::chosen(case, name, number)?;
    Ok(ReadArray {
        name: format!("hypothesis-{number}"),
        stack: ranked.stack.clone(),
        doubts: ranked.doubts(),
        by: By::Evidence { number, ranked },
        size: 0,
    })
}

/// The array as its superblocks have it.
fn by_superblocks(
    case: &Case,
    members: &[Examined],
    name: &Path,
    array: Array,
) -> Result<ReadArray, Failure> {
    let opening = assemble::open(&array.claimants).map_err(|error| {
        Failure::failed(format!("{}: {error}", shown(&array.label())))
            .next(format!("braid rescue solve {}", shell_path(name)))
    })?;
    let maps =
        write_maps(case, members, &array, &opening).map_err(|error| failure(name, &error))?;
    let stack = opening.expression(&array.claimants, &|role, _| maps[role].clone());
    let mut doubts = opening.doubts.clone();
    doubts.extend(contradiction(members, &array, &opening));
    let name = array.label();
    let size = opening.size;
    Ok(ReadArray { name, stack, doubts, by: By::Superblocks { array, opening }, size })
}

/// Gives arrays that are called alike the names of their UUIDs.
fn name_apart(read: &mut [ReadArray]) {
    let names: Vec<String> = read.iter().map(|one| one.name.clone()).collect();
    for one in read {
        if let By::Superblocks { array, .. } = &one.by
            && names.iter().filter(|name| **name == one.name).count() > 1
        {
            one.name = array.uuid.to_string();
        }
    }
}

/// The volumes in the arrays, which are opened for that.
fn volumes(read: &mut [ReadArray]) -> Result<Vec<Volume>, Failure> {
    let executor = cat::executor(IoMode::Auto)?;
    let volume = |(index, one): (usize, &mut ReadArray)| {
        let device = cat::open_on(&executor, &stacks::parse_for(&one.stack, true)?)?;
        one.size = device.size();
        Ok(Volume {
            name: one.name.clone(),
            size: one.size,
            contains: contains(&device),
            stack: one.stack.clone(),
            doubts: one.doubts.clone(),
            arrays: vec![index],
        })
    };
    read.iter_mut().enumerate().map(volume).collect()
}

/// The content at the start of a device in words; empty if nothing is known there.
fn contains(device: &dyn ReadAt) -> String {
    match scan_signatures(device) {
        Err(error) => format!("its start cannot be read: {error}"),
        Ok(found) => {
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            found.join(", ")
        }
    }
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
