//! Arguments of `braid trace`, and of `--trace`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use braid_stack::ByteSize;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Trace {
    /// Summarize a trace: amounts, request sizes, rates, offsets
    Show(TraceShow),
    /// Replay a trace on a device at its original times, and report the latencies
    Replay(TraceReplay),
}

#[derive(Debug, Args)]
#[command(after_help = "Reads recordings of `braid up … --trace FILE`, fio iologs of version \
                        2 or 3 (`fio --write_iolog`), and the text that `blkparse` prints.")]
pub(crate) struct TraceShow {
    /// The trace
    pub(crate) file: PathBuf,
    /// Select one device (such as 8,0) or file of a trace that has several
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
                  Requests bypass the page cache. Offsets beyond the end of the device wrap around; discards are \
                  skipped.")]
pub(crate) struct TraceReplay {
    /// The trace
    pub(crate) file: PathBuf,
    /// The device or image file to replay on
    #[arg(long, value_name = "DEVICE")]
    pub(crate) on: PathBuf,
    /// Permit writes to this device, the same as in --on: ALL DATA ON IT IS LOST
    #[arg(long, value_name = "DEVICE")]
    pub(crate) destroy: Option<PathBuf>,
    /// Replay only the reads
    #[arg(long, conflicts_with = "destroy")]
    pub(crate) reads_only: bool,
    /// Skip the check whether the device is in use: the caller holds it, as the laboratory does
    #[arg(long)]
    pub(crate) held: bool,
    /// Replay only the busiest part of this length, such as 30s, 5m
    #[arg(long, value_name = "TIME", value_parser = super::lab::parse_time)]
    pub(crate) part: Option<Duration>,
    /// Issue no request after this time, such as 60s, if the device is slower than the trace
    #[arg(long, value_name = "TIME", value_parser = super::lab::parse_time)]
    pub(crate) limit: Option<Duration>,
    /// Use only the first SIZE bytes of the device, such as 1G
    #[arg(long, value_name = "SIZE")]
    pub(crate) region: Option<ByteSize>,
    /// Select one device (such as 8,0) or file of a trace that has several
    #[arg(long, value_name = "DEVICE|FILE")]
    pub(crate) of: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// File and maximum size of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceArg {
    pub(crate) file: PathBuf,
    pub(crate) size: ByteSize,
}

/// Default maximum size of a trace: some two million requests.
const USUAL: ByteSize = ByteSize(64 << 20);
/// Minimum of the maximum size.
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
