//! `braid up`: a volume in the background, and the process it becomes.
//!
//! ```text
//!   braid up ──Start as JSON──▶ braid-volume          (new session, log file, folder /)
//!      │                            │ checks, opens, attaches, stores NAME.toml
//!      ◀──── one line of JSON ──────┘ ready, or the reason why not
//!      prints the device
//! ```

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use braid_shell::shell_path;

use super::{by_service, stacks};
use crate::cli::Up;
use braid_service::control::{self, ErrorCode};
use braid_service::failure::{Context, Failure};
use braid_service::log;
use braid_service::membership::{self, Membership};
use braid_service::places::{Places, check_name};
use braid_service::process::{Outcome, Start, Tell};
use braid_service::record::Record;
use braid_service::volume::{Printed, Ready, Spec, logs};

pub(super) fn up(up: &Up) -> Result<(), Failure> {
    if let Some(spec) = by_service::given().filter(|_| up.foreground) {
        return Err(by_service::run_given(&spec));
    }
    let places = Places::from_environment();
    places.prepare_run()?;
    let (name, mut record) = find(up, &places)?;
    refuse_if_running(&places, &name)?;
    if up.remember {
        record = Record { members: record.members, ..Record::new(record.stack) };
    }
    let mut now = record.clone();
    apply_options(up, &mut now)?;
    if up.remember {
        record = now.clone();
    }
    let members = Membership::of(&record);
    let mut notes = members.notes();
    match members.changed.is_empty() {
        true => {}
        false if now.read_only => notes.push(format!(
            "the members are not what {name} was last up with:{}",
            members.changes_in_words()
        )),
        false if up.accept_members => {}
        false => return Err(changed(&name, &members)),
    }
    refuse_if_lost(&places, &name, &record, &members)?;
    now.stack = members.resolve(&record.stack);
    let forced = stacks::forced(&up.common, &[&record.stack, &now.stack])?;
    let accepted = [members.recognised.clone(), forced.clone()].concat();
    // Members judged now and used for writing belong to the volume from now on. A member to be read
    // may carry any data, and does not belong to the volume.
    if !now.read_only {
        match up.accept_members || record.members.is_empty() {
            true => membership::accept_all(&mut record),
            false => membership::complete(&mut record),
        }
    }
    let arrays = members.accepted(&record);
    let spec = Spec {
        degraded: up.common.degraded,
        forced,
        arrays,
        notes,
        trace: stacks::trace_to(up.trace.as_ref())?,
        root_storage: up.root_storage,
        ..spec_of(&now, &name, accepted, &places)
    };
    let (listens, attach) = (record.nbd.clone(), record.attach);
    let with_name = up.name.is_none() && stacks::is_expression(&up.target);
    let printed = Printed { json: up.json, quiet: false, with_name };
    if up.foreground {
        return Err(Start::new(spec, Some(record), Tell::User(printed)).exec());
    }
    let ready = match by_service::is_asked(&places) {
        true => by_service::start(&places, &spec, &record),
        false => start_process(&places, spec, record),
    };
    ready.map_err(|failure| members.explain(failure))?.print(printed);
    // The volume is up; its next start as a service is refused, and says what to do.
    by_service::let_use(&places, &name, &listens, attach).unwrap_or_else(|failure| {
        eprintln!("braid: {}", failure.text());
    });
    Ok(())
}

/// Members that are not what the record says.
fn changed(name: &str, membership: &Membership) -> Failure {
    let forced: Vec<String> =
        membership.to_force.iter().map(|path| format!(" --force {}", shell_path(path))).collect();
    Failure::refused(format!(
        "{name} is not started: its members are not what it was last up with:{}",
        membership.changes_in_words()
    ))
    .next(format!(
        "put them back as they were; to look: braid up {name} --read-only; if these are its \
         members now: braid up {name} --accept-members{}",
        forced.concat()
    ))
}

/// Members that the volume cannot do without are at other paths now, or nowhere.
fn refuse_if_lost(
    places: &Places,
    name: &str,
    record: &Record,
    members: &Membership,
) -> Result<(), Failure> {
    let lost = |path: &PathBuf| members.lost.contains(path);
    let plain = membership::without_superblocks(&record.stack).into_iter();
    let mut plain = plain.filter(|path| lost(path) && !logs(&record.stack).contains(path));
    if let Some(path) = plain.next() {
        let was = record.known(&path).map_or("", |known| known.identity.as_str());
        return Err(Failure::refused(format!(
            "{name} is not started: its member {} ({was}) is not there",
            path.display()
        ))
        .next(format!(
            "bring it back; if it has another path now: write that into {}, then braid up {name} \
             --accept-members",
            shell_path(places.config_file(name))
        )));
    }
    if members.lost.is_empty() || members.lost.len() < record.stack.member_names().len() {
        return Ok(());
    }
    let paths: Vec<String> = members.lost.iter().map(|path| path.display().to_string()).collect();
    Err(Failure::refused(format!(
        "{name} is not started: its members are not there: {}",
        paths.join(", ")
    ))
    .next(
        "bring them back; if they have other paths now: braid assemble PATH.., or --scan, or --in FOLDER",
    ))
}

/// The volume that is meant: its name, and how it is brought up.
fn find(up: &Up, places: &Places) -> Result<(String, Record), Failure> {
    let target = up.target.as_str();
    if stacks::is_expression(target) {
        let stack = stacks::parse_for(target, up.common.read_only)?;
        let name = match &up.name {
            Some(name) => name.clone(),
            None => unused_name(places),
        };
        check_name(&name)?;
        let file = places.config_file(&name);
        if file.exists() {
            let record = Record::read(&file)?;
            if record.stack == stack {
                return Ok((name, record));
            }
            return Err(Failure::refused(format!(
                "there is a volume called {name} with another stack: {}",
                record.stack
            ))
            .next(format!(
                "`braid up {name}` brings that one up; --name gives this one another name; \
                 removing {} forgets that one",
                file.display()
            )));
        }
        return Ok((name, Record::new(stack)));
    }
    let file = match target.strip_suffix(".toml") {
        None if !places.config_file(target).exists() && Path::new(target).exists() => {
            let path = shell_path(Path::new(".").join(target));
            return Err(Failure::usage(format!(
                "{target:?} names no volume, and a file of that name is here: without a slash, a name is a volume's"
            ))
            .next(format!("braid up {path}")));
        }
        Some(_) => PathBuf::from(target),
        None => {
            check_name(target)?;
            places.config_file(target)
        }
    };
    if !file.exists() {
        return Err(Failure::usage(format!("{} does not exist, so {target:?} names no volume", file.display()))
            .next("`braid up STACK --name NAME` makes one, for instance: braid up 'raid0(a.img, b.img)' --name scratch")
            .code(ErrorCode::NotFound));
    }
    let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    check_name(&name)?;
    let mut record = Record::read(&file)?;
    // A file from elsewhere says nothing of members that are known here.
    if record.members.is_empty()
        && let Ok(here) = Record::read(&places.config_file(&name))
        && here.stack == record.stack
    {
        record.members = here.members;
    }
    Ok((name, record))
}

fn unused_name(places: &Places) -> String {
    (0..)
        .map(|number| format!("vol{number}"))
        .find(|name| !places.config_file(name).exists() && !places.control(name).exists())
        .unwrap_or_default()
}

/// A process may have left its socket behind; only one that responds is in the way.
fn refuse_if_running(places: &Places, name: &str) -> Result<(), Failure> {
    let socket = places.control(name);
    // A process that is ending responds less and less, and then is gone.
    let mut answer = control::get_status(&socket);
    for _ in 0..20 {
        if !matches!(answer, Err(control::ControlError::Malformed(_))) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        answer = control::get_status(&socket);
    }
    match answer {
        Ok(status) => {
            Err(Failure::refused(format!("{name} is up already (process {})", status.pid))
                .next(format!("`braid status {name}` shows it, `braid down {name}` ends it"))
                .code(ErrorCode::AlreadyUp))
        }
        Err(control::ControlError::Unreachable(_)) => Ok(()),
        Err(error) => Err(Failure::refused(format!("{name} seems to be up: {error}"))
            .next(format!("`braid down {name} --force` ends it"))),
    }
}

/// Options that were given replace what the record says.
fn apply_options(up: &Up, record: &mut Record) -> Result<(), Failure> {
    if let Some(attach) = up.attach {
        record.attach = attach;
    }
    if !up.nbd.is_empty() {
        record.nbd = up.nbd.iter().map(|address| stacks::absolute_address(address)).collect();
    }
    if let Some(path) = &up.vhost {
        record.vhost = Some(stacks::absolute_path(path)?);
    }
    record.read_only |= up.common.read_only;
    record.insecure |= up.common.insecure;
    stacks::apply_tls(&up.common.tls, &mut record.tls)?;
    if up.common.io != braid_service::volume::IoMode::Auto {
        record.io = up.common.io;
    }
    record.re_add = up.re_add.unwrap_or(record.re_add);
    if let Some(deadline) = up.common.member_deadline {
        record.member_deadline = deadline;
    }
    if let Some(shards) = up.common.shards {
        record.shards = shards.into();
    }
    record.memory = up.common.memory.or(record.memory);
    Ok(())
}

fn spec_of(record: &Record, name: &str, accepted: Vec<PathBuf>, places: &Places) -> Spec {
    let mut nbd = record.nbd.clone();
    // A volume that cannot be attached must be reachable somehow.
    if nbd.is_empty() && record.vhost.is_none() && !record.attach.attaches() {
        nbd.push(format!("unix:{}", places.nbd(name).display()));
    }
    Spec {
        name: name.to_owned(),
        stack: record.stack.clone(),
        nbd,
        vhost: record.vhost.clone(),
        insecure: record.insecure,
        tls: record.tls.clone(),
        attach: record.attach,
        read_only: record.read_only,
        degraded: false,
        re_add: record.re_add,
        spare_group: record.spare_group.clone(),
        lasting: record.lasting(),
        accepted,
        forced: Vec::new(),
        arrays: Vec::new(),
        notes: Vec::new(),
        io: record.io,
        member_deadline: record.member_deadline,
        shards: record.shards,
        memory: record.memory,
        control: Some(places.control(name)),
        mount: places.mount(name),
        link: Some(places.link(name)),
        trace: None,
        given_up: places.given_up(),
        root_storage: false,
        scrubs: Some(places.scrubs(name)),
        superblocks: Some(places.superblocks()),
        record: Some(places.config_file(name)),
    }
}

/// Starts the volume's process and waits until it is ready, or has said why not.
fn start_process(places: &Places, spec: Spec, record: Record) -> Result<Ready, Failure> {
    let log = places.log(&spec.name);
    log::make_room(&log).context(format_args!("cannot make room in the log {}", log.display()))?;
    let file = places.config_file(&spec.name);
    verbose!(
        "starts the process of {}, which logs to {} and writes {}",
        spec.name,
        log.display(),
        file.display()
    );
    let log_file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(&log)
        .context(format_args!("cannot open the log {}", log.display()))?;
    let mut child = Start::new(spec, Some(record), Tell::Command).spawn(log_file)?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).context("the volume's process")?;
    }
    serde_json::from_str::<Outcome>(&line)
        .unwrap_or_else(|_| {
            Err(Failure::failed("the volume's process ended without a word")
                .next(format!("its log is {}", log.display())))
        })
        .inspect_err(|_| {
            // It said all that it had to say and ends by itself.
            let _ = child.wait();
        })
}
