//! Status for scripts: one line per volume; an array as mdadm exports it; whether the serving
//! program is the installed one.

use std::fmt::Write as _;

use braid_shell::shown;

use braid_service::control::{ArrayMember, ArrayStatus, Status};
use braid_service::failure::Failure;

/// A line for each volume, without a header: its name, its state, and how it is reached: its block
/// device, else its first URI, else `-`. One that does not answer is `unanswered`.
pub(super) fn brief<'a>(
    answers: impl Iterator<Item = (&'a str, Result<&'a Status, &'a Failure>)>,
) -> String {
    let line = |(name, answer): (&str, Result<&Status, &Failure>)| match answer {
        Ok(status) => {
            let export = status.device_export().or(status.exports.first());
            let reached = export.map_or("-", |export| export.address.as_str());
            format!("{name} {} {reached}\n", status.state)
        }
        Err(_) => format!("{name} unanswered -\n"),
    };
    answers.map(line).collect()
}

/// Returns the exit status of `mdadm --detail --test`.
pub(super) fn test(answer: Result<&Status, &Failure>) -> u8 {
    match answer.map(|status| status.state.as_str()) {
        Ok("online" | "resyncing") => 0,
        Ok("degraded") => 1,
        Ok(_) => 2,
        Err(_) => 4,
    }
}

/// The array of `status` that is meant, or the only one, in the words of `mdadm --detail --export` (mdadm 4.2,
/// `Detail.c`); `MD_DEVNAME` is the volume's name, which is below /dev/braid.
pub(super) fn export(status: &Status, which: Option<&str>) -> Result<String, Failure> {
    Ok(exported(&status.name, one_array(status, which)?))
}

/// The array that is meant by its name or identifier, or the only one.
fn one_array<'a>(status: &'a Status, meant: Option<&str>) -> Result<&'a ArrayStatus, Failure> {
    let is_meant = |array: &&ArrayStatus| {
        meant.is_none_or(|meant| array.called == meant || array.uuid.as_deref() == Some(meant))
    };
    let found: Vec<&ArrayStatus> = status.arrays.iter().filter(is_meant).collect();
    match found[..] {
        [array] => Ok(array),
        [] => Err(Failure::failed(format!("{} has no such array", status.name))
            .next("`braid status --json` says all of a volume that is no array")),
        _ => {
            let called: Vec<&str> = found.iter().map(|array| array.called.as_str()).collect();
            let text = format!("{} has {} arrays: {}", status.name, found.len(), called.join(", "));
            Err(Failure::usage(text).next("--array NAME says which"))
        }
    }
}

fn exported(volume: &str, array: &ArrayStatus) -> String {
    let mut text = format!("MD_LEVEL={}\nMD_DEVICES={}\n", array.level, array.raid_disks);
    let facts = [
        ("MD_METADATA", array.metadata.as_deref()),
        ("MD_UUID", array.uuid.as_deref()),
        ("MD_DEVNAME", Some(volume)),
        ("MD_NAME", array.full_name.as_deref()),
    ];
    for (key, value) in facts {
        if let Some(value) = value {
            let _ = writeln!(text, "{key}={}", shown(value));
        }
    }
    for member in &array.members {
        let key = key_of(&member.member);
        let role = role_of(member).map_or("spare".to_owned(), |role| role.to_string());
        let _ = writeln!(text, "MD_DEVICE_{key}_ROLE={role}");
        let _ = writeln!(text, "MD_DEVICE_{key}_DEV={}", shown(&member.member));
    }
    text
}

/// md has no role for what is faulty.
fn role_of(member: &ArrayMember) -> Option<u16> {
    member.role.filter(|_| member.state != "faulty")
}

/// `/dev/sda1` as a part of a variable's name: `dev_sda1`.
fn key_of(member: &str) -> String {
    let plain = |one: char| if one.is_ascii_alphanumeric() { one } else { '_' };
    member.trim_start_matches('/').chars().map(plain).collect()
}

/// Returns a notice if the serving program has another version than `own`, that of this program.
pub(super) fn outdated(status: &Status, own: &str) -> Option<String> {
    let served = match status.version.as_str() {
        "" => "a version before 0.1.0".to_owned(),
        version => version.to_owned(),
    };
    let what = match (status.version == own, status.program_replaced) {
        (true, false) => return None,
        (true, true) => format!("{served}, whose program was replaced since by another {own}"),
        (false, _) => format!("{served}, and {own} is installed"),
    };
    let name = &status.name;
    Some(format!("{what}: it goes on; when it suits: `braid down {name}`, then `braid up {name}`"))
}
