//! `braid trace show`: what a trace asks for, at a glance; and `replay`.

mod replay;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use braid_shell::{shell_path, shell_word};
use braid_stack::ByteSize;
use braid_trace::{Reader, Summary, Totals, Trace, TraceError};

use crate::cli;
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::{Context, Failure};

/// As much of the file is read at a time, in bytes.
const PIECE: usize = 1 << 20;
/// The longest bar, in characters.
const BAR: u64 = 40;

pub(super) fn trace(command: &cli::Trace) -> Result<(), Failure> {
    let text = match command {
        cli::Trace::Show(options) => show(options)?,
        cli::Trace::Replay(options) => replay::replay(options)?,
    };
    std::io::stdout().write_all(text.as_bytes()).context("standard output")
}

fn show(options: &cli::TraceShow) -> Result<String, Failure> {
    let trace = read(&options.file, options.of.as_deref())?;
    let summary = Summary::of(&trace);
    Ok(match options.json {
        true => format!("{}\n", json(&trace, &summary)),
        false => render(&options.file, &trace, &summary),
    })
}

fn read(path: &Path, of: Option<&str>) -> Result<Trace, Failure> {
    let name = path.display();
    let mut file = File::open(path).context(&name)?;
    let mut reader = Reader::new(of);
    let mut piece = vec![0; PIECE];
    let wrong = |error: TraceError| {
        let failure = Failure::usage(format!("{name}: {error}"));
        match &error {
            TraceError::Syntax(_) => failure,
            TraceError::Several { names, .. } | TraceError::NotThere { names, .. } => {
                match names.first() {
                    None => failure,
                    Some(first) => failure.next(format!(
                        "one of them: braid trace show {} --of {}",
                        shell_path(path),
                        shell_word(first)
                    )),
                }
            }
        }
    };
    loop {
        match file.read(&mut piece).context(&name)? {
            0 => return reader.finish().map_err(wrong),
            len => reader.push(&piece[..len]).map_err(wrong)?,
        }
    }
}

fn json(trace: &Trace, summary: &Summary) -> serde_json::Value {
    let totals = &summary.totals;
    let sizes = summary.sizes.iter().map(|class| {
        serde_json::json!({ "from_bytes": class.from, "reads": class.reads, "writes": class.writes })
    });
    let burst = summary
        .burst
        .map(|burst| serde_json::json!({ "median": burst.median, "largest": burst.largest }));
    let busiest = summary.busiest.map(|busiest| {
        let (second, requests, bytes) = (busiest.second, busiest.requests, busiest.bytes);
        serde_json::json!({ "second": second, "requests": requests, "bytes": bytes })
    });
    serde_json::json!({
        "output_version": OUTPUT_VERSION,
        "format": trace.format.name(),
        "of": trace.name,
        "has_times": trace.has_times,
        "torn_line": trace.torn_line,
        "duration_ns": totals.duration_ns,
        "reads": totals.reads,
        "writes": totals.writes,
        "fua_writes": totals.fua_writes,
        "discards": totals.discards,
        "flushes": totals.flushes,
        "read_bytes": totals.read_bytes,
        "written_bytes": totals.written_bytes,
        "discarded_bytes": totals.discarded_bytes,
        "read_share": totals.read_share(),
        "mean_bytes": totals.mean_length(),
        "sequential_share": totals.sequential_share(),
        "largest_end_bytes": totals.largest_end,
        "working_set_bytes": summary.working_set,
        "sizes": sizes.collect::<Vec<_>>(),
        "burst": burst,
        "busiest": busiest,
    })
}

fn render(path: &Path, trace: &Trace, summary: &Summary) -> String {
    let totals = &summary.totals;
    let bytes = |bytes: u64| format!("{:#}", ByteSize(bytes));
    let mut text = String::new();
    let mut line = |key: &str, value: String| text.push_str(&format!("{key:>8}: {value}\n"));
    line("trace", format!("{} ({})", path.display(), trace.format.name()));
    if !trace.name.is_empty() {
        line("of", trace.name.clone());
    }
    if let Some(torn) = trace.torn_line {
        line("warning", format!("line {torn}, the last, has no end and does not count"));
    }
    let duration = match trace.has_times {
        true => format!("{:.6} s", totals.duration_ns as f64 / 1e9),
        false => "not told: it has no times".to_owned(),
    };
    line("duration", duration);
    let fua = match totals.fua_writes {
        0 => String::new(),
        count => format!(" ({count} with forced unit access)"),
    };
    let (count, Totals { reads, writes, discards, flushes, .. }) = (trace.requests.len(), totals);
    let kinds =
        format!("{reads} reads, {writes} writes{fua}, {discards} discards, {flushes} flushes");
    line("requests", format!("{count}: {kinds}"));
    let [read, written, discarded] =
        [totals.read_bytes, totals.written_bytes, totals.discarded_bytes].map(bytes);
    line("bytes", format!("{read} read, {written} written, {discarded} discarded"));
    let [touched, end] = [summary.working_set, totals.largest_end].map(bytes);
    line("where", format!("{touched} at least once, below {end}"));
    if let Some(share) = totals.sequential_share() {
        let share = share * 100.0;
        line("sequence", format!("{share:.1} % begin where one of the 16 before ended"));
    }
    if let Some(burst) = summary.burst {
        let (median, largest) = (burst.median, burst.largest);
        let half = format!("{median} at once or fewer, for half of the requests");
        line("depth", format!("{half}; {largest} at most (those within 100 µs)"));
    }
    if let Some(busiest) = summary.busiest {
        let (second, requests) = (busiest.second, busiest.requests);
        line("busiest", format!("second {second}: {requests} requests, {}", bytes(busiest.bytes)));
    }
    if let Some(mean) = totals.mean_length() {
        line("sizes", format!("{} in the mean", bytes(mean.round() as u64)));
    }
    let largest = summary.sizes.iter().map(|class| class.reads + class.writes).max().unwrap_or(1);
    for class in &summary.sizes {
        let (from, reads, writes) = (bytes(class.from), class.reads, class.writes);
        let marks = ((reads + writes) * BAR).div_ceil(largest);
        let bar = "#".repeat(usize::try_from(marks).unwrap_or(0));
        text += &format!("          {from:>10}  {reads:>9} reads {writes:>9} writes  {bar}\n");
    }
    text
}
