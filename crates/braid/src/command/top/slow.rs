//! `braid top --slow`: the slowest requests of a few seconds, and where their time went.

use std::fmt::Write as _;
use std::time::Duration;

use braid_service::control::{self, SlowPart, SlowRequest, SlowStatus, worked_us};
use braid_service::failure::Failure;
use braid_service::places::Places;
use braid_stack::ByteSize;

use super::table::time;

/// Members that are told of a request: those that took longest.
const MEMBERS: usize = 3;

/// Follows the requests of the volumes `names` for the time `span`; answers what is to be printed.
pub(super) fn slow(places: &Places, names: &[String], span: Duration) -> Result<String, Failure> {
    let followed: Vec<_> = std::thread::scope(|scope| {
        let ask = |name: &String| {
            let socket = places.control(name);
            scope.spawn(move || control::get_slow(&socket, span))
        };
        let asked: Vec<_> = names.iter().map(ask).collect();
        asked.into_iter().map(|one| one.join().expect("it does not panic")).collect()
    });
    let mut text = String::new();
    for (name, answer) in names.iter().zip(followed) {
        let status = answer
            .map_err(|error| Failure::failed(format!("{name}: {error}")).next(error.next(name)))?;
        let status = status.ok_or_else(|| {
            Failure::refused(format!("{name} follows its requests for another `braid top --slow`"))
                .next("again, when it is done")
        })?;
        if !text.is_empty() {
            text.push('\n');
        }
        write_volume(&mut text, name, &status, span);
    }
    Ok(text)
}

fn write_volume(text: &mut String, name: &str, status: &SlowStatus, span: Duration) {
    let SlowStatus { requests, slowest } = status;
    let span = span.as_secs_f64();
    let _ = writeln!(text, "{name}: {requests} requests answered in {span} s");
    for one in slowest {
        let open = if one.answered { "" } else { ", no answer yet" };
        let what = request(&one.operation, one.offset_bytes, one.length_bytes);
        let _ = writeln!(text, "{:>10}  {what}{open}", time(one.took_us as f64));
        for (member, took, asked) in by_member(one).into_iter().take(MEMBERS) {
            let _ = writeln!(text, "{:>10}    {member}: {asked}", time(took as f64));
        }
        let _ = writeln!(text, "{:>10}    in the volume", time(one.in_volume_us() as f64));
    }
}

/// By member: how long it worked on the request, from its first part to its last answer without the pauses, and what
/// took longest there; the slowest first.
fn by_member(one: &SlowRequest) -> Vec<(&str, u64, String)> {
    let mut members: Vec<(&str, Vec<&SlowPart>)> = Vec::new();
    for part in &one.parts {
        match members.iter_mut().find(|(member, _)| *member == part.member) {
            Some((_, parts)) => parts.push(part),
            None => members.push((&part.member, vec![part])),
        }
    }
    let mut members: Vec<_> = members
        .into_iter()
        .map(|(member, mut parts)| {
            parts.sort_by_key(|part| std::cmp::Reverse(part.took_us));
            let slowest = parts[0];
            let (offset, length) = (slowest.offset_bytes, slowest.length_bytes);
            let mut asked = request(&slowest.operation, offset, length);
            if parts.len() > 1 {
                let _ = write!(asked, ", {} more", parts.len() - 1);
            }
            (member, worked_us(parts), asked)
        })
        .collect();
    members.sort_by_key(|(_, took, _)| std::cmp::Reverse(*took));
    members
}

fn request(operation: &str, offset: u64, length: u64) -> String {
    match length {
        0 => operation.to_owned(),
        _ => format!("{operation} of {:#} at {:#}", ByteSize(length), ByteSize(offset)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(member: &str, operation: &str, after_us: u64, took_us: u64) -> SlowPart {
        let (member, operation) = (member.to_owned(), operation.to_owned());
        let (offset_bytes, length_bytes) = (1 << 20, 4096);
        SlowPart { member, operation, offset_bytes, length_bytes, after_us, took_us }
    }

    #[test]
    fn a_request_says_which_member_took_the_time() {
        let written = SlowRequest {
            operation: "write".to_owned(),
            offset_bytes: 3 << 20,
            length_bytes: 64 << 10,
            took_us: 812_000,
            answered: true,
            parts: vec![
                part("a.img", "read", 2000, 10_000),
                part("b.img", "read", 2000, 640_000),
                part("a.img", "write", 650_000, 150_000),
            ],
            more_parts: 0,
        };
        let hanging = SlowRequest {
            operation: "flush".to_owned(),
            length_bytes: 0,
            took_us: 900,
            answered: false,
            parts: Vec::new(),
            ..written.clone()
        };
        let status = SlowStatus { requests: 12_345, slowest: vec![written, hanging] };
        let mut text = String::new();
        write_volume(&mut text, "v", &status, Duration::from_secs(5));
        assert_eq!(
            text,
            "v: 12345 requests answered in 5 s\n\
             \x20 812.0 ms  write of 64 KiB at 3 MiB\n\
             \x20 640.0 ms    b.img: read of 4 KiB at 1 MiB\n\
             \x20 160.0 ms    a.img: write of 4 KiB at 1 MiB, 1 more\n\
             \x20  22.0 ms    in the volume\n\
             \x20   900 µs  flush, no answer yet\n\
             \x20   900 µs    in the volume\n"
        );
    }
}
