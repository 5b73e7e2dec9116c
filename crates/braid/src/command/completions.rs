//! `braid completions`: what a shell needs to complete braid's command line.
//!
//! The scripts are clap's, from the command line's own definitions. Names of volumes come from `braid
//! completions --names` while one types: where a volume is asked for, clap is told of one possible value,
//! and the script has the words of its shell that ask for the names in the place of that value.

use std::collections::BTreeSet;
use std::io::Write;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::{Cli, Completions};
use braid_service::failure::{Context, Failure};
use braid_service::places::Places;

/// Commands that have a `NAME` of something else.
const OTHERS: [&str; 3] = ["create", "lab", "model"];

/// Stands for the names of volumes in what clap writes.
const NAMES: &str = "BRAID_NAMES_OF_VOLUMES";

pub(super) fn completions(options: &Completions) -> Result<(), Failure> {
    let text = match options.shell {
        Some(shell) if !options.names => script(shell),
        _ => names(),
    };
    // Written in one go: a reader that has left is an error, not a panic of the generator.
    std::io::stdout().write_all(text.as_bytes()).context("standard output")
}

/// Returns the names of running and recorded volumes, one per line; none without permission.
fn names() -> String {
    let places = Places::from_environment();
    let mut names = BTreeSet::from_iter(places.configured_names().unwrap_or_default());
    names.extend(places.running_names().unwrap_or_default());
    names.into_iter().map(|name| name + "\n").collect()
}

fn script(shell: Shell) -> String {
    let mut command = with_names(Cli::command());
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "braid", &mut script);
    let script = String::from_utf8_lossy(&script);
    let ask = "braid completions --names 2>/dev/null";
    match shell {
        Shell::Zsh => {
            script.replace(&format!("({NAMES})"), &format!("{{compadd -- ${{(f)\"$({ask})\"}}}}"))
        }
        Shell::Fish => {
            let mut script = script.into_owned();
            add_to_fish(&mut script, &command, &mut Vec::new());
            script
        }
        _ => script.replace(NAMES, &format!("$({ask})")),
    }
}

/// The same command line, of whose arguments those that name a volume have [`NAMES`] for a value.
fn with_names(command: Command) -> Command {
    if OTHERS.contains(&command.get_name()) {
        return command;
    }
    let command = command.mut_args(|arg| match names_a_volume(&arg) {
        true => arg.value_parser(PossibleValuesParser::new([NAMES])),
        false => arg,
    });
    command.mut_subcommands(with_names)
}

/// Returns whether the argument is the name of an existing volume: positional, with `NAME` among
/// its value names.
fn names_a_volume(arg: &Arg) -> bool {
    let called = arg.get_value_names().unwrap_or_default();
    let is_name = |called: &clap::builder::Str| called.split('|').any(|one| one == "NAME");
    arg.is_positional() && called.iter().any(is_name)
}

/// clap's script for fish has no arguments by position: a line for each command that names a volume.
fn add_to_fish(script: &mut String, command: &Command, path: &mut Vec<String>) {
    let is_one =
        |arg: &Arg| arg.get_possible_values().iter().any(|value| value.get_name() == NAMES);
    if command.get_arguments().any(is_one) {
        let seen = path.iter().map(|word| format!("__fish_seen_subcommand_from {word}"));
        let seen: Vec<String> = seen.collect();
        script.push_str(&format!(
            "complete -c braid -n \"{}\" -f -a \"(braid completions --names 2>/dev/null)\"\n",
            seen.join("; and ")
        ));
    }
    for subcommand in command.get_subcommands() {
        let mut words = vec![subcommand.get_name().to_owned()];
        words.extend(subcommand.get_visible_aliases().map(ToOwned::to_owned));
        path.push(words.join(" "));
        add_to_fish(script, subcommand, path);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_asked_for_where_they_are_named_in_each_shell() {
        let count = |shell, of: &str| script(shell).matches(of).count();
        let ask = "braid completions --names";
        let fish = count(Shell::Fish, ask);
        assert!(fish > 20, "{fish}");
        // zsh has a command's aliases apart, and help has none of them.
        assert!(count(Shell::Bash, ask) >= fish && count(Shell::Zsh, ask) >= fish);
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            assert_eq!(count(shell, NAMES), 0, "{shell}");
        }
        let lines = script(Shell::Fish);
        let names: Vec<&str> = lines.lines().filter(|line| line.contains(ask)).collect();
        let has = |command: &str| names.iter().any(|line| line.contains(command));
        assert!(has("from down\"") && has("from member; and __fish_seen_subcommand_from fail\""));
        assert!(has("from lock readonly\"") && !has("from create") && !has("from lab"));
    }
}
