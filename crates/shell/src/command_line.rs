//! A command line of this program, to be run or shown.
//!
//! Options come first, with their values in one word; then `--`; then the words that could begin with a
//! dash. So nothing that a request names becomes an option.

use std::path::Path;

use crate::{shell_path, shell_word};

/// A command line of this program, without the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    words: Vec<String>,
    options: Vec<String>,
    named: Vec<String>,
    /// True if the command has the option `--json`.
    has_json: bool,
    tells_failures: bool,
}

impl CommandLine {
    /// Returns the command line with these words: the command.
    #[must_use]
    pub fn new(words: &[&str]) -> CommandLine {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        CommandLine {
            words,
            options: Vec::new(),
            named: Vec::new(),
            has_json: true,
            tells_failures: false,
        }
    }

    /// Adds an option with a value, if there is one.
    #[must_use]
    pub fn option(mut self, name: &str, value: Option<impl std::fmt::Display>) -> CommandLine {
        self.options.extend(value.map(|value| format!("--{name}={value}")));
        self
    }

    /// Adds an option without a value, if it `is_set`.
    #[must_use]
    pub fn flag(mut self, name: &str, is_set: bool) -> CommandLine {
        self.options.extend(is_set.then(|| format!("--{name}")));
        self
    }

    /// Adds an argument: a name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> CommandLine {
        self.named.push(name.into());
        self
    }

    /// Adds an argument: a path.
    #[must_use]
    pub fn path(self, path: &Path) -> CommandLine {
        self.name(path.to_string_lossy())
    }

    /// Marks a command without the option `--json`.
    #[must_use]
    pub fn without_json(self) -> CommandLine {
        CommandLine { has_json: false, ..self }
    }

    /// Marks a command whose JSON is the answer also if the command fails.
    #[must_use]
    pub fn telling_failures(self) -> CommandLine {
        CommandLine { tells_failures: true, ..self }
    }

    /// Returns true if the JSON of the command is the answer also if the command fails.
    #[must_use]
    pub fn tells_failures(&self) -> bool {
        self.tells_failures
    }

    /// Returns the arguments to run the command with.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let json = self.has_json.then(|| "--json".to_owned());
        let dashes = std::iter::once("--".to_owned());
        let options = self.words.iter().chain(&self.options).cloned().chain(json);
        options.chain(dashes).chain(self.named.iter().cloned()).collect()
    }

    /// Returns the command as a person types it.
    #[must_use]
    pub fn typed(&self) -> String {
        let options = self.words.iter().chain(&self.options).map(|word| shell_word(word));
        let named = self.named.iter().map(shell_path);
        let all = std::iter::once("braid".to_owned()).chain(options).chain(named);
        all.collect::<Vec<_>>().join(" ")
    }
}
