//! `braid incremental`: a device came or went, as `mdadm --incremental` has it.
//!
//! ```text
//!   DEVICE ──superblock──▶ array ──rule──▶ the kernel's: nothing
//!                                    └──▶ a volume's ─┬─ up    told; its policy decides
//!                                                     └─ down  all members that are there ──assess──▶
//!                                 complete: start │ not: the timer, which starts it later
//! ```
//!
//! Invariants: nothing is written to a device here; a volume is started by `braid up`, which takes its
//! name's lock, so never twice.
//!
//! Deliberately absent: whose an array is (`ownership`); what becomes of a member that is back, which
//! the volume decides (`volume::returning`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use braid_level::Raid0Layout;
use braid_md::assembly::{Options, Set, Start, group};
use braid_probe::identify;
use braid_shell::shell_path;
use braid_stack::{Node, path_of};

use super::assemble::stranger;
use super::stacks::absolute_path;
use crate::cli::Incremental;
use braid_service::control::{self, DeviceOrder, Order, with_next};
use braid_service::failure::{Context, Failure};
use braid_service::membership::Membership;
use braid_service::metadata::Metadata;
use braid_service::ownership::{Owned, Owners};
use braid_service::places::{Places, check_name};
use braid_service::volume::{LastResort, NameLock, backing_file, is_served};

pub(super) fn incremental(options: &Incremental) -> Result<(), Failure> {
    let places = Places::from_environment();
    match (&options.fail, &options.run_last_resort, &options.device) {
        (Some(device), ..) => gone(&places, device),
        (_, Some(volume), _) => last_resort(&places, volume, options.no_start),
        (.., Some(device)) => came(&places, &absolute_path(device)?, options),
        (None, None, None) => Err(Failure::usage("no device is given")),
    }
}

/// Maximum wait of a member while another one of its volume is handled.
const TURN: Duration = Duration::from_secs(60);

/// State of a volume that is down.
#[derive(Debug, PartialEq, Eq)]
enum Readiness {
    /// All that its arrays count on are there.
    Complete,
    /// Members are missing, and all data is there.
    Degraded(String),
    /// Too much is missing, or does not fit.
    Not(String),
    /// The device that came claims to be a member, and is none that is recorded.
    Stranger(String),
}

/// Judges the arrays `wanted`, of which the sets were found; `absent` are members without superblocks, and
/// `raid0_layout` is used where none is recorded.
fn readiness(
    wanted: &[String],
    sets: &[Set],
    absent: &[PathBuf],
    raid0_layout: Option<Raid0Layout>,
) -> Readiness {
    if let Some(path) = absent.first() {
        return Readiness::Not(format!("{} is not there", path.display()));
    }
    let mut degraded = None;
    for uuid in wanted {
        let Some(set) = sets.iter().find(|set| set.uuid.to_string() == *uuid) else {
            return Readiness::Not(format!("no member of the array {uuid} is there"));
        };
        let options = Options {
            force: false,
            read_only: false,
            degraded: false,
            raid0_layout,
            supported: &is_served,
        };
        let assembly = set.assess(options);
        if assembly.can_start == Start::ReadWrite {
            continue;
        }
        let without = set.assess(Options { degraded: true, ..options });
        match without.can_start {
            Start::ReadWrite => degraded = degraded.or(Some(assembly.state.to_string())),
            _ => return Readiness::Not(assembly.state.to_string()),
        }
    }
    degraded.map_or(Readiness::Complete, Readiness::Degraded)
}

/// Looks at all members of a volume, and at `device`, which may be one at another path.
fn look(owned: &Owned, device: Option<&Metadata>) -> Readiness {
    let record = &owned.record;
    let membership = Membership::of(record);
    let stack = membership.resolve(&record.stack);
    let accepted = membership.accepted(record);
    let mut wanted: Vec<String> = accepted.iter().map(|one| one.array.clone()).collect();
    wanted.sort();
    wanted.dedup();
    let plain = braid_service::membership::without_superblocks(&stack);
    let absent: Vec<PathBuf> = plain.into_iter().filter(|path| !path_of(path).exists()).collect();
    let names = stack.member_names().into_iter();
    let mut found: Vec<Metadata> =
        names.filter_map(|(name, _)| Metadata::look(&name).ok()).collect();
    let is_stranger = |one: &Metadata| {
        let as_what = accepted.iter().find(|accepted| accepted.path == one.path);
        as_what.is_some_and(|it| it.is_stranger(one.device().as_deref(), &accepted))
    };
    found.retain(|one| !is_stranger(one));
    // It may lie at a path that the record does not name, or be named by a link.
    let is = |one: &Metadata, other: &Path| matches!((identify(&one.path), identify(other)), (Ok(one), Ok(other)) if one == other);
    let newcomer = device.filter(|device| !found.iter().any(|one| is(one, &device.path)));
    let others: Vec<&Metadata> = found.iter().collect();
    if let Some(why) = newcomer.and_then(|one| stranger(record, one, &others)) {
        return Readiness::Stranger(why);
    }
    let candidates = found.iter().map(Metadata::candidate);
    let sets = group(candidates.chain(newcomer.map(Metadata::candidate)).collect());
    let layout = match &stack.node {
        Node::Md(md) => md.layout,
        _ => None,
    };
    readiness(&wanted, &sets, &absent, layout)
}

fn came(places: &Places, device: &Path, options: &Incremental) -> Result<(), Failure> {
    let is_asked = options.export && options.no_start;
    let served = || places.served_by(&backing_file(device)?);
    // udev asks for the link to the block device of a volume, too, which may be a member of another one.
    let served = is_asked.then(served).flatten();
    if let Some(volume) = &served {
        println!("BRAID_EXPORT={volume}");
    }
    let metadata = match Metadata::look(device) {
        Err(_) if served.is_some() => return Ok(()),
        read => read?,
    };
    let uuid = metadata.superblock.array_uuid.to_string();
    let owners = Owners::read(places)?;
    owners.unreadable.iter().for_each(|why| eprintln!("braid: warning: passed over: {why}"));
    let Some(owned) = owners.of(&uuid)? else {
        return say(
            options,
            device,
            &uuid,
            None,
            "kernel",
            "left to the kernel: no NAME.toml names its array",
        );
    };
    let volume = owned.volume.as_str();
    let say = |state: &str, text: &str| say(options, device, &uuid, Some(volume), state, text);
    if is_asked {
        // Asked by udev for each member, before it acts on any: the other members are not looked at.
        return say("", "");
    }
    let _turn = match options.no_start || places.are_systemd_s() {
        true => None,
        false => turn(places, volume)?,
    };
    if control::get_status(&places.control(volume)).is_ok() {
        if options.no_start {
            return say("up", "its policy decides what becomes of it");
        }
        return say("up", &tell(places, owned, device)?);
    }
    let readiness = look(owned, Some(&metadata));
    if options.no_start {
        return match &readiness {
            Readiness::Complete => say("complete", "which can be started"),
            Readiness::Degraded(why) => {
                say("unsafe", &format!("not enough to start safely: {why}"))
            }
            Readiness::Not(why) => say("incomplete", &format!("not enough to start: {why}")),
            Readiness::Stranger(why) => say("stranger", &not_taken(why)),
        };
    }
    match &readiness {
        Readiness::Complete => {
            start(places, volume, false)?;
            say("started", started(places))
        }
        Readiness::Degraded(why) => {
            let next = wait(places, owned)?;
            say("unsafe", &format!("not enough to start safely: {why}{next}"))
        }
        Readiness::Not(why) => say("incomplete", &format!("not enough to start: {why}")),
        Readiness::Stranger(why) => say("stranger", &not_taken(why)),
    }
}

fn not_taken(why: &str) -> String {
    let next =
        "braid examine shows it; if it became a member elsewhere: braid up with --accept-members";
    with_next(format_args!("as it is not one of its members: {why}"), Some(next))
}

/// Reports a device to a running volume, by the path in its record. Returns the result.
fn tell(places: &Places, owned: &Owned, device: &Path) -> Result<String, Failure> {
    let same = |path: &&Path| matches!((identify(path), identify(device)), (Ok(one), Ok(other)) if one == other);
    let known = owned.record.stack.member_paths().into_iter().find(same).unwrap_or(device);
    let order = Order::Device(DeviceOrder::Back { device: known.to_owned() });
    let answered = control::post_order(&places.control(&owned.volume), &order, 0);
    let answer = answered.context(&owned.volume)?.map(|carried| carried.text);
    Ok(answer.unwrap_or_else(|failure| failure.text()))
}

/// One line, or what udev takes in.
fn say(
    options: &Incremental,
    device: &Path,
    uuid: &str,
    volume: Option<&str>,
    state: &str,
    text: &str,
) -> Result<(), Failure> {
    if options.export {
        println!("BRAID_OWNER={}", if volume.is_some() { "braid" } else { "kernel" });
        println!("BRAID_ARRAY={uuid}");
        if let Some(volume) = volume {
            println!("BRAID_VOLUME={volume}");
        }
        if !options.no_start {
            println!("BRAID_STATE={state}");
        }
        return Ok(());
    }
    let path = device.display();
    match volume {
        Some(volume) if state == "up" => {
            println!("braid: {path} is of {volume}, which is up: {text}")
        }
        Some(volume) if state == "stranger" => {
            println!("braid: {path} is not attached to {volume}, {text}")
        }
        Some(volume) => println!("braid: {path} attached to {volume}, {text}"),
        None => println!("braid: {path} {text} ({uuid})"),
    }
    Ok(())
}

/// Without systemd, members of a volume that appear at the same time are handled in turn, because
/// examining a file blocks the start of the volume. Returns `None` after the maximum wait.
fn turn(places: &Places, volume: &str) -> Result<Option<NameLock>, Failure> {
    places.prepare_run()?;
    let path = places.turn(volume);
    let turn = NameLock::claim_within(TURN, &path);
    turn.context(format_args!("cannot lock {}", path.display()))
}

/// Starts a volume, by systemd where that is in charge.
fn start(places: &Places, volume: &str, degraded: bool) -> Result<(), Failure> {
    if places.are_systemd_s() {
        if degraded {
            // The unit reads it, and removes it when it is up.
            places.prepare_run()?;
            let file = places.one_start(volume);
            std::fs::write(&file, "BRAID_UP_OPTIONS=--degraded\n")
                .context(format_args!("cannot write {}", file.display()))?;
        }
        return systemctl(&format!("braid@{volume}.service"));
    }
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(["up", volume]).args(degraded.then_some("--degraded"));
    let output = command.output().context("cannot start braid up")?;
    // Another process may have been faster, or have begun.
    let is_claimed = || NameLock::claim(&places.lock(volume)).is_ok_and(|lock| lock.is_none());
    if output.status.success() || is_claimed() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(Failure::failed(why.trim().trim_start_matches("braid: ")))
}

fn started(places: &Places) -> &'static str {
    match places.are_systemd_s() {
        true => "which is being started.",
        false => "which has been started.",
    }
}

fn systemctl(unit: &str) -> Result<(), Failure> {
    let status = Command::new("systemctl").args(["start", "--no-block", unit]).status();
    let status = status.context("cannot run systemctl")?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::failed(format!("systemctl start {unit} failed ({status})"))),
    }
}

/// Starts the timer of an incomplete volume. Returns a message.
fn wait(places: &Places, owned: &Owned) -> Result<String, Failure> {
    let volume = &owned.volume;
    if owned.record.last_resort == LastResort::Wait {
        return Ok(String::new());
    }
    if places.are_systemd_s() {
        systemctl(&format!("braid-last-resort@{volume}.timer"))?;
        return Ok("; it is started without them in 30 s".to_owned());
    }
    Ok(with_next("", Some(&format!("braid incremental --run-last-resort {volume}"))))
}

/// Nothing more came: what can be started is.
fn last_resort(places: &Places, volume: &str, no_start: bool) -> Result<(), Failure> {
    check_name(volume)?;
    let owners = Owners::read(places)?;
    let Some(owned) = owners.volumes.iter().find(|one| one.volume == volume) else {
        let file = places.config_file(volume);
        return Err(Failure::usage(format!(
            "{} cannot be read, so {volume:?} names no volume",
            file.display()
        )));
    };
    if control::get_status(&places.control(volume)).is_ok() {
        println!("braid: {volume} is up");
        return Ok(());
    }
    let (degraded, text) = match look(owned, None) {
        Readiness::Complete => (false, "complete".to_owned()),
        Readiness::Degraded(why) if owned.record.last_resort == LastResort::Degraded => (true, why),
        Readiness::Degraded(why) => {
            return Err(Failure::refused(format!("{volume} waits for its members: {why}"))
                .next(format!("with them, or to go on without: braid up {volume} --degraded")));
        }
        Readiness::Not(why) | Readiness::Stranger(why) => {
            return Err(Failure::failed(format!("{volume} cannot be started: {why}")).next(
                format!(
                    "braid assemble --scan; its members are in {}",
                    shell_path(places.config_file(volume))
                ),
            ));
        }
    };
    if !no_start {
        start(places, volume, degraded)?;
    }
    let done =
        if no_start { "can be started" } else { started(places).trim_start_matches("which ") };
    println!("braid: {volume} {done} ({text})");
    Ok(())
}

/// Tells all volumes that are up of a device that is gone.
fn gone(places: &Places, device: &str) -> Result<(), Failure> {
    // A number is no path.
    let device = match device.contains(':') {
        true => device.to_owned(),
        false => absolute_path(Path::new(device))?.display().to_string(),
    };
    let order = Order::Device(DeviceOrder::Gone { device: device.clone() });
    let mut is_member = false;
    for volume in places.running_names()? {
        match control::post_order(&places.control(&volume), &order, 0) {
            Ok(Ok(carried)) => {
                is_member = true;
                println!("braid: {volume}: {}", carried.text);
            }
            Ok(Err(_)) => {}
            Err(error) => eprintln!("braid: warning: {volume}: {error}"),
        }
    }
    match is_member {
        true => Ok(()),
        false => Err(Failure::failed(format!("{device} is no member of a volume that is up"))),
    }
}

#[cfg(test)]
mod tests {
    use braid_md::Version;
    use braid_md::assembly::Candidate;

    use super::*;

    /// The members of a golden array, of which some are there.
    fn sets(array: &str, there: &[usize]) -> (Vec<Set>, String) {
        let array = braid_golden::named(array);
        let version: Version = array.metadata.parse().expect("a version");
        let candidate = |index: &usize| {
            let member = &array.members[*index];
            let at = member.super_offset_bytes.expect("a superblock");
            let image = array.expand_member(*index);
            let superblock = braid_md::Superblock::parse(
                version,
                at,
                member.bytes,
                &image[at as usize..][..4096],
            );
            Candidate {
                label: format!("m{index}"),
                size: member.bytes,
                superblock: superblock.expect("one that holds"),
                bitmap: None,
                log_head: None,
                bitmap_trouble: None,
                log_trouble: None,
            }
        };
        let sets = group(there.iter().map(candidate).collect());
        let uuid = group(vec![candidate(&0)])[0].uuid.to_string();
        (sets, uuid)
    }

    #[test]
    fn what_can_be_started_and_what_waits() {
        let absent = [PathBuf::from("/srv/x")];
        for (array, there, absent, expected) in [
            ("raid5-3", &[0, 1, 2][..], &[][..], "Complete"),
            ("raid5-3", &[0, 2], &[], "Degraded"),
            ("raid5-3", &[2], &[], "Not"),
            ("raid5-3", &[], &[], "Not"),
            ("raid5-3", &[0, 1, 2], &absent, "Not"),
            ("linear-2", &[0, 1], &[], "Complete"),
            ("linear-2", &[0], &[], "Not"),
        ] {
            let (sets, uuid) = sets(array, there);
            let readiness = readiness(&[uuid], &sets, absent, None);
            assert!(
                format!("{readiness:?}").starts_with(expected),
                "{array} {there:?}: {readiness:?}"
            );
        }
        // Of two arrays the worse counts.
        let ((mut both, first), (others, second)) =
            (sets("raid5-3", &[0, 1, 2]), sets("linear-2", &[0]));
        both.extend(others);
        assert!(matches!(readiness(&[first, second], &both, &[], None), Readiness::Not(_)));
    }
}
