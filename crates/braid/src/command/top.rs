//! `braid top`: volumes and their members as they work: rates, latencies, what runs and how long it takes.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::cli;
use braid_service::control::{self, Status};
use braid_service::failure::{Context, Failure};
use braid_service::places::{Places, check_name};

use super::screen::Screen;

mod rows;
mod slow;
mod table;

use rows::{Look, Sort};
pub(super) use table::time;

pub(super) fn top(options: &cli::Top) -> Result<(), Failure> {
    let places = Places::from_environment();
    if options.slow {
        let span = options.interval;
        if !(1..=60).contains(&span.as_secs()) || span.subsec_nanos() > 0 {
            let why = "requests are followed for 1 to 60 whole seconds";
            return Err(Failure::usage(why).next("`braid top --slow --interval 5`"));
        }
        return print(&slow::slow(&places, &names(options, &places)?, span)?);
    }
    let started = Instant::now();
    // At first nothing has been done since.
    let (mut before, mut now) = (None, look(options, &places, started)?);
    let screen = Screen::open().context("the terminal")?;
    let (mut sort, mut drawn) = (Sort::Stack, 0);
    let mut due = Instant::now() + options.interval;
    loop {
        match &screen {
            None => std::thread::sleep(due.saturating_duration_since(Instant::now())),
            Some(screen) => loop {
                let volumes = rows::rows(before.as_ref().unwrap_or(&now), &now, sort);
                screen.draw(&table::lines(&volumes, screen.size())).context("the terminal")?;
                match screen.key(due).context("the terminal")? {
                    Some(b'q') => return Ok(()),
                    Some(key) => sort = Sort::of_key(key).unwrap_or(sort),
                    None => break,
                }
            },
        }
        due = Instant::now() + options.interval;
        let earlier = std::mem::replace(&mut now, look(options, &places, started)?);
        if screen.is_none() {
            print(&table::text(&rows::rows(&earlier, &now, sort)))?;
        }
        before = Some(earlier);
        drawn += 1;
        if options.count == Some(drawn) {
            return Ok(());
        }
    }
}

/// Returns the named volume, or all that are up.
fn names(options: &cli::Top, places: &Places) -> Result<Vec<String>, Failure> {
    match &options.name {
        Some(name) => {
            check_name(name)?;
            Ok(vec![name.clone()])
        }
        None => places.running_names(),
    }
}

/// Returns the state of the named volume, or of all, with the time.
fn look(options: &cli::Top, places: &Places, started: Instant) -> Result<Look, Failure> {
    let names = names(options, places)?;
    let sockets: Vec<_> = names.iter().map(|name| places.control(name)).collect();
    let at: Duration = started.elapsed();
    let mut volumes: Vec<(String, Option<Status>)> = Vec::new();
    for (name, answer) in names.into_iter().zip(control::get_statuses(&sockets)) {
        match answer {
            Err(error) if options.name.is_some() => {
                return Err(Failure::failed(format!("{name}: {error}")).next(error.next(&name)));
            }
            answer => volumes.push((name, answer.ok())),
        }
    }
    Ok(Look { at, volumes })
}

/// Fails if the reader of the output is gone.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("standard output")
}
