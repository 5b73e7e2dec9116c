//! Reading traces: lines, which format it is, whose requests are kept.

mod blkparse;
mod iolog;

use crate::iolog::{VERSION_2, VERSION_3};
use crate::{Format, Request, SyntaxError, Trace, TraceError};

/// The longest line that is read, in bytes; fio reads as much of one.
const LONGEST: usize = 4096;
/// As many devices or files are told of.
const NAMES: usize = 32;

/// Reads a trace that comes in pieces.
///
/// ```
/// let mut reader = braid_trace::Reader::new(None);
/// reader.push(b"fio version 3 iolog\n0 a add\n0 a open\n20 a re")?;
/// reader.push(b"ad 4096 512\n")?;
/// assert_eq!(reader.finish()?.requests[0].at_ns, 20_000);
/// # Ok::<(), braid_trace::TraceError>(())
/// ```
pub struct Reader {
    /// The beginning of a line whose end has not come.
    carry: Vec<u8>,
    /// Lines that were read.
    line: u64,
    state: State,
    sink: Sink,
}

/// The format of the next line.
enum State {
    /// Unknown; the first line that is not empty determines the format.
    Unknown,
    Blkparse,
    /// The lines after the events, which are for people.
    BlkparseSummary,
    Iolog(iolog::Reader),
}

/// A trace as a whole; see [`Reader`].
///
/// # Errors
/// As [`Reader::push`] and [`Reader::finish`].
pub fn parse(text: &[u8], select: Option<&str>) -> Result<Trace, TraceError> {
    let mut reader = Reader::new(select);
    reader.push(text)?;
    reader.finish()
}

impl Reader {
    /// Reads requests to the device or file `select`, or to the only one that there is.
    pub fn new(select: Option<&str>) -> Reader {
        let select = select.map(|name| name.as_bytes().to_vec());
        let sink = Sink { select, names: Vec::new(), last: 0, requests: Vec::new() };
        Reader { carry: Vec::new(), line: 0, state: State::Unknown, sink }
    }

    /// Reads the next piece of the text.
    ///
    /// # Errors
    /// A line that is not understood: the reader is of no more use.
    pub fn push(&mut self, mut piece: &[u8]) -> Result<(), TraceError> {
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            if self.carry.is_empty() {
                self.line(&piece[..end])?;
            } else {
                let mut line = std::mem::take(&mut self.carry);
                line.extend_from_slice(&piece[..end]);
                self.line(&line)?;
                line.clear();
                self.carry = line;
            }
            piece = &piece[end + 1..];
        }
        // Enough to see that it is too long.
        let room = (LONGEST + 1).saturating_sub(self.carry.len());
        self.carry.extend_from_slice(&piece[..piece.len().min(room)]);
        check_length(self.line + 1, &self.carry)?;
        Ok(())
    }

    /// The trace, when all of its text was read.
    ///
    /// # Errors
    /// The text is no trace, or of several devices or files; or nothing was asked of the selected one.
    pub fn finish(self) -> Result<Trace, TraceError> {
        let Reader { carry, line, state, sink } = self;
        let torn_line = (!carry.is_empty()).then_some(line + 1);
        let (format, has_times, what) = match &state {
            State::Unknown => return Err(no_trace(line + 1, &carry).into()),
            State::Blkparse | State::BlkparseSummary => (Format::Blkparse, true, "devices"),
            State::Iolog(reader) => (reader.format(), reader.has_times(), "files"),
        };
        let (name, mut requests) = sink.finish(what)?;
        if !requests.is_sorted_by_key(|request| request.at_ns) {
            requests.sort_by_key(|request| request.at_ns);
        }
        requests.shrink_to_fit();
        Ok(Trace { requests, format, name, has_times, torn_line })
    }

    fn line(&mut self, text: &[u8]) -> Result<(), SyntaxError> {
        self.line += 1;
        check_length(self.line, text)?;
        let text = text.trim_ascii_end();
        if text.is_empty() {
            return Ok(());
        }
        let sink = &mut self.sink;
        match &mut self.state {
            State::Unknown if text == VERSION_2.as_bytes() => {
                self.state = State::Iolog(iolog::Reader::new(Format::Iolog2));
            }
            State::Unknown if text == VERSION_3.as_bytes() => {
                self.state = State::Iolog(iolog::Reader::new(Format::Iolog3));
            }
            State::Unknown if !blkparse::is_one(text) => return Err(no_trace(self.line, text)),
            State::Unknown | State::Blkparse => {
                self.state = match blkparse::line(self.line, text, sink)? {
                    true => State::Blkparse,
                    false => State::BlkparseSummary,
                }
            }
            State::BlkparseSummary => {}
            State::Iolog(reader) => reader.line(self.line, text, sink)?,
        }
        Ok(())
    }
}

fn check_length(line: u64, text: &[u8]) -> Result<(), SyntaxError> {
    if text.len() <= LONGEST {
        return Ok(());
    }
    let expected = format!("a line of at most {LONGEST} bytes");
    Err(SyntaxError::new(line, 1, text, expected))
}

fn no_trace(line: u64, text: &[u8]) -> SyntaxError {
    // A little-endian machine's `blk_io_trace`, version 7.
    let raw = if text.starts_with(b"\x07tae") {
        " (this is what blktrace records: `blkparse -i FILE` makes text of it)"
    } else {
        ""
    };
    let expected = format!("a line of blkparse's text, \"{VERSION_2}\" or \"{VERSION_3}\"{raw}");
    SyntaxError::new(line, 1, text, expected)
}

/// The receiver of the requests.
struct Sink {
    select: Option<Vec<u8>>,
    /// The devices or files, in order of their first requests; one more than [`NAMES`] at most.
    names: Vec<Vec<u8>>,
    /// The place of the latest one.
    last: usize,
    requests: Vec<Request>,
}

impl Sink {
    /// A request to `name`.
    fn take(&mut self, name: &[u8], request: Request) {
        if self.names.get(self.last).is_none_or(|last| last != name) {
            self.last = self.names.iter().position(|other| other == name).unwrap_or_else(|| {
                self.names.truncate(NAMES);
                self.names.push(name.to_vec());
                self.names.len() - 1
            });
            if self.names.len() > 1 && self.select.is_none() {
                // It will be refused: what is read from here on is whom to tell of.
                self.requests = Vec::new();
            }
        }
        let is_wanted = match &self.select {
            Some(select) => select == name,
            None => self.names.len() == 1,
        };
        if is_wanted {
            self.requests.push(request);
        }
    }

    /// Whose requests they are, and they.
    fn finish(self, what: &'static str) -> Result<(String, Vec<Request>), TraceError> {
        let Sink { select, names, requests, .. } = self;
        let mut names: Vec<String> =
            names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        if names.len() > NAMES {
            names[NAMES] = "…".to_owned();
        }
        match select.map(|name| String::from_utf8_lossy(&name).into_owned()) {
            Some(wanted) if requests.is_empty() => Err(TraceError::NotThere { wanted, names }),
            Some(wanted) => Ok((wanted, requests)),
            None if names.len() > 1 => Err(TraceError::Several { what, names }),
            None => Ok((names.pop().unwrap_or_default(), requests)),
        }
    }
}
