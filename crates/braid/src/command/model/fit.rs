//! `braid model fit`: measures a device and writes its profile.
//!
//! Invariants: the device is opened for writing only if `--destroy` names it again and it is not in
//! use. Only the device is then written, and the profile to a new file.

mod others;
mod timed;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use braid_fit::{Fault, Fit, Permission, Plan, fit};
use braid_model::Profile;
use braid_probe::{FileKind, MemberFacts, Policy, Reason, check_member};
use braid_shell::shell_path;
use braid_stack::ByteSize;
use serde_json::json;

use self::timed::Timed;
use super::super::direct::{Access, Direct};
use super::super::given;
use super::super::page::write_new;
use crate::cli;
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::{Context, Failure};

/// So many requests a second by others are no measurement of the device alone.
const BUSY: f64 = 20.0;

/// A device as its profile.
pub(in crate::command) struct Fitted {
    facts: MemberFacts,
    found: Fit,
    pub(in crate::command) profile: Profile,
    /// Why it may not be believed.
    pub(in crate::command) doubts: Vec<String>,
}

pub(super) fn model_fit(options: &cli::ModelFit) -> Result<(), Failure> {
    let given = given::absolute(std::slice::from_ref(&options.device))?;
    let named = options.destroy.as_slice();
    let destroy = given::named_again("--destroy", named, &given)?;
    let output = output(options)?;
    let (facts, doubts) = device(&given[0], !destroy.is_empty())?;
    let fitted = measure(facts, doubts, !destroy.is_empty(), options.time)?;
    write_new(&output, &fitted.found.text)?;
    let text = match options.json {
        true => format!("{}\n", as_json(&output, &fitted)),
        false => as_text(&output, &fitted),
    };
    std::io::stdout().write_all(text.as_bytes()).context("standard output")
}

/// Examines a device to be measured, and returns reasons for doubt; its path is absolute. With
/// `destroy` it may be written.
///
/// # Errors
/// It cannot be measured, or may not be written.
pub(in crate::command) fn device(
    path: &Path,
    destroy: bool,
) -> Result<(MemberFacts, Vec<String>), Failure> {
    let this = [path.to_path_buf()];
    // The user named its content for destruction, but not its users.
    let (facts, mut doubts) = match destroy {
        true => (given::judge(&this, &this)?.swap_remove(0), Vec::new()),
        false => readable(path)?,
    };
    doubts.extend(alone(&facts)?);
    Ok((facts, doubts))
}

/// Measures a device; writes over what is on it only if it is to be destroyed.
///
/// # Errors
/// It is too small or too slow, or does not answer.
pub(in crate::command) fn measure(
    facts: MemberFacts,
    mut doubts: Vec<String>,
    destroy: bool,
    limit: Duration,
) -> Result<Fitted, Failure> {
    let access = if destroy { Access::Destroy } else { Access::Read };
    let mut device = Timed::new(Direct::open(&facts, access)?);
    let permission = Permission { destroy, limit };
    let mut announce = |plan: &Plan| eprintln!("braid: {}", announced(&facts, plan));
    let found = fit(&mut device, &label(&facts), permission, &mut announce)
        .map_err(|fault| refused(&facts, limit, &fault))?;
    let profile = Profile::parse(&found.text).context("the profile that was fitted")?;
    doubts.extend(found.warnings.iter().cloned());
    Ok(Fitted { facts, found, profile, doubts })
}

/// Returns the path of the new profile, which must not exist.
fn output(options: &cli::ModelFit) -> Result<PathBuf, Failure> {
    let output = match (&options.output, options.device.file_name()) {
        (Some(output), _) => output.clone(),
        (None, Some(name)) => Path::new(name).with_extension("toml"),
        (None, None) => {
            let what = format!("{} has no name for a profile", options.device.display());
            return Err(Failure::usage(what).next("name a file with --output"));
        }
    };
    if output.symlink_metadata().is_ok() {
        let text = format!("{} is there already; nothing was measured", output.display());
        return Err(Failure::refused(text).next("name another file with --output"));
    }
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(Failure::usage(format!("{} is no folder", folder.display())));
    }
    Ok(output)
}

/// Examines a device for reading. A device in use is accepted, but its measurements are doubted.
///
/// # Errors
/// It is not a device or image file, or cannot be read.
pub(in crate::command) fn readable(path: &Path) -> Result<(MemberFacts, Vec<String>), Failure> {
    let policy = Policy { read_only: true, ..Policy::default() };
    match check_member(path, &policy) {
        Ok(facts) => Ok((facts, Vec::new())),
        Err(refusal) => match (&refusal.reason, &refusal.facts) {
            (Reason::InUse { .. } | Reason::NotRaw { .. }, Some(facts)) => {
                Ok(((**facts).clone(), vec![refusal.reason.to_string()]))
            }
            _ => Err(braid_service::refusal::refused(&refusal)),
        },
    }
}

/// Refuses a device that others keep busy, and a file of which there is nothing; doubts a file on a disk that
/// others use.
fn alone(facts: &MemberFacts) -> Result<Option<String>, Failure> {
    let path = facts.path.display();
    if let Some(share) = others::holes(facts).context(&path)? {
        let text = format!(
            "{path} is refused: {:.0} % of it are holes, which no disk reads",
            100.0 * share
        );
        let next = "name a block device, or a file that has been written in full";
        return Err(Failure::refused(text).next(next));
    }
    let Some(disk) = &facts.disk else { return Ok(None) };
    let Some(requests) =
        others::requests(disk, Duration::from_secs(1)).context("/proc/diskstats")?
    else {
        return Ok(None);
    };
    if requests <= BUSY {
        return Ok(None);
    }
    let text = format!("{disk} is busy: {requests:.0} requests a second that are not from here");
    if facts.kind == FileKind::Regular {
        return Ok(Some(text));
    }
    let next = format!("fuser -v {}; then try again", shell_path(&facts.path));
    Err(Failure::refused(format!("{path} is refused: {text}")).next(next))
}

/// Returns a readable name of the device.
fn label(facts: &MemberFacts) -> String {
    facts.model.clone().unwrap_or_else(|| facts.path.display().to_string())
}

fn announced(facts: &MemberFacts, plan: &Plan) -> String {
    let writes = match plan.writes {
        0 => "writes nothing".to_owned(),
        bytes => format!("WRITES up to {:#} over what is there", ByteSize(bytes)),
    };
    format!(
        "{}: reads {:#}, {writes}; some {} s, {} s at most",
        facts.describe(),
        ByteSize(plan.reads),
        plan.expected.as_secs() + 1,
        plan.limit.as_secs()
    )
}

fn refused(facts: &MemberFacts, limit: Duration, fault: &Fault) -> Failure {
    let text = format!("{} is not fitted: {fault}", facts.path.display());
    match fault {
        Fault::Device(_) | Fault::Nonsense(_) => Failure::failed(text),
        Fault::TooSmall { .. } => {
            Failure::refused(text).next("name a larger one, or let it only be read")
        }
        Fault::Late { needs, .. } => {
            let longer = needs.unwrap_or(limit * 2).as_secs() + 1;
            Failure::refused(text).next(format!("--time {longer}s"))
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn as_text(output: &Path, fitted: &Fitted) -> String {
    let Fitted { facts, found: fit, profile, doubts } = fitted;
    let (read, write) = profile.long_rates().unwrap_or_default();
    let writes = fit.constants.iter().any(|one| one.name == "write_rate" && one.measured);
    let and_writes = if writes { format!(" and writes {:.1}", write / 1e6) } else { String::new() };
    let speed = format!("reads {:.1}{and_writes} MB/s", read / 1e6);
    let mut text = format!(
        "{} is {}: it {speed} in long runs. Its model errs by {} in the median and {} at worst, on \
         experiments that no constant is from.\n\n",
        facts.path.display(),
        fit.called(),
        percent(fit.held_out.median),
        percent(fit.held_out.worst)
    );
    text += &fit.table();
    text.extend(fit.facts.iter().map(|fact| format!("\nSeen beside: {fact}.")));
    text.extend(doubts.iter().map(|doubt| format!("\nDoubtful: {doubt}.")));
    let file = shell_path(output);
    text + &format!(
        "\n\nThe profile is in {}, with where each constant comes from.\n  \
         next: braid advise {file} {file} --workload seq-read\n",
        output.display()
    )
}

fn as_json(output: &Path, fitted: &Fitted) -> serde_json::Value {
    let Fitted { facts, found: fit, doubts, .. } = fitted;
    let constants = fit.constants.iter().map(|one| {
        json!({
            "name": one.name,
            "value": one.estimate.value,
            "low": one.estimate.low,
            "high": one.estimate.high,
            "measured": one.measured,
            "source": one.source,
        })
    });
    let tried = fit.tried.iter().map(|(kind, mean)| json!({ "kind": kind, "mean_error": mean }));
    json!({
        "output_version": OUTPUT_VERSION,
        "device": facts.path,
        "size_bytes": fit.size,
        "kind": fit.kind,
        "output": output,
        "constants": constants.collect::<Vec<_>>(),
        "held_out": { "median": fit.held_out.median, "worst": fit.held_out.worst },
        "used": { "median": fit.used.median, "worst": fit.used.worst },
        "tried": tried.collect::<Vec<_>>(),
        "facts": fit.facts,
        "doubts": doubts,
    })
}
