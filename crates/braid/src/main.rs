//! `braid`: the command line, and the process that a volume is.
//!
//! Parsing, configuration and wiring only: what a stack does is in `braid-engine` and the crates
//! below it, what the laboratory does in `braid-lab`.

mod cli;
mod command;
mod control;
mod failure;
mod places;
mod process;
mod record;
mod volume;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match command::run(cli) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("braid: {}", failure.text());
            failure.exit_code()
        }
    }
}
