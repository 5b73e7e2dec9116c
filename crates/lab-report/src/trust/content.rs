//! Data that compresses, on something that compresses: what is measured is then the compressor.
//!
//! Each tool says what it writes ([`braid_lab::tool::Work::content`]), and also what it wrote before in
//! order to read it: zeros that were compressed are not read from anywhere either.

use super::Checked;
use super::case::TrialCase;
use braid_lab::campaign::Source;
use braid_lab::facts::{Member, members_of};
use braid_lab::tool::Content;

/// Percent of each block that may compress away without a word. Below it the device still gets
/// most of the bytes; a number is off by at most as much.
const COMPRESSIBLE_PERCENT: u64 = 10;

/// What compresses.
enum Compressor<'a> {
    /// The file system, by its mount options.
    FileSystem(&'a str),
    /// A compressed RAM disk.
    Zram,
}

/// Rule `compressible`.
pub(super) fn check_compressible(case: &TrialCase<'_>) -> Checked {
    let Some(work) = case.workload.work() else { return Checked::Unknown };
    let content = work.content;
    if matches!(content, Content::Random | Content::Compressible(..=COMPRESSIBLE_PERCENT)) {
        return Checked::Fine;
    }
    let compressor = match compressor_of(case) {
        Some(compressor) => compressor,
        None if !case.is_raw() && case.evidence.mount.is_none() => return Checked::Unknown,
        None => return Checked::Fine,
    };
    let on = match compressor {
        Compressor::FileSystem(mount) => format!("a file system that compresses ({mount})"),
        Compressor::Zram => "a compressed RAM disk (zram)".to_owned(),
    };
    match content {
        Content::Constant => Checked::invalid(format!(
            "{} wrote constant data to {on}: almost nothing was stored",
            case.workload.tool
        )),
        Content::Text(percent) => Checked::remark(format!(
            "text of which about {percent} % compress away was written to {on}: the rate is that \
             of such text"
        ))
        .but_do("compare it with other text only"),
        Content::Compressible(percent) => {
            Checked::suspect(format!("data of which {percent} % compress away was written to {on}"))
        }
        Content::Random => Checked::Fine,
    }
}

fn compressor_of<'a>(case: &'a TrialCase<'_>) -> Option<Compressor<'a>> {
    if let Some(mount) = case.evidence.mount.as_deref().filter(|mount| compresses(mount)) {
        return Some(Compressor::FileSystem(mount));
    }
    // Options that were asked for count where nobody could look at the mount itself.
    let asked = case.workload.setup.mount.as_str();
    if case.evidence.mount.is_none() && asked.split(',').any(is_compression) {
        return Some(Compressor::FileSystem(asked));
    }
    let source = &case.subject?.source;
    let is_zram = |member: Member| match member {
        Member::Path(path) => path.starts_with("/dev/zram"),
        _ => false,
    };
    let zram = matches!(source, Source::Zram(_)) || members_of(source).into_iter().any(is_zram);
    zram.then_some(Compressor::Zram)
}

/// Whether a mount such as `btrfs rw,compress=zstd:3` compresses what is written. ZFS does unless
/// told otherwise, and does not tell by its mount options.
fn compresses(mount: &str) -> bool {
    let (kind, options) = mount.split_once(' ').unwrap_or((mount, ""));
    kind == "zfs" || options.split(',').any(is_compression)
}

/// btrfs: `compress[-force][=ALGORITHM]`; f2fs compresses
/// only files of these kinds: `compress_extension=*`.
fn is_compression(option: &str) -> bool {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    matches!(name, "compress" | "compress-force" | "compress_extension")
        && !matches!(value, "no" | "none")
}
