//! `braid monitor`: reports events of volumes.

use std::process::ExitCode;

use braid_monitor::{Config, Monitor, MonitorError, Wake};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::cli;
use braid_service::confine;
use braid_service::control::MONITOR;
use braid_service::failure::{Context, Failure};
use braid_service::places::Places;

pub(super) fn monitor(options: &cli::Monitor) -> Result<ExitCode, Failure> {
    let places = Places::from_environment();
    let path = options.config.clone().unwrap_or_else(|| places.config_file(MONITOR));
    let config = Config::read(&path, options.config.is_some()).map_err(|error| {
        Failure::usage(error).next("`braid monitor --check` reads it again, and sends nothing")
    })?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (run, state) = (places.run_folder(), places.state_folder());
    let program = std::env::current_exe().context("cannot find this program")?;
    let sharing = (!options.no_sharing).then_some(program.as_path());
    let monitor = Monitor { config: &config, run, state, host: &host, json: options.json, sharing };
    if options.check {
        let origin = match path.exists() {
            true => path.display().to_string(),
            false => format!("{} is not there; without it, braid monitor", path.display()),
        };
        print!("{origin}:\n{}", config.describe());
        return Ok(ExitCode::SUCCESS);
    }
    confine::tell(confine::monitor(config.starts_programs()));
    if options.test {
        return test(&monitor);
    }
    if options.oneshot {
        let is_well = monitor.once().map_err(failure)?;
        return Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])
        .context("cannot listen to signals")?;
    let watched = monitor.watch(|wake| {
        std::thread::spawn(move || {
            for _ in signals.forever() {
                // The monitor may have ended by itself.
                let _ = wake.send(Wake::Stop);
            }
        });
    });
    watched.map_err(failure).map(|()| ExitCode::SUCCESS)
}

/// Sends test messages, and says of each receiver what became of them.
fn test(monitor: &Monitor<'_>) -> Result<ExitCode, Failure> {
    let told = monitor.test().map_err(failure)?;
    if told.is_empty() {
        return Err(Failure::failed("the configuration has no receivers")
            .next("`docs/monitor.md` has an example: [mail], [[webhook]] or [[program]]"));
    }
    let mut all_arrived = true;
    for (receiver, outcome) in told {
        match outcome {
            Ok(count) => println!("{receiver}: {count} messages were handed over"),
            Err(why) => {
                all_arrived = false;
                println!("{receiver}: failed: {why}");
            }
        }
    }
    Ok(if all_arrived { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn failure(error: MonitorError) -> Failure {
    let failure = Failure::failed(&error);
    match error {
        MonitorError::Taken => Failure::refused(error).next(
            "`systemctl status braid-monitor` shows it; `braid status --test` says how volumes are",
        ),
        MonitorError::State(..) => {
            failure.next("as the folder's owner; or BRAID_STATE_DIR names a folder of your own")
        }
        MonitorError::Run(..) => {
            failure.next("as its owner; or BRAID_RUN_DIR names a folder of your own")
        }
        MonitorError::Receiver(_) => {
            failure.next("`braid monitor --check` says what is configured")
        }
        MonitorError::Output(_) => failure,
    }
}
