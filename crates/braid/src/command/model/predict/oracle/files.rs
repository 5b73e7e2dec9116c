//! Programs of the laboratory that work on files, as loads of the models.

use braid_lab::campaign::Setup;
use braid_lab::settings::Settings;
use braid_predict::{Bonnie, Files, Program, Run, Trees};

use super::{Amount, Load};

/// A program of the laboratory that works on files of a file system that was made for it.
pub(super) fn files(tool: &str, settings: &Settings, setup: &Setup) -> Result<Load, String> {
    if !setup.filesystem.is_made() || !setup.mount.is_empty() {
        return Err(format!("{tool} in a folder, or on a file system with mount options"));
    }
    if tool == "cp-read" && !setup.drop_caches {
        return Err("cp-read of what the page cache has".to_owned());
    }
    let bytes = settings.size("size").unwrap_or(1 << 30);
    // As the laboratory makes its trees: files of 10.9 KiB in the mean, a dozen to a folder.
    let trees = Trees { bytes, file: 11_162, folder: 12 * 11_162, cold: setup.drop_caches };
    let program = match tool {
        "cp-read" => Program::Read(bytes),
        "cp-cached" => Program::CopyCached(bytes),
        "cp-tree" => Program::CopyTree(trees),
        "untar" => Program::Unpack(trees),
        "dd" => Program::Write(bytes),
        // The part that version 2 does by character is small, and is left out.
        _ => Program::Bonnie(Bonnie {
            size: bytes,
            by_character: 0,
            chunk: settings.size("chunk").unwrap_or(8 << 10),
        }),
    };
    let synced = match tool {
        "cp-read" => false,
        "dd" => settings.word("sync") != "none",
        "bonnie" => true,
        _ => settings.flag("sync"),
    };
    let processes = u64::from(setup.processes);
    let run = Run::Files(Files { program, processes, synced });
    Ok(Load { run, amount: Amount::Files(processes * bytes) })
}
