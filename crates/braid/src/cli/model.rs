//! `braid model …` and `braid advise`: what can be typed of device models.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum Model {
    /// List the profiles of devices, buses and hosts that come with braid
    List(ModelList),
    /// Show the constants of a profile, each with where it comes from
    Show(ModelShow),
    /// Measure a device and write its profile; reads only, unless it is to be destroyed
    Fit(super::model_fit::ModelFit),
}

#[derive(Debug, Args)]
pub(crate) struct ModelList {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ModelShow {
    /// A profile's name, or a file that holds one
    #[arg(value_name = "NAME|FILE.toml")]
    pub(crate) profile: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                  braid advise 'cruzer-titanium*6@usb2:0' --workload seq-read\n  \
                  braid advise rally2@a rally2@b --workload database --need redundancy\n  \
                  braid advise ./mine.toml ./mine.toml --workload ./trace.log\n\n\
                  Workloads by name: seq-read, seq-write, streams, random-read, random-write, database, files.")]
pub(crate) struct Advise {
    /// A profile's name, or a file that holds one; `*4` for four of them, `@BUS` for those that share a bus
    #[arg(required = true, value_name = "PROFILE|FILE.toml[*COUNT][@BUS]")]
    pub(crate) members: Vec<String>,
    /// What it is for: a name, a job file of fio, or a trace (fio's iolog, blkparse's text)
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) workload: String,
    /// What matters most
    #[arg(long, value_enum, default_value_t = AdviseNeed::Throughput)]
    pub(crate) need: AdviseNeed,
    /// The size of each member, such as 500G, where its profile has none
    #[arg(long)]
    pub(crate) size: Option<braid_stack::ByteSize>,
    /// Write a page with the curves to this file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What matters most in a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AdviseNeed {
    /// Room for data
    Capacity,
    /// A member may be lost
    Redundancy,
    /// Bytes per second
    Throughput,
    /// What a request takes
    Latency,
    /// Few members, for nine tenths of the best throughput
    Price,
}
