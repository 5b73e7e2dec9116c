//! fio's iolog, versions 2 and 3: an action a line.
//!
//! ```text
//!   version 2       FILE add|open|close        FILE ACTION OFFSET LENGTH
//!   version 3  TIME FILE add|open|close   TIME FILE ACTION OFFSET LENGTH [fua]
//! ```
//!
//! Version 3 has the time of each line in microseconds. Version 2 has `wait`, whose "offset" is read as
//! fio reads it: milliseconds since the beginning, before which nothing that follows is done. (fio's
//! manual has microseconds since the `wait` before; version 3.33 does otherwise.) `fua` is braid's.

use super::Sink;
use crate::words::Words;
use crate::{Format, Kind, Request, SyntaxError};

/// Reads lines behind the first.
pub(super) struct Reader {
    is_version_3: bool,
    /// The sum of the waits, in version 2.
    now_ns: u64,
    has_waited: bool,
}

const ACTIONS: &str = "add, open, close, read, write, trim, sync, datasync";

impl Reader {
    pub(super) fn new(format: Format) -> Reader {
        Reader { is_version_3: format == Format::Iolog3, now_ns: 0, has_waited: false }
    }

    pub(super) fn format(&self) -> Format {
        if self.is_version_3 { Format::Iolog3 } else { Format::Iolog2 }
    }

    pub(super) fn has_times(&self) -> bool {
        self.is_version_3 || self.has_waited
    }

    pub(super) fn line(
        &mut self,
        number: u64,
        text: &[u8],
        sink: &mut Sink,
    ) -> Result<(), SyntaxError> {
        let mut words = Words::new(number, text);
        let mut at_ns = self.now_ns;
        if self.is_version_3 {
            let word = words.clone().next();
            let at = words.number("a time in microseconds")?.checked_mul(1000);
            at_ns = at.ok_or_else(|| word.error("a time of less than 584 years"))?;
        }
        let file = words.next();
        if file.is_empty() {
            return Err(file.error("a file's name"));
        }
        let action = words.next();
        let kind = match action.text {
            b"add" | b"open" | b"close" => return words.end(),
            b"wait" if !self.is_version_3 => {
                let word = words.clone().next();
                let until = words.number("a time in milliseconds")?.checked_mul(1_000_000);
                let until = until.ok_or_else(|| word.error("a time of less than 584 years"))?;
                words.number("a number, which does not count")?;
                self.now_ns = self.now_ns.max(until);
                self.has_waited = true;
                return words.end();
            }
            b"read" => Kind::Read,
            b"write" => Kind::Write,
            b"trim" => Kind::Discard,
            b"sync" | b"datasync" => Kind::Flush,
            _ if self.is_version_3 => return Err(action.error(ACTIONS)),
            _ => return Err(action.error(format!("{ACTIONS}, wait"))),
        };
        let offset = words.number("an offset in bytes")?;
        let length_word = words.clone().next();
        let length = words.number("a length in bytes")?;
        let mut request = Request { at_ns, offset, length, kind, fua: false };
        if kind == Kind::Flush {
            request = Request::flush(at_ns);
        } else if length == 0 || offset.checked_add(length).is_none() {
            return Err(length_word.error("a length of at least 1 that ends below 2^64"));
        }
        let mut rest = words.clone();
        if kind == Kind::Write && rest.next().text == b"fua" {
            (request.fua, words) = (true, rest);
        }
        words.end()?;
        sink.take(file.text, request);
        Ok(())
    }
}
