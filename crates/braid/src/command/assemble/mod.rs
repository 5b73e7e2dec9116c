//! `braid assemble`: which arrays members make, what state each is in, and the one that is meant
//! remembered as a volume.
//!
//! ```text
//!   members, --scan, --in ──find──▶ Metadata ──group, assess──▶ verdicts ──show──▶
//!                                                                  │ exactly one, and it can start
//!                              --force: superblocks rewritten ◀────┤
//!                                                                  ▼
//!                                                        NAME.toml: md(members taken in)
//! ```
//!
//! Invariants: no choice is made between arrays, nor between members that contradict each other;
//! without `--force` nothing is written to a member.

mod find;
mod force;
mod known;
mod show;
mod taken_over;

use std::path::{Path, PathBuf};

use braid_md::assembly::{Assembly, Candidate, How, Next, Options, Risk, Set, Start, group};
use braid_probe::{MemberFacts, Policy, check_members};
use braid_stack::{Node, Stack};

use super::{given, stacks};
use crate::cli::Assemble;
use braid_md_text::next::command;
use braid_service::control::{self, Status, with_next};
use braid_service::failure::Failure;
use braid_service::metadata::{Copies, Metadata, Trail};
use braid_service::ownership::Owners;
use braid_service::places::{Places, check_name};
use braid_service::record::{Known, Record};
use braid_service::refusal::said;
use braid_service::volume::is_served;

pub(super) use known::stranger;
use show::Verdict;

pub(super) fn assemble(assemble: &Assemble) -> Result<(), Failure> {
    if let Some(file) = &assemble.mdadm_conf {
        return taken_over::take_over(assemble, file);
    }
    let owners = Owners::read(&Places::from_environment())?;
    let found = known::without_strangers(find::members(assemble, Vec::new())?, &owners, assemble);
    let mut sets = group(found.iter().map(Metadata::candidate).collect());
    sets.retain(|set| is_meant(assemble, set));
    let verdicts: Vec<Verdict<'_>> = sets.iter().map(|set| judge(assemble, set)).collect();
    let outcome = decide(assemble, &verdicts);
    let served = match &outcome {
        Ok(Some(verdict)) if assemble.members.is_empty() => volume_of(verdict.set)?,
        _ => None,
    };
    let remembered = match &outcome {
        // A search that finds a volume which is up already has succeeded.
        Ok(Some(_)) if served.is_some() => Ok(None),
        Ok(Some(verdict)) if !assemble.plan => take(assemble, verdict).map(Some),
        Ok(_) => Ok(None),
        // A refused array is shown, too.
        Err(_) => Ok(None),
    };
    let written = remembered.as_ref().ok().and_then(Option::as_ref);
    match assemble.json {
        true => show::print_json(&verdicts, written),
        false => show::print(&verdicts, written),
    }
    served.iter().for_each(|volume| eprintln!("braid: it is up already: {volume}"));
    remembered?;
    outcome.map(drop)
}

/// The volume that is up and serves the array.
fn volume_of(set: &Set) -> Result<Option<String>, Failure> {
    let places = Places::from_environment();
    let names = places.running_names()?;
    let sockets: Vec<_> = names.iter().map(|name| places.control(name)).collect();
    let uuid = Some(set.uuid.to_string());
    let serves = |status: Status| status.arrays.iter().any(|array| array.uuid == uuid);
    let mut asked = names.into_iter().zip(control::get_statuses(&sockets));
    Ok(asked.find_map(|(name, status)| status.is_ok_and(serves).then_some(name)))
}

fn is_meant(assemble: &Assemble, set: &Set) -> bool {
    let is_named = |name: &String| *name == set.name || name == set.short_name();
    assemble.uuid.is_none_or(|uuid| uuid == set.uuid) && assemble.name.as_ref().is_none_or(is_named)
}

/// Returns the options of the start.
fn options_of(assemble: &Assemble) -> Options<'static> {
    Options {
        force: assemble.force,
        read_only: assemble.read_only,
        degraded: assemble.degraded,
        raid0_layout: assemble.layout,
        supported: &is_served,
    }
}

/// The start that is asked for.
fn needed(assemble: &Assemble) -> Start {
    if assemble.read_only { Start::ReadOnly } else { Start::ReadWrite }
}

fn judge<'a>(assemble: &Assemble, set: &'a Set) -> Verdict<'a> {
    let options = options_of(assemble);
    let assembly = set.assess(options);
    let is_accepted = assembly.can_start >= needed(assemble);
    let next = match is_accepted {
        true => assembly.next.clone(),
        false => next_of_refused(set, &assembly, options),
    };
    Verdict { set, assembly, is_accepted, next }
}

/// Returns the commands after a refusal, the mildest first; never empty.
fn next_of_refused(set: &Set, assembly: &Assembly, options: Options<'_>) -> Vec<Next> {
    let members: Vec<String> = set.candidates().iter().map(|one| one.label.clone()).collect();
    let mut next = assembly.next.clone();
    let mut offer = |how: How| {
        let is_offered =
            |one: &Next| matches!(one, Next::Assemble { how: offered, .. } if *offered == how);
        if !next.iter().any(is_offered) {
            next.insert(0, Next::Assemble { members: members.clone(), how });
        }
    };
    if set.assess(Options { degraded: true, ..options }).can_start == Start::ReadWrite {
        offer(How::Degraded);
    }
    if assembly.can_start == Start::ReadOnly {
        offer(How::ReadOnly);
    }
    // Last, as it gives up what one of the sides has.
    let forced = set.assess(Options { force: true, ..options });
    if assembly.can_start == Start::Refused && forced.can_start == Start::ReadWrite {
        let is_offered = |one: &Next| matches!(one, Next::Assemble { how: How::Force, .. });
        if !next.iter().any(is_offered) {
            next.push(Next::Assemble { members: members.clone(), how: How::Force });
        }
    }
    if next.is_empty() {
        next.push(Next::Examine { members });
    }
    next
}

/// The one array that is meant, if it can be started; `None` if several were found.
fn decide<'a, 'b>(
    assemble: &Assemble,
    verdicts: &'b [Verdict<'a>],
) -> Result<Option<&'b Verdict<'a>>, Failure> {
    if let Some(refused) = verdicts.iter().find(|verdict| !verdict.is_accepted) {
        let (name, assembly) = (show::title(refused.set), &refused.assembly);
        let failure = Failure::refused(format!("{name}: {assembly}"));
        // What can be found out without writing does not replace the step that leads on.
        let count = 1 + usize::from(matches!(refused.next.first(), Some(Next::Rescue { .. })));
        let next = refused.next.iter().take(count).map(command).collect::<Vec<_>>();
        return Err(failure.next(next.join("\n")));
    }
    match verdicts {
        [] => Err(Failure::failed("no md array was found")
            .next("name its members, or `braid assemble --scan` as root, or --in FOLDER")),
        [one] => Ok(Some(one)),
        [first, ..] if !assemble.members.is_empty() => {
            let arrays: Vec<String> = verdicts.iter().map(|one| show::title(one.set)).collect();
            Err(Failure::refused(format!("the members are of {}", arrays.join(" and of ")))
                .next(format!("name the members of one, or add --uuid {}", first.set.uuid)))
        }
        _ => Ok(None),
    }
}

/// Result for the selected array.
struct Taken {
    config: PathBuf,
    /// The next command.
    next: String,
    /// Superblocks that were rewritten, and the change that has what they were.
    rewritten: Option<(usize, u64)>,
}

/// Rewrites what has to be, and remembers the volume.
fn take(assemble: &Assemble, verdict: &Verdict<'_>) -> Result<Taken, Failure> {
    let places = Places::from_environment();
    let volume = volume_name(assemble, verdict.set)?;
    let config = places.config_file(&volume);
    let paths = taken_in(verdict);
    let policy = Policy { force: &paths, read_only: assemble.read_only, ..Policy::default() };
    let facts = match assemble.read_only {
        true => check_members(&paths, &policy).map_err(|refusal| said(&refusal))?,
        false => given::judge(&paths, &paths)?,
    };
    let mut record = record_for(&config, verdict.set, stacks::md(assemble.layout, &paths)?)?;
    record.read_only = assemble.read_only;
    // A read-only array belongs to no volume.
    if !record.read_only {
        let known = |facts: &MemberFacts| {
            let is_it = |one: &&Candidate| Path::new(&one.label) == facts.path;
            let superblock = &verdict.set.candidates().iter().find(is_it)?.superblock;
            Some(Known::of(facts).carrying(superblock))
        };
        record.members = facts.iter().filter_map(known).collect();
    }
    let remember = || {
        places.prepare_config()?;
        record.write(&config)
    };
    let change = match assemble.force {
        true => force::change(verdict.set, &verdict.assembly, assemble.layout, &facts)?,
        false => None,
    };
    let rewritten = match change {
        None => remember().map(|()| None)?,
        Some((change, saved)) => {
            let count = change.patches.len();
            let trail = Trail::new(places.undo());
            let number = change.carry_out(&trail, saved, remember)?;
            Copies::own().keep_or_warn("assemble --force", &paths);
            Some((count, number))
        }
    };
    // The array learns that it goes on without them when it is first written.
    let left_behind = |risk: &Risk| matches!(risk, Risk::LeftBehind { .. });
    let flag = match assemble.degraded && verdict.assembly.risks.iter().any(left_behind) {
        true => " --degraded",
        false => "",
    };
    Ok(Taken { config, next: format!("braid up {volume}{flag}"), rewritten })
}

/// The members that take part, in the order of their roles, and those that may come to.
fn taken_in(verdict: &Verdict<'_>) -> Vec<PathBuf> {
    let assembly = &verdict.assembly;
    let replacements = assembly.replacements.iter().map(|(_, member, _)| member);
    let all = assembly.members().chain(replacements).chain(&assembly.spares);
    all.map(|member| PathBuf::from(&member.label)).collect()
}

/// Returns the path of the array's record.
fn config_of(assemble: &Assemble, set: &Set) -> Result<PathBuf, Failure> {
    Ok(Places::from_environment().config_file(&volume_name(assemble, set)?))
}

/// The volume's name: the one that the user gives, else that of the volume whose array it is, else the array's.
fn volume_name(assemble: &Assemble, set: &Set) -> Result<String, Failure> {
    if !assemble.read_only {
        let owners = Owners::read(&Places::from_environment())?;
        let owner = owners.of(&set.uuid.to_string()).ok().flatten().map(|one| &one.volume);
        match (&assemble.volume, owner) {
            (None, Some(owner)) => return Ok(owner.clone()),
            (Some(name), Some(owner)) if name != owner => {
                let why = format!(
                    "braid: warning: the array is of the volume {owner}, too: no member starts either of them at \
                     boot"
                );
                eprintln!("{}", with_next(why, Some(&format!("braid forget {owner}"))));
            }
            _ => {}
        }
    }
    let old = set.candidates().first().and_then(|one| one.superblock.old);
    let name = match (&assemble.volume, set.short_name(), old) {
        (Some(name), _, _) => name.clone(),
        (None, "", Some(old)) => format!("md{}", old.preferred_minor),
        (None, name, _) => name.to_owned(),
    };
    check_name(&name).map_err(|failure| failure.next("give it another name: --as NAME"))?;
    Ok(name)
}

/// The record that is there, if it is about the same array; else a new one.
fn record_for(config: &Path, set: &Set, stack: Stack) -> Result<Record, Failure> {
    if !config.exists() {
        return Ok(Record::new(stack));
    }
    let record = Record::read(config)?;
    let is_of_set = |path: &Path| Metadata::array_at(path) == Some(set.uuid);
    let uuid = set.uuid.to_string();
    let is_same = matches!(record.stack.node, Node::Md(_))
        && (record.accepted().iter().any(|one| one.array == uuid)
            || record.stack.member_names().iter().any(|(name, _)| is_of_set(name)));
    match is_same {
        true => Ok(Record { stack, ..record }),
        false => Err(Failure::refused(format!(
            "{} is about another volume: {}",
            config.display(),
            record.stack
        ))
        .next("give this one another name: --as NAME")),
    }
}
