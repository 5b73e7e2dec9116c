//! The process that serves an overlay of a volume as a file, and runs a checker on it.
//!
//! Invariant: the stack is the origin of `cow`, so neither a member nor anything else below the overlay is written.

use std::io::{PipeReader, Read, pipe};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use braid_export_fuse::{Counters, Mount, serve};
use braid_rescue::Checked;
use braid_service::failure::{Context, Failure};
use braid_stack::{Cow, Node, Stack};

use super::checker::{self, Checker};
use crate::cli::RescueRunChecker;
use crate::command::{cat, stacks};

/// The most bytes of a checker's output that are read.
const MOST_OUTPUT: usize = 1 << 20;
/// The wait for descriptors that are just being closed.
const UNMOUNT: Duration = Duration::from_secs(5);

/// Serves the overlay, runs the checker, and prints its answer as JSON.
pub(in super::super) fn run_checker(arguments: &RescueRunChecker) -> Result<(), Failure> {
    let RescueRunChecker { stack, format, place, seconds } = arguments;
    let checker = checker::of(format)
        .ok_or_else(|| Failure::usage(format!("there is no checker of {format}")))?;
    let store = place.with_extension("cow").to_str().map(str::to_owned);
    let store = store.ok_or_else(|| Failure::usage("the path is not UTF-8"))?;
    let origin = Box::new(stacks::parse_for(stack, true)?);
    let overlay = Stack::from(Node::Cow(Cow { origin, store }));
    let opened = cat::open_overlay(&overlay)?;
    let is_dirty = checker.replay.is_some() && has_journal_to_replay(&opened);
    let (mount, fd) = Mount::new(place, "checked", false).map_err(Failure::failed)?;
    let deadline = Instant::now() + Duration::from_secs(*seconds);
    let checked = std::thread::spawn(move || {
        let mut mount = mount;
        let checked = check(checker, mount.volume_path(), is_dirty, deadline);
        if mount.unmount(UNMOUNT).is_err() {
            mount.unmount_force();
        }
        checked
    });
    let (dev, pool) = (opened.built.dev.clone(), opened.pool.clone());
    let fd = braid_uring::Fd::new(fd);
    let served = serve(opened.executor.handle(), fd, dev, pool, Arc::new(Counters::default()));
    opened.executor.block_on(served).context("the volume is not served any more")?;
    let checked = checked.join().map_err(|_| Failure::failed("the checker was not run"))??;
    println!("{}", serde_json::json!(checked));
    Ok(())
}

/// True if the superblock of ext3 or ext4 says that the journal has changes.
fn has_journal_to_replay(opened: &cat::Opened) -> bool {
    const FEATURES: u64 = 1024 + 0x60;
    const RECOVER: u8 = 4;
    let mut byte = [0; 1];
    opened.read(FEATURES, &mut byte).is_ok() && byte[0] & RECOVER != 0
}

/// Replays the journal if there is one to replay, then checks.
fn check(
    checker: &Checker,
    file: PathBuf,
    is_dirty: bool,
    deadline: Instant,
) -> Result<Checked, Failure> {
    let mut notes = Vec::new();
    if let Some(words) = checker.replay.filter(|_| is_dirty) {
        let (status, text) = run(checker.command(&file, words), deadline)?;
        notes.push(match status.and_then(|status| status.code()) {
            Some(0 | 1) => "its journal was replayed into an overlay first".to_owned(),
            _ => {
                let why = text.lines().last().unwrap_or("").trim().to_owned();
                format!("its journal could not be replayed into an overlay: {why}")
            }
        });
    }
    let (status, text) = run(checker.command(&file, checker.words()), deadline)?;
    Ok(checker.judge(status, &text, notes))
}

/// Runs a program to its end, or to the deadline, after which it has no status. Returns the beginning of its output.
fn run(mut command: Command, deadline: Instant) -> Result<(Option<ExitStatus>, String), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (reader, writer) = pipe().context("no pipe")?;
    let errors = writer.try_clone().context("no pipe")?;
    command.stdout(writer).stderr(errors);
    let mut child = command.spawn().context(format!("cannot start {name}"))?;
    // Its ends of the pipe go with the command, so that the reader sees the end of the output.
    drop(command);
    let (sender, ended) = channel();
    let output = std::thread::spawn(move || {
        let text = beginning(reader);
        // The receiver is gone if the program was ended.
        let _ = sender.send(());
        text
    });
    let in_time = ended.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok();
    let status = end(&mut child, in_time).context(format!("cannot wait for {name}"))?;
    let text = output.join().map_err(|_| Failure::failed("the output was not read"))?;
    Ok((status, text))
}

fn end(child: &mut Child, in_time: bool) -> std::io::Result<Option<ExitStatus>> {
    if !in_time {
        child.kill()?;
    }
    let status = child.wait()?;
    Ok(in_time.then_some(status))
}

/// Reads to the end, and returns the first bytes as text.
fn beginning(mut reader: PipeReader) -> String {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 << 10];
    while let Ok(count @ 1..) = reader.read(&mut piece) {
        let room = MOST_OUTPUT - bytes.len();
        bytes.extend_from_slice(&piece[..count.min(room)]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
