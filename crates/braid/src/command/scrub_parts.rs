//! `braid scrub --for`, `--until`, `--all`: scrubs that have so much time, and go on where the last one
//! stopped. The volume keeps the time and the place; what is waited for here may be interrupted without harm.

use std::time::Duration;

use jiff::civil;
use jiff::{SignedDuration, Timestamp, Zoned};

use super::member::{is_scrubbed, micros_of, report};
use super::order::{carried_out, give, status};
use crate::cli;
use braid_service::control::{self, ArrayStatus, Order, Status};
use braid_service::failure::Failure;
use braid_service::places::Places;

/// The end of a scrub that has no end of time, in milliseconds since 1970: the year 2255.
const NEVER: u64 = 9_000_000_000_000;

pub(super) fn scrub(scrub: &cli::Scrub) -> Result<(), Failure> {
    let end = end_of(&scrub.time, &Zoned::now()).map_err(Failure::usage)?;
    if !scrub.all && !scrub.wait && !scrub.only_continue {
        return give(scrub.name(), &order(scrub, end)?, cli::Giving { json: false, ..scrub.how });
    }
    let mut failed = Vec::new();
    for (volume, array) in queue(scrub)? {
        if now_ms() >= end {
            break;
        }
        let one = scrub.of(&volume, &array);
        // One array that is refused, or has mismatches, leaves the others their turn.
        if let Err(failure) = scrub_one(&one, &volume, end) {
            failed.push(format!("{volume}: {}", failure.text()));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::failed(failed.join("\n"))) }
}

/// Scrubs one array of `volume` as long as there is time, and waits for that.
fn scrub_one(scrub: &cli::Scrub, volume: &str, end: u64) -> Result<(), Failure> {
    // Before the order: a short scrub may be through when the order is answered.
    let began = now_ms();
    let order = order(scrub, end)?;
    if scrub.how.plan {
        return give(volume, &order, scrub.how);
    }
    let text = carried_out(volume, &order)?;
    if !scrub.how.json {
        println!("{volume}: {text}");
    }
    wait(scrub, volume, began)
}

fn order(scrub: &cli::Scrub, until_ms: u64) -> Result<Order, Failure> {
    let latency_us_p99 = scrub.latency.as_deref().map(micros_of).transpose()?;
    let array = scrub.which.array.clone();
    let (repair, force) = (scrub.repair, scrub.force);
    Ok(Order::ScrubUntil { repair, force, until_ms, latency_us_p99, array })
}

/// Returns the arrays to scrub with their volumes: paused ones first, then the ones scrubbed
/// longest ago.
fn queue(scrub: &cli::Scrub) -> Result<Vec<(String, String)>, Failure> {
    let up: Vec<Status> = match scrub.all {
        false => vec![status(scrub.name())?],
        true => {
            let places = Places::from_environment();
            let names = places.running_names()?;
            let sockets: Vec<_> = names.iter().map(|name| places.control(name)).collect();
            // One that does not answer is told of by `status`, and is no reason to leave the others.
            control::get_statuses(&sockets).into_iter().filter_map(Result::ok).collect()
        }
    };
    let of = |status: &Status| {
        let meant = status.arrays.iter().filter(|array| is_scrubbed(scrub, array));
        let wanted = meant.filter(|array| !scrub.only_continue || array.scrub_place.is_some());
        let named = |array: &ArrayStatus| array.uuid.clone().unwrap_or(array.called.clone());
        wanted.map(|one| (rank(one), status.name.clone(), named(one))).collect::<Vec<_>>()
    };
    let mut queue: Vec<_> = up.iter().flat_map(of).collect();
    queue.sort();
    queue.dedup();
    Ok(queue.into_iter().map(|(_, volume, array)| (volume, array)).collect())
}

fn rank(array: &ArrayStatus) -> (bool, u64) {
    let last = array.last_scrub.as_ref().map_or(0, |last| last.ended_ms);
    (array.scrub_place.is_none(), last)
}

/// Waits until the scrub of one array, ordered after `began` (milliseconds since 1970), has paused or gone through.
/// Says which.
fn wait(scrub: &cli::Scrub, volume: &str, began: u64) -> Result<(), Failure> {
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let now = status(volume)?;
        let meant: Vec<&ArrayStatus> =
            now.arrays.iter().filter(|array| is_scrubbed(scrub, array)).collect();
        let is_scrub = |array: &&ArrayStatus| {
            let kind = array.job.as_ref().map(|job| job.kind.as_str());
            array.requested.is_some() || matches!(kind, Some("check" | "repair"))
        };
        if meant.iter().any(is_scrub) {
            continue;
        }
        let ended = |array: &&ArrayStatus| {
            array.last_scrub.as_ref().is_some_and(|last| last.ended_ms >= began)
        };
        if meant.iter().all(ended) {
            return report(scrub, &meant, meant.len() > 1);
        }
        if !scrub.how.json {
            println!(
                "{volume}: the scrub paused; the next one with --for or --until goes on there"
            );
        }
        return Ok(());
    }
}

/// When the time is over, in milliseconds since 1970.
fn end_of(time: &cli::ScrubTime, now: &Zoned) -> Result<u64, String> {
    let end = match (&time.for_time, &time.until) {
        (Some(text), _) => {
            let for_time: SignedDuration =
                text.parse().map_err(|error| format!("--for {text}: {error}"))?;
            if for_time <= SignedDuration::ZERO {
                return Err(format!("--for {text}: that is no time at all"));
            }
            now.timestamp()
                .checked_add(for_time)
                .map_err(|error| format!("--for {text}: {error}"))?
        }
        (None, Some(text)) if text.starts_with('@') => {
            let ms = text[1..].parse().map_err(|error| format!("--until {text}: {error}"))?;
            Timestamp::from_millisecond(ms).map_err(|error| format!("--until {text}: {error}"))?
        }
        (None, Some(text)) => {
            let at: civil::Time =
                text.parse().map_err(|error| format!("--until {text}: {error}"))?;
            next(at, now).map_err(|error| format!("--until {text}: {error}"))?
        }
        (None, None) => return Ok(NEVER),
    };
    u64::try_from(end.as_millisecond()).map_err(|_| "that is before 1970".to_owned())
}

/// When it is `at` o'clock next.
fn next(at: civil::Time, now: &Zoned) -> Result<Timestamp, jiff::Error> {
    let on = |day: civil::Date| day.to_datetime(at).to_zoned(now.time_zone().clone());
    let today = on(now.date())?;
    let next = if today > *now { today } else { on(now.date().tomorrow()?)? };
    Ok(next.timestamp())
}

fn now_ms() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(for_time: Option<&str>, until: Option<&str>, now: &str) -> Result<String, String> {
        let now: Zoned = now.parse().expect("a time");
        let own = |text: Option<&str>| text.map(ToOwned::to_owned);
        let time = cli::ScrubTime { for_time: own(for_time), until: own(until) };
        let end = Timestamp::from_millisecond(end_of(&time, &now)? as i64).expect("a time");
        Ok(end.to_string())
    }

    #[test]
    fn a_time_of_the_day_is_the_next_one() {
        let until = |at, now| end(None, Some(at), now).expect("a time");
        let night = "2026-03-01T22:00:00+00:00[UTC]";
        assert_eq!(until("06:00", night), "2026-03-02T06:00:00Z");
        assert_eq!(until("23:30", night), "2026-03-01T23:30:00Z");
        assert_eq!(until("@1772409600000", night), "2026-03-02T00:00:00Z");
        // The very minute is tomorrow's: there is no time in it.
        assert_eq!(until("22:00", night), "2026-03-02T22:00:00Z");
        assert!(end(None, Some("25:00"), night).is_err());
        assert!(end(None, Some("soon"), night).is_err());
    }

    #[test]
    fn a_time_is_added_and_none_is_refused() {
        let night = "2026-03-01T22:00:00+00:00[UTC]";
        let for_time = |text| end(Some(text), None, night);
        assert_eq!(for_time("4h").as_deref(), Ok("2026-03-02T02:00:00Z"));
        assert_eq!(for_time("90m").as_deref(), Ok("2026-03-01T23:30:00Z"));
        assert_eq!(for_time("1h 30m").as_deref(), Ok("2026-03-01T23:30:00Z"));
        for wrong in ["0s", "-1h", "4", "long", ""] {
            assert!(for_time(wrong).is_err(), "{wrong}");
        }
    }
}
