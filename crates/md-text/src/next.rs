//! The command that leads on from a verdict on an array.

use std::path::Path;

use braid_md::assembly::{How, Next};
use braid_shell::{shell_path, shell_word};
use braid_stack::path_of;

/// The command that an administrator should type next.
#[must_use]
pub fn command(next: &Next) -> String {
    let paths = |labels: &[String]| labels.iter().map(shell_path).collect::<Vec<_>>().join(" ");
    let named = |array: &Option<String>| array.as_deref().map_or("NAME".to_owned(), shell_word);
    match next {
        Next::Rescue { members } => {
            // `scan` looks into partitions itself.
            let paths = members.iter().map(|label| shell_path(path_of(Path::new(label))));
            format!("braid rescue scan CASE {}", paths.collect::<Vec<_>>().join(" "))
        }
        Next::Examine { members } => format!("braid examine {}", paths(members)),
        Next::Assemble { members, how } => {
            let flag = match how {
                How::Normally => String::new(),
                How::Force => " --force".to_owned(),
                How::ReadOnly => " --read-only".to_owned(),
                How::Degraded => " --degraded".to_owned(),
                How::WithLayout(layout) => format!(" --layout {layout} --read-only"),
            };
            format!("braid assemble {}{flag}", paths(members))
        }
        Next::FindMembers { members, roles } => {
            let numbers: Vec<String> = roles.iter().map(u16::to_string).collect();
            let roles = braid_md::assembly::plural(&numbers, "role");
            format!("braid assemble {} DEVICE..   (with {roles})", paths(members))
        }
        Next::ReAdd { array, member } => {
            format!("braid member re-add {} {}", named(array), shell_path(member))
        }
        Next::Add { array } => format!("braid member add {} DEVICE", named(array)),
    }
}
