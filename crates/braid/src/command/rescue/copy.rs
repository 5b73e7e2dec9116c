//! `braid rescue copy`: the content of an array, into an image, with a map of what could not be read.
//!
//! Invariants
//! * Neither a member nor a device is written.
//! * The map calls a range read only after its bytes are durable in the image, so that an interrupted copy is
//!   continued without a gap.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use braid_block::Io;
use braid_holes::{Map, State};
use braid_probe::identify;
use braid_rescue::Case;
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::{Context, Failure};
use braid_shell::{shell_path, shown};
use serde_json::json;

use super::answer::{Opened, Volume, opened};
use super::copy_files::{self, Copied};
use super::files::known;
use super::open::print_doubts;
use super::pace::{SAVED, STEP, progress};
use super::{exit, words};
use crate::cli::RescueCopy;
use crate::command::listing::Counts;
use crate::command::{cat, stacks};

pub(super) fn copy(arguments: &RescueCopy) -> Result<ExitCode, Failure> {
    let opened = opened(&arguments.case, &arguments.meant)?;
    if arguments.to.is_dir() || arguments.to.as_os_str().as_bytes().ends_with(b"/") {
        return copy_files(arguments, &opened);
    }
    check_target(arguments, &opened.case)?;
    let Volume { name, stack, doubts, .. } = opened.volume(&arguments.case)?;
    let volume = cat::open_stack(&stacks::parse_for(stack, true)?, arguments.io)?;
    let size = volume.built.dev.limits().size;
    let target = Target::open(&arguments.to, &format!("{name} {size} {stack}"), size)?;
    let map = target.fill(&volume)?;
    let left = size - map.finished_bytes();
    if arguments.json {
        let map = &target.map_path;
        let line = json!({ "output_version": OUTPUT_VERSION, "bytes": size, "lost_bytes": left, "map": map });
        println!("{line}");
        return Ok(exit(left > 0 || !doubts.is_empty()));
    }
    print_doubts(doubts);
    let (to, at) = (shell_path(&arguments.to), shell_path(&target.map_path));
    match left {
        0 => println!("Copied all {} to {to}.", words::size(size)),
        _ => println!("Copied to {to} all but {}; {at} has the places.", words::size(left)),
    }
    println!("Next: fsck -n {to}, then mount a copy of it, or it read-only");
    Ok(exit(left > 0 || !doubts.is_empty()))
}

/// Copies the files instead of the bytes.
fn copy_files(arguments: &RescueCopy, opened: &Opened) -> Result<ExitCode, Failure> {
    let Volume { name, stack, doubts, .. } = opened.volume(&arguments.case)?;
    let volume = cat::open_stack(&stacks::parse_for(stack, true)?, arguments.io)?;
    let known = known(doubts);
    let size = volume.built.dev.limits().size;
    let case = shell_path(&arguments.case);
    let files = braid_files::Volume::open(&volume).map_err(|error| {
        Failure::failed(error).next(format!(
            "braid rescue copy {case} --to FILE.img\nor, as root, for another file system: braid rescue open {case} \
             --attach auto, mount it with -o ro, and copy the files from there"
        ))
    })?;
    let copied = format!("{name} {size} {stack}");
    let copied = copy_files::copy(&files, &copied, &known, &arguments.to)?;
    let Copied { counts, report, left_out, notes } = copied;
    let Counts { files, bytes, lost, doubtful, .. } = counts;
    let is_in_doubt = !counts.is_good() || !doubts.is_empty();
    if arguments.json {
        let line = json!({
            "output_version": OUTPUT_VERSION, "files": files, "bytes": bytes, "lost": lost, "doubtful": doubtful,
            "left_out": left_out, "report": report, "notes": notes,
        });
        println!("{line}");
        return Ok(exit(is_in_doubt));
    }
    print_doubts(doubts);
    notes.iter().for_each(|note| println!("Note: {}.", shown(note)));
    let (to, size) = (shell_path(&arguments.to), words::size(bytes));
    println!("Copied {files} files, {size}, to {to}: {}.", counts.words());
    if left_out > 0 {
        println!("Devices, pipes and sockets are not made: {left_out}.");
    }
    if lost + doubtful + left_out > 0 {
        println!("{} names them.", shell_path(&report));
    }
    Ok(exit(is_in_doubt))
}

/// Refuses everything but a new image, or one whose copy was interrupted.
fn check_target(arguments: &RescueCopy, case: &Case) -> Result<(), Failure> {
    let to = &arguments.to;
    let (shown_to, name) = (to.display(), shell_path(&arguments.case));
    let next = format!("braid rescue copy {name} --to FILE.img");
    let Ok((kind, identity)) = identify(to) else { return Ok(()) };
    let is_it = |path: &str| identify(Path::new(path)).is_ok_and(|(_, other)| other == identity);
    if let Some(member) = case.members.iter().find(|member| is_it(&member.path)) {
        let text =
            format!("{shown_to} is a member, {}: a member is never written", shown(&member.path));
        return Err(Failure::refused(text).next(next));
    }
    match kind {
        braid_probe::FileKind::Regular => Ok(()),
        kind => {
            Err(Failure::refused(format!("{shown_to} is a {kind}, and only a file is written"))
                .next(next))
        }
    }
}

/// The image and its map.
struct Target {
    file: File,
    path: PathBuf,
    map_path: PathBuf,
    /// The first line of the map: what it is a copy of.
    head: String,
    map: Map,
    /// True if the image may hold something already.
    is_old: bool,
}

impl Target {
    fn open(path: &Path, copied: &str, size: u64) -> Result<Target, Failure> {
        let map_path = path.with_added_extension("map");
        let head = format!("# braid rescue: {copied}");
        let head = head.replace('\n', " ");
        let is_old = path.exists();
        let map = match is_old {
            false => Map::new(size, State::NonTried),
            true => {
                let there = format!("{} is there already", path.display());
                let next = "name another file with --to";
                let text = std::fs::read(&map_path).map_err(|_| {
                    Failure::refused(format!("{there}, and not of a copy")).next(next)
                })?;
                if !text.starts_with(format!("{head}\n").as_bytes()) {
                    return Err(
                        Failure::refused(format!("{there}, and of another copy")).next(next)
                    );
                }
                let map = Map::parse(&text).ok().filter(|map| map.size() == size);
                map.ok_or_else(|| {
                    Failure::refused(format!("{there}, and its map is damaged")).next(next)
                })?
            }
        };
        let cannot = format!("cannot write {}", path.display());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .context(&cannot)?;
        file.set_len(size).context(&cannot)?;
        Ok(Target { file, path: path.to_owned(), map_path, head, map, is_old })
    }

    /// Copies what the map does not call read.
    fn fill(&self, volume: &cat::Opened) -> Result<Map, Failure> {
        let cannot = format!("cannot write {}", self.path.display());
        let block = u64::from(volume.built.dev.limits().logical_block);
        let mut map = self.map.clone();
        let holes = map.holes();
        let todo: u64 = holes.iter().map(|hole| hole.end - hole.start).sum();
        let (mut done, mut unsaved) = (0, 0);
        for hole in holes {
            let mut at = hole.start / block * block;
            while at < hole.end {
                let end = (at + STEP).min(hole.end.next_multiple_of(block)).min(map.size());
                for (range, bytes) in read(volume, at..end, block) {
                    let state = match bytes {
                        None => State::Bad,
                        Some(bytes) => {
                            // Zeros stay a hole in a new image.
                            if self.is_old || bytes.iter().any(|byte| *byte != 0) {
                                self.file.write_all_at(&bytes, range.start).context(&cannot)?;
                            }
                            State::Finished
                        }
                    };
                    map.set(range, state);
                }
                done += end - at;
                unsaved += end - at;
                at = end;
                if unsaved >= SAVED {
                    self.save(&map)?;
                    unsaved = 0;
                    progress(done, &words::size(todo));
                }
            }
        }
        self.save(&map)?;
        Ok(map)
    }

    /// Makes the image durable, then says so in the map.
    fn save(&self, map: &Map) -> Result<(), Failure> {
        self.file.sync_data().context(format!("cannot write {}", self.path.display()))?;
        let cannot = format!("cannot write {}", self.map_path.display());
        let new = self.map_path.with_added_extension("new");
        std::fs::write(&new, format!("{}\n{map}", self.head)).context(&cannot)?;
        File::open(&new).and_then(|file| file.sync_all()).context(&cannot)?;
        std::fs::rename(&new, &self.map_path).context(&cannot)
    }
}

/// Reads a range; where that fails, each block of it alone. `None` stands for what cannot be read.
fn read(volume: &cat::Opened, range: Range<u64>, block: u64) -> Vec<(Range<u64>, Option<Vec<u8>>)> {
    match read_once(volume, &range) {
        Ok(bytes) => vec![(range, Some(bytes))],
        Err(_) if range.end - range.start <= block => vec![(range, None)],
        Err(_) => {
            let pieces =
                range.clone().step_by(usize::try_from(block).expect("a block is some KiB"));
            let piece = |at: u64| {
                let piece = at..(at + block).min(range.end);
                let bytes = read_once(volume, &piece).ok();
                (piece, bytes)
            };
            pieces.map(piece).collect()
        }
    }
}

fn read_once(volume: &cat::Opened, range: &Range<u64>) -> io::Result<Vec<u8>> {
    let (dev, pool) = (volume.built.dev.clone(), volume.pool.clone());
    let (start, length) = (range.start, range.end - range.start);
    let completion = volume.executor.block_on(async move {
        let memory = pool.get_wait(usize::try_from(length).expect("at most a MiB")).await;
        dev.start(Io::read(start, memory)).await
    });
    completion.result.map_err(io::Error::from)?;
    Ok(completion.payload.to_vec())
}
