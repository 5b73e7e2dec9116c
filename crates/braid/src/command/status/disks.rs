//! The disks below members: asked of one volume that is named, and shown where something is wrong.

use braid_monitor::look_at_disks;
use braid_shell::shell_path;

use crate::cli;
use braid_service::control::Status;

/// Adds the state of the disks below the members. Not used for repeated queries, for all volumes,
/// or for a single value.
pub(super) fn asked(options: &cli::Status, mut status: Status) -> Status {
    let is_short = options.test || options.watch || options.brief || options.export;
    if options.name.is_some() && !is_short {
        look_at_disks(&mut status.members);
    }
    status
}

/// A line for each thing that it says, and the command that leads on; nothing of a disk that is well.
pub(super) fn of(status: &Status, member: &str) -> String {
    let below = status.members.iter().find(|one| one.member == member);
    let disk = below.and_then(|one| one.disk.as_ref());
    let Some((name, smart)) =
        disk.and_then(|disk| Some((disk.disk.as_ref()?, disk.smart.as_ref()?)))
    else {
        return String::new();
    };
    let line = |word: &str, what: &String| format!("               disk {name} {word}: {what}\n");
    let failing = smart.failing.iter().map(|what| line("fails", what));
    let mut text: String =
        failing.chain(smart.warnings.iter().map(|what| line("warns", what))).collect();
    if !text.is_empty() {
        text.push_str(&format!(
            "               next: `braid member replace {} {} DEVICE`; `smartctl --all /dev/{name}` shows all\n",
            status.name,
            shell_path(member)
        ));
    }
    text
}
