//! `braid assemble --mdadm-conf`: arrays that a mdadm.conf names become braid's.
//!
//! Each `ARRAY` line is looked for among the devices that its `DEVICE` lines name, judged as any other, and
//! remembered as a volume. What keeps mdadm from it is printed: the file itself is its owner's, and is not
//! written. Lines that mdadm ignores, and external metadata, are left as they are.

use std::path::{Path, PathBuf};

use braid_md::assembly::{Set, group};
use braid_md_text::mdadm_conf::{ArrayLine, MdadmConf, fence, matches};

use super::{find, judge, known, show, take};
use crate::cli::Assemble;
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::{Context, Failure};
use braid_service::metadata::Metadata;
use braid_service::ownership::Owners;
use braid_service::places::Places;
use braid_service::record::Record;

/// Result for a line.
struct Outcome<'a> {
    line: &'a ArrayLine,
    set: Option<&'a Set>,
    /// The record, or why there is none.
    result: Result<PathBuf, String>,
}

pub(super) fn take_over(assemble: &Assemble, file: &Path) -> Result<(), Failure> {
    let text =
        braid_probe::read_text(file).context(format_args!("cannot read {}", file.display()))?;
    let conf = MdadmConf::parse(&text)
        .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    let owners = Owners::read(&Places::from_environment())?;
    let found = known::without_strangers(look(assemble, &conf)?, &owners, assemble);
    let sets = group(found.iter().map(Metadata::candidate).collect());
    let is_md_s = |line: &&ArrayLine| !line.is_ignored && !line.is_external;
    let mut outcomes: Vec<Outcome<'_>> = Vec::new();
    for line in conf.arrays.iter().filter(is_md_s) {
        let meant: Vec<&Set> =
            sets.iter().filter(|set| is_meant(line, set, conf.homehost.as_deref())).collect();
        let (set, result) = match meant[..] {
            [] => (None, Err("no member of it is there".to_owned())),
            [set] => (Some(set), remember(assemble, line, set)),
            _ => (None, Err("it fits several arrays: add its UUID".to_owned())),
        };
        outcomes.push(Outcome { line, set, result });
    }
    match assemble.json {
        true => print_json(&outcomes),
        false => print(assemble, file, &outcomes),
    }
    match outcomes.iter().find_map(|one| Some((one.line.line, one.result.as_ref().err()?))) {
        None if outcomes.is_empty() => {
            Err(Failure::failed(format!("{} names no array", file.display())))
        }
        None => Ok(()),
        Some((line, why)) => {
            Err(Failure::failed(format!("{}: line {line}: {why}", file.display())))
        }
    }
}

/// Everything that the file lets mdadm look at, or what was named beside it.
fn look(assemble: &Assemble, conf: &MdadmConf) -> Result<Vec<Metadata>, Failure> {
    let mut places = assemble.clone();
    if !assemble.members.is_empty() || !assemble.folders.is_empty() || assemble.scan {
        return find::members(&places, Vec::new());
    }
    let is_word = |pattern: &&String| ["partitions", "containers"].contains(&pattern.as_str());
    places.scan = conf.devices.iter().all(|pattern| is_word(&pattern))
        || conf.devices.iter().any(|pattern| pattern == "partitions");
    let patterns = conf.devices.iter().filter(|pattern| !is_word(pattern));
    let mut listed = Vec::new();
    patterns.for_each(|pattern| listed.extend(expand(pattern)));
    find::members(&places, listed)
}

/// The paths that fit a pattern, in order.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from(if pattern.starts_with('/') { "/" } else { "." })];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        found = found.iter().flat_map(|folder| inside(folder, part)).collect();
    }
    found
}

fn inside(folder: &Path, part: &str) -> Vec<PathBuf> {
    if !part.contains(['*', '?', '[']) {
        return Vec::from_iter(Some(folder.join(part)).filter(|path| path.exists()));
    }
    // A folder that cannot be read has nothing that could be looked at.
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let fits = |name: &std::ffi::OsString| name.to_str().is_some_and(|name| matches(part, name));
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.file_name()).filter(fits).map(|name| folder.join(name)).collect();
    found.sort();
    found
}

fn is_meant(line: &ArrayLine, set: &Set, homehost: Option<&str>) -> bool {
    let members: Vec<&str> = set.candidates().iter().map(|one| one.label.as_str()).collect();
    let old = set.candidates().first().and_then(|one| one.superblock.old);
    let minor = old.map(|old| old.preferred_minor);
    // What stands for a host is the machine's own: names without their host fit, too.
    let homehost = homehost.filter(|host| !host.starts_with('<'));
    line.means(set.uuid, &set.name, minor, &members, homehost)
}

fn remember(assemble: &Assemble, line: &ArrayLine, set: &Set) -> Result<PathBuf, String> {
    let volume = assemble.volume.clone().or_else(|| line.volume());
    let own = Assemble { volume, ..assemble.clone() };
    let verdict = judge(&own, set);
    if !assemble.json {
        show::print(std::slice::from_ref(&verdict), None);
    }
    let taken = match verdict.is_accepted {
        false => Err(Failure::refused(&verdict.assembly)),
        true if assemble.plan => super::config_of(&own, set),
        true => take(&own, &verdict).and_then(|taken| with_group(taken.config, line)),
    };
    taken.map_err(|failure| failure.text())
}

/// The record at `config`, with the group that shares its spares.
fn with_group(config: PathBuf, line: &ArrayLine) -> Result<PathBuf, Failure> {
    if line.spare_group.is_some() {
        let record = Record::read(&config)?;
        Record { spare_group: line.spare_group.clone(), ..record }.write(&config)?;
    }
    Ok(config)
}

fn print(assemble: &Assemble, file: &Path, outcomes: &[Outcome<'_>]) {
    let mut fences = Vec::new();
    for Outcome { line, set, result } in outcomes {
        match result {
            Ok(config) => {
                let verb = if assemble.plan { "would be" } else { "was" };
                println!("line {}: {} {verb} written", line.line, config.display());
                fences.extend(set.map(|set| fence(set.uuid)));
            }
            Err(why) => println!("line {}: not taken over: {why}", line.line),
        }
    }
    if !fences.is_empty() {
        println!(
            "to keep mdadm from them, put this in place of their ARRAY lines in {}, then `update-initramfs -u`:",
            file.display()
        );
        fences.iter().for_each(|line| println!("{line}"));
    }
}

fn print_json(outcomes: &[Outcome<'_>]) {
    let one = |one: &Outcome<'_>| {
        serde_json::json!({
            "line": one.line.line,
            "uuid": one.set.map(|set| set.uuid.to_string()),
            "record": one.result.as_ref().ok(),
            "error": one.result.as_ref().err(),
            "fence": one.set.map(|set| fence(set.uuid)),
        })
    };
    let arrays: Vec<_> = outcomes.iter().map(one).collect();
    println!("{}", serde_json::json!({ "output_version": OUTPUT_VERSION, "arrays": arrays }));
}
