//! The commands, one file each.

mod advise;
mod assemble;
mod by_service;
mod cache;
mod cat;
mod completions;
mod create;
mod direct;
mod disks;
mod doctor;
mod down;
mod examine;
mod files;
mod forget;
#[cfg(test)]
mod fuzz;
mod given;
mod incremental;
mod lab;
mod listing;
mod local_time;
mod man;
mod mdstat;
mod member;
mod metrics;
mod model;
mod monitor;
mod order;
mod owners;
mod page;
mod past;
mod rescue;
mod screen;
mod scrub_parts;
mod scrubbed;
mod serve;
mod several;
mod stacks;
mod status;
mod superblocks;
mod top;
mod trace;
mod undo;
mod up;
mod web;
mod whole;
mod wipe;

use std::path::Path;
use std::process::ExitCode;

use clap::FromArgMatches as _;

use crate::cli::{Cli, Command, command};
use braid_service::failure::Failure;

/// Does what was typed.
pub(crate) fn main() -> Result<ExitCode, Failure> {
    std::env::args_os().for_each(|word| braid_service::log::note_path(Path::new(&word)));
    let matches = command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    braid_service::log::set_verbose(cli.verbose);
    run(cli)
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Up(up) => up::up(&up),
        Command::Serve(serve) => serve::serve(&serve),
        Command::Down(down) => down::down(&down),
        Command::Status(status) => return status::status(&status),
        Command::Metrics(options) => metrics::metrics(&options),
        Command::Top(options) => top::top(&options),
        Command::Mdstat => mdstat::print(),
        Command::Member(member) => member::member(&member),
        Command::Scrub(scrub) if scrub.is_in_parts() => scrub_parts::scrub(&scrub),
        Command::Scrub(scrub) => member::scrub(&scrub),
        Command::Grow(grow) => member::grow(&grow),
        Command::Lock(options) => whole::lock(&options),
        Command::Unlock(volume) => whole::unlock(&volume),
        Command::Forget(options) => forget::forget(&options),
        Command::Rename(options) => forget::rename(&options),
        Command::Erase(options) => whole::erase(&options),
        Command::Resize(options) => whole::resize(&options),
        Command::Save(options) => whole::save(&options),
        Command::Restore(options) => whole::restore(&options),
        Command::Speed(speed) => member::speed(&speed),
        Command::Cache(cache) => cache::cache(&cache),
        Command::Examine(examine) => examine::examine(&examine),
        Command::Disks(options) => disks::disks(&options),
        Command::Create(create) => create::create(&create),
        Command::Assemble(assemble) => assemble::assemble(&assemble),
        Command::Incremental(options) => incremental::incremental(&options),
        Command::Wipe(wipe) => wipe::wipe(&wipe),
        Command::Undo(undo) => undo::undo(&undo),
        Command::Superblocks(what) => superblocks::superblocks(&what),
        Command::Cat(cat) => cat::cat(&cat),
        Command::Files(files) => return files::files(&files),
        Command::Rescue(what) => return rescue::rescue(&what),
        Command::Trace(trace) => trace::trace(&trace),
        Command::Monitor(options) => return monitor::monitor(&options),
        Command::Doctor(doctor) => doctor::doctor(&doctor),
        Command::Web(options) => web::web(&options),
        Command::Lab(lab) => lab::lab(&lab),
        Command::Advise(options) => advise::advise(&options, lab::colour()),
        Command::Model(model) => model::model(&model),
        Command::Completions(options) => completions::completions(&options),
        Command::Man(options) => man::man(&options),
    }
    .map(|()| ExitCode::SUCCESS)
}
