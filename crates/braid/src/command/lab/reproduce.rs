//! `braid lab reproduce`: what models say beside what was published.

mod data;
mod show;

use std::path::Path;

use braid_lab_report::report::render::{render_html, render_sections, render_terminal};
use braid_predict::Models;
use braid_published::{
    FILES, Judgement, NullModel, Predictor, Study, Summary, built_in, judge, parse,
};

use crate::cli::LabReproduce;
use crate::command::page::write_new;
use crate::failure::{Context, Failure};

/// Returns the judged predictor.
fn predictor() -> Box<dyn Predictor> {
    Box::new(Models)
}

/// Result for a study, compared with models without a mechanism.
struct Judged {
    model: Judgement,
    null: [(NullModel, Option<Summary>); 2],
}

pub(super) fn reproduce(options: &LabReproduce, colour: bool) -> Result<(), Failure> {
    let studies = match options.files.as_slice() {
        [] => built_in(),
        files => files.iter().map(|file| read(file)).collect::<Result<_, _>>()?,
    };
    let predictor = predictor();
    let judged: Vec<Judged> = studies.iter().map(|study| Judged::of(study, &*predictor)).collect();
    if options.json {
        println!("{}", data::json(&judged));
        return Ok(());
    }
    if let Some(file) = &options.html {
        let page = render_html(&show::report(&judged, show::Claims::All));
        return write_new(file, &page.context("cannot draw the page")?);
    }
    let report = show::report(&judged, show::Claims::Failed);
    print_coloured!(
        "{}",
        render_terminal(
            &report,
            colour,
            "below; `--html FILE` has charts, `--json` is for programs"
        )
    );
    print_coloured!("{}", render_sections(&report.sections, colour));
    Ok(())
}

impl Judged {
    fn of(study: &Study, predictor: &dyn Predictor) -> Self {
        let null = NullModel::ALL.map(|null| (null, judge(study, &null).predictions()));
        Self { model: judge(study, predictor), null }
    }
}

/// A file, or, where there is none of this name, one that is built in.
fn read(file: &Path) -> Result<Study, Failure> {
    let name = file.display().to_string();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let known = FILES.iter().find(|(known, _)| known.strip_suffix(".toml") == Some(&*name));
            let Some((known, text)) = known else {
                let names = FILES.iter().map(|(known, _)| known.trim_end_matches(".toml"));
                let names = names.collect::<Vec<_>>().join(", ");
                return Err(Failure::usage(format!(
                    "{name:?} is neither a file nor a built-in series; these are: {names}"
                )));
            };
            return parse(known, text).map_err(Failure::usage);
        }
        Err(error) => return Err(Failure::usage(format!("cannot read {name}: {error}"))),
    };
    parse(&name, &text).map_err(|error| {
        Failure::usage(error)
            .next("docs/models.md says what such a file holds; `braid lab reproduce` has five")
    })
}
