//! `braid model …` and `braid advise`: what can be typed of device models.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::lab::{LabFormat, LabTarget};

#[derive(Debug, Subcommand)]
pub(crate) enum Model {
    /// List the profiles of devices, buses and hosts that come with braid
    List(ModelList),
    /// Show the constants of a profile, each with where it comes from
    Show(ModelShow),
    /// Measure a device and write its profile; reads only, unless it is to be destroyed
    Fit(super::model_fit::ModelFit),
    /// Predict a campaign of the laboratory: what its tools would say of the modelled devices
    Predict(Box<ModelPredict>),
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
                  braid model predict cruzer-6x\n  \
                  braid model predict quick --baseline 'model(rally2, size=2G)' \\\n    \
                  --subject 'stripe=raid0(chunk=64K, model(rally2, size=2G, bus=a), model(rally2, size=2G, bus=a))'\n  \
                  braid lab compare cruzer-6x-predicted cruzer-6x-results\n\n\
                  Nothing is measured, and no device is looked at. Members of a preset are models unless \
                  --member names others. What can be predicted: docs/laboratory.md.")]
pub(crate) struct ModelPredict {
    #[command(flatten)]
    pub(crate) target: LabTarget,
    /// The folder for the predictions, which is no folder of measurements [default: NAME-predicted]
    #[arg(long, visible_alias = "out", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// The reports to write [default: all]
    #[arg(long, value_name = "FORMAT", value_enum, value_delimiter = ',')]
    pub(crate) format: Vec<LabFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                  braid advise 'cruzer-titanium*6@usb2:0' --workload seq-read\n  \
                  braid advise rally2@a rally2@b --workload database --need redundancy\n  \
                  braid advise ./mine.toml ./mine.toml --workload ./trace.log\n  \
                  braid advise 'rally2*4' 'sata-7200*2' --workload files --need price --price rally2=8EUR --price sata-7200=60EUR\n  \
                  braid advise /dev/sdb /dev/sdc=./mine.toml --workload seq-read\n\n\
                  Workloads by name: seq-read, seq-write, streams, random-read, random-write, database, files.\n\
                  A device is fitted as `braid model fit` does it, or has the profile that is given after `=`. \
                  Devices are only read, unless --destroy names each again; the best layouts are then measured, \
                  also for workloads that write.")]
pub(crate) struct Advise {
    /// A device or image file, a profile's name, or a file that holds one; `*4` for four of a profile, `@BUS`
    /// for those that share a bus
    #[arg(required = true, value_name = "DEVICE[=PROFILE][@BUS]|PROFILE[*COUNT][@BUS]")]
    pub(crate) members: Vec<String>,
    /// What it is for: a name, a job file of fio, or a trace (fio's iolog, blkparse's text)
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) workload: String,
    /// What matters most
    #[arg(long, value_enum, default_value_t = AdviseNeed::Balanced)]
    pub(crate) need: AdviseNeed,
    /// The size of each member whose profile has none, such as 500G
    #[arg(long)]
    pub(crate) size: Option<braid_stack::ByteSize>,
    /// The price of a member, by its name or its profile's, such as rally2=20EUR; the currency is a word of your own,
    /// or none. The answer then has MB/s for the money, and the price of a TB
    #[arg(long, value_name = "MEMBER=PRICE")]
    pub(crate) price: Vec<String>,
    /// The watts that a member draws, such as sata-7200=6.5; the answer then has MB/s per W
    #[arg(long, value_name = "MEMBER=WATTS")]
    pub(crate) watts: Vec<String>,
    /// Write to this device as well, to fit and to measure it: ALL THAT IS ON IT IS LOST
    #[arg(long, value_name = "DEVICE")]
    pub(crate) destroy: Vec<PathBuf>,
    /// How long the fit of each device may take, such as 90s, 5m
    #[arg(long, value_name = "LIMIT", default_value = "10m", value_parser = super::lab::parse_time)]
    pub(crate) time: Duration,
    /// How often each of the best layouts is measured; fewer repetitions say less about the scatter
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: u32,
    /// Keep what is measured in this folder, for `braid lab report` [default: it is not kept]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
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
    /// Bytes per second, and redundancy where it costs less of them than predictions are off
    Balanced,
    /// Room for data, with redundancy
    Capacity,
    /// A member may be lost
    Redundancy,
    /// Bytes per second, without regard to redundancy
    Throughput,
    /// What a request takes
    Latency,
    /// Bytes per second for the money; of a trace the least money that keeps up with it. Needs --price
    Price,
}
