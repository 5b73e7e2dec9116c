//! The files of a volume, one a line, each with what of it is lost or in doubt. Contents are not read.

use std::io::{self, BufWriter, Write};
use std::ops::Range;

use braid_files::{
    Event, Extent, Kind, Limits, Node, ReadAt, Volume, Walk, merged, owners, parts_in,
};
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::{Context, Failure};
use braid_shell::shown;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

/// Bytes that several files have: so many places are kept.
const MOST_SHARED: usize = 1000;

/// The bytes of a volume that are known to be lost or in doubt, in order.
#[derive(Debug, Default)]
pub(super) struct Known {
    lost: Vec<Range<u64>>,
    doubtful: Vec<Range<u64>>,
}

impl Known {
    pub(super) fn new(lost: &[Range<u64>], doubtful: &[Range<u64>]) -> Known {
        Known { lost: merged(lost), doubtful: merged(doubtful) }
    }

    /// The bytes in doubt, lost ones included: metadata there are not to be believed.
    pub(super) fn all(&self) -> Vec<Range<u64>> {
        merged(&[&self.lost[..], &self.doubtful[..]].concat())
    }

    /// Returns what may be wrong where it can be read: a reader sees itself what is lost.
    pub(super) fn readable(&self) -> Known {
        Known { lost: Vec::new(), doubtful: self.doubtful.clone() }
    }

    /// Adds to `state` what of an extent is lost, and in doubt.
    pub(super) fn judge(&self, extent: &Extent, state: &mut State) {
        let in_file = |part: Range<u64>| {
            let from = extent.offset + (part.start - extent.range.start);
            from..from + (part.end - part.start)
        };
        if !extent.unwritten {
            let lost = parts_in(extent.range.clone(), &self.lost);
            lost.for_each(|part| state.lost.add(in_file(part)));
            let doubtful = parts_in(extent.range.clone(), &self.doubtful);
            doubtful.for_each(|part| state.doubtful.add(in_file(part)));
        }
    }
}

/// Ranges of a file, of which the first ones are kept.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) bytes: u64,
    first: Vec<Range<u64>>,
    more: u64,
}

impl Places {
    pub(super) fn add(&mut self, range: Range<u64>) {
        const MOST: usize = 64;
        self.bytes += range.end - range.start;
        let has_room = self.first.len() < MOST;
        match self.first.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ if has_room => self.first.push(range),
            _ => self.more += 1,
        }
    }

    /// The ranges as `OFFSET+LENGTH`, with commas between.
    pub(super) fn words(&self) -> String {
        let span = |range: &Range<u64>| format!("{}+{}", range.start, range.end - range.start);
        let mut text = self.first.iter().map(span).collect::<Vec<_>>().join(",");
        if self.more > 0 {
            text += &format!(",and {} more", self.more);
        }
        text
    }
}

/// The state of one file.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Bytes that cannot be read.
    pub(super) lost: Places,
    /// Bytes that may be wrong.
    pub(super) doubtful: Places,
    /// Other reasons for which the file may be wrong, or a part of it is not there.
    pub(super) why: Vec<String>,
    /// One of the reasons is a loss.
    pub(super) has_lost: bool,
}

impl State {
    /// The state of something that is lost for this reason.
    pub(super) fn lost_as(why: String) -> State {
        State { why: vec![why], has_lost: true, ..State::default() }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.has_lost || self.lost.bytes > 0
    }

    pub(super) fn is_good(&self) -> bool {
        !self.is_lost() && self.doubtful.bytes == 0 && self.why.is_empty()
    }

    /// `good`, `lost` or `doubt`, with the number of bytes.
    pub(super) fn words(&self) -> String {
        match (self.is_lost(), self.lost.bytes, self.doubtful.bytes) {
            (true, 0, _) => "lost".to_owned(),
            (true, bytes, _) => format!("lost {bytes}"),
            (false, _, 0) if self.why.is_empty() => "good".to_owned(),
            (false, _, 0) => "doubt".to_owned(),
            (false, _, bytes) => format!("doubt {bytes}"),
        }
    }
}

/// The numbers of files, by their state.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) lost: u64,
    pub(super) doubtful: u64,
    /// A journal has newer changes, which are not shown.
    pub(super) is_old: bool,
}

impl Counts {
    pub(super) fn add(&mut self, state: &State) {
        self.lost += u64::from(state.is_lost());
        self.doubtful += u64::from(!state.is_lost() && !state.is_good());
    }

    pub(super) fn is_good(&self) -> bool {
        self.lost == 0 && self.doubtful == 0 && !self.is_old
    }

    /// The sentence about those that are not good.
    pub(super) fn words(&self) -> String {
        let names =
            |count: u64| if count == 1 { "1 name".to_owned() } else { format!("{count} names") };
        match (self.lost, self.doubtful) {
            (0, 0) if self.is_old => {
                "all as they were before the changes in the journal".to_owned()
            }
            (0, 0) => "all are good".to_owned(),
            (0, doubtful) => format!("in doubt: {}", names(doubtful)),
            (lost, 0) => format!("with losses: {}", names(lost)),
            (lost, doubtful) => {
                format!("with losses: {}; in doubt: {}", names(lost), names(doubtful))
            }
        }
    }
}

/// Looks through a walk's extents of a file: what of them is lost, in doubt, or of another file, too. Calls `each`.
pub(super) fn judge_file(
    walk: &mut Walk<'_>,
    node: &Node,
    known: &Known,
    shared: &mut Vec<Range<u64>>,
    each: &mut dyn FnMut(&Extent, &mut State) -> Result<(), Failure>,
) -> Result<State, Failure> {
    let mut state = State::default();
    let mut from = 0;
    loop {
        let (extents, read) = walk.extents(node, from);
        if let Err(why) = read {
            let why = format!("some of its places are lost: {why}");
            if !state.why.contains(&why) {
                state.why.push(why);
            }
            state.has_lost = true;
        }
        let Some(last) = extents.last() else { break };
        from = last.offset + (last.range.end - last.range.start);
        for extent in &extents {
            known.judge(extent, &mut state);
            each(extent, &mut state)?;
            let twice = if node.is_again { Vec::new() } else { walk.claim(extent) };
            if !twice.is_empty() && shared.len() < MOST_SHARED {
                shared.extend(twice);
            }
        }
    }
    Ok(state)
}

/// Called with a path and its state.
type Tell<'t> = dyn FnMut(&[u8], State) -> Result<(), Failure> + 't;

/// Calls `tell` with the paths of files that have the same bytes of the volume, of which one at most can be right.
pub(super) fn tell_shared(
    volume: &dyn ReadAt,
    shared: &[Range<u64>],
    tell: &mut Tell<'_>,
) -> Result<(), Failure> {
    if shared.is_empty() {
        return Ok(());
    }
    let report = owners(volume, shared, &Limits::default()).map_err(Failure::failed)?;
    for path in report.files.values().flat_map(|names| &names.paths) {
        let why = "another file claims the same bytes: one of them is wrong".to_owned();
        tell(path, State { why: vec![why], ..State::default() })?;
    }
    Ok(())
}

/// The choices of a listing.
#[derive(Clone, Copy)]
pub(super) struct Style {
    /// Leave the good ones out.
    pub(super) is_lost_only: bool,
    pub(super) json: bool,
}

/// Lists the files of a volume on standard output.
///
/// # Errors
/// No file system that can be read, or standard output.
pub(super) fn list(volume: &dyn ReadAt, known: &Known, style: Style) -> Result<Counts, Failure> {
    let volume = Volume::open(volume).map_err(Failure::failed)?;
    let mut walk = volume.walk().map_err(Failure::failed)?;
    walk.set_doubtful(known.all());
    let mut out = BufWriter::new(io::stdout().lock());
    let listed = Lister { known, style, counts: Counts::default(), shared: Vec::new() }
        .run(&mut walk, &volume, &mut out);
    let flushed = out.flush().context("standard output");
    for note in walk.take_notes() {
        eprintln!("braid: warning: {note}");
    }
    let counts = listed.and_then(|counts| flushed.map(|()| counts))?;
    Ok(Counts { is_old: volume.unreplayed().is_some(), ..counts })
}

struct Lister<'k> {
    known: &'k Known,
    style: Style,
    counts: Counts,
    shared: Vec<Range<u64>>,
}

impl Lister<'_> {
    fn run(
        mut self,
        walk: &mut Walk<'_>,
        volume: &dyn ReadAt,
        out: &mut dyn Write,
    ) -> Result<Counts, Failure> {
        while let Some(event) = walk.next() {
            let (name, node) = match event {
                Event::Leave => continue,
                Event::Enter(_, node) => (Vec::new(), node),
                Event::Entry(name, node) => (name, node),
                Event::Trouble { name, why, .. } => {
                    let path = walk.path(&name.unwrap_or_default());
                    self.tell(out, &path, None, &State::lost_as(why))?;
                    continue;
                }
            };
            let path = walk.path(&name);
            let mut state = match node.kind {
                Kind::File => {
                    judge_file(walk, &node, self.known, &mut self.shared, &mut |_, _| Ok(()))?
                }
                _ => State::default(),
            };
            if walk.took_doubtful() {
                state.why.push("its metadata are in doubt".to_owned());
            }
            self.counts.files += u64::from(node.kind != Kind::Directory);
            self.counts.bytes += if node.kind == Kind::File { node.size } else { 0 };
            let target = match node.kind {
                Kind::Link => walk.target(&node).unwrap_or_default(),
                _ => Vec::new(),
            };
            self.tell(out, &path, Some((&node, &target)), &state)?;
        }
        let shared = std::mem::take(&mut self.shared);
        tell_shared(volume, &shared, &mut |path, state| self.tell(out, path, None, &state))?;
        Ok(self.counts)
    }

    fn tell(
        &mut self,
        out: &mut dyn Write,
        path: &[u8],
        node: Option<(&Node, &[u8])>,
        state: &State,
    ) -> Result<(), Failure> {
        self.counts.add(state);
        if self.style.is_lost_only && state.is_good() {
            return Ok(());
        }
        let path = String::from_utf8_lossy(path);
        let written = if self.style.json {
            let line = json!({
                "output_version": OUTPUT_VERSION,
                "path": path,
                "kind": node.map(|(node, _)| kind(node.kind)),
                "mode": node.map(|(node, _)| node.mode & 0o7777),
                "size_bytes": node.map(|(node, _)| node.size),
                "modified": node.map(|(node, _)| node.modified.0),
                "target": node.filter(|(node, _)| node.kind == Kind::Link).map(|(_, target)| String::from_utf8_lossy(target)),
                "state": state.words().split(' ').next(),
                "lost_bytes": state.lost.bytes,
                "doubtful_bytes": state.doubtful.bytes,
                "why": state.why,
            });
            writeln!(out, "{line}")
        } else {
            let (mode, size, time) = match node {
                Some((node, _)) => (mode(node), node.size.to_string(), time(node.modified.0)),
                None => ("?".to_owned(), "?".to_owned(), "?".to_owned()),
            };
            let target = match node {
                Some((_, target)) if !target.is_empty() => {
                    format!(" -> {}", shown(&String::from_utf8_lossy(target)))
                }
                _ => String::new(),
            };
            let why = if state.why.is_empty() {
                String::new()
            } else {
                format!("   ({})", shown(&state.why.join("; ")))
            };
            let words = state.words();
            writeln!(out, "{mode:10} {size:>12} {time:16} {words:12} {}{target}{why}", shown(&path))
        };
        written.context("standard output")
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Directory => "directory",
        Kind::Link => "symbolic link",
        Kind::Special(what) => what,
    }
}

/// The mode as `ls -l` shows it.
fn mode(node: &Node) -> String {
    let letter = match node.kind {
        Kind::File => '-',
        Kind::Directory => 'd',
        Kind::Link => 'l',
        Kind::Special("block device") => 'b',
        Kind::Special("character device") => 'c',
        Kind::Special("named pipe") => 'p',
        Kind::Special(_) => 's',
    };
    let mut text = String::from(letter);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = node.mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & 1 != 0, node.mode & special != 0) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

fn time(seconds: i64) -> String {
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    let time = Timestamp::from_second(seconds).ok();
    time.map_or_else(
        || seconds.to_string(),
        |time| time.to_zoned(zone).strftime("%Y-%m-%d %H:%M").to_string(),
    )
}

/// The line at the end of a listing.
pub(super) fn print_summary(counts: &Counts, style: Style) {
    let Counts { files, bytes, lost, doubtful, is_old } = counts;
    match style.json {
        true => println!(
            "{}",
            json!({ "output_version": OUTPUT_VERSION, "files": files, "bytes": bytes, "lost": lost, "doubtful": doubtful, "journal_not_replayed": is_old })
        ),
        false => println!("{files} files, {bytes} bytes; {}.", counts.words()),
    }
}
