//! `braid lab`: the laboratory's command line.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use braid_lab::preset::{Choices, read_chosen};
use braid_lab::{Budget, Campaign, LabError, LabOptions, Preset, StopFlag};
use braid_lab_report::report::render::Formats;
use braid_lab_report::{Shown, Summary};
use braid_member::profile::modelled;
use braid_stack::Node;

use crate::cli::{Lab, LabCompare, LabFormat, LabHow, LabRun, LabTarget};
use braid_service::failure::Failure;
use braid_service::volume::check_stack;

pub(super) fn lab(lab: &Lab) -> Result<(), Failure> {
    match lab {
        Lab::Presets { name } => presets(name.as_deref()),
        Lab::Tools { name } => tools(name.as_deref()),
        Lab::Plan(wanted) => {
            let (campaign, options) = prepare(wanted)?;
            let plan = braid_lab::plan(&campaign, &options).map_err(refusal)?;
            print!("{}", braid_lab::plan::render_plan(&plan));
            Ok(())
        }
        Lab::Run(wanted) => {
            let (campaign, options) = prepare(wanted)?;
            run(&campaign, options, &wanted.how)
        }
        Lab::Resume { folder, repetitions, how } => {
            let mut campaign = braid_lab::held_campaign(folder).map_err(Failure::failed)?;
            let held = campaign.repetitions;
            campaign.repetitions = repetitions.unwrap_or(held);
            if campaign.repetitions < held {
                return Err(Failure::usage(format!(
                    "--repetitions {}: the campaign in {} has {held}",
                    campaign.repetitions,
                    folder.display()
                ))
                .next("give more, or leave it out to measure what is missing"));
            }
            run(&campaign, options(folder.clone(), how)?, how)
        }
        Lab::Report(options) if options.print_html => {
            print!("{}", braid_lab_report::page(&options.folder).map_err(Failure::failed)?);
            Ok(())
        }
        Lab::Report(options) => report(&options.folder, &options.format),
        Lab::List { folder, json } => {
            print!("{}", braid_lab_report::list(folder, *json).map_err(Failure::failed)?);
            Ok(())
        }
        Lab::Show { folder, cells } => {
            match braid_lab_report::show(folder, cells.as_deref()).map_err(Failure::failed)? {
                Shown::Cells(text) => print!("{text}"),
                Shown::Nothing(why) => return Err(Failure::failed(why)),
            }
            Ok(())
        }
        Lab::Compare(options) => compare(options),
    }
}

fn presets(name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else {
        for preset in braid_lab::presets() {
            println!("{:<16} {}", preset.name, preset.summary);
        }
        return Ok(());
    };
    let preset = Preset::find(name).ok_or_else(|| {
        Failure::usage(format!("{name:?} is not a preset; presets are: {}", preset_names()))
    })?;
    print!("{}", preset.toml);
    Ok(())
}

fn tools(name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else {
        for tool in braid_lab::tool::all() {
            println!("{:<12} {}", tool.name(), tool.about().summary);
        }
        return Ok(());
    };
    let tool = braid_lab::tool::find(name).ok_or_else(|| {
        let known = braid_lab::tool::names().join(", ");
        Failure::usage(format!("{name:?} is not a tool; tools are: {known}"))
    })?;
    let about = tool.about();
    println!("{}: {} (package {})\n", about.name, about.summary, about.package);
    println!("its parameters, each one value or a list:");
    print_parameters(tool.parameters());
    println!("\nof every job:");
    print_parameters(braid_lab::campaign::common_parameters());
    Ok(())
}

fn print_parameters(parameters: &[braid_lab::settings::Parameter]) {
    for parameter in parameters {
        let default = parameter.default.map_or_else(String::new, |text| format!(" [{text}]"));
        println!("  {:<16} {}: {}{default}", parameter.name, parameter.about, parameter.kind);
    }
}

/// Prepares `plan` and `run`: the campaign, and its options.
fn prepare(wanted: &LabRun) -> Result<(Campaign, LabOptions), Failure> {
    let target = &wanted.target;
    let campaign = campaign(target)?;
    check_stacks(&campaign)?;
    let folder = wanted.out.clone().unwrap_or_else(|| braid_lab::default_folder(&campaign));
    let options = options(folder, &wanted.how)?;
    let Some(time) = target.budget else { return Ok((campaign, options)) };
    let budget = Budget {
        time,
        keeps_repetitions: target.repetitions.is_some(),
        keeps_runtime: target.runtime.is_some(),
    };
    let fitted = braid_lab::fit_budget(campaign, &budget, &options).map_err(refusal)?;
    for line in &fitted.said {
        eprintln!("{line}");
    }
    Ok((fitted.campaign, options))
}

/// Refuses a campaign with a stack that no volume can serve, whatever else this machine does: a model that there is not,
/// more memory than there is. A run would find that out trial by trial.
fn check_stacks(campaign: &Campaign) -> Result<(), Failure> {
    for subject in campaign.expand() {
        let Some(stack) = subject.source.stack().filter(|_| subject.impossible.is_none()) else {
            continue;
        };
        let refused = |why: &str| {
            Failure::failed(format!("nothing was measured: subject {:?}: {why}", subject.name))
        };
        for leaf in stack.leaves() {
            if let Node::Model(model) = &leaf.node {
                modelled(model).map_err(|error| refused(&error.to_string()).next(error.next()))?;
            }
        }
        check_stack(stack, 0).map_err(|error| {
            let failure = error.failure();
            refused(&failure.why).led_on(failure.next)
        })?;
    }
    Ok(())
}

fn options(folder: PathBuf, how: &LabHow) -> Result<LabOptions, Failure> {
    let mut options = LabOptions::new(folder).map_err(Failure::failed)?;
    options.destroy.clone_from(&how.destroy);
    options.quiet = how.quiet;
    Ok(options)
}

/// An error of the laboratory with its exit status, the same for `plan` and `run`.
pub(super) fn refusal(error: LabError) -> Failure {
    match error {
        LabError::InUse { ref next, .. } => Failure::refused(&error).next(next),
        LabError::WouldDestroy { .. }
        | LabError::Busy { .. }
        | LabError::Occupied { .. }
        | LabError::ForeignDatabase { .. }
        | LabError::OtherCampaign { .. }
        | LabError::OtherOrder { .. }
        | LabError::OtherOrigin { .. }
        | LabError::OtherWorkingDir { .. }
        | LabError::NoWorkingDir { .. } => Failure::refused(error),
        LabError::CampaignRefused { .. } | LabError::Budget { .. } => Failure::usage(error),
        error => Failure::failed(error),
    }
}

fn run(campaign: &Campaign, mut options: LabOptions, how: &LabHow) -> Result<(), Failure> {
    options.stop = StopFlag::on_signals().map_err(Failure::failed)?;
    let tally = braid_lab::run(campaign, &options).map_err(refusal)?;
    report(&options.results_dir, &how.format)?;
    if tally.stopped {
        let done = tally.measured + tally.skipped;
        return Err(Failure::interrupted(format!(
            "interrupted after {done} of {} trials",
            tally.planned
        ))
        .next("the same command goes on"));
    }
    if tally.failed + tally.left_out > 0 {
        return Err(failed(&tally));
    }
    if tally.is_empty() { Err(nothing(&tally)) } else { Ok(()) }
}

/// Each reason once, on a line of its own.
fn reasons(counted: &BTreeMap<String, u32>) -> String {
    counted.iter().map(|(reason, count)| format!("\n  {count} × {reason}")).collect()
}

/// Nothing failed, and there is not one number.
fn nothing(tally: &braid_lab::runner::Tally) -> Failure {
    Failure::failed(format!("nothing could be measured:{}", reasons(&tally.obstacles)))
        .next("mend that, then the same command; `braid lab plan` says what no machine could do")
}

/// Returns the reasons of failures, each one once.
fn failed(tally: &braid_lab::runner::Tally) -> Failure {
    let left_out = match tally.left_out {
        0 => String::new(),
        count => format!(", {count} more were left out"),
    };
    let trials = match tally.failed {
        1 => "1 trial".to_owned(),
        many => format!("{many} trials"),
    };
    Failure::failed(format!("{trials} failed{left_out}:{}", reasons(&tally.reasons)))
        .next("the same command repeats them")
}

fn compare(options: &LabCompare) -> Result<(), Failure> {
    if !(options.threshold >= 0.0 && options.threshold < 1000.0) {
        return Err(Failure::usage(format!("--threshold {}: 0 to 1000", options.threshold)));
    }
    let threshold = options.threshold / 100.0;
    let comparison = braid_lab_report::compare(&options.before, &options.after, threshold)
        .map_err(Failure::failed)?;
    if options.json {
        println!("{}", comparison.render_json().map_err(Failure::failed)?);
    } else {
        print_coloured!("{}", comparison.render_text(colour()));
    }
    if comparison.regression {
        return Err(Failure::failed("something got worse, or is gone"));
    }
    // Renaming a subject must not make a comparison succeed.
    if comparison.cells.is_empty() {
        return Err(Failure::usage("nothing in common that may be compared")
            .next("check that subjects and workloads have the same names in both"));
    }
    Ok(())
}

/// Writes the files that are wanted, and prints the report.
pub(super) fn report(folder: &Path, wanted: &[LabFormat]) -> Result<(), Failure> {
    let summary =
        braid_lab_report::report(folder, &formats(wanted), colour()).map_err(Failure::failed)?;
    print_summary(&summary);
    Ok(())
}

/// The report on one screen, and which files hold more of it.
fn print_summary(summary: &Summary) {
    print_coloured!("{}", summary.text);
    let names = summary.written.files.iter().filter_map(|path| {
        let is_picture = path.extension().is_some_and(|kind| kind == "svg");
        let name = if is_picture { path.parent()?.file_name()? } else { path.file_name()? };
        Some(name.to_string_lossy().into_owned() + if is_picture { "/" } else { "" })
    });
    let mut names: Vec<String> = names.collect();
    names.dedup();
    println!("files in {}: {}", summary.written.folder.display(), names.join(", "));
}

fn formats(given: &[LabFormat]) -> Formats {
    if given.is_empty() {
        return Formats::ALL;
    }
    let mut formats = Formats::NONE;
    for format in given {
        *match format {
            LabFormat::Html => &mut formats.html,
            LabFormat::Md => &mut formats.markdown,
            LabFormat::Json => &mut formats.json,
            LabFormat::Csv => &mut formats.csv,
            LabFormat::Xlsx => &mut formats.xlsx,
            LabFormat::Svg => &mut formats.svg,
        } = true;
    }
    formats
}

/// Returns the campaign: a file, or a preset with the given devices.
pub(super) fn campaign(target: &LabTarget) -> Result<Campaign, Failure> {
    let choices = choices(target)?;
    if let Some(preset) = Preset::find(&target.campaign) {
        return preset.campaign(&choices).map_err(|error| match choices.baseline {
            None if preset.compares_stacks() => Failure::usage(error).next(format!(
                "braid lab run {} --baseline a.img --subject 'stripe=raid0(a.img, b.img)'",
                preset.name
            )),
            _ => Failure::usage(error),
        });
    }
    if !Path::new(&target.campaign).exists() {
        return Err(Failure::usage(format!(
            "{:?} is neither a file nor a preset; presets are: {}",
            target.campaign,
            preset_names()
        )));
    }
    if target.baseline.is_some() || !target.subject.is_empty() || target.modelled || target.kernel {
        return Err(Failure::usage(
            "--baseline, --subject, --modelled and --kernel are for presets",
        )
        .next("write the subjects into the file, or give its members by --member"));
    }
    read_chosen(Path::new(&target.campaign), &choices).map_err(Failure::usage)
}

fn choices(target: &LabTarget) -> Result<Choices, Failure> {
    let pairs = |flag: &str, texts: &[String], what: &str| {
        texts.iter().map(|text| named(flag, text, what)).collect::<Result<Vec<_>, _>>()
    };
    Ok(Choices {
        baseline: target.baseline.clone(),
        subjects: pairs("--subject", &target.subject, "STACK")?,
        members: pairs("--member", &target.member, "DEVICE")?,
        modelled: target.modelled,
        kernel: target.kernel,
        scale: target.scale,
        runtime_s: target.runtime,
        repetitions: target.repetitions,
        region: target.region,
        seed: target.seed,
        only: target.only.clone(),
    })
}

fn named(flag: &str, text: &str, what: &str) -> Result<(String, String), Failure> {
    // A stack has `=` of its own, but only inside parentheses.
    match text.split_once('=') {
        Some((name, stack)) if !name.contains('(') => Ok((name.to_owned(), stack.to_owned())),
        _ => Err(Failure::usage(format!("{flag} {text:?}: NAME={what} is wanted"))),
    }
}

fn preset_names() -> String {
    let names: Vec<&str> = braid_lab::presets().iter().map(|preset| preset.name).collect();
    names.join(", ")
}

/// Colour for people, unless they said no (<https://no-color.org>).
pub(super) fn colour() -> bool {
    let no = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && !no
}
