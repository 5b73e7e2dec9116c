//! `braid`: the command line, and the process that a volume is.
//!
//! Parsing, configuration and wiring only: what a stack does is in `braid-engine` and the crates
//! below it, what the laboratory does in `braid-lab` and `braid-lab-report`.

/// Shadows the standard macro, which panics without a reader: `braid serve … | head -1` must
/// not end the volume; and which prints a name that steers the terminal as it is.
macro_rules! println {
    ($($text:tt)*) => {
        braid_service::log::out(format_args!("{}\n", format_args!($($text)*)))
    };
}

/// The same, without the end of the line.
macro_rules! print {
    ($($text:tt)*) => {
        braid_service::log::out(format_args!($($text)*))
    };
}

/// The same for text with colours of its own, whose names were made printable before.
macro_rules! print_coloured {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stdout(), $($text)*);
    }};
}

/// The same for what is logged, perhaps to a disk that is full, in a log of bounded size.
macro_rules! eprintln {
    ($($text:tt)*) => {
        braid_service::log::line(format_args!($($text)*))
    };
}

/// Messages that are printed only with `--verbose`.
macro_rules! verbose {
    ($($text:tt)*) => {
        if braid_service::log::is_verbose() {
            eprintln!("braid: {}", format_args!($($text)*));
        }
    };
}

mod cli;
mod command;

use std::process::ExitCode;

fn main() -> ExitCode {
    match command::main() {
        Ok(code) => code,
        Err(failure) => braid_service::failure::report(&failure),
    }
}
