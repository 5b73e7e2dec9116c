//! What can be typed to look at volumes as they work.

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Keys: q ends; b sorts by bytes, l by latency, i by requests under way, e by errors, n as the stack \
                        has them. Where standard output is no terminal, it prints a table each interval."
)]
pub(crate) struct Top {
    /// The volume's name [default: all]
    pub(crate) name: Option<String>,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) interval: std::time::Duration,
    /// End after so many tables
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

/// A tenth of a second to an hour.
pub(crate) fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    let seconds = seconds.ok_or_else(|| "it is no number from 0.1 to 3600".to_owned())?;
    Ok(std::time::Duration::from_secs_f64(seconds))
}
