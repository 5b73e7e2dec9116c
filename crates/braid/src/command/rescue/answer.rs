//! The answer of a case: how its arrays are read, and the volumes in them. All commands take it.
//!
//! ```text
//!   superblocks ──▶ open ───────────┐
//!   hypotheses ──▶ the decided one ─┴─▶ arrays: a stack each, and doubts ──▶ volumes: the same, of a part
//! ```
//!
//! Invariant: superblocks come first. A hypothesis is taken only if it is named, or if no array can be read by
//! superblocks and the hypothesis is decided.

use std::io::Read;
use std::path::{Path, PathBuf};

use braid_md::Reshape;
use braid_probe::ReadAt;
use braid_rescue::assemble::{
    self, Claimant, Doubt, Half, Halves, OpenError, Opening, Ranges, Seat, backup,
};
use braid_rescue::look::{self, Found, look};
use braid_rescue::{
    Array, Case, Content, Examined, QUICK, Source, arrays, content_of, gather, remade,
};
use braid_service::failure::Failure;
use braid_service::volume::IoMode;
use braid_shell::{shell_path, shell_word, shown};

use super::examined::{failure, of_case, write_map};
use super::hypotheses::{self, Ranked};
use crate::cli::Meant;
use crate::command::stacks::absolute_path;
use crate::command::{cat, stacks};

/// The arrays of a case that can be read, and their volumes.
pub(super) struct Opened {
    pub(super) case: Case,
    pub(super) members: Vec<Examined>,
    /// At least one.
    pub(super) arrays: Vec<ReadArray>,
    /// Arrays and volumes that cannot be read, and why, in sentences.
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

/// The source of an array's geometry.
pub(super) enum By {
    /// Superblocks.
    Superblocks { array: Array, opening: Opening },
    /// Superblocks of an array in the middle of a reshape.
    Reshape { array: Array, halves: Box<Halves> },
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
    /// True if its content is other volumes.
    pub(super) is_divided: bool,
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
            let names = self.volumes.iter().filter(|one| !one.is_divided);
            let names = names.map(|one| shown(&one.name).into_owned());
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
    let backup = meant.backup.as_deref();
    let (mut read, mut unread) = (Vec::new(), Vec::new());
    if let Some(number) = meant.hypothesis {
        read.push(by_evidence(&case, name, number)?);
    } else {
        for array in meant_arrays(name, &members, meant.array.as_deref())? {
            let read_one = match assemble::reshape_of(&array.claimants) {
                None => by_superblocks(&case, &members, name, array),
                Some(reshape) => by_halves(&case, &members, name, array, reshape, backup),
            };
            match read_one {
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
    let (volumes, not_read) = volumes(&mut read, &members)?;
    let chosen = match &meant.volume {
        None => {
            let mut whole = (0..volumes.len()).filter(|index| !volumes[*index].is_divided);
            let only = whole.next();
            only.filter(|_| whole.next().is_none())
        }
        Some(wanted) => {
            let found = volumes.iter().position(|one| one.name == *wanted);
            Some(found.ok_or_else(|| {
                Failure::usage(format!("the case has no volume {}", shown(wanted)))
                    .next(format!("braid rescue open {}", shell_path(name)))
            })?)
        }
    };
    let unread = unread.into_iter().map(|why| why.text()).chain(not_read).collect();
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
    let opening = assemble::open(&array.claimants, content_of(members, &array))
        .map_err(|error| unreadable(name, &array, &error))?;
    let stack = expression(case, members, name, &array.claimants, &opening, "")?;
    let doubts = opening.doubts.clone();
    let name = array.label();
    let size = opening.size;
    Ok(ReadArray { name, stack, doubts, by: By::Superblocks { array, opening }, size })
}

/// The array in the middle of a reshape, as its superblocks and its backup file have it.
fn by_halves(
    case: &Case,
    members: &[Examined],
    name: &Path,
    array: Array,
    reshape: Reshape,
    backup: Option<&Path>,
) -> Result<ReadArray, Failure> {
    let backup = backup.map(absolute_path).transpose()?;
    let saved = match &backup {
        Some(path) => saved(path, &array)?,
        None => Vec::new(),
    };
    let halves = assemble::halves(&array.claimants, reshape, &saved)
        .map_err(|error| unreadable(name, &array, &error))?;
    let text = |half: &Half, tag: &str| {
        expression(case, members, name, &half.claimants, &half.opening, tag)
    };
    let (below, above) = (text(&halves.below, "-below")?, text(&halves.above, "-above")?);
    let path = backup.unwrap_or_default();
    let stack = halves.expression(&below, &above, &path.to_string_lossy());
    Ok(ReadArray {
        name: array.label(),
        stack,
        size: halves.size,
        doubts: halves.doubts.clone(),
        by: By::Reshape { array, halves: Box::new(halves) },
    })
}

/// The sections of mdadm's backup file of an array.
fn saved(path: &Path, array: &Array) -> Result<Vec<backup::Section>, Failure> {
    let refused = |why: String| {
        Failure::usage(format!("the backup file {}: {why}", path.display())).next(
            "the file that `mdadm --grow --backup-file` named, or the command without --backup",
        )
    };
    let read = || {
        let file = std::fs::File::open(path)?;
        let size = file.metadata()?.len();
        let mut head = Vec::new();
        file.take(backup::HEAD as u64).read_to_end(&mut head)?;
        Ok((head, size))
    };
    let (head, size) = read().map_err(|error: std::io::Error| refused(error.to_string()))?;
    let version = array.claimants[0].superblock.version;
    backup::sections(&head, size, array.uuid, version).map_err(refused)
}

/// Why an array cannot be read.
fn unreadable(name: &Path, array: &Array, error: &OpenError) -> Failure {
    Failure::failed(format!("{}: {error}", shown(&array.label())))
        .next(format!("braid rescue solve {}", shell_path(name)))
}

/// The expression of an array. The maps of its members are written to the case.
fn expression(
    case: &Case,
    members: &[Examined],
    name: &Path,
    claimants: &[Claimant],
    opening: &Opening,
    tag: &str,
) -> Result<String, Failure> {
    let maps = write_maps(case, members, claimants, opening, tag);
    let maps = maps.map_err(|error| failure(name, &error))?;
    Ok(opening.expression(claimants, &|role, _| maps[role].clone()))
}

/// Gives arrays that are called alike the names of their UUIDs.
fn name_apart(read: &mut [ReadArray]) {
    let names: Vec<String> = read.iter().map(|one| one.name.clone()).collect();
    for one in read {
        if let By::Superblocks { array, .. } | By::Reshape { array, .. } = &one.by
            && names.iter().filter(|name| **name == one.name).count() > 1
        {
            one.name = array.uuid.to_string();
        }
    }
}

/// Looks for volumes in the arrays, which are opened for that.
fn volumes(
    read: &mut [ReadArray],
    members: &[Examined],
) -> Result<(Vec<Volume>, Vec<String>), Failure> {
    let executor = cat::executor(IoMode::Auto)?;
    let mut devices = Vec::new();
    for one in read.iter_mut() {
        let device = cat::open_on(&executor, &stacks::parse_for(&one.stack, true)?)?;
        one.size = device.size();
        devices.push(device);
    }
    let named = read.iter().zip(&devices);
    let named = named.map(|(one, device)| (one.name.clone(), device as &dyn ReadAt));
    let devices: Vec<(String, &dyn ReadAt)> = named.collect();
    let Found { volumes, unread } = look(&devices);
    doubt_superblocks(read, members, &volumes);
    let stacks: Vec<String> = read.iter().map(|one| one.stack.clone()).collect();
    let volume = |one: look::Volume| {
        let arrays = one.place.arrays();
        let doubts = arrays.iter().flat_map(|index| {
            let place = |ranges: &Ranges| one.place.on_array(*index, ranges);
            read[*index].doubts.iter().filter_map(move |doubt| doubt.within(place))
        });
        let contains: Vec<String> = one.contains.iter().map(ToString::to_string).collect();
        Volume {
            doubts: doubts.collect(),
            size: one.place.size(),
            contains: contains.join(", "),
            stack: one.place.expression(&stacks),
            is_divided: one.is_divided,
            name: one.name,
            arrays,
        }
    };
    let unread = unread.into_iter().map(|(name, why)| format!("{name}: {why}"));
    Ok((volumes.into_iter().map(volume).collect(), unread.collect()))
}

/// Doubts the superblocks of arrays that `mdadm --create` may have written over others: they look sound.
fn doubt_superblocks(read: &mut [ReadArray], members: &[Examined], volumes: &[look::Volume]) {
    let mut question = None;
    for (index, one) in read.iter_mut().enumerate() {
        let By::Superblocks { array, opening } = &one.by else { continue };
        let on_it = volumes.iter().filter(|volume| volume.place.arrays().contains(&index));
        let content = Content::of(on_it);
        let question = question.get_or_insert_with(|| {
            let sources: Vec<Source<'_>> = members.iter().map(Source::of).collect();
            gather(&sources, QUICK).question
        });
        one.doubts.extend(remade(members, array, opening, &content, question));
    }
}

/// Writes the maps of the members that have holes; returns their paths by role.
fn write_maps(
    case: &Case,
    members: &[Examined],
    claimants: &[Claimant],
    opening: &Opening,
    tag: &str,
) -> Result<Vec<Option<PathBuf>>, braid_rescue::CaseError> {
    let write = |(role, seat): (usize, &Option<Seat>)| {
        let Some(seat) = seat.as_ref().filter(|seat| !seat.holes.is_empty()) else {
            return Ok(None);
        };
        let one = &claimants[seat.claimant];
        let uuid = one.superblock.array_uuid.to_string().replace(':', "");
        let holes = Opening::holes_of(claimants, seat);
        write_map(case, &format!("{uuid}{tag}-{role}"), members[one.member].patient.size(), &holes)
    };
    opening.seats.iter().enumerate().map(write).collect()
}
