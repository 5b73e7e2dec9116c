//! Jobs: long work as things that can be asked for, waited for and ended. What volumes say of themselves is all
//! that is known: nothing is kept here.
//!
//! An id is `VOLUME.a0.NUMBER` of a job of the volume's first array, `VOLUME.v.NUMBER` of one of the volume as a
//! whole. A job is known while its volume is up and until 16 later ones came; after that its id leads to nothing.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use braid_control::{ArrayStatus, ErrorCode, Job, JobState, Order, Status};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::answer::Refusal;
use crate::asked::{Asked, Named, nothing_done, number};
use crate::shared::{Shared, blocking};
use crate::up::check_name;

/// The longest that a request waits for the end of a job.
const LONGEST: Duration = Duration::from_secs(300);
/// Time between two looks at a job that is waited for.
const EVERY: Duration = Duration::from_millis(500);

/// The place of a job: in an array of the volume, counted from 0, or in the volume as a whole.
fn id(volume: &str, array: Option<usize>, number: u64) -> String {
    match array {
        Some(array) => format!("{volume}.a{array}.{number}"),
        None => format!("{volume}.v.{number}"),
    }
}

/// Returns the name of the volume that an id is of.
fn volume_of(id: &str) -> Option<&str> {
    let (rest, _number) = id.rsplit_once('.')?;
    let (volume, _place) = rest.rsplit_once('.')?;
    check_name(volume).ok().map(|()| volume)
}

fn is_scrub(job: &Job) -> bool {
    matches!(job.kind.as_str(), "check" | "repair")
}

fn view(volume: &str, array: Option<(usize, &ArrayStatus)>, job: &Job) -> Value {
    let running = array.and_then(|(_, array)| array.job.as_ref());
    let running = running.filter(|_| job.state == JobState::Running);
    let mut view = json!(job);
    view["id"] = id(volume, array.map(|(index, _)| index), job.number).into();
    view["volume"] = volume.into();
    view["array"] = array.map(|(_, array)| array.called.as_str()).into();
    view["bytes_per_second"] = running.map(|job| job.bytes_per_second).into();
    view["eta_seconds"] = json!(running.and_then(|job| job.eta_seconds));
    view["can_be_ended"] = (is_scrub(job) && job.state.is_open()).into();
    view
}

/// Returns all jobs of a volume, the oldest of each array first.
fn jobs_of(status: &Status) -> Vec<Value> {
    let name = &status.name;
    let of_array = |(index, array): (usize, &ArrayStatus)| {
        array.jobs.iter().map(|job| view(name, Some((index, array)), job)).collect::<Vec<_>>()
    };
    let of_volume = status.jobs.iter().map(|job| view(name, None, job));
    status.arrays.iter().enumerate().flat_map(of_array).chain(of_volume).collect()
}

fn unknown(id: &str) -> Refusal {
    Refusal::not_found(format!(
        "there is no job {id:?}: a job is known while its volume is up, and until later ones came"
    ))
    .next("GET /api/v1/jobs lists those that are known")
}

/// Returns the volume of a job, and the job.
async fn find(shared: &std::sync::Arc<Shared>, id: &str) -> Result<(Status, Value), Refusal> {
    let volume = volume_of(id).ok_or_else(|| unknown(id))?.to_owned();
    let shared = shared.clone();
    let status = blocking(move || shared.folders.status(&volume)).await;
    let status = status.map_err(|refusal| match refusal.code {
        ErrorCode::NotUp | ErrorCode::NotFound => unknown(id),
        _ => refusal,
    })?;
    let job = jobs_of(&status).into_iter().find(|job| job["id"] == *id);
    Ok((status, job.ok_or_else(|| unknown(id))?))
}

fn is_open(job: &Value) -> bool {
    job["ended_ms"].is_null()
}

pub(crate) async fn jobs(State(shared): Asked) -> Result<Json<Value>, Refusal> {
    let statuses = blocking(move || shared.folders.statuses()).await?;
    let jobs: Vec<Value> = statuses.iter().flat_map(jobs_of).collect();
    Ok(Json(json!({ "jobs": jobs })))
}

pub(crate) async fn job(
    State(shared): Asked,
    named: Named,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Refusal> {
    let Path(id) = named.map_err(|error| Refusal::bad(error.body_text()))?;
    let wait = Duration::from_secs(number(query.as_deref(), "wait")?.unwrap_or(0));
    if wait > LONGEST {
        let text = format!("no request waits for longer than {} s", LONGEST.as_secs());
        return Err(Refusal::bad(text).next(format!("?wait={}, and again", LONGEST.as_secs())));
    }
    let until = Instant::now() + wait;
    loop {
        let (_, job) = find(&shared, &id).await?;
        if !is_open(&job) || Instant::now() >= until {
            return Ok(Json(job));
        }
        sleep_until(until.min(Instant::now() + EVERY)).await;
    }
}

pub(crate) async fn end_job(State(shared): Asked, named: Named) -> Result<Json<Value>, Refusal> {
    let Path(id) = named.map_err(|error| Refusal::bad(error.body_text()))?;
    let (status, job) = find(&shared, &id).await?;
    let array = job["array"].as_str().map(str::to_owned);
    let order = Order::Scrub { repair: false, force: false, cancel: true, array };
    let command = order.command(&status.name).typed();
    let kind = job["kind"].as_str().unwrap_or_default();
    if !is_open(&job) {
        let done = format!("Nothing: the {kind} has ended already.");
        return Ok(Json(nothing_done(&done, &command)));
    }
    if job["can_be_ended"] != true {
        return Err(Refusal::conflict(format!("a {kind} cannot be ended by an order"))
            .next("GET /api/v1/jobs/ID?wait=300 waits for its end")
            .code(ErrorCode::NotPossible));
    }
    shared.give(&status, order).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_its_volume() {
        assert_eq!(volume_of(&id("a.b", Some(0), 7)), Some("a.b"));
        assert_eq!(volume_of(&id("home", None, 7)), Some("home"));
        for wrong in ["", ".", "home", "home.7", "../x.v.7", ".v.7"] {
            assert_eq!(volume_of(wrong), None, "{wrong}");
        }
    }
}
