//! Arguments of `braid model` and `braid advise`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::lab::{LabFormat, LabTarget};

#[derive(Debug, Subcommand)]
pub(crate) enum Model {
    /// List the built-in profiles of devices, buses and hosts
    List(ModelList),
    /// Show the constants of a profile and their sources
    Show(ModelShow),
    /// Measure a device and write its profile; only reads, unless --destroy is given
    Fit(super::model_fit::ModelFit),
    /// Predict the results of a laboratory campaign on modelled devices
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
    /// Name of a profile, or a file that contains one
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
                  Measures nothing and opens no device. The members of a preset are modelled unless --member \
                  names others. What can be predicted: docs/laboratory.md.")]
pub(crate) struct ModelPredict {
    #[command(flatten)]
    pub(crate) target: LabTarget,
    /// Folder for the predictions; it must not hold measurements [default: NAME-predicted]
    #[arg(long, visible_alias = "out", value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Reports to write [default: all]
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
                  Named workloads: seq-read, seq-write, streams, random-read, random-write, database, files.\n\
                  A device is fitted as by `braid model fit`, or uses the profile given after `=`, and the best layouts \
                  are measured on the devices. Devices are only read unless --destroy names each one again; workloads that \
                  write are measured only then.")]
pub(crate) struct Advise {
    /// A device, an image file, the name of a profile, or a profile file. `*4` means four devices
    /// of a profile; members with the same `@BUS` share a bus
    #[arg(required = true, value_name = "DEVICE[=PROFILE][@BUS]|PROFILE[*COUNT][@BUS]")]
    pub(crate) members: Vec<String>,
    /// The workload: a name, a fio job file, or a trace (a fio iolog, or the text that blkparse
    /// prints)
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) workload: String,
    /// Main criterion
    #[arg(long, value_enum, default_value_t = AdviseNeed::Balanced)]
    pub(crate) need: AdviseNeed,
    /// Size of each member whose profile has none, such as 500G
    #[arg(long)]
    pub(crate) size: Option<braid_stack::ByteSize>,
    /// Price of a member, by its name or the name of its profile, such as rally2=20EUR; the
    /// currency is optional, and any word. Adds MB/s per price and the price per TB
    #[arg(long, value_name = "MEMBER=PRICE")]
    pub(crate) price: Vec<String>,
    /// Power consumption of a member, such as sata-7200=6.5. Adds MB/s per W
    #[arg(long, value_name = "MEMBER=WATTS")]
    pub(crate) watts: Vec<String>,
    /// Also write to this device, to fit and to measure it: ALL DATA ON IT IS LOST
    #[arg(long, value_name = "DEVICE")]
    pub(crate) destroy: Vec<PathBuf>,
    /// Time limit for the fit of each device, such as 90s, 5m
    #[arg(long, value_name = "LIMIT", default_value = "10m", value_parser = super::lab::parse_time)]
    pub(crate) time: Duration,
    /// Number of measurements of each of the best layouts; few repetitions say little about the
    /// scatter
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: u32,
    /// Keep the measurements in this folder, for `braid lab report` [default: not kept]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write a page with the curves to this file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Main criterion for a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AdviseNeed {
    /// Throughput, with redundancy if that costs less than the prediction error
    Balanced,
    /// Space for data, with redundancy
    Capacity,
    /// The loss of a member must be survived
    Redundancy,
    /// Throughput, with or without redundancy
    Throughput,
    /// Latency of a request
    Latency,
    /// Throughput per price; for a trace, the cheapest layout that keeps up with it. Needs --price
    Price,
}
