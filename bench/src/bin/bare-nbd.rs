//! The bare socket as a program: `bare-nbd --socket PATH` serves 1 GiB until it is ended.

use std::path::Path;
use std::process::ExitCode;

use braid_bench::args::{Args, finish};
use braid_bench::bare::BareServer;
use braid_bench::{Error, Result};

const USAGE: &str = "bare-nbd --socket PATH";

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let args = Args::from_command_line(&["--socket"], USAGE)?;
    let socket = args.text("--socket").ok_or_else(|| Error::Usage(USAGE.to_owned()))?;
    BareServer::listen(Path::new(socket), 1 << 30)?.run()
}
