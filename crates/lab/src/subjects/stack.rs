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

use braid_stack::{Missing, Node, Stack};
use serde::Deserialize;

use super::Form;
use super::array::{Array, Braid, Keeper, VolumeStatus};
use super::held::Thing;
use super::site::{Base, LIMIT, Obstacle, Site};
use crate::campaign::Source;
use crate::nbd::unix_uri;
use crate::safety::Permit;
use crate::tool::Target;
use crate::world::{CommandLine, Exit, StopFlag};

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

/// What can be done to the members of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redundancy {
    /// Nothing: it survives no failure.
    None,
    /// A member can be left out from the start; nothing remembers one that fails later.
    Forgetful,
    /// Superblocks remember who is a member.
    Remembering,
}

/// What can be done to the members of a stack if the campaign hurts arrays.
pub(super) fn redundancy(stack: &Stack) -> Redundancy {
    match stack.node {
        Node::Md(_) => Redundancy::Remembering,
        _ if plan_creation(stack).is_some() => Redundancy::Remembering,
        _ if has_redundancy(stack) => Redundancy::Forgetful,
        _ => Redundancy::None,
    }
}

fn is_redundant(node: &Node) -> bool {
    matches!(
        node,
        Node::Raid1(_) | Node::Raid10(_) | Node::Raid4(_) | Node::Raid5(_) | Node::Raid6(_)
    )
}

fn has_redundancy(stack: &Stack) -> bool {
    is_redundant(&stack.node) || stack.members().iter().any(has_redundancy)
}

/// Whether a source writes to its members by coming up, whatever is measured on it: mdadm and
/// `braid create` write superblocks, and an array without them is made to agree with itself.
pub(crate) fn writes_when_it_comes_up(source: &Source) -> bool {
    match source {
        Source::Kernel(_) => true,
        // What does not parse is taken for the worst.
        Source::Stack(text) => Stack::parse(text).map_or(true, |stack| has_redundancy(&stack)),
        _ => false,
    }
}

/// Whether some place of a member is free from the start.
pub(super) fn lacks_a_member(stack: &Stack) -> bool {
    stack.is_missing() || stack.members().iter().any(lacks_a_member)
}

/// Leaves the first member of the topmost redundant level out. Answers whether there is one.
fn leave_one_out(stack: &mut Stack) -> bool {
    let redundant = is_redundant(&stack.node);
    let members = stack.members_mut();
    match members.first_mut() {
        Some(first) if redundant => {
            *first = Stack::from(Node::Missing(Missing));
            true
        }
        _ => members.iter_mut().any(leave_one_out),
    }
}

/// The words of `braid create` for an array with superblocks in place of the stack, and its
/// members; `None` where there is no such array.
fn plan_creation(stack: &Stack) -> Option<(Vec<String>, Vec<String>)> {
    let mut words = vec!["--level".to_owned(), stack.node.name().to_owned()];
    let mut shape = |chunk: String, layout: Option<String>| {
        words.extend(["--chunk".to_owned(), chunk]);
        words.extend(layout.into_iter().flat_map(|layout| ["--layout".to_owned(), layout]));
    };
    match &stack.node {
        Node::Raid1(_) => {}
        Node::Raid10(raid) => shape(raid.chunk.to_string(), Some(raid.layout.to_string())),
        Node::Raid4(raid) => shape(raid.chunk.to_string(), None),
        Node::Raid5(raid) => shape(raid.chunk.to_string(), Some(raid.layout.to_string())),
        Node::Raid6(raid) => shape(raid.chunk.to_string(), Some(raid.layout.to_string())),
        _ => return None,
    }
    words.extend(["--bitmap", "none", "--consistency", "resync"].map(str::to_owned));
    let path = |member: &Stack| match &member.node {
        Node::File(file) if file.offset.0 == 0 && file.length.is_none() => Some(file.path.clone()),
        _ => None,
    };
    let members: Option<Vec<String>> = stack.members().iter().map(path).collect();
    Some((words, members?))
}

/// Brings the stack up.
pub(super) fn bring_up(site: &mut Site<'_>, request: &Request<'_>) -> Result<Base, Obstacle> {
    let redundancy = redundancy(request.stack);
    if redundancy == Redundancy::None && request.through_nbd {
        return serve(site, request);
    }
    let stays_md = matches!(request.stack.node, Node::Md(_));
    let (target, victim) = match plan_creation(request.stack) {
        // With superblocks, as its users have it. Without them it would be synchronised whenever it
        // comes up, and it comes up for each of its trials where others use its members too.
        Some((mut words, members)) => {
            let copies = matches!(request.stack.node, Node::Raid1(_) | Node::Raid10(_));
            if copies || request.form.parity_as_found {
                words.push("--assume-clean".to_owned());
            }
            create(site, request, &words, &members)?;
            (request.name.clone(), members.first().map(|path| absolute(path)))
        }
        _ => {
            let mut stack = request.stack.clone();
            if request.form.short {
                leave_one_out(&mut stack);
            }
            let first = stack.member_paths().first().map(|path| absolute(&path.to_string_lossy()));
            (expression(&stack), first.filter(|_| stays_md))
        }
    };
    let array = Array {
        keeper: Keeper::Volume { braid: request.braid.clone(), name: request.name.clone() },
        remembers: victim.is_some(),
        victim,
    };
    let mut base = up(site, request, &target)?;
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
    let uri = unix_uri(&request.socket.display().to_string());
    let service = site.world.start(&command)?;
    let server_pid = service.pid();
    site.hold(Thing::Server {
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
    site.must(&request.braid.call(all))?;
    site.hold(Thing::Superblocks { braid: Some(request.braid.clone()), members: members.to_vec() });
    Ok(())
}

/// What `braid up --json` prints.
#[derive(Deserialize)]
struct Up {
    device: Option<PathBuf>,
}

/// `braid up TARGET`, attached or behind NBD.
fn up(site: &mut Site<'_>, request: &Request<'_>, target: &str) -> Result<Base, Obstacle> {
    let mut all: Vec<String> = vec!["up".into(), target.into(), "--json".into()];
    if target != request.name {
        all.extend(["--name".into(), request.name.clone()]);
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
    if target != request.name {
        all.extend(force_words(request, &member_paths(request.stack)));
    }
    let command = request.braid.call(words(&all));
    let result = site.run(&command, LIMIT);
    let done = match result {
        Ok(done) if done.exit == Exit::Code(0) => done,
        other => {
            // It may have come up and not said so in time; one that did not is no error.
            let down = request.braid.call(["down", request.name.as_str(), "--force"]);
            site.world.run(&down, LIMIT, &StopFlag::default())?;
            return Err(other.map_or_else(|stop| stop, |done| site.failed(&command, &done)));
        }
    };
    site.hold(Thing::Volume { braid: request.braid.clone(), name: request.name.clone() });
    let said: Up = serde_json::from_str(&done.stdout).map_err(|error| {
        let reason = format!("`braid up` said something else than JSON: {error}");
        site.down(reason, command.to_string(), done.stdout.clone())
    })?;
    let base = match (request.through_nbd, said.device) {
        (true, _) => {
            let uri = unix_uri(&request.socket.display().to_string());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(text: &str) -> Stack {
        Stack::parse(text).unwrap()
    }

    #[test]
    fn what_can_be_hurt_is_told_apart() {
        for (text, expected) in [
            ("raid0(./a, ./b)", Redundancy::None),
            ("./a", Redundancy::None),
            ("raid1(./a, ./b)", Redundancy::Remembering),
            ("md(./a, ./b)", Redundancy::Remembering),
            ("raid5(ram(1M), ram(1M), ram(1M))", Redundancy::Forgetful),
            ("raid1(./a, missing)", Redundancy::Forgetful),
            ("raid0(raid1(./a, ./b), raid1(./c, ./d))", Redundancy::Forgetful),
            ("raid1(file(./a, offset=1M), ./b)", Redundancy::Forgetful),
        ] {
            assert_eq!(redundancy(&stack(text)), expected, "{text}");
        }
        assert!(lacks_a_member(&stack("raid0(raid1(./a, missing), ./b)")));
        assert!(!lacks_a_member(&stack("raid1(./a, ./b)")));
    }

    #[test]
    fn the_first_member_of_the_topmost_redundant_level_is_left_out() {
        let left = |text: &str| {
            let mut stack = stack(text);
            leave_one_out(&mut stack).then(|| stack.to_string())
        };
        assert_eq!(left("raid1(ram(1M), ram(2M))").unwrap(), "raid1(missing, ram(2M))");
        assert_eq!(
            left("raid0(chunk=64K, ./x, raid1(./a, ./b))").unwrap(),
            "raid0(chunk=64K, ./x, raid1(missing, ./b))"
        );
        assert_eq!(left("raid0(./a, ./b)"), None);
    }

    #[test]
    fn an_array_is_created_as_the_expression_says() {
        let words = |text: &str| {
            let (words, members) = plan_creation(&stack(text)).unwrap();
            format!("{} {}", words.join(" "), members.join(" "))
        };
        assert_eq!(
            words("raid5(chunk=64K, layout=right-symmetric, ./a, ./b, /dev/sdc)"),
            "--level raid5 --chunk 64K --layout right-symmetric --bitmap none \
             --consistency resync ./a ./b /dev/sdc"
        );
        assert_eq!(
            words("raid10(chunk=1M, layout=f2, ./a, ./b)"),
            "--level raid10 --chunk 1M --layout f2 --bitmap none \
             --consistency resync ./a ./b"
        );
        assert_eq!(
            words("raid1(./a, ./b)"),
            "--level raid1 --bitmap none --consistency resync ./a ./b"
        );
    }
}
