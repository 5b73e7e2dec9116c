//! The routes, and the answers to requests.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{OriginalUri, RawQuery, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use braid_control::{ErrorCode, Order, Status};
use braid_shell::CommandLine;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::asked::{Asked, Named, name_of, nothing_done, number, only_planned, read};
use crate::doors::Door;
use crate::followers::{FOLLOWERS, KEPT};
use crate::guard::{self, only_json};
use crate::plan::Plan;
use crate::report_pages::{open_report, report, reports};
use crate::seen::health_of;
use crate::shared::{Shared, blocking};
use crate::up::{NewVolume, Up};
use crate::watch::{unanswered, view};
use crate::{cases, disks, jobs, page, state};

/// The routes, as the description in OpenAPI has them.
pub const ROUTES: &[(&str, &str)] = &[
    ("get", "/api/v1"),
    ("get", "/api/v1/openapi.json"),
    ("get", "/api/v1/volumes"),
    ("post", "/api/v1/volumes"),
    ("get", "/api/v1/volumes/{name}"),
    ("get", "/api/v1/volumes/{name}/curves"),
    ("post", "/api/v1/volumes/{name}/orders"),
    ("post", "/api/v1/volumes/{name}/stop"),
    ("get", "/api/v1/disks"),
    ("post", "/api/v1/disks"),
    ("get", "/api/v1/changes"),
    ("post", "/api/v1/examine"),
    ("get", "/api/v1/jobs"),
    ("get", "/api/v1/jobs/{id}"),
    ("delete", "/api/v1/jobs/{id}"),
    ("get", "/api/v1/events"),
    ("get", "/api/v1/reports"),
    ("get", "/api/v1/cases"),
    ("post", "/api/v1/reports/open"),
    ("get", "/reports/{ticket}"),
];

/// The description of all of it.
const OPENAPI: &str = include_str!("../../../docs/api/openapi.json");

/// The most that a body may have, and how long it may take.
const LARGEST_BODY: usize = 64 << 10;
const BODY_COMES: Duration = Duration::from_secs(10);

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let missing = |OriginalUri(uri): OriginalUri| async move {
        page::file(uri.path()).unwrap_or_else(|| {
            let text = format!("there is nothing at {:?}", uri.path());
            Refusal::not_found(text)
                .next("GET /api/v1/openapi.json says what there is")
                .into_response()
        })
    };
    let wrong = || async {
        Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "that is not what can be done here")
            .next("GET /api/v1/openapi.json says what can be")
    };
    // Refused before a body is looked at; what cannot be posted to says so first.
    let json = || middleware::from_fn(only_json_posted);
    let api = Router::new()
        .route("/v1", get(about))
        .route(
            "/v1/openapi.json",
            get(|| async { ([(header::CONTENT_TYPE, "application/json")], OPENAPI) }),
        )
        .route("/v1/volumes", get(volumes).post(new_volume).route_layer(json()))
        .route("/v1/volumes/{name}", get(volume))
        .route("/v1/volumes/{name}/curves", get(curves))
        .route("/v1/volumes/{name}/orders", post(give_order).route_layer(json()))
        .route("/v1/volumes/{name}/stop", post(stop).route_layer(json()))
        .route("/v1/disks", get(disks::disks).post(disks::give).route_layer(json()))
        .route("/v1/changes", get(disks::changes))
        .route("/v1/examine", post(disks::examine).route_layer(json()))
        .route("/v1/jobs", get(jobs::jobs))
        .route("/v1/jobs/{id}", get(jobs::job).delete(jobs::end_job))
        .route("/v1/events", get(events))
        .route("/v1/reports", get(reports))
        .route("/v1/cases", get(cases::cases))
        .route("/v1/reports/open", post(open_report).route_layer(json()))
        .fallback(missing)
        .method_not_allowed_fallback(wrong)
        .layer(middleware::from_fn_with_state(shared.clone(), admit_to_api));
    Router::new()
        .nest("/api", api)
        .route("/reports/{ticket}", get(report))
        .fallback(missing)
        .method_not_allowed_fallback(wrong)
        .layer(middleware::from_fn_with_state(shared.clone(), admit))
        .with_state(shared)
}

async fn admit(State(shared): Asked, request: Request, next: Next) -> Response {
    let authority = request.uri().authority().map(|authority| authority.as_str());
    let mut response = match shared.guard.admit(authority, request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in page::HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

async fn admit_to_api(State(shared): Asked, request: Request, next: Next) -> Response {
    // The path as it was sent: below the prefix of the API it is a shorter one.
    let path = request.extensions().get::<OriginalUri>().map_or(request.uri(), |uri| &uri.0);
    let reads = guard::reads(request.method(), path.path(), path.query());
    if let Err(refusal) = shared.guard.admit_to_api(request.headers(), reads) {
        return refusal.into_response();
    }
    // The page itself is anybody's; to ask for more is to be let in.
    let door = request.extensions().get::<Door>().cloned();
    door.iter().for_each(Door::let_in);
    // A POST is under way when it has come as a whole: [`only_json_posted`].
    let _under_way = door.filter(|_| request.method() != Method::POST).map(|door| door.open());
    next.run(request).await
}

/// Refuses a body that is no JSON, and reads the body of others before the handler is called.
async fn only_json_posted(mut request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let checked = only_json(request.headers());
    let body = match checked {
        Ok(()) => receive(std::mem::take(request.body_mut())).await,
        Err(refusal) => Err(refusal),
    };
    match body {
        Ok(bytes) => *request.body_mut() = bytes.into(),
        Err(refusal) => return refusal.into_response(),
    }
    let _under_way = request.extensions().get().map(Door::open);
    next.run(request).await
}

/// Returns all of a body.
async fn receive(body: Body) -> Result<Bytes, Refusal> {
    let too_large = || {
        let text = format!("a body has at most {LARGEST_BODY} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text)
    };
    let came = tokio::time::timeout(BODY_COMES, to_bytes(body, LARGEST_BODY)).await;
    let slow = || Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body did not come in time");
    came.map_err(|_| slow())?.map_err(|_| too_large())
}

async fn about(State(shared): Asked) -> Json<Value> {
    Json(json!({
        "api_version": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "reports": shared.reports.is_some(),
        "cases": !shared.cases.is_empty(),
    }))
}

async fn volumes(State(shared): Asked) -> Result<Json<Value>, Refusal> {
    let volumes = blocking(move || shared.folders.look()).await?;
    let health = health_of(&volumes);
    let volumes: Vec<Value> = volumes.into_iter().map(|(_, view)| view).collect();
    Ok(Json(json!({ "health": health, "volumes": volumes })))
}

async fn volume(State(shared): Asked, named: Named) -> Result<Json<Value>, Refusal> {
    let name = name_of(named)?;
    blocking(move || shared.folders.status(&name)).await.map(|status| Json(view(&status)))
}

async fn curves(State(shared): Asked, named: Named) -> Result<Json<Value>, Refusal> {
    let name = name_of(named)?;
    let curves = blocking(move || {
        let socket = shared.folders.socket(&name)?;
        braid_control::get_curves(&socket).map_err(|error| unanswered(&name, &error))
    });
    Ok(Json(json!({ "curves": curves.await? })))
}

async fn events(
    State(shared): Asked,
    Extension(door): Extension<Door>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let resumed = headers.get("last-event-id").map(|id| {
        let id = id.to_str().ok().and_then(|id| id.trim().parse().ok());
        id.ok_or_else(|| {
            Refusal::bad("Last-Event-ID is no id of this server").next("leave it out, or ?after=0")
        })
    });
    let after = number(query.as_deref(), "after")?;
    // A browser that connects again sends the query of the first time, too.
    let after = resumed.transpose()?.or(after);
    let guard = shared.guard.clone();
    let is_admitted = move || guard.admit_to_api(&headers, true).is_ok();
    let now = tokio::time::Instant::now();
    let body = shared.followers.begin(now, || shared.watch.follow(door.open(), after, is_admitted));
    let body = body.ok_or_else(|| {
        let text = format!("{FOLLOWERS} follow already");
        let next = format!("close one of the pages that are open, or wait {} s", KEPT.as_secs());
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text).next(next)
    })?;
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}

/// An order, and the state of the volume in which the client decided on it.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Ordered {
    order: Order,
    if_state: Option<String>,
}

/// A plan, with the mark of the state by which it was made.
fn by_state(plan: &Plan, status: Option<&Status>) -> Value {
    let mut said = json!(plan);
    said["if_state"] = status.map(state::mark).into();
    said
}

/// Refuses what was decided by a state that is no more, with what is so now.
fn still(status: &Status, if_state: Option<&str>) -> Result<(), Refusal> {
    if if_state.is_none_or(|seen| seen == state::mark(status)) {
        return Ok(());
    }
    let why = status.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    Err(Refusal::conflict(format!(
        "{} has changed since it was looked at, and nothing was done; now it is {}{why}",
        status.name, status.state
    ))
    .next("look at it again, and decide by that")
    .code(ErrorCode::StateChanged))
}

async fn give_order(
    State(shared): Asked,
    named: Named,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let (name, only_plan) = (name_of(named)?, only_planned(query.as_deref())?);
    let Ordered { order, if_state } = read(&body)?;
    if let Some(path) = order.path().filter(|path| !path.is_absolute()) {
        return Err(Refusal::bad(format!("{:?} is no whole path", path.display().to_string()))
            .next("name it from the root, as /dev/sdb"));
    }
    let (asked, of) = (shared.clone(), name.clone());
    let status = blocking(move || asked.folders.status(&of)).await?;
    if only_plan {
        let command = order.command(&name).typed();
        let plan = Plan::of_order(shared.plan(name, order).await?, command);
        return Ok(Json(by_state(&plan, Some(&status))));
    }
    if let Err(changed) = still(&status, if_state.as_deref()) {
        // If the order is refused in the new state, too, the reason says more.
        let plan = shared.plan(name, order).await?;
        return Err(plan.refusal.map_or(changed, Refusal::from));
    }
    shared.give(&status, order).await
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Stop {
    #[serde(default)]
    force: bool,
    if_state: Option<String>,
}

async fn stop(
    State(shared): Asked,
    named: Named,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let (name, only_plan) = (name_of(named)?, only_planned(query.as_deref())?);
    let Stop { force, if_state } = read(&body)?;
    let line = CommandLine::new(&["down"]).flag("force", force).without_json().name(&name);
    let (asked, of) = (shared.clone(), name.clone());
    // One that does not answer is ended, too: what it left is removed.
    let status = match blocking(move || asked.folders.status(&of)).await {
        // What is down already is as it was asked to be.
        Err(refusal) if refusal.code == ErrorCode::NotUp => {
            let does = format!("Nothing: {name} is down already.");
            return Ok(Json(match only_plan {
                true => json!(Plan::nothing(does, line.typed())),
                false => nothing_done(&does, &line.typed()),
            }));
        }
        Err(refusal) if refusal.status == StatusCode::NOT_FOUND => return Err(refusal),
        status => status.ok(),
    };
    if only_plan {
        let (does, loses) = crate::plan::stop(&name, status.as_ref(), force);
        let plan = Plan::possible(does, loses, line.typed());
        return Ok(Json(by_state(&plan, status.as_ref())));
    }
    if let Some(status) = &status {
        still(status, if_state.as_deref())?;
    }
    shared.carry_out(line).await
}

/// Returns the sentence for a volume that is up already as `up` wants it: nothing is to be done.
///
/// # Errors
/// The volume differs (409), or is not up.
async fn is_up(shared: &Arc<Shared>, up: &Up) -> Result<String, Refusal> {
    let (shared, name) = (shared.clone(), up.name().unwrap_or_default().to_owned());
    let status = blocking(move || shared.folders.status(&name)).await?;
    let name = &status.name;
    match up.differs(&status) {
        None => Ok(format!("Nothing: {name} is up already.")),
        Some(how) => Err(Refusal::conflict(format!("{name} is up already, and {how}"))
            .next(format!("stop {name}, then bring it up again"))
            .code(ErrorCode::AlreadyUp)),
    }
}

/// Says what the start of a volume would do.
async fn plan_up(shared: &Arc<Shared>, up: &Up, command: String) -> Plan {
    let is = match up.is_by_name() {
        true => is_up(shared, up).await,
        // A plan does not say which volume has that stack.
        false => Err(Refusal::not_found("")),
    };
    match is {
        Ok(does) => Plan::nothing(does, command),
        Err(refusal) if refusal.code == ErrorCode::AlreadyUp => {
            Plan::refused(refusal.into(), command)
        }
        Err(_) => Plan::possible(up.does(), None, command),
    }
}

async fn new_volume(
    State(shared): Asked,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let only_plan = only_planned(query.as_deref())?;
    let new: NewVolume = read(&body)?;
    let line = new.line(false)?;
    let command = line.typed();
    let planned = |does| Ok(Json(json!(Plan::possible(does, None, command.clone()))));
    if let Some(does) = new.is_so(&shared.folders.known()) {
        return Ok(Json(match only_plan {
            true => json!(Plan::nothing(does, command)),
            false => nothing_done(&does, &command),
        }));
    }
    match &new {
        NewVolume::Up(up) if only_plan => Ok(Json(json!(plan_up(&shared, up, command).await))),
        NewVolume::Up(up) => match shared.clone().carry_out(line).await {
            Err(refusal) if refusal.code == ErrorCode::AlreadyUp => {
                match is_up(&shared, up).await {
                    Ok(done) => Ok(Json(nothing_done(&done, &command))),
                    Err(differs) if differs.code == ErrorCode::AlreadyUp => Err(differs),
                    // It is being started, or has ended since.
                    Err(_) => Err(refusal),
                }
            }
            answer => answer,
        },
        NewVolume::Rename(rename) if only_plan => planned(rename.does()),
        NewVolume::Forget(forget) if only_plan => planned(forget.does()),
        NewVolume::Create(_) if only_plan => {
            let Json(told) = shared.carry_out(new.line(true)?).await?;
            let does = "Writes superblocks to the members, and nothing else; what lies there is saved before, and \
                        `braid undo` puts it back.";
            let mut plan = json!(Plan::possible(does.to_owned(), None, command));
            plan["plan"] = told["answer"].clone();
            Ok(Json(plan))
        }
        _ => shared.carry_out(line).await,
    }
}
