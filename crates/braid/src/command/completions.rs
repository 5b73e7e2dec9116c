//! `braid completions`: what a shell needs to complete braid's command line.

use std::io::Write;

use clap::CommandFactory;

use crate::cli::{Cli, Completions};
use crate::failure::{Context, Failure};

pub(super) fn completions(options: &Completions) -> Result<(), Failure> {
    // Written in one go: a reader that has left is an error, not a panic of the generator.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "braid", &mut script);
    std::io::stdout().write_all(&script).context("standard output")
}
