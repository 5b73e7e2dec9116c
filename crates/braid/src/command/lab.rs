//! `braid lab`: the laboratory's command line.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use braid_lab::campaign::read_campaign;
use braid_lab::{Campaign, LabError, LabOptions, Preset, QuickOptions, StopFlag};

use crate::cli::{Lab, LabRun, LabTarget};
use crate::failure::Failure;

pub(super) fn lab(lab: &Lab) -> Result<(), Failure> {
    match lab {
        Lab::Presets => {
            for preset in braid_lab::presets() {
                println!("{:<12} {}", preset.name, preset.summary);
            }
            Ok(())
        }
        Lab::Plan(target) => {
            let plan = braid_lab::plan(&campaign(target)?).map_err(Failure::usage)?;
            print!("{}", braid_lab::plan::render_plan(&plan));
            Ok(())
        }
        Lab::Run(options) => run(options),
        Lab::Report { folder } => {
            let summary = braid_lab::report(folder, colour()).map_err(Failure::failed)?;
            print_summary(&summary);
            Ok(())
        }
    }
}

fn run(options: &LabRun) -> Result<(), Failure> {
    let campaign = campaign(&options.target)?;
    let folder = match &options.out {
        Some(folder) => folder.clone(),
        None => PathBuf::from(format!("{}-results", campaign.name)),
    };
    let mut lab = LabOptions::new(folder).map_err(Failure::failed)?;
    lab.destroy.clone_from(&options.destroy);
    lab.quiet = options.quiet;
    lab.colour = colour();
    lab.stop = StopFlag::on_signals().map_err(Failure::failed)?;
    let summary = braid_lab::run(&campaign, &lab).map_err(|error| match error {
        LabError::WouldDestroy { .. } => Failure::refused(error),
        error => Failure::failed(error),
    })?;
    print_summary(&summary);
    match &summary.tally {
        Some(tally) if tally.stopped => Err(Failure::interrupted(format!(
            "interrupted after {} of {} trials",
            tally.measured + tally.skipped,
            tally.planned
        ))
        .next("the same command goes on")),
        Some(tally) if tally.failed > 0 => {
            Err(Failure::failed(format!("{} trials failed", tally.failed))
                .next("the same command repeats them"))
        }
        _ => Ok(()),
    }
}

fn print_summary(summary: &braid_lab::Summary) {
    print!("{}", summary.table);
    println!("page: {}", summary.html.display());
}

/// What is to be measured: a file, or a preset over the stacks given.
fn campaign(target: &LabTarget) -> Result<Campaign, Failure> {
    let Some(preset) = Preset::find(&target.campaign) else {
        if !Path::new(&target.campaign).exists() {
            let names: Vec<&str> = braid_lab::presets().iter().map(|preset| preset.name).collect();
            return Err(Failure::usage(format!(
                "{:?} is neither a file nor a preset; presets are: {}",
                target.campaign,
                names.join(", ")
            )));
        }
        return read_campaign(Path::new(&target.campaign)).map_err(Failure::usage);
    };
    let Some(baseline) = &target.baseline else {
        return Err(Failure::usage(format!(
            "the preset {} compares stacks: --baseline STACK says with what",
            preset.name
        ))
        .next(format!(
            "braid lab run {} --baseline a.img --subject 'stripe=raid0(a.img, b.img)'",
            preset.name
        )));
    };
    let subjects = target.subject.iter().map(|text| named(text)).collect::<Result<Vec<_>, _>>()?;
    let campaign = preset.campaign(baseline, &subjects).map_err(Failure::usage)?;
    let options = QuickOptions {
        runtime_s: target.runtime,
        repetitions: target.repetitions,
        ..QuickOptions::default()
    };
    options.apply(campaign).map_err(Failure::usage)
}

fn named(text: &str) -> Result<(String, String), Failure> {
    // A stack has `=` of its own, but only inside parentheses.
    match text.split_once('=') {
        Some((name, stack)) if !name.contains('(') => Ok((name.to_owned(), stack.to_owned())),
        _ => Err(Failure::usage(format!("--subject {text:?}: NAME=STACK is wanted"))),
    }
}

/// Colour for people, unless they said no (<https://no-color.org>).
fn colour() -> bool {
    let no = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && !no
}
