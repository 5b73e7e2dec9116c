//! `braid down`: the end of a volume.

use std::path::{Path, PathBuf};
use std::time::Duration;

use braid_stack::ByteSize;

use crate::cli::Down;
use braid_service::control::{self, CacheStatus, ControlError, ErrorCode};
use braid_service::failure::{Context, Failure};
use braid_service::log;
use braid_service::places::{Places, check_name};
use braid_service::volume::{NameLock, clean_up_after};

/// Time limit: a volume completes requests in flight and flushes before it ends.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time limit with `--force`.
const IMPATIENCE: Duration = Duration::from_secs(15);

/// Bytes in a second that an origin takes at least, of those that a cache has for it.
const SLOWEST: u64 = 1 << 20;

/// Returns the bytes in the caches of the volume that the origins lack.
fn dirty_bytes(socket: &Path) -> Option<u64> {
    let status = control::get_status(socket).ok()?;
    let of = |cache: &CacheStatus| cache.write_back.as_ref().map_or(0, |one| one.dirty_bytes);
    Some(status.caches.iter().map(of).sum())
}

/// Prints the amount still to be written, while the volume responds and draining takes long.
fn tell_of_draining(name: &str, socket: &Path) {
    let (name, socket) = (name.to_owned(), socket.to_owned());
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(2));
        while let Some(dirty) = dirty_bytes(&socket).filter(|dirty| *dirty > 0) {
            eprintln!("{name}: {:#} are still to be written to the origin", ByteSize(dirty));
            std::thread::sleep(Duration::from_secs(2));
        }
    });
}

pub(super) fn down(down: &Down) -> Result<(), Failure> {
    check_name(&down.name)?;
    let places = Places::from_environment();
    let name = &down.name;
    let socket = places.control(name);
    let dirty = dirty_bytes(&socket).unwrap_or(0);
    let limit = match down.force {
        true => IMPATIENCE,
        false => PATIENCE + Duration::from_secs(dirty / SLOWEST),
    } + to_save(&socket);
    if dirty > 0 {
        tell_of_draining(name, &socket);
    }
    verbose!("asks {} to end, for up to {} s", socket.display(), limit.as_secs());
    match control::post_stop(&socket, down.force, limit) {
        Ok(answer) if answer.stopped => {
            // Its members are free when the process is gone.
            answer.process.wait(limit);
            remove_traces(&places, name);
            match answer.error {
                None => Ok(()),
                Some(error) => {
                    Err(Failure::failed(format!("{name} has ended, but: {error}"))
                        .led_on(answer.next))
                }
            }
        }
        Ok(answer) if !answer.holders.is_empty() => {
            let holders = answer.holders.join("\n  ");
            Err(Failure::refused(format!("{name} is in use:\n  {holders}"))
                .next(format!(
                    "unmount or close it; or `braid down {name} --force` takes it away from them"
                ))
                .code(ErrorCode::InUse))
        }
        Ok(answer) => Err(Failure::failed(format!(
            "{name} goes on: {}",
            answer.error.unwrap_or_else(|| "it does not say why".to_owned())
        ))
        .led_on(answer.next)),
        Err(ControlError::Unreachable(_)) => gone(&places, name),
        Err(_) if down.force => {
            clean_up_after(&places.traces(name)).map_err(Failure::failed)?;
            remove_traces(&places, name);
            Ok(())
        }
        // Another `down` was a moment earlier.
        Err(ControlError::NotBegun(_)) if is_gone(&socket) => gone(&places, name),
        Err(error) => Err(error.failure(name)),
    }
}

/// Returns whether no process serves the socket any more.
fn is_gone(socket: &Path) -> bool {
    matches!(control::get_status(socket), Err(ControlError::Unreachable(_)))
}

/// Returns the time limit for saving the content, if it is saved.
fn to_save(socket: &Path) -> Duration {
    // One that does not answer is waited for no longer.
    let status = control::get_status(socket).ok();
    let saved = status.iter().flat_map(|status| &status.rams).filter(|ram| ram.image.is_some());
    control::time_for(saved.map(|ram| ram.size_bytes).sum())
}

/// No process is there: take away what one that was killed left, or one that ended by itself.
fn gone(places: &Places, name: &str) -> Result<(), Failure> {
    if !leftovers(places, name).iter().any(|path| path.symlink_metadata().is_ok()) {
        // What is wanted is so, as for a script that is run twice.
        if places.config_file(name).exists() {
            eprintln!("{name} is down already");
            return Ok(());
        }
        return Err(Failure::failed(format!("no volume called {name} is up"))
            .next("`braid status` lists those that are"));
    }
    // One that is coming up has a log and no socket yet, one that is ending has them no more.
    let lock = places.lock(name);
    let claimed = NameLock::claim_within(IMPATIENCE, &lock)
        .context(format_args!("cannot lock {}", lock.display()))?;
    let Some(_claimed) = claimed else {
        return Err(Failure::failed(format!(
            "{name} is coming up, or ending, and does not answer"
        ))
        .next(format!("`braid status {name}` says when it is up")));
    };
    clean_up_after(&places.traces(name)).map_err(Failure::failed)?;
    remove_traces(places, name);
    eprintln!("{name}'s process was gone already; what it left was removed");
    Ok(())
}

/// The files of a volume that is up.
fn leftovers(places: &Places, name: &str) -> [PathBuf; 5] {
    let log = places.log(name);
    let old = log::older(&log);
    [places.control(name), places.traces(name), log, old, places.nbd(name)]
}

fn remove_traces(places: &Places, name: &str) {
    for path in leftovers(places, name) {
        // Those that are not there are no harm.
        let _ = std::fs::remove_file(path);
    }
}
