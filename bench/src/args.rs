//! Command lines: options with a value, and nothing else.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use crate::{Error, Result};

/// The options of a command line, each `--NAME VALUE`.
#[derive(Debug)]
pub struct Args {
    given: Vec<(String, String)>,
}

impl Args {
    /// Reads the command line of this process. `known` are the options, `usage` their meaning.
    ///
    /// # Errors
    /// An option that is not known or lacks its value; `--help`, with the usage as the message.
    pub fn from_command_line(known: &[&str], usage: &str) -> Result<Args> {
        Args::parse(std::env::args().skip(1), known, usage)
    }

    fn parse(mut words: impl Iterator<Item = String>, known: &[&str], usage: &str) -> Result<Args> {
        let mut given = Vec::new();
        while let Some(word) = words.next() {
            // What `cargo bench` adds.
            if word == "--bench" {
                continue;
            }
            if !known.contains(&word.as_str()) {
                return Err(Error::Usage(match word.as_str() {
                    "--help" => usage.to_owned(),
                    _ => format!("unknown option {word}\n{usage}"),
                }));
            }
            let value = words.next();
            let value = value.ok_or_else(|| Error::Usage(format!("{word} wants a value")))?;
            given.push((word, value));
        }
        Ok(Args { given })
    }

    /// The value of `name` as text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.given.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// The value of `name`, or `default`.
    ///
    /// # Errors
    /// If it cannot be read as such a value.
    pub fn value<T: FromStr>(&self, name: &str, default: T) -> Result<T> {
        match self.text(name) {
            None => Ok(default),
            Some(text) => {
                text.parse().map_err(|_| Error::Usage(format!("{name}: {text:?} cannot be read")))
            }
        }
    }

    /// True if the part of a measurement called `name` is wanted: `--only` is absent, or part of its name.
    pub fn wants(&self, name: &str) -> bool {
        self.text("--only").is_none_or(|only| name.contains(only))
    }

    /// The braid binary: `--braid`, or the one built beside this program.
    ///
    /// # Errors
    /// If it is not there.
    pub fn braid(&self) -> Result<PathBuf> {
        let path = match self.text("--braid") {
            Some(path) => PathBuf::from(path),
            None => beside_this_program("braid")?,
        };
        if !path.is_file() {
            return Err(Error::NoBraid { path: path.display().to_string() });
        }
        Ok(path)
    }
}

/// A program that cargo built into the same directory as this one.
///
/// # Errors
/// If this program's own path is not to be had.
pub fn beside_this_program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().map_err(Error::io("own path"))?;
    Ok(own.with_file_name(name))
}

/// Prints why `result` is an error, and answers the exit status: 2 for a wrong command line.
pub fn finish(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 1 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args> {
        Args::parse(line.split(' ').map(str::to_owned), &["--rounds", "--only"], "usage")
    }

    #[test]
    fn options_have_values_of_their_type() {
        let args = parse("--rounds 3 --only depth").unwrap();
        assert_eq!(args.value("--rounds", 7).unwrap(), 3);
        assert_eq!(args.value("--runtime", 7).unwrap(), 7);
        assert!(args.wants("depth 1") && !args.wants("sequential"));
        assert!(args.value::<u32>("--only", 1).is_err());
        for line in ["--rounds", "--other 1", "--help"] {
            assert!(matches!(parse(line), Err(Error::Usage(_))), "{line}");
        }
    }
}
