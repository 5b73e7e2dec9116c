//! The first help screen: commands by what they are for.

use std::ffi::OsStr;
use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::Cli;

/// All commands that the help shows, in its order.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Volumes",
        &[
            "up", "down", "status", "top", "serve", "cat", "lock", "unlock", "rename", "forget",
            "mdstat",
        ],
    ),
    (
        "Arrays of disks",
        &[
            "disks",
            "create",
            "assemble",
            "examine",
            "member",
            "scrub",
            "grow",
            "speed",
            "files",
            "incremental",
            "superblocks",
            "wipe",
            "undo",
        ],
    ),
    ("Data that cannot be reached", &["rescue"]),
    ("RAM disks and caches", &["cache", "resize", "erase", "save", "restore"]),
    ("Watching", &["monitor", "metrics", "web", "doctor"]),
    ("Measuring", &["lab", "advise", "model", "trace"]),
    ("This program", &["completions", "man", "help"]),
];

/// The command line, with a help screen that shows its commands in groups.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    // Building all commands takes longer than the start of a volume, and only the first screen needs it.
    if std::env::args_os().nth(1).is_some_and(|word| names_command(&word)) {
        return command;
    }
    let mut built = command.clone();
    built.build();
    let list = list(&built);
    let header = command.get_styles().get_header();
    let options = format!("{header}Options:{header:#}\n{{options}}");
    let usage = "{about-with-newline}\n{usage-heading} {usage}\n";
    command.help_template(format!("{usage}{list}\n{options}"))
}

/// True if a first word is a command's name, rightly written or not: then the first screen is not shown.
fn names_command(word: &OsStr) -> bool {
    !word.as_encoded_bytes().starts_with(b"-") && word != "help"
}

/// The groups with a line for each command.
fn list(command: &Command) -> String {
    let (header, name) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let mut text = String::new();
    for (title, commands) in GROUPS {
        let _ = writeln!(text, "\n{header}{title}:{header:#}");
        for one in commands.iter().filter_map(|one| command.find_subcommand(one)) {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name}{:<13}{name:#}{about}", one.get_name());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_has_one_line() {
        let mut command = Cli::command();
        command.build();
        let all: Vec<&str> = GROUPS.iter().flat_map(|(_, commands)| *commands).copied().collect();
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let count = all.iter().filter(|name| **name == one.get_name()).count();
            assert_eq!(count, 1, "{}", one.get_name());
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.len() <= 85, "{}: {about}", one.get_name());
        }
        let gone: Vec<&&str> =
            all.iter().filter(|one| command.find_subcommand(one).is_none()).collect();
        assert!(gone.is_empty(), "{gone:?}");
    }
}
