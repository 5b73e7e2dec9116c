//! The members of a case, opened and looked at.

use std::path::{Path, PathBuf};

use braid_holes::{Map, State};
use braid_rescue::assemble::Ranges;
use braid_rescue::scan::{Findings, FoundSuperblock, How, at_place, scan};
use braid_rescue::{Case, CaseError, CaseMember, Examined, Fingerprint, Patient};
use braid_service::failure::Failure;
use braid_shell::shell_path;

/// The unit in which maps are used.
const SECTOR: u64 = 512;

/// Opens the members of a case, checks that they are what was scanned, and looks at their superblocks.
pub(super) fn of_case(name: &Path) -> Result<(Case, Vec<Examined>), Failure> {
    let case = Case::read(&Case::folder_of(name)).map_err(|error| failure(name, &error))?;
    let patients = case.open().map_err(|error| failure(name, &error))?;
    let labels = labels(&case.members);
    let members = case.members.iter().zip(patients).zip(labels);
    let examined = members.map(|((member, patient), label)| {
        let mut findings = scan(&patient, false);
        let displaced = member.places.iter().filter(|place| place.how == How::Displaced);
        for place in displaced {
            let found = at_place(&patient, *place, &mut findings.unreadable);
            findings.superblocks.extend(found.into_iter().filter(FoundSuperblock::is_valid));
        }
        examined(member, patient, findings, label)
    });
    let examined = examined.collect::<Result<Vec<_>, _>>()?;
    Ok((case, examined))
}

/// A member with what was found on it, and the holes of its map.
pub(super) fn examined(
    member: &CaseMember,
    patient: Patient,
    findings: Findings,
    label: String,
) -> Result<Examined, Failure> {
    let holes = match &member.map {
        Some(map) => read_map(Path::new(map), &member.path, patient.size())?.holes(),
        None => Vec::new(),
    };
    let content = content(&member.fingerprint);
    let path = member.path.clone();
    Ok(Examined { patient, findings, label, path, holes, content })
}

/// Reads GNU ddrescue's map of a member of `size` bytes.
pub(super) fn read_map(map: &Path, member: &str, size: u64) -> Result<Map, Failure> {
    let shown = map.display();
    let next = "`--map PATH=FILE` with the map that ddrescue wrote for this image";
    let length = std::fs::metadata(map).map_or(0, |metadata| metadata.len());
    if length > braid_holes::MAX_TEXT as u64 {
        return Err(Failure::usage(format!("{shown} is too long for a map")).next(next));
    }
    let text = std::fs::read(map).map_err(|error| {
        Failure::usage(format!("cannot read the map {shown}: {error}")).next(next)
    })?;
    let map = Map::parse(&text).map_err(|error| {
        Failure::usage(format!("{shown} is no map of ddrescue: {error}")).next(next)
    })?;
    map.fitted(size, SECTOR).map_err(|error| {
        Failure::refused(format!("{shown} is the map of another disk than {member}: {error}"))
            .next(next)
    })
}

/// Writes the map of a member of `size` bytes, of which some must not be read, to the case: `holes`, in order. Returns its
/// path; `None` without holes.
pub(super) fn write_map(
    case: &Case,
    name: &str,
    size: u64,
    holes: &Ranges,
) -> Result<Option<PathBuf>, CaseError> {
    if holes.is_empty() {
        return Ok(None);
    }
    // A copy that ended too early is shorter than its map.
    let size = holes.last().map_or(size, |hole| size.max(hole.end));
    let mut map = Map::new(size, State::Finished);
    holes.iter().for_each(|hole| map.set(hole.clone(), State::Bad));
    let path = case.write(&format!("maps/{name}.map"), &map.to_string())?;
    Ok(Some(std::path::absolute(&path).unwrap_or(path)))
}

/// Equal for members with equal content at both ends, whatever the serial numbers of their disks.
fn content(fingerprint: &Fingerprint) -> String {
    let Fingerprint { size, head_sha1, tail_sha1, .. } = fingerprint;
    format!("{size} {head_sha1} {tail_sha1}")
}

/// The names of members in tables: without the folder if that tells them apart.
pub(super) fn labels(members: &[CaseMember]) -> Vec<String> {
    let name = |member: &CaseMember| {
        let name = Path::new(&member.path).file_name();
        name.map_or(member.path.clone(), |name| name.to_string_lossy().into_owned())
    };
    let mut names: Vec<String> = members.iter().map(name).collect();
    names.sort();
    names.dedup();
    match names.len() == members.len() {
        true => members.iter().map(name).collect(),
        false => members.iter().map(|member| member.path.clone()).collect(),
    }
}

/// Why a case cannot be used, and what to do.
pub(super) fn failure(name: &Path, error: &CaseError) -> Failure {
    let name = shell_path(name);
    match error {
        CaseError::None(_) => {
            Failure::failed(error).next(format!("braid rescue scan {name} PATH.."))
        }
        CaseError::Text { .. } => Failure::failed(error).next(format!(
            "a new case: `braid rescue scan {name}-new PATH..`; or a newer braid, if that made this one"
        )),
        CaseError::Unwritable { .. } => Failure::failed(error).next(
            "make room; or a case in another folder, where it can be written: `braid rescue scan FOLDER/CASE PATH..`",
        ),
        CaseError::Member(_) => {
            Failure::failed(error).next("attach the disk, or put the image back, then this again")
        }
        CaseError::Changed { .. } => Failure::refused(error).next(format!(
            "find out what wrote to it. If it is the right one: `braid rescue scan {name}-new PATH..`"
        )),
    }
}
