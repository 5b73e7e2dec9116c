//! blkparse's default text: one event in each line.
//!
//! ```text
//!   8,0    3      116     0.000027500  4242  Q  WS 8192 + 8 [fio]
//!   device cpu sequence   s.ns          pid  ^  ^  sector + sectors [who]
//!                                      action  RWBS: F before the letter: flush first; behind it: FUA
//! ```
//!
//! Events `Q` are the workload: the requests before they are merged, split or sent on. All other events are
//! ignored, and so is the summary at the end. An event without a range of sectors is a flush (`F`), or a
//! command that is no request for blocks. A request that flushes first counts as two.
//!
//! Real output of the program is in `tests/data`.

use super::Sink;
use crate::words::{Word, Words, decimal};
use crate::{Kind, Request, SyntaxError};

/// Bytes of a sector, whatever the device has.
const SECTOR: u64 = 512;

/// True if a text whose first line is `text` may be blkparse's.
pub(super) fn is_one(text: &[u8]) -> bool {
    is_summary(text) || is_notice(text) || is_device(Words::new(0, text).next().text)
}

/// Reads a line; answers whether events may follow.
pub(super) fn line(number: u64, text: &[u8], sink: &mut Sink) -> Result<bool, SyntaxError> {
    if is_summary(text) {
        return Ok(false);
    }
    if is_notice(text) {
        return Ok(true);
    }
    let mut words = Words::new(number, text);
    let device = words.next();
    if !is_device(device.text) {
        return Err(device.error("a device as MAJOR,MINOR, or the summary"));
    }
    words.number("the number of a CPU")?;
    words.number("a sequence number")?;
    let at_ns = time(words.next())?;
    words.number("the number of a process")?;
    let action = words.next();
    if !(1..=2).contains(&action.text.len()) || !action.text.iter().all(u8::is_ascii_alphabetic) {
        return Err(action.error("an action of one or two letters"));
    }
    if action.text != b"Q" {
        return Ok(true);
    }
    let what = rwbs(words.next())?;
    let start = words.next();
    // Without a range the name of the process follows, and of a command its bytes.
    let mut rest = words.clone();
    let has_range = rest.next().text == b"+";
    if start.is_empty() || start.text.starts_with(b"[") {
        if what.flushes_first {
            sink.take(device.text, Request::flush(at_ns));
        }
        return Ok(true);
    }
    let Some(sector) = decimal(start.text) else {
        return Err(start.error("a sector, or the process in brackets"));
    };
    if !has_range {
        return Ok(true);
    }
    let count = rest.next();
    let bytes = |sectors: u64| sectors.checked_mul(SECTOR);
    let range = decimal(count.text).filter(|count| *count > 0).and_then(|count| {
        let (offset, length) = (bytes(sector)?, bytes(count)?);
        offset.checked_add(length)?;
        Some((offset, length))
    });
    let Some((offset, length)) = range else {
        return Err(count.error("a number of sectors, at least 1, that ends below 2^64 bytes"));
    };
    if what.flushes_first {
        sink.take(device.text, Request::flush(at_ns));
    }
    if let Some(kind) = what.kind {
        let fua = what.fua && kind == Kind::Write;
        sink.take(device.text, Request { at_ns, offset, length, kind, fua });
    }
    Ok(true)
}

/// True if a line begins the summary that blkparse prints at the end.
fn is_summary(text: &[u8]) -> bool {
    let is_cpu = |rest: &[u8]| rest.first().is_some_and(u8::is_ascii_digit);
    text.starts_with(b"Total (") || text.strip_prefix(b"CPU").is_some_and(is_cpu)
}

/// True if a line is a remark of blkparse about its input, before or after the events.
fn is_notice(text: &[u8]) -> bool {
    text.starts_with(b"Input file ") && text.ends_with(b" added")
}

fn is_device(word: &[u8]) -> bool {
    let mut parts = word.splitn(2, |byte| *byte == b',');
    let is_number = |part: Option<&[u8]>| part.and_then(decimal).is_some();
    is_number(parts.next()) && is_number(parts.next())
}

fn time(word: Word<'_>) -> Result<u64, SyntaxError> {
    let read = || {
        let dot = word.text.iter().position(|byte| *byte == b'.')?;
        let (seconds, nanos) = (&word.text[..dot], &word.text[dot + 1..]);
        let nanos = decimal(nanos).filter(|_| nanos.len() == 9)?;
        decimal(seconds)?.checked_mul(1_000_000_000)?.checked_add(nanos)
    };
    read().ok_or_else(|| word.error("a time in seconds with nine decimals"))
}

/// The meaning of an event's letters.
struct Rwbs {
    flushes_first: bool,
    /// `None` for an event that moves nothing.
    kind: Option<Kind>,
    fua: bool,
}

fn rwbs(word: Word<'_>) -> Result<Rwbs, SyntaxError> {
    let (flushes_first, rest) = match word.text {
        [b'F', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let kind = match rest.first() {
        Some(b'R') => Some(Kind::Read),
        Some(b'W') => Some(Kind::Write),
        Some(b'D') => Some(Kind::Discard),
        Some(b'N') => None,
        _ => return Err(word.error("R, W, D or N, and more letters")),
    };
    if !rest.iter().all(u8::is_ascii_uppercase) {
        return Err(word.error("capital letters"));
    }
    Ok(Rwbs { flushes_first, kind, fua: rest[1..].contains(&b'F') })
}
