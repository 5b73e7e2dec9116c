//! `braid-reproduce [FILE…] [--json]`: what the device models say beside what was published.

use std::process::ExitCode;

use braid_predict::off::EVIDENCE;
use braid_reproduce::{Judged, Models, Study, answer, built_in, json, parse, tables, texts};
use braid_shell::shown_lines;

const HELP: &str = "Usage: braid-reproduce [FILE.toml|NAME]... [--json]

Sets the device models beside published measurements: how far off they are, which claims hold. Without a
file, all series that are built in; docs/models.md has the form of the files.";

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("braid-reproduce: {}", shown_lines(&why));
            ExitCode::from(2)
        }
    }
}

fn run(mut words: Vec<String>) -> Result<String, String> {
    if words.iter().any(|word| word == "--help" || word == "-h") {
        return Ok(HELP.to_owned());
    }
    let is_json = words.iter().any(|word| word == "--json");
    words.retain(|word| word != "--json");
    if let Some(word) = words.iter().find(|word| word.starts_with('-')) {
        return Err(format!("{word:?} is not an option\nnext: braid-reproduce --help"));
    }
    let studies = match words.as_slice() {
        [] => built_in(),
        files => files.iter().map(|file| read(file)).collect::<Result<_, _>>()?,
    };
    let judged: Vec<Judged> = studies.iter().map(|study| Judged::of(study, &Models)).collect();
    if is_json {
        return Ok(json(&judged, &EVIDENCE).to_string());
    }
    let evidence: &[_] = if words.is_empty() { &EVIDENCE } else { &[] };
    Ok(format!("{}\n\n{}", answer(&judged), tables(&judged, evidence).trim_end()))
}

/// Reads a file, or, where there is none of this name, one that is built in.
fn read(file: &str) -> Result<Study, String> {
    let next = |error: &dyn std::fmt::Display| {
        format!("{error}\nnext: docs/models.md says what such a file holds")
    };
    match std::fs::read_to_string(file) {
        Ok(text) => parse(file, &text).map_err(|error| next(&error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let stem = |name: &'static str| name.strip_suffix(".toml").unwrap_or(name);
            let Some((known, text)) = texts().find(|(known, _)| stem(known) == file) else {
                let names: Vec<_> = texts().map(|(name, _)| stem(name)).collect();
                let names = names.join(", ");
                return Err(format!(
                    "{file:?} is neither a file nor a built-in series; these are: {names}"
                ));
            };
            parse(known, text).map_err(|error| error.to_string())
        }
        Err(error) => Err(next(&format!("cannot read {file}: {error}"))),
    }
}
