//! Words and paths in the commands that are printed, so that they can be typed as they stand.
//!
//! Quoting ends what the shell makes of a word; it does not end what the program makes of it: `'-x'`
//! is still an option. A path that begins with a dash is therefore named from the folder that it is
//! in: `./-x`.
//!
//! An own function, of a few lines: `shlex` quotes `=`, `,` and `%`, too, which most arguments of tools
//! have, and knows nothing of the dash.
//!
//! Deliberately absent: running anything, and reading a command line.

mod command_line;
mod shown;

use std::path::Path;

pub use command_line::CommandLine;
pub use shown::{is_odd, shown, shown_lines};

/// A word as a POSIX shell reads it: in single quotes where it has other than the usual characters.
#[must_use]
pub fn shell_word(word: &str) -> String {
    // A letter of any script is a letter to a shell, too. A leading `=` is a search in zsh.
    let is_plain = |c: char| c.is_alphanumeric() || "-_=+./:,%@".contains(c);
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A path as a POSIX shell reads it, and as a program reads it where options may stand.
#[must_use]
pub fn shell_path(path: impl AsRef<Path>) -> String {
    let text = path.as_ref().to_string_lossy();
    if text.starts_with('-') { shell_word(&format!("./{text}")) } else { shell_word(&text) }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const AWKWARD: [&str; 19] = [
        "", "plain", "a b", "it's", "''", "-x", "--force", "-a b", "~", "~root", "{a,b}", "*",
        "$HOME", "a\nb", "\\", "!x", "=ls", "ü", "#a",
    ];

    #[test]
    fn a_shell_reads_each_word_back() {
        for word in AWKWARD {
            let script = format!("printf %s {}", shell_word(word));
            // The first argument of `printf` is its format, so a dash is safe here.
            let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), word, "{script}");
        }
    }

    #[test]
    fn a_program_takes_no_path_for_an_option() {
        let folder = std::env::temp_dir().join(format!("braid-shell-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        for name in AWKWARD.iter().filter(|name| !name.is_empty()) {
            std::fs::write(folder.join(name), name).expect("a file");
            let script = format!("cat {}", shell_path(name));
            let mut shell = Command::new("sh");
            let output =
                shell.current_dir(&folder).args(["-c", &script]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), **name, "{script}");
        }
        std::fs::remove_dir_all(&folder).expect("the folder goes");
    }

    #[test]
    fn usual_words_stay_as_they_are() {
        for word in ["/dev/disk/by-id/a-part1", "--rw=read", "if=/x", "a:b,c@d%", "./a.img"] {
            assert_eq!(shell_word(word), word);
        }
        assert_eq!(shell_path("-x"), "./-x");
        assert_eq!(shell_path("-it's"), r"'./-it'\''s'");
        assert_eq!(shell_path("/a b"), "'/a b'");
    }
}
