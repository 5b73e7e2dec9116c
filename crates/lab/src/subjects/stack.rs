//! A stack that braid serves, in one of two forms:
//!
//! | form | condition | commands |
//! |---|---|---|
//! | created | one redundant level over whole files or devices, whose superblocks can record the members | `braid create`, `braid up NAME` |
//! | as it is | else | `braid up STACK` |
//!
//! It is attached, or served through NBD if every tool of the campaign speaks NBD.
//!
//! Invariants:
//!
//! * an array is handed out when no pass runs over it: braid resynchronises an array without superblocks at
//!   each start, because nothing says that its copies agree;
//! * a created array has no log and no bitmap, since the expression has none. Copies of raid1 and raid10 are
//!   assumed to agree: no read covers unwritten data. Parity is resynchronised: an unwritten part of a stripe
//!   matters when a member is missing.
//!
//! Members with any content are accepted if the caller named them to be destroyed, and only then. A stack that
//! the campaign does not write is served with `--read-only`.

use std::path::PathBuf;

use braid_nbd::uri::unix_uri;
use braid_stack::{Node, Stack};
use serde_json::Value;

use super::asked::settle;
use super::site::{Base, LIMIT, Site};
use super::things::Thing;
use crate::array::{Array, Braid, Keeper, pid_in_status};
use crate::command::{Exit, Target};
use crate::error::Obstacle;
use crate::safety::Permit;
use crate::source::{Form, Redundancy, leave_one_out, plan_creation, redundancy};
use crate::world::StopFlag;

/// A request to bring a stack up.
pub(super) struct Request<'r> {
    pub(super) stack: &'r Stack,
    pub(super) braid: &'r Braid,
    /// A name that is unique on this machine.
    pub(super) name: String,
    /// The socket for NBD, if all tools of the campaign speak NBD.
    pub(super) socket: Option<PathBuf>,
    pub(super) form: Form,
    /// The paths that may be overwritten.
    pub(super) permit: &'r Permit,
}

/// Brings the stack up.
pub(super) fn bring_up(site: &mut Site<'_>, request: &Request<'_>) -> Result<Base, Obstacle> {
    let stays_md = matches!(request.stack.node, Node::Md(_));
    let (called, victim) = match plan_creation(request.stack) {
        // With superblocks, as users have it. Without them it would be resynchronised at each start, which is
        // at each of its trials if others use its members too.
        Some((mut words, members)) => {
            let copies = matches!(request.stack.node, Node::Raid1(_) | Node::Raid10(_));
            if copies || request.form.parity_as_found {
                words.push("--assume-clean".to_owned());
            }
            create(site, request, words, &members)?;
            (vec![request.name.clone()], members.first().map(|path| absolute(path)))
        }
        None => {
            let mut stack = request.stack.clone();
            if request.form.short {
                leave_one_out(&mut stack);
            }
            let members = member_paths(&stack);
            let first = members.first().map(|path| absolute(path));
            let mut words = vec![expression(&stack), "--name".to_owned(), request.name.clone()];
            // Only members of the stack that comes up: braid refuses --force for a member that is left out.
            words.extend(force_words(request, &members));
            (words, first.filter(|_| stays_md))
        }
    };
    let array = Array {
        keeper: Keeper::Volume { braid: request.braid.clone(), name: request.name.clone() },
        remembers: victim.is_some(),
        victim,
    };
    let mut base = up(site, request, called)?;
    let done = site.run(&array.ask(), LIMIT)?;
    base.server_pid = pid_in_status(&done.stdout);
    if redundancy(request.stack) != Redundancy::None {
        settle(site, &array, base.size_bytes)?;
        base.array = Some(array);
    }
    Ok(base)
}

/// Returns a stack in the syntax of `up`, which would take a path alone for the name of a volume.
fn expression(stack: &Stack) -> String {
    let text = stack.to_string();
    match stack.node {
        Node::File(_) if !text.contains('(') => format!("file({text})"),
        _ => text,
    }
}

/// Returns the volume's name of a member.
fn absolute(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

/// Returns `--force MEMBER` for each member that may be overwritten.
fn force_words(request: &Request<'_>, paths: &[String]) -> Vec<String> {
    let may = |path: &&String| request.permit.covers(path);
    paths.iter().filter(may).flat_map(|path| ["--force".to_owned(), path.clone()]).collect()
}

fn member_paths(stack: &Stack) -> Vec<String> {
    stack.member_paths().iter().map(|path| path.display().to_string()).collect()
}

/// Runs `braid create NAME ...`.
fn create(
    site: &mut Site<'_>,
    request: &Request<'_>,
    shape: Vec<String>,
    members: &[String],
) -> Result<(), Obstacle> {
    let mut words = vec!["create".to_owned(), request.name.clone()];
    words.extend(shape);
    words.extend(force_words(request, members));
    words.extend_from_slice(members);
    let command = request.braid.call(words.iter().map(String::as_str));
    // If it is refused, the members' content does not belong to this run.
    let done = site.make(Thing::Superblocks { members: members.to_vec() }, &command)?;
    site.expect(&command, done).map(drop)
}

/// Runs `braid up` of the named volume or stack, attached or behind NBD.
fn up(site: &mut Site<'_>, request: &Request<'_>, called: Vec<String>) -> Result<Base, Obstacle> {
    let served = request.socket.as_ref().map(|socket| socket.display().to_string());
    let mut words = vec!["up".to_owned()];
    words.extend(called);
    words.extend(["--json", "--attach"].map(str::to_owned));
    match &served {
        None => words.push("auto".to_owned()),
        Some(path) => {
            words.extend(["none".to_owned(), "--nbd".to_owned(), format!("unix:{path}")]);
        }
    }
    if request.form.read_only {
        words.push("--read-only".to_owned());
    }
    let command = request.braid.call(words.iter().map(String::as_str));
    // Recorded before: a killed run leaves it up, or about to come up.
    site.hold(Thing::Volume { name: request.name.clone() });
    let done = match site.run(&command, LIMIT) {
        Ok(done) if done.exit == Exit::Code(0) => done,
        other => {
            // It may have come up without an answer in time. If it is not taken down, it stays held.
            let down = request.braid.call(["down", request.name.as_str(), "--force"]);
            site.world.run(&down, LIMIT, &StopFlag::default())?;
            return Err(other.map_or_else(|stop| stop, |done| site.failed(&command, &done)));
        }
    };
    let said: Value = serde_json::from_str(&done.stdout).map_err(|error| {
        let reason = format!("`braid up` did not print JSON: {error}");
        site.down(reason, command.to_string(), &done.stdout)
    })?;
    let base = match (served, said["device"].as_str()) {
        (Some(path), _) => {
            let uri = unix_uri(path, "");
            let size = site.world.nbd_size(&uri)?;
            Base::new(Target::Nbd(uri), size)
        }
        (None, Some(device)) => site.device(device)?,
        (None, None) => {
            return Err(Obstacle::Impossible(
                "a block device is needed, and a volume cannot be attached here: that takes root, \
                 /dev/fuse and loop devices (`braid doctor` says what is missing)"
                    .to_owned(),
            ));
        }
    };
    Ok(Base { volume: Some(request.name.clone()), ..base })
}
