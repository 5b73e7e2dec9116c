//! `braid status`: how volumes are.

use std::cmp::Reverse;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use braid_shell::{shown, shown_lines};
use braid_stack::ByteSize;

use crate::cli;
use braid_service::control::{
    self, ControlError, DeviceStatus, ExportStatus, Health, MemberStatus, OUTPUT_VERSION, Severity,
    Status, TraceStatus,
};
use braid_service::failure::{Context, Failure};
use braid_service::places::{Places, check_name};

use super::screen::{Screen, watched};

mod array;
mod brief;
mod disks;
mod memory;
mod overview;
mod remotes;
mod waited;

pub(super) fn status(options: &cli::Status) -> Result<ExitCode, Failure> {
    let places = Places::from_environment();
    if options.test {
        return Ok(ExitCode::from(test(options, &places)));
    }
    if !options.watch {
        return print(options, &places).map(|()| ExitCode::SUCCESS);
    }
    watch(options, &places)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints it again and again: over itself on a terminal, until a key ends it.
fn watch(options: &cli::Status, places: &Places) -> Result<(), Failure> {
    let screen = if options.json { None } else { Screen::open().context("the terminal")? };
    let mut before = String::new();
    loop {
        let due = Instant::now() + options.interval;
        match &screen {
            None => {
                print(options, places)?;
                std::thread::sleep(options.interval);
            }
            Some(screen) => {
                let text = text(options, ask(options, places)?)?;
                loop {
                    let lines = watched(&text, &before, screen.size());
                    screen.draw(&lines).context("the terminal")?;
                    match screen.key(due).context("the terminal")? {
                        Some(b'q') => return Ok(()),
                        // The terminal may have another size.
                        Some(_) => {}
                        None => break,
                    }
                }
                before = text;
            }
        }
    }
}

/// The worst of the volumes that were asked for, in the numbers of `mdadm --detail --test`.
fn test(options: &cli::Status, places: &Places) -> u8 {
    let tell = |failure: Failure| eprintln!("braid: {}", failure.text());
    let Ok(answers) = ask(options, places).map_err(tell) else { return 4 };
    let worst = answers.iter().map(|(_, answer)| brief::test(answer.as_ref())).max().unwrap_or(0);
    show(options, answers).unwrap_or_else(tell);
    worst
}

fn print(options: &cli::Status, places: &Places) -> Result<(), Failure> {
    show(options, ask(options, places)?)
}

/// A volume's name, and how it is or why that is not known.
type Answer = (String, Result<Status, Failure>);

/// The volume that is named, or all that are up; those that do not answer are waited for together.
fn ask(options: &cli::Status, places: &Places) -> Result<Vec<Answer>, Failure> {
    let names = match &options.name {
        Some(name) => {
            check_name(name)?;
            vec![name.clone()]
        }
        None => places.running_names()?,
    };
    let sockets: Vec<_> = names.iter().map(|name| places.control(name)).collect();
    sockets.iter().for_each(|socket| verbose!("asks {}", socket.display()));
    let answers = control::get_statuses(&sockets);
    let judged = |(name, answer): (String, Result<Status, ControlError>)| {
        let answer = answer.map_err(|error| silent(places, &name, &error));
        (name, answer.map(|status| disks::asked(options, status)))
    };
    let is_shown = |(_, answer): &Answer| {
        let is_well = |status: &Status| status.problems().is_empty();
        !options.problems || !answer.as_ref().is_ok_and(is_well)
    };
    let mut all: Vec<Answer> =
        names.into_iter().zip(answers).map(judged).filter(is_shown).collect();
    if options.problems {
        all.sort_by_key(|(_, answer)| {
            Reverse(answer.as_ref().map_or(Severity::Critical, Status::severity))
        });
    }
    Ok(all)
}

/// Prints what was answered; of one volume that was named, its failure is the command's.
fn show(options: &cli::Status, answers: Vec<Answer>) -> Result<(), Failure> {
    write_out(&text(options, answers)?)
}

fn text(options: &cli::Status, mut answers: Vec<Answer>) -> Result<String, Failure> {
    if options.name.is_some()
        && let Some((_, Err(_))) = answers.first()
        && let (_, Err(failure)) = answers.remove(0)
    {
        return Err(failure);
    }
    if options.export {
        let answered = answers.first().and_then(|(_, answer)| answer.as_ref().ok());
        let which = options.which.array.as_deref();
        return answered.map_or(Ok(String::new()), |status| brief::export(status, which));
    }
    Ok(render_all(options, &answers))
}

/// Fails if the reader of the output is gone, which ends a watch.
fn write_out(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    out.write_all(shown_lines(text).as_bytes())
        .and_then(|()| out.flush())
        .context("standard output")
}

/// Why a volume does not say how it is.
fn silent(places: &Places, name: &str, error: &ControlError) -> Failure {
    match error {
        ControlError::Unreachable(error)
            if error.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            Failure::failed(format!("{name}: {error}")).next("as its owner")
        }
        ControlError::Unreachable(_)
            if places.traces(name).exists() || places.control(name).exists() =>
        {
            Failure::failed(format!("{name}: its process is gone")).next(format!(
                "`braid down {name}` removes what it left, `braid up {name}` starts it again"
            ))
        }
        ControlError::Unreachable(_) if places.config_file(name).exists() => Failure::failed(
            format!("no volume called {name} is up, but one is known"),
        )
        .next(format!(
            "`braid up {name}`; if its array does not start, that says how `braid rescue` reads it"
        )),
        ControlError::Unreachable(_) => Failure::failed(format!("no volume called {name} is up"))
            .next("`braid status` lists those that are"),
        other => Failure::failed(format!("{name}: {other}"))
            .next(format!("`braid down {name} --force` ends its process and gets the device back")),
    }
}

fn render_all(options: &cli::Status, answers: &[Answer]) -> String {
    if options.json {
        let statuses = || answers.iter().filter_map(|(_, answer)| answer.as_ref().ok());
        let volumes: Vec<_> = statuses().map(Status::with_health).collect();
        let silent = answers.iter().any(|(_, answer)| answer.is_err());
        let all = statuses().map(Status::health).chain(silent.then_some(Health::Stalled));
        let unanswered: Vec<_> = answers
            .iter()
            .filter_map(|(name, answer)| Some((name, answer.as_ref().err()?.text())))
            .map(|(name, error)| serde_json::json!({ "name": name, "error": error }))
            .collect();
        let json = serde_json::json!({
            "output_version": OUTPUT_VERSION,
            "health": Health::of_all(all),
            "volumes": volumes,
            "unanswered": unanswered,
        });
        return format!("{json}\n");
    }
    if options.brief {
        return brief::brief(answers.iter().map(|(name, answer)| (name.as_str(), answer.as_ref())));
    }
    if answers.is_empty() {
        return match options.problems {
            true => "all volumes that are up are well\n".to_owned(),
            false => "no volumes are up\n".to_owned(),
        };
    }
    if options.name.is_none() {
        let answers = answers.iter().map(|(name, answer)| (name.as_str(), answer.as_ref()));
        return overview::overview(answers, width());
    }
    let volumes: Vec<String> = answers
        .iter()
        .map(|(_, answer)| match answer {
            Ok(status) => render(status),
            Err(failure) => format!("{}\n", failure.text()),
        })
        .collect();
    volumes.join("\n")
}

/// Renders one volume: state, reason and next command first; then its parts and what they have done.
pub(crate) fn render(status: &Status) -> String {
    let mut lines: Vec<(&str, String)> =
        vec![("volume", status.name.clone()), ("state", status.state.clone())];
    let told = [("why", &status.why), ("next", &status.next)];
    lines.extend(told.into_iter().filter_map(|(key, text)| Some((key, text.clone()?))));
    lines.push(("stack", status.stack.clone()));
    lines.push(("size", size(&status.device)));
    lines.extend(status.exports.iter().flat_map(export_lines));
    lines.extend(waited::line(status).map(|text| ("latency", text)));
    lines.push(("process", process(status)));
    let outdated = brief::outdated(status, env!("CARGO_PKG_VERSION"));
    lines.extend(outdated.map(|text| ("version", text)));
    lines.extend(status.trace.as_ref().map(|trace| ("trace", trace_of(trace))));
    // State and reason are in the first lines.
    let state = format!("{}: ", status.state);
    for problem in status.problems().iter().filter(|one| !one.what.starts_with(&state)) {
        let next = problem.next.as_ref().map_or(String::new(), |next| format!(" (next: {next})"));
        lines.push((problem.severity.word(), format!("{}{next}", problem.what)));
    }
    let lines = lines.iter().map(|(key, value)| format!("{key:>8}: {}\n", shown(value)));
    let several = status.arrays.len() > 1;
    let arrays = status.arrays.iter().map(|array| array::render(array, status, several));
    let rams = status.rams.iter().map(memory::ram);
    let caches = status.caches.iter().map(memory::cache);
    lines.chain(arrays).chain(rams).chain(caches).chain([members(status)]).collect()
}

fn size(device: &DeviceStatus) -> String {
    let mut size = format!(
        "{:#}, blocks of {} bytes",
        ByteSize(device.size_bytes),
        device.logical_block_bytes
    );
    for (is, word) in [
        (device.read_only, "read-only"),
        (device.volatile, "in memory only"),
        (device.locked, "locked"),
    ] {
        if is {
            size = format!("{size}, {word}");
        }
    }
    size
}

fn process(status: &Status) -> String {
    format!(
        "{}, up {}, {}, {} {}, {:#} in memory, {:#} locked{}",
        status.pid,
        duration(status.uptime_seconds),
        status.io,
        status.shards,
        if status.shards == 1 { "shard" } else { "shards" },
        ByteSize(status.memory_bytes),
        ByteSize(status.memory_locked_bytes),
        match status.memory_most_bytes {
            // Of a process of an earlier version.
            0 => String::new(),
            most => format!(
                "; requests keep {:#} and take up to {:#}",
                ByteSize(status.memory_kept_bytes),
                ByteSize(most)
            ),
        }
    )
}

fn trace_of(trace: &TraceStatus) -> String {
    let text = format!(
        "{}: {} requests, {:#} of at most {:#}, {} not recorded",
        trace.path,
        trace.requests,
        ByteSize(trace.size_bytes),
        ByteSize(trace.size_limit_bytes),
        trace.dropped
    );
    match &trace.stopped {
        Some(why) => format!("{text}; stopped: {why}"),
        None => text,
    }
}

/// Renders the members that no array lists.
fn members(status: &Status) -> String {
    let of_arrays = status.arrays.iter().flat_map(|array| &array.members);
    let listed: Vec<&str> = of_arrays.map(|member| member.member.as_str()).collect();
    let members = status.members.iter().filter(|one| !listed.contains(&one.member.as_str()));
    let lines: String = members.map(|member| member_lines(status, member)).collect();
    if lines.is_empty() { lines } else { format!(" members:\n{lines}") }
}

fn member_lines(status: &Status, member: &MemberStatus) -> String {
    let how = match (member.failures, member.direct) {
        (0, Some(false)) => "ok, through the page cache".to_owned(),
        (0, _) => "ok".to_owned(),
        (count, _) => {
            let last = member.last_failure.as_deref().unwrap_or("unknown");
            format!("{count} failures, last: {last}")
        }
    };
    let size = format!("{:#}", ByteSize(member.size_bytes));
    let (name, disk) = (shown(&member.member), disks::of(status, &member.member));
    let remote = remotes::of(status, &member.member);
    format!("          {size:>10}  {how:<6}  {name}\n{remote}{disk}")
}

/// Returns the lines of an export: its addresses, and of one with clients what they have asked for.
fn export_lines(export: &ExportStatus) -> Vec<(&str, String)> {
    let ExportStatus { kind, address, counts, .. } = export;
    if export.is_device() {
        let link = export.link.as_ref().map_or(String::new(), |link| format!("{link}, "));
        let over = match export.transport.as_deref() {
            Some("uring") => " over io_uring",
            _ => "",
        };
        return vec![("device", format!("{link}{address} (by {kind}{over})"))];
    }
    let mut lines: Vec<_> = export.uris.iter().map(|uri| (kind.as_str(), uri.clone())).collect();
    if !export.users.is_empty() {
        lines.push(("users", export.users.join(", ")));
    }
    lines.extend(export.tls.as_ref().map(|tls| ("tls", tls.in_words())));
    lines.push((
        "clients",
        format!(
            "{} connected; {} requests, {:.1} a receive, {:.1} replies a send, {} errors",
            export.connections,
            counts.requests,
            counts.requests_per_receive(),
            counts.replies_per_send(),
            counts.errors
        ),
    ));
    lines
}

/// The columns of the terminal that standard output is, if it is one.
fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

fn duration(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}
