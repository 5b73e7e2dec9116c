//! The disk below a member, where something is wrong with it.

use braid_shell::shell_path;

use crate::control::Status;

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
