//! A stack that braid serves, in one of three forms:
//!
//! | form | when | how |
//! |---|---|---|
//! | served | all tools speak NBD, and nothing is redundant | `braid serve STACK --nbd` |
//! | volume | a block device is needed, or the array must be asked how it is | `braid up STACK` |
//! | created | members will be taken out and put in, so something must remember them | `braid create`, `braid up NAME` |
//!
//! Invariants:
//!
//! * an array is handed out when no pass runs over it: braid resynchronises an array without
//!   superblocks each time it comes up, as nothing says that its copies agree;
//! * a created array keeps no log and no bitmap, as the expression has none either. Copies of
//!   raid1 and raid10 are taken as they are: nothing reads what it has not written. Parity is made
//!   to fit: a part of a stripe that was never written counts when a member is missing.
//!
//! Members are accepted whatever they carry if the caller named them to be destroyed, and only
//! then. What the campaign does not write is served with `--read-only`.

use std::path::PathBuf;
use std::time::Duration;

use braid_nbd::uri::unix_uri;
use braid_stack::{Node, Stack};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::hand::{self, Hand, remove_file};
use super::held::Server;
use super::journal::Thing;
use super::site::{Base, LIMIT, Obstacle, Site};
use crate::array::{Array, Braid, Keeper, VolumeStatus};
use crate::command::{CommandLine, Exit, Target};
use crate::error::LabError;
use crate::safety::Permit;
use crate::source::{Form, Redundancy, leave_one_out, plan_creation, redundancy};
use crate::world::StopFlag;

/// How long a server may take from its start to its greeting.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How often a server that starts is asked.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// A stack that is to come up.
pub(super) struct Request<'r> {
    pub(super) stack: &'r Stack,
    pub(super) braid: Braid,
    /// A name that no other volume of this machine has.
    pub(super) name: String,
    pub(super) socket: PathBuf,
    /// Whether all tools of the campaign speak NBD.
    pub(super) through_nbd: bool,
    pub(super) form: Form,
    /// What may be overwritten.
    pub(super) permit: &'r Permit,
    pub(super) serve_args: &'r [String],
}

/// Brings the stack up.
pub(super) fn bring_up(site: &mut Site<'_>, request: &Request<'_>) -> Result<Base, Obstacle> {
    let redundancy = redundancy(request.stack);
    if redundancy == Redundancy::None && request.through_nbd {
        return serve(site, request);
    }
    let stays_md = matches!(request.stack.node, Node::Md(_));
    let (called, victim) = match plan_creation(request.stack) {
        // With superblocks, as its users have it. Without them it would be synchronised whenever it
        // comes up, and it comes up for each of its trials where others use its members too.
        Some((mut words, members)) => {
            let copies = matches!(request.stack.node, Node::Raid1(_) | Node::Raid10(_));
            if copies || request.form.parity_as_found {
                words.push("--assume-clean".to_owned());
            }
            create(site, request, &words, &members)?;
            (Called::Name, members.first().map(|path| absolute(path)))
        }
        _ => {
            let mut stack = request.stack.clone();
            if request.form.short {
                leave_one_out(&mut stack);
            }
            let first = stack.member_paths().first().map(|path| absolute(&path.to_string_lossy()));
            (Called::Stack(stack), first.filter(|_| stays_md))
        }
    };
    let array = Array {
        keeper: Keeper::Volume { braid: request.braid.clone(), name: request.name.clone() },
        remembers: victim.is_some(),
        victim,
    };
    let mut base = up(site, request, &called)?;
    let done = site.run(&array.ask(), LIMIT)?;
    let status = VolumeStatus::parse(&done.stdout);
    base.server_pid = status.ok().map(|status| status.pid);
    if redundancy != Redundancy::None {
        site.settle(&array, base.size_bytes)?;
        base.array = Some(array);
    }
    Ok(base)
}

/// A stack as `up` takes it: a path alone would be taken for the name of a volume.
fn expression(stack: &Stack) -> String {
    let text = stack.to_string();
    match stack.node {
        Node::File(_) if !text.contains('(') => format!("file({text})"),
        _ => text,
    }
}

/// A member as its volume calls it.
fn absolute(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

/// `--force MEMBER` for each member that may be overwritten.
fn force_words(request: &Request<'_>, paths: &[String]) -> Vec<String> {
    let may = |path: &&String| request.permit.covers(path);
    paths.iter().filter(may).flat_map(|path| ["--force".to_owned(), path.clone()]).collect()
}

fn member_paths(stack: &Stack) -> Vec<String> {
    stack.member_paths().iter().map(|path| path.display().to_string()).collect()
}

fn words(text: &[String]) -> impl Iterator<Item = &str> {
    text.iter().map(String::as_str)
}

/// `braid serve STACK --nbd unix:SOCKET`, and waits until it greets.
fn serve(site: &mut Site<'_>, request: &Request<'_>) -> Result<Base, Obstacle> {
    let mut command = CommandLine::new(&request.braid.program)
        .arg("serve")
        .arg(request.stack.to_string())
        .arg("--nbd")
        .arg(format!("unix:{}", request.socket.display()));
    let force = force_words(request, &member_paths(request.stack));
    for word in request.serve_args.iter().chain(&force) {
        command = command.arg(word);
    }
    if request.form.read_only {
        command = command.arg("--read-only");
    }
    site.commands.push(command.to_string());
    let uri = unix_uri(request.socket.display().to_string(), "");
    let service = site.world.start(&command)?;
    let server_pid = service.pid();
    site.held.serve(Server {
        service,
        socket: request.socket.clone(),
        command: command.to_string(),
    });
    let deadline = site.world.monotonic() + START_LIMIT;
    loop {
        if let Some(server) = site.held.server()
            && let Some((exit, stderr)) = server.poll_exit()?
        {
            site.held.forget_server();
            let reason = format!("its server ended before it was ready: {exit}");
            return Err(site.down(reason, command.to_string(), stderr));
        }
        match site.world.nbd_size(&uri) {
            Ok(size) => {
                return Ok(Base { server_pid, ..Base::new(Target::Nbd(uri), size) });
            }
            Err(_) if site.stop.is_set() => return Err(Obstacle::Stopped),
            Err(error) if site.world.monotonic() >= deadline => {
                let reason = format!("not ready after {} s: {error}", START_LIMIT.as_secs());
                return Err(site.down(reason, command.to_string(), String::new()));
            }
            Err(_) => site.world.sleep(ASK_EVERY),
        }
    }
}

/// `braid create NAME ...`.
fn create(
    site: &mut Site<'_>,
    request: &Request<'_>,
    shape: &[String],
    members: &[String],
) -> Result<(), Obstacle> {
    let force = force_words(request, members);
    let all = ["create", request.name.as_str()].into_iter();
    let all = all.chain(words(shape)).chain(words(&force)).chain(words(members));
    let command = request.braid.call(all);
    // If it is refused, what the members carry is not ours to remove.
    let superblocks =
        Thing::Superblocks { braid: Some(request.braid.clone()), members: members.to_vec() };
    let done = site.make(superblocks, &command)?;
    match done.exit {
        Exit::Code(0) => Ok(()),
        _ => Err(site.failed(&command, &done)),
    }
}

/// What `braid up --json` prints.
#[derive(Deserialize)]
struct Up {
    device: Option<PathBuf>,
}

/// What `braid up` is told to bring up.
enum Called {
    /// The array that was created under the request's name.
    Name,
    /// A stack, as it comes up: perhaps without one of its members.
    Stack(Stack),
}

/// `braid up TARGET`, attached or behind NBD.
fn up(site: &mut Site<'_>, request: &Request<'_>, called: &Called) -> Result<Base, Obstacle> {
    let mut all: Vec<String> = vec!["up".into()];
    match called {
        Called::Name => all.extend([request.name.clone(), "--json".into()]),
        Called::Stack(stack) => {
            let name = ["--json".into(), "--name".into(), request.name.clone()];
            all.extend([expression(stack)].into_iter().chain(name));
        }
    }
    match request.through_nbd {
        false => all.extend(["--attach".into(), "auto".into()]),
        true => all.extend([
            "--attach".into(),
            "none".into(),
            "--nbd".into(),
            format!("unix:{}", request.socket.display()),
        ]),
    }
    if request.form.read_only {
        all.push("--read-only".into());
    }
    all.extend(request.serve_args.iter().cloned());
    if let Called::Stack(stack) = called {
        // Of the stack that comes up: a member that is left out is refused, being none of its own.
        all.extend(force_words(request, &member_paths(stack)));
    }
    let command = request.braid.call(words(&all));
    // Noted before: a run that is killed meanwhile leaves it up, or about to be.
    site.hold(Thing::Volume { braid: request.braid.clone(), name: request.name.clone() });
    let result = site.run(&command, LIMIT);
    let done = match result {
        Ok(done) if done.exit == Exit::Code(0) => done,
        other => {
            // It may have come up and not said so in time. What does not go so stays held.
            let down = request.braid.call(["down", request.name.as_str(), "--force"]);
            site.world.run(&down, LIMIT, &StopFlag::default())?;
            return Err(other.map_or_else(|stop| stop, |done| site.failed(&command, &done)));
        }
    };
    let said: Up = serde_json::from_str(&done.stdout).map_err(|error| {
        let reason = format!("`braid up` said something else than JSON: {error}");
        site.down(reason, command.to_string(), done.stdout.clone())
    })?;
    let base = match (request.through_nbd, said.device) {
        (true, _) => {
            let uri = unix_uri(request.socket.display().to_string(), "");
            let size = site.world.nbd_size(&uri)?;
            Base::new(Target::Nbd(uri), size)
        }
        (false, Some(device)) => {
            let size = site.size_of(&device)?;
            Base::new(Target::Device(device), size)
        }
        (false, None) => {
            return Err(Obstacle::Impossible(
                "a block device is needed, and a volume cannot be attached here: that takes root, \
                 /dev/fuse and loop devices (`braid doctor` says what is missing)"
                    .to_owned(),
            ));
        }
    };
    Ok(Base { volume: Some(request.name.clone()), ..base })
}

/// How long a server may take to end after SIGTERM.
const STOP_GRACE: Duration = Duration::from_secs(20);

/// Stops a server.
pub(super) fn release_server(server: &mut Server, hand: &mut Hand<'_>) -> Result<(), LabError> {
    let (exit, stderr) = server.service.stop(STOP_GRACE)?;
    remove_file(&server.socket)?;
    match exit {
        Exit::Code(0) | Exit::Signal(15) => Ok(()),
        exit => Err(LabError::SubjectDown {
            subject: hand.subject.to_owned(),
            reason: format!("its server ended badly: {exit}"),
            command: server.command.clone(),
            stderr,
        }),
    }
}

/// Takes a volume down; one that is in use only by force.
pub(super) fn release_volume(
    hand: &mut Hand<'_>,
    braid: &Braid,
    name: &str,
    force: bool,
) -> Result<(), LabError> {
    let result = match hand.insist(braid.call(["down", name])) {
        // It has gone already, with everything.
        Err(_) if is_unknown(hand, braid, name)? => Ok(()),
        Err(error) if force => hand.run(braid.call(["down", name, "--force"])).and(Err(error)),
        other => other,
    };
    // What comes up next by this name may be another stack.
    result.and(remove_file(&braid.record(name)))
}

/// What `braid status --json` lists.
#[derive(Deserialize)]
struct Volumes {
    volumes: Vec<Named>,
    #[serde(default)]
    unanswered: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Whether braid knows no volume of this name, neither one that answers nor one that does not.
fn is_unknown(hand: &mut Hand<'_>, braid: &Braid, name: &str) -> Result<bool, LabError> {
    let list = braid.call(["status", "--json"]);
    let done = hand.world.run(&list, hand::LIMIT, &StopFlag::default())?;
    let known: Option<Volumes> =
        (done.exit == Exit::Code(0)).then(|| serde_json::from_str(&done.stdout).ok()).flatten();
    Ok(known.is_some_and(|known| {
        known.volumes.iter().chain(&known.unanswered).all(|volume| volume.name != name)
    }))
}

/// How often a member is wiped again that somebody holds, and how long is waited in between.
const MOST_ATTEMPTS: usize = 8;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(250);

/// Members without superblocks again, so that nothing takes them for an array.
pub(super) fn release_superblocks(
    hand: &mut Hand<'_>,
    braid: &Braid,
    members: &[String],
) -> Result<(), LabError> {
    let mut first = Ok(());
    for member in members {
        let mut wiped = hand.run(braid.call(["wipe", member.as_str()]));
        // A server that was killed may hold its members for a moment more.
        for _ in 0..MOST_ATTEMPTS {
            // A member that was being replaced when the trial was stopped has none any more.
            if wiped.is_ok() || has_none(hand, braid, member)? {
                wiped = Ok(());
                break;
            }
            hand.world.sleep(BETWEEN_ATTEMPTS);
            wiped = hand.run(braid.call(["wipe", member.as_str()]));
        }
        first = first.and(wiped);
    }
    first
}

/// What `braid examine --json` says of members.
#[derive(Deserialize)]
struct Examined {
    members: Vec<ExaminedMember>,
}

#[derive(Deserialize)]
struct ExaminedMember {
    /// Not there for a member that could not be looked at.
    superblocks: Option<Vec<IgnoredAny>>,
}

/// Whether a member was looked at and carries no superblock of md's. The exit status does not tell
/// that from a member that cannot be read.
fn has_none(hand: &mut Hand<'_>, braid: &Braid, member: &str) -> Result<bool, LabError> {
    let examine = braid.call(["examine", "--json", member]);
    let done = hand.world.run(&examine, hand::LIMIT, &StopFlag::default())?;
    let found: Option<Examined> = serde_json::from_str(&done.stdout).ok();
    let members = found.map(|found| found.members).unwrap_or_default();
    Ok(matches!(&members[..], [ExaminedMember { superblocks: Some(all) }] if all.is_empty()))
}
