//! `braid status`: how volumes are.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use braid_stack::ByteSize;

use crate::cli;
use crate::control::{self, ControlError, OUTPUT_VERSION, Status};
use crate::failure::{Context, Failure};
use crate::places::{Places, check_name};

pub(super) fn status(options: &cli::Status) -> Result<(), Failure> {
    let places = Places::from_environment();
    if !options.watch {
        return print(options, &places);
    }
    let terminal = std::io::stdout().is_terminal();
    loop {
        if terminal && !options.json {
            // Home, and clear what is below.
            print!("\x1b[H\x1b[J");
        }
        print(options, &places)?;
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn print(options: &cli::Status, places: &Places) -> Result<(), Failure> {
    match &options.name {
        Some(name) => {
            check_name(name)?;
            let status = ask(places, name)?;
            write_out(&render_all(options, &[Ok(status)]))
        }
        None => {
            let names = places.running_names();
            let answers: Vec<_> = names.iter().map(|name| ask(places, name)).collect();
            write_out(&render_all(options, &answers))
        }
    }
}

/// Fails when nobody reads any more, which ends a watch.
fn write_out(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("standard output")
}

fn ask(places: &Places, name: &str) -> Result<Status, Failure> {
    control::get_status(&places.control(name)).map_err(|error| match error {
        ControlError::Unreachable(_)
            if places.traces(name).exists() || places.control(name).exists() =>
        {
            Failure::failed(format!("{name}: its process is gone")).next(format!(
                "`braid down {name}` removes what it left, `braid up {name}` starts it again"
            ))
        }
        ControlError::Unreachable(_) => Failure::failed(format!("no volume called {name} is up"))
            .next("`braid status` lists those that are"),
        other => Failure::failed(format!("{name}: {other}"))
            .next(format!("`braid down {name} --force` ends its process and gets the device back")),
    })
}

fn render_all(options: &cli::Status, answers: &[Result<Status, Failure>]) -> String {
    if options.json {
        let volumes: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
        let json = serde_json::json!({ "output_version": OUTPUT_VERSION, "volumes": volumes });
        return format!("{json}\n");
    }
    if answers.is_empty() {
        return "no volumes are up\n".to_owned();
    }
    let volumes: Vec<String> = answers
        .iter()
        .map(|answer| match answer {
            Ok(status) => render(status),
            Err(failure) => format!("{}\n", failure.text()),
        })
        .collect();
    volumes.join("\n")
}

/// State, why, what to do next; then what it is, and what it has done.
fn render(status: &Status) -> String {
    let mut lines = vec![("volume", status.name.clone()), ("state", status.state.clone())];
    if let Some(why) = &status.why {
        lines.push(("why", why.clone()));
    }
    if let Some(next) = &status.next {
        lines.push(("next", next.clone()));
    }
    let device = &status.device;
    let mut size = format!(
        "{:#}, blocks of {} bytes",
        ByteSize(device.size_bytes),
        device.logical_block_bytes
    );
    for (is, word) in [(device.read_only, "read-only"), (device.volatile, "in memory only")] {
        if is {
            size = format!("{size}, {word}");
        }
    }
    lines.push(("stack", status.stack.clone()));
    lines.push(("size", size));
    if let Some(attached) = &status.attached {
        lines.push(("device", format!("{} (by {})", attached.path, attached.by)));
    }
    if let Some(nbd) = &status.nbd {
        nbd.uris.iter().for_each(|uri| lines.push(("nbd", uri.clone())));
        lines.push((
            "clients",
            format!(
                "{} connected; {} requests, {:.1} a receive, {:.1} replies a send, {} errors",
                nbd.connections,
                nbd.requests,
                nbd.requests_per_receive,
                nbd.replies_per_send,
                nbd.errors
            ),
        ));
    }
    lines.push((
        "process",
        format!(
            "{}, up {}, {}, {} {}",
            status.pid,
            duration(status.uptime_seconds),
            status.io,
            status.shards,
            if status.shards == 1 { "shard" } else { "shards" }
        ),
    ));
    for warning in &status.warnings {
        lines.push(("warning", warning.clone()));
    }
    let mut text: String =
        lines.iter().map(|(key, value)| format!("{key:>8}: {value}\n")).collect();
    text.push_str(" members:\n");
    for member in &status.members {
        let how = match (member.failures, member.direct) {
            (0, Some(false)) => "ok, through the page cache".to_owned(),
            (0, _) => "ok".to_owned(),
            (count, _) => format!(
                "{count} failures, last: {}",
                member.last_failure.as_deref().unwrap_or("unknown")
            ),
        };
        let size = format!("{:#}", ByteSize(member.size_bytes));
        text.push_str(&format!("          {size:>10}  {how:<6}  {}\n", member.member));
    }
    text
}

fn duration(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}
