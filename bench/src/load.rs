//! A load generator that sends many requests with one call and takes many replies with one.
//!
//! ```text
//! read ─▶ as many replies as there are ─▶ as many new requests ─▶ one write ─▶ read …
//! ```
//!
//! One thread, blocking calls. fio's engine makes one call a request, and so measures a server
//! that is woken for each; this one lets a server show what it does when work comes in batches.

use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use braid_nbd::client::{Body, ParsedReply, encode_request, parse_reply};
use braid_nbd::protocol::{Command, ReplyStyle};

use crate::{Error, Result, cpu, nbd};
use braid_seed::Rng;

/// Bytes of a request.
const BLOCK: u32 = 4096;

/// The outcome of a run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Requests that completed.
    pub requests: u64,
    /// The duration of the run.
    pub seconds: f64,
    /// Calls that sent requests.
    pub sends: u64,
    /// Calls that received replies.
    pub receives: u64,
    /// Processor time of the generator.
    pub cpu_ns: u64,
}

/// Keeps `depth` random reads of 4 KiB in flight on the server at `socket` for `duration`.
///
/// # Errors
/// If the server breaks the protocol, answers an error, or goes away.
///
/// # Panics
/// If `depth` is 0.
pub fn random_reads(socket: &Path, depth: u32, duration: Duration) -> Result<Outcome> {
    assert!(depth > 0, "no request in flight");
    let (mut stream, negotiated) = nbd::connect(socket, ReplyStyle::Simple)?;
    let failed = || Error::io("NBD connection");
    let broken = |what: String| Error::Unexpected(format!("the server's reply: {what}"));
    let style = negotiated.style;
    let blocks = negotiated.size_bytes / u64::from(BLOCK);
    let mut rng = Rng::new(depth.into());
    let mut next = |out: &mut Vec<u8>| {
        let offset = rng.below(blocks) * u64::from(BLOCK);
        let read = Command::Read { offset, length: BLOCK, dont_fragment: false };
        if let Some(header) = encode_request(style.header_mode(), offset, &read) {
            out.extend_from_slice(header.as_bytes());
        }
    };
    // All replies that can be under way fit.
    let mut input = vec![0; depth as usize * (BLOCK as usize + 64)];
    let mut filled = 0;
    let mut out = Vec::new();
    let mut outcome = Outcome { requests: 0, seconds: 0.0, sends: 1, receives: 0, cpu_ns: 0 };
    let (start, start_cpu) = (Instant::now(), cpu::thread_ns()?);
    (0..depth).for_each(|_| next(&mut out));
    stream.write_all(&out).map_err(failed())?;
    let mut in_flight = u64::from(depth);
    let mut stopping = false;
    while in_flight > 0 {
        let count = stream.read(&mut input[filled..]).map_err(failed())?;
        if count == 0 {
            return Err(broken("end of the connection".into()));
        }
        outcome.receives += 1;
        filled += count;
        let (taken, replies) = take_replies(style, &input[..filled])?;
        input.copy_within(taken..filled, 0);
        filled -= taken;
        outcome.requests += replies;
        in_flight -= replies;
        stopping = stopping || start.elapsed() >= duration;
        if !stopping && replies > 0 {
            out.clear();
            (0..replies).for_each(|_| next(&mut out));
            stream.write_all(&out).map_err(failed())?;
            in_flight += replies;
            outcome.sends += 1;
        }
    }
    outcome.seconds = start.elapsed().as_secs_f64();
    outcome.cpu_ns = cpu::thread_ns()? - start_cpu;
    if let Some(bye) = encode_request(style.header_mode(), 0, &Command::Disconnect) {
        stream.write_all(bye.as_bytes()).map_err(failed())?;
    }
    Ok(outcome)
}

/// Reads or writes `count` random blocks of 4 KiB at the server at `socket`, one at a time, a new one each `every`.
/// Returns the time of each in microseconds.
///
/// # Errors
/// As [`random_reads`].
pub fn paced(socket: &Path, is_read: bool, count: u32, every: Duration) -> Result<Vec<f64>> {
    let (mut stream, negotiated) = nbd::connect(socket, ReplyStyle::Simple)?;
    let failed = || Error::io("NBD connection");
    let (style, blocks) = (negotiated.style, negotiated.size_bytes / u64::from(BLOCK));
    let mut rng = Rng::new(count.into());
    let begun = Instant::now();
    let mut times = Vec::new();
    let mut input = vec![0; BLOCK as usize + 64];
    for number in 0..count {
        wait_until(begun + every * number);
        let offset = rng.below(blocks) * u64::from(BLOCK);
        let command = match is_read {
            true => Command::Read { offset, length: BLOCK, dont_fragment: false },
            false => Command::Write { offset, length: BLOCK, fua: false },
        };
        let header = encode_request(style.header_mode(), offset, &command);
        let mut request = header.map(|header| header.as_bytes().to_vec()).unwrap_or_default();
        let (sent, received) = if is_read { (0, BLOCK as usize) } else { (BLOCK as usize, 0) };
        request.resize(request.len() + sent, 7);
        let started = Instant::now();
        stream.write_all(&request).map_err(failed())?;
        let mut filled = 0;
        loop {
            match parse_reply(style, &input[..filled]) {
                ParsedReply::Reply { consumed, reply } if reply.body == Body::SimpleOk => {
                    if filled >= consumed + received {
                        break;
                    }
                }
                ParsedReply::NeedMore { .. } => {}
                other => return Err(Error::Unexpected(format!("it was answered {other:?}"))),
            }
            let len = stream.read(&mut input[filled..]).map_err(failed())?;
            if len == 0 {
                return Err(Error::Unexpected("the server hung up".to_owned()));
            }
            filled += len;
        }
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    if let Some(bye) = encode_request(style.header_mode(), 0, &Command::Disconnect) {
        stream.write_all(bye.as_bytes()).map_err(failed())?;
    }
    Ok(times)
}

/// Sleeps for as long as the kernel keeps to the time, and then looks at the clock.
fn wait_until(due: Instant) {
    const SLACK: Duration = Duration::from_micros(300);
    std::thread::sleep(due.saturating_duration_since(Instant::now()).saturating_sub(SLACK));
    while Instant::now() < due {
        std::thread::yield_now();
    }
}

/// Counts the whole replies at the front of `bytes`, and the bytes that they take.
fn take_replies(style: ReplyStyle, bytes: &[u8]) -> Result<(usize, u64)> {
    let (mut taken, mut replies) = (0, 0);
    loop {
        let rest = &bytes[taken..];
        let (consumed, reply) = match parse_reply(style, rest) {
            ParsedReply::NeedMore { .. } => return Ok((taken, replies)),
            ParsedReply::Reply { consumed, reply } => (consumed, reply),
            ParsedReply::Fatal(error) => return Err(Error::Unexpected(error.to_string())),
        };
        if reply.body != Body::SimpleOk {
            return Err(Error::Unexpected(format!("a read was answered {:?}", reply.body)));
        }
        let whole = consumed + BLOCK as usize;
        if rest.len() < whole {
            return Ok((taken, replies));
        }
        taken += whole;
        replies += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bare::BareServer;

    #[test]
    fn batches_against_the_bare_server() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let server = BareServer::listen(&socket, 1 << 20).unwrap();
        std::thread::spawn(move || server.run());
        let outcome = random_reads(&socket, 8, Duration::from_millis(50)).unwrap();
        assert!(outcome.requests >= 8);
        assert!(outcome.sends <= outcome.requests && outcome.receives <= outcome.requests * 2);
    }
}
