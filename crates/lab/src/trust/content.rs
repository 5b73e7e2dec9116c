//! Data that compresses, on something that compresses: what is measured is then the compressor.

use super::Checked;
use super::case::TrialCase;
use crate::campaign::Source;
use crate::metric::Metric;

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
    let reads_only = case.trial.measured.get(Metric::BytesWritten).is_none_or(|bytes| bytes == 0.0);
    let Some(content) = content_of(case).filter(|_| !reads_only) else {
        return if reads_only { Checked::NotApplicable } else { Checked::Fine };
    };
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
            "constant data was written to {on}: almost nothing was stored"
        )),
        Content::Compressible(percent) => {
            Checked::suspect(format!("data of which {percent} % compress away was written to {on}"))
        }
    }
}

/// What is written, where it compresses.
enum Content {
    /// Zeros or a pattern.
    Constant,
    /// So many percent compress away.
    Compressible(u64),
}

fn content_of(case: &TrialCase<'_>) -> Option<Content> {
    let constant = ["if=/dev/zero", "--zero_buffers", "--buffer_pattern"];
    let is_zero = case.workload.settings.word("source") == "zero";
    if is_zero || constant.iter().any(|text| case.tool_was_told(text)) {
        return Some(Content::Constant);
    }
    match case.workload.settings.count("compressible")? {
        percent if percent >= 100 => Some(Content::Constant),
        percent if percent > COMPRESSIBLE_PERCENT => Some(Content::Compressible(percent)),
        _ => None,
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
    match &case.subject?.source {
        Source::Zram(_) => Some(Compressor::Zram),
        Source::Path(path) if path.contains("/zram") => Some(Compressor::Zram),
        _ => None,
    }
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
