//! The preset `quick` without the braid binary's command line:
//! `cargo run --example quick -- OUT BRAID BASELINE NAME=STACK... [--destroy PATH]...`;
//! with OUT alone it reports again.

use std::path::PathBuf;

use braid_lab::{LabOptions, StopFlag, quick_campaign};

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut destroy = Vec::new();
    while let Some(at) = words.iter().position(|word| word == "--destroy") {
        words.remove(at);
        destroy.push(PathBuf::from(words.remove(at)));
    }
    if let [out] = words.as_slice() {
        println!("{}", braid_lab::report(out.as_ref(), false)?.table);
        return Ok(());
    }
    let [out, braid, baseline, subjects @ ..] = words.as_slice() else {
        return Err("usage: quick OUT BRAID BASELINE NAME=STACK... [--destroy PATH]...".into());
    };
    let subjects: Vec<(String, String)> = subjects
        .iter()
        .filter_map(|word| word.split_once('='))
        .map(|(name, stack)| (name.to_owned(), stack.to_owned()))
        .collect();
    let campaign = quick_campaign(baseline, &subjects)?;
    print!("{}", braid_lab::plan::render_plan(&braid_lab::plan(&campaign)?));
    let options = LabOptions {
        braid_binary: PathBuf::from(braid),
        destroy,
        stop: StopFlag::on_signals()?,
        ..LabOptions::new(out)?
    };
    let summary = braid_lab::run(&campaign, &options)?;
    println!("{}\n{}", summary.table, summary.html.display());
    Ok(())
}
