//! Metrics: the name of a number, its unit, and the better direction.
//!
//! Invariants: names are unique and never change, because stores hold them. A number is always in its metric's
//! unit, which is SI or a plain count; renderers choose the units for display.

use std::fmt;

/// The better direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better: rates.
    Higher,
    /// Less is better: times.
    Lower,
    /// The number describes the trial and is not compared.
    Neither,
}

macro_rules! metrics {
    ($($variant:ident $name:literal $unit:literal $better:ident $about:literal)*) => {
        /// The meaning of a number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $(#[doc = $about] $variant,)*
        }

        /// Every metric, in the order of reports.
        pub const METRICS: &[Metric] = &[$(Metric::$variant,)*];

        impl Metric {
            /// Returns the name in the store, the unit, the better direction, and the meaning.
            pub fn about(self) -> (&'static str, &'static str, Better, &'static str) {
                match self {
                    $(Self::$variant => ($name, $unit, Better::$better, $about),)*
                }
            }
        }
    };
}

metrics! {
    Throughput "throughput" "B/s" Higher "bytes moved per second"
    Iops "iops" "1/s" Higher "requests completed per second"
    Seconds "seconds" "s" Lower "wall time from the first start to the last end"
    LatencyMean "latency_mean" "ns" Lower "mean completion time"
    LatencyMin "latency_min" "ns" Lower "the fastest request"
    LatencyP50 "latency_p50" "ns" Lower "half of the requests took at most this"
    LatencyP95 "latency_p95" "ns" Lower "95 % of the requests took at most this"
    LatencyP99 "latency_p99" "ns" Lower "99 % of the requests took at most this"
    LatencyP999 "latency_p99_9" "ns" Lower "99.9 % of the requests took at most this"
    LatencyMax "latency_max" "ns" Lower "the slowest request"
    CachedThroughput "cached_throughput" "B/s" Neither "bytes per second out of the page cache (hdparm -T)"
    DirectCachedThroughput "direct_cached_throughput" "B/s" Neither "bytes per second of the same 2 MiB, read again and again past the page cache (hdparm -T --direct)"
    SpreadOfProcesses "spread_of_processes" "1" Lower "the slowest process's time over the fastest's: 1 is fair"
    Fairness "fairness" "1" Higher "Jain's index over processes or threads: 1 is fair"
    BonniePutc "bonnie_putc" "B/s" Higher "bonnie++: sequential output, per character"
    BonnieWrite "bonnie_write" "B/s" Higher "bonnie++: sequential output, block"
    BonnieRewrite "bonnie_rewrite" "B/s" Higher "bonnie++: sequential output, rewrite"
    BonnieGetc "bonnie_getc" "B/s" Higher "bonnie++: sequential input, per character"
    BonnieRead "bonnie_read" "B/s" Higher "bonnie++: sequential input, block"
    BonnieSeeks "bonnie_seeks" "1/s" Higher "bonnie++: random seeks per second"
    BonnieSeqCreate "bonnie_seq_create" "1/s" Higher "bonnie++: files created in sequence per second"
    BonnieSeqStat "bonnie_seq_stat" "1/s" Higher "bonnie++: files read in sequence per second"
    BonnieSeqDelete "bonnie_seq_delete" "1/s" Higher "bonnie++: files deleted in sequence per second"
    BonnieRanCreate "bonnie_ran_create" "1/s" Higher "bonnie++: files created in random order per second"
    BonnieRanStat "bonnie_ran_stat" "1/s" Higher "bonnie++: files read in random order per second"
    BonnieRanDelete "bonnie_ran_delete" "1/s" Higher "bonnie++: files deleted in random order per second"
    BonniePutcLatency "bonnie_putc_latency" "ns" Lower "bonnie++: longest wait of output per character"
    BonnieWriteLatency "bonnie_write_latency" "ns" Lower "bonnie++: longest wait of block output"
    BonnieRewriteLatency "bonnie_rewrite_latency" "ns" Lower "bonnie++: longest wait of rewrite"
    BonnieGetcLatency "bonnie_getc_latency" "ns" Lower "bonnie++: longest wait of input per character"
    BonnieReadLatency "bonnie_read_latency" "ns" Lower "bonnie++: longest wait of block input"
    BonnieSeekLatency "bonnie_seek_latency" "ns" Lower "bonnie++: longest wait of a seek"
    BonnieSeqCreateLatency "bonnie_seq_create_latency" "ns" Lower "bonnie++: longest wait of creating a file in sequence"
    BonnieSeqStatLatency "bonnie_seq_stat_latency" "ns" Lower "bonnie++: longest wait of reading a file in sequence"
    BonnieSeqDeleteLatency "bonnie_seq_delete_latency" "ns" Lower "bonnie++: longest wait of deleting a file in sequence"
    BonnieRanCreateLatency "bonnie_ran_create_latency" "ns" Lower "bonnie++: longest wait of creating a file in random order"
    BonnieRanStatLatency "bonnie_ran_stat_latency" "ns" Lower "bonnie++: longest wait of reading a file in random order"
    BonnieRanDeleteLatency "bonnie_ran_delete_latency" "ns" Lower "bonnie++: longest wait of deleting a file in random order"
    ToolCpuUser "tool_cpu_user" "%" Neither "user time of the tool, of one core"
    ToolCpuSystem "tool_cpu_system" "%" Neither "system time of the tool, of one core"
    ServerCpu "server_cpu" "ns" Lower "processor time of the server per request"
    Requests "requests" "1" Neither "requests completed in the measured time"
    BytesRead "bytes_read" "B" Neither "bytes that the tool says it read in the measured time"
    BytesWritten "bytes_written" "B" Neither "bytes that the tool says it wrote in the measured time"
}

impl Metric {
    /// Returns the name in the store.
    pub fn name(self) -> &'static str {
        self.about().0
    }

    /// Returns the unit in the store.
    pub fn unit(self) -> &'static str {
        self.about().1
    }

    /// Returns the better direction.
    pub fn better(self) -> Better {
        self.about().2
    }

    /// Returns the meaning in words.
    pub fn describe(self) -> &'static str {
        self.about().3
    }

    /// Returns the metric with this name.
    pub fn find(name: &str) -> Option<Self> {
        let name = match name {
            // Names of random reads, one at a time, in older stores.
            "seek_rate" => "iops",
            "seek_time" => "latency_mean",
            name => name,
        };
        METRICS.iter().copied().find(|metric| metric.name() == name)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One number of one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The meaning and the unit.
    pub metric: Metric,
    /// The value; always finite.
    pub value: f64,
}

/// The distribution of latencies in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyBins {
    /// "read" or "write".
    pub op: &'static str,
    /// Latency in nanoseconds and its count, rising.
    pub bins: Vec<(u64, u64)>,
}

/// A quantity over the time of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeSeries {
    /// The meaning: [`Metric::Throughput`], [`Metric::Iops`] or [`Metric::LatencyMax`] of the slice (in older
    /// results also [`Metric::LatencyMean`]).
    pub metric: Metric,
    /// Milliseconds since the start of the measured time, and the value of the slice that ends there; rising in
    /// time.
    pub points: Vec<(u64, f64)>,
}

/// The numbers in a tool's output.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Numbers.
    pub samples: Vec<Sample>,
    /// Distributions, if the tool has them.
    pub latencies: Vec<LatencyBins>,
    /// Courses over time, if the tool has them.
    pub series: Vec<TimeSeries>,
}

impl Measured {
    /// Returns the value of a metric, if it was measured.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.samples.iter().find(|sample| sample.metric == metric).map(|sample| sample.value)
    }

    /// Adds a number; returns `None` if it is not finite.
    #[must_use]
    pub fn push(&mut self, metric: Metric, value: f64) -> Option<()> {
        value.is_finite().then(|| self.samples.push(Sample { metric, value }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for metric in METRICS {
            assert_eq!(Metric::find(metric.name()), Some(*metric));
        }
    }
}
