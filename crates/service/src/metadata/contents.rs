//! Contents of a member without a superblock of md (partitions, another kind of RAID, anything else) and the next
//! command for it. Reading only.

use std::io;
use std::path::{Path, PathBuf};

use braid_probe::{Partition, Signature, look_at, partitions};
use braid_shell::{shell_path, shown};
use braid_stack::File;

use super::{Copies, Image};
use crate::failure::Failure;

/// Formats that mdadm calls external: the kernel's md serves them with the help of mdmon.
const EXTERNAL: [&str; 2] = ["Intel Matrix RAID", "DDF RAID"];

/// Contents of a member, and the next command.
#[derive(Debug)]
pub struct Contents {
    /// `; it contains …`, or nothing.
    pub what: String,
    /// The next command.
    pub next: String,
}

impl Contents {
    /// Looks at the member at `path`. One that cannot be read has nothing that is known.
    pub fn of(path: &Path) -> Contents {
        let signatures = look_at(path).map(|facts| facts.signatures).unwrap_or_default();
        let is_external = |one: &Signature| EXTERNAL.contains(&one.name);
        let (what, next) = if signatures.iter().any(is_external) {
            let named: Vec<&str> =
                signatures.iter().filter(|one| is_external(one)).map(|one| one.name).collect();
            let what = format!(
                "; it is a member of an array of {}, which braid does not start",
                named.join(" and ")
            );
            (what, "with the kernel's md: mdadm --assemble --scan".to_owned())
        } else if let Some(first) = parts_with_superblocks(path).first() {
            let what = format!("; its partition {} carries one", first.0);
            (what, format!("`braid examine {}`", shell_path(&first.1)))
        } else {
            let all: Vec<String> = signatures.iter().map(ToString::to_string).collect();
            let what = match all.is_empty() {
                true => "; nothing that is known is on it".to_owned(),
                false => format!("; it contains {}", all.join(" and ")),
            };
            let next = Copies::own().latest_of(path).map(|kept| kept.next());
            (what, next.unwrap_or_else(|| "name the members of an array".to_owned()))
        };
        Contents { what, next }
    }
}

/// Refuses a remote member on which `signatures` were found.
///
/// # Errors
/// The contents, or the reason why it cannot be read.
pub(crate) fn refuse_contents(
    path: &Path,
    signatures: io::Result<Vec<Signature>>,
) -> Result<(), Failure> {
    let path = shown(&path.display().to_string()).into_owned();
    let cannot = |error| Failure::failed(format!("cannot read {path}: {error}"));
    let found = signatures.map_err(cannot)?;
    if found.is_empty() {
        return Ok(());
    }
    let all: Vec<String> = found.iter().map(Signature::to_string).collect();
    let what = format!("{path} is refused: it contains {}", all.join(" and "));
    Err(Failure::refused(what).next("to overwrite it: the same with --force"))
}

fn parts_with_superblocks(path: &Path) -> Vec<(u32, PathBuf)> {
    let has_one = |(_, name): &(u32, PathBuf)| {
        Image::open(name).is_ok_and(|image| image.found.iter().any(|one| one.result.is_ok()))
    };
    parts(path).into_iter().filter(has_one).collect()
}

/// The partitions of an image or disk, by their numbers, as members are called.
pub fn parts(image: &Path) -> Vec<(u32, PathBuf)> {
    if !File::called(&image.to_string_lossy()).is_whole() {
        return Vec::new();
    }
    // A table that cannot be read, or is damaged, names no partitions.
    let table = partitions(image).ok().flatten().and_then(Result::ok).unwrap_or_default();
    table.iter().map(|one: &Partition| (one.number, part(image, one.number))).collect()
}

/// The name of an image's partition, as a stack has it.
pub fn part(image: &Path, number: u32) -> PathBuf {
    let path = image.to_string_lossy().into_owned();
    File { partition: Some(number), ..File::whole_at(path) }.name()
}
