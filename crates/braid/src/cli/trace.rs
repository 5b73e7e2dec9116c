//! `--trace`, and `braid trace …`: what can be typed of traces.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use braid_stack::ByteSize;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Trace {
    /// Say what a trace asks for: how much, of what size, how often, where
    Show(TraceShow),
    /// Ask a device for what a trace asks for, each request at its time, and say what it took
    Replay(TraceReplay),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Traces are what `braid up … --trace FILE` records, `fio --write_iolog` writes (fio's \
                  iolog, version 2 or 3), or `blkparse` prints of what blktrace recorded."
)]
pub(crate) struct TraceShow {
    /// The trace
    pub(crate) file: PathBuf,
    /// Of a trace of several devices (such as 8,0) or files: this one
    #[arg(long, value_name = "DEVICE|FILE")]
    pub(crate) of: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                  braid trace replay home.trace --on /dev/sdb --reads-only\n  \
                  braid trace replay home.trace --on /dev/sdb --part 30s --destroy /dev/sdb\n\n\
                  Requests are past the page cache. Places behind the end of the device are counted from its \
                  beginning again; discards are left out.")]
pub(crate) struct TraceReplay {
    /// The trace
    pub(crate) file: PathBuf,
    /// The device or image file that is asked
    #[arg(long, value_name = "DEVICE")]
    pub(crate) on: PathBuf,
    /// Write to this device, the one of --on again: ALL THAT IS ON IT IS LOST
    #[arg(long, value_name = "DEVICE")]
    pub(crate) destroy: Option<PathBuf>,
    /// Leave out all but the reads
    #[arg(long, conflicts_with = "destroy")]
    pub(crate) reads_only: bool,
    /// Do not ask whether others use the device: who starts this holds it, as the laboratory does
    #[arg(long)]
    pub(crate) held: bool,
    /// Only the part of this length in which most bytes are moved, such as 30s, 5m
    #[arg(long, value_name = "TIME", value_parser = super::lab::parse_time)]
    pub(crate) part: Option<Duration>,
    /// Begin nothing after this time, such as 60s, where the device is too slow for the trace
    #[arg(long, value_name = "TIME", value_parser = super::lab::parse_time)]
    pub(crate) limit: Option<Duration>,
    /// Keep to so many bytes from the beginning of the device, such as 1G
    #[arg(long, value_name = "SIZE")]
    pub(crate) region: Option<ByteSize>,
    /// Of a trace of several devices (such as 8,0) or files: this one
    #[arg(long, value_name = "DEVICE|FILE")]
    pub(crate) of: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where a trace is recorded, and how large it may get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceArg {
    pub(crate) file: PathBuf,
    pub(crate) size: ByteSize,
}

/// How large a trace gets if nothing is said: some two million requests.
const USUAL: ByteSize = ByteSize(64 << 20);
/// Less is no trace.
const LEAST: ByteSize = ByteSize(4 << 10);

impl FromStr for TraceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<TraceArg, String> {
        let (file, size) = match text.rsplit_once(",size=") {
            Some((file, size)) => (file, size.parse().map_err(|error| format!("size: {error}"))?),
            None => (text, USUAL),
        };
        if let Some((_, parameter)) = file.rsplit_once(',').filter(|(_, rest)| rest.contains('=')) {
            return Err(format!("a trace has no parameter {parameter:?}, only size"));
        }
        match file.is_empty() {
            true => Err("the file is missing".to_owned()),
            false if size < LEAST => Err(format!("size: at least {LEAST}")),
            false => Ok(TraceArg { file: PathBuf::from(file), size }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_how_large_it_may_get() {
        let arg =
            |file: &str, bytes| Ok(TraceArg { file: PathBuf::from(file), size: ByteSize(bytes) });
        let read = |text: &str| text.parse::<TraceArg>();
        assert_eq!(read("t.log"), arg("t.log", 64 << 20));
        assert_eq!(read("/a,b/t.log,size=4K"), arg("/a,b/t.log", 4096));
        for (text, word) in [
            ("", "missing"),
            (",size=1M", "missing"),
            ("t,size=4095", "at least 4K"),
            ("t,size=x", "size: "),
            ("t,sise=1M", "no parameter \"sise=1M\""),
            ("t,size=1M,depth=2", "size: "),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
