//! Arguments of `braid top`.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Keys: q quits; b sorts by bytes, l by latency, i by requests in \
                        flight, e by errors, n in the order of the stack. If standard output \
                        is not a terminal, prints one table per interval.")]
pub(crate) struct Top {
    /// Name of the volume [default: all]
    pub(crate) name: Option<String>,
    /// Refresh interval in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) interval: std::time::Duration,
    /// Follow the requests for one interval and print the slowest, with the time that each member took
    #[arg(long, conflicts_with = "count")]
    pub(crate) slow: bool,
    /// Exit after this number of tables
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

/// Parses a time from a tenth of a second to an hour.
pub(crate) fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    let seconds = seconds.ok_or_else(|| "not a number from 0.1 to 3600".to_owned())?;
    Ok(std::time::Duration::from_secs_f64(seconds))
}
