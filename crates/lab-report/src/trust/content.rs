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

/// Rule `compressible`.
pub(super) fn check_compressible(case: &TrialCase<'_>) -> Checked {
    let Some(work) = case.workload.work() else { return Checked::Unknown };
    let content = work.content;
    // Text is what such a file system is for.
    if matches!(
        content,
        Content::Random | Content::Text(_) | Content::Compressible(..=COMPRESSIBLE_PERCENT)
    ) {
        return Checked::Fine;
    }
    let on = match compressor_of(case) {
        Some(compressor) => compressor,
        None if !case.is_raw() && case.evidence.mount.is_none() => return Checked::Unknown,
        None => return Checked::Fine,
    };
    match content {
        Content::Constant => Checked::invalid(format!(
            "{} wrote constant data to {on}: almost nothing was stored",
            case.workload.tool
        )),
        Content::Compressible(percent) => {
            Checked::suspect(format!("data of which {percent} % compress away was written to {on}"))
        }
        _ => Checked::Unknown,
    }
}

/// The compressor below a trial, in words: the file system by its mount options, or zram.
fn compressor_of(case: &TrialCase<'_>) -> Option<String> {
    // If the mount itself could not be read, the requested options count.
    let (mount, does) = match case.evidence.mount.as_deref() {
        Some(mount) => (mount, compresses(mount)),
        None => {
            let asked = case.workload.setup.mount.as_str();
            (asked, asked.split(',').any(is_compression))
        }
    };
    if does {
        return Some(format!("a file system that compresses ({mount})"));
    }
    let source = &case.subject?.source;
    let is_zram =
        |member: Member| matches!(member, Member::Path(path) if path.starts_with("/dev/zram"));
    let zram = matches!(source, Source::Zram(_)) || members_of(source).into_iter().any(is_zram);
    zram.then(|| "a compressed RAM disk (zram)".to_owned())
}

/// True if a mount such as `btrfs rw,compress=zstd:3` compresses written data. ZFS does by default, and its
/// mount options do not show it.
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
