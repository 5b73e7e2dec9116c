//! `braid-volume`: the process of a volume.

use std::process::ExitCode;

fn main() -> ExitCode {
    match braid_service::process::main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => braid_service::failure::report(&failure),
    }
}
