//! What is answered to whom.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{OriginalUri, Path, RawQuery, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use braid_control::{ErrorCode, Order, Status, WholeOrder};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::command::{Line, relative_path};
use crate::doors::Door;
use crate::followers::{FOLLOWERS, KEPT};
use crate::guard::only_json;
use crate::plan::{Plan, plan};
use crate::reports::{LARGEST, Reports};
use crate::shared::{Shared, blocking};
use crate::up::{NewVolume, check_name};
use crate::watch::{unanswered, view};
use crate::{page, program, state};

/// What can be asked for, as the description in OpenAPI has it.
pub const ROUTES: &[(&str, &str)] = &[
    ("get", "/api/v1"),
    ("get", "/api/v1/openapi.json"),
    ("get", "/api/v1/volumes"),
    ("post", "/api/v1/volumes"),
    ("get", "/api/v1/volumes/{name}"),
    ("get", "/api/v1/volumes/{name}/curves"),
    ("post", "/api/v1/volumes/{name}/orders"),
    ("post", "/api/v1/volumes/{name}/stop"),
    ("get", "/api/v1/events"),
    ("get", "/api/v1/reports"),
    ("post", "/api/v1/reports/open"),
    ("get", "/reports/{ticket}"),
];

/// The description of all of it.
const OPENAPI: &str = include_str!("../../../docs/api/openapi.json");

/// The most that a body may have, and how long it may take.
const LARGEST_BODY: usize = 64 << 10;
const BODY_COMES: Duration = Duration::from_secs(10);
type Asked = State<Arc<Shared>>;
type Named = Result<Path<String>, PathRejection>;

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
        .route("/v1/events", get(events))
        .route("/v1/reports", get(reports))
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
    if let Err(refusal) = shared.guard.admit_to_api(request.headers()) {
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

/// Parses the JSON that a request brings.
fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        Refusal::bad(format!("the body is not what was expected: {error}"))
            .next("GET /api/v1/openapi.json has examples")
    })
}

/// Whether only the plan is asked for.
fn only_planned(query: Option<String>) -> Result<bool, Refusal> {
    match query.as_deref() {
        None | Some("" | "plan=0") => Ok(false),
        Some("plan=1") => Ok(true),
        Some(other) => {
            Err(Refusal::bad(format!("{other:?} means nothing here")).next("?plan=1, or nothing"))
        }
    }
}

fn name_of(named: Named) -> Result<String, Refusal> {
    let Path(name) = named.map_err(|error| Refusal::bad(error.body_text()))?;
    check_name(&name).map(|()| name)
}

async fn about(State(shared): Asked) -> Json<Value> {
    Json(json!({
        "api_version": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "reports": shared.reports.is_some(),
    }))
}

async fn volumes(State(shared): Asked) -> Result<Json<Value>, Refusal> {
    let volumes = blocking(move || shared.folders.look()).await?;
    Ok(Json(json!({ "volumes": volumes.into_iter().map(|(_, view)| view).collect::<Vec<_>>() })))
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
) -> Result<Response, Refusal> {
    let now = tokio::time::Instant::now();
    let body = shared.followers.begin(now, || shared.watch.follow(door.open()));
    let body = body.ok_or_else(|| {
        let text = format!("{FOLLOWERS} follow already");
        let next = format!("close one of the pages that are open, or wait {} s", KEPT.as_secs());
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text).next(next)
    })?;
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}

/// An order, by somebody who saw the volume in a state.
#[derive(Deserialize)]
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

/// Refuses what is not possible now, with the reason.
fn possible(plan: &Plan) -> Result<(), Refusal> {
    match &plan.why_not {
        None => Ok(()),
        Some(why) => {
            let refusal = Refusal::conflict(format!("that is not possible now: {why}"))
                .code(ErrorCode::NotPossible);
            Err(match &plan.next {
                Some(next) => refusal.next(next.as_str()),
                None => refusal,
            })
        }
    }
}

/// Whether an order asks for what is so: then it is answered as one that was carried out.
fn is_so_already(status: &Status, order: &Order) -> bool {
    let locked = status.device.locked;
    match order {
        Order::Whole(WholeOrder::Lock { .. }) => locked,
        Order::Whole(WholeOrder::Unlock) => !locked,
        _ => false,
    }
}

async fn give_order(
    State(shared): Asked,
    named: Named,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let (name, only_plan) = (name_of(named)?, only_planned(query)?);
    let Ordered { order, if_state } = read(&body)?;
    if let Some(path) = relative_path(&order) {
        return Err(Refusal::bad(format!("{:?} is no whole path", path.display().to_string()))
            .next("name it from the root, as /dev/sdb"));
    }
    let (asked, of) = (shared.clone(), name.clone());
    let status = blocking(move || asked.folders.status(&of)).await?;
    let plan = plan(&status, &order);
    if only_plan {
        return Ok(Json(by_state(&plan, Some(&status))));
    }
    if let (true, Some(why)) = (is_so_already(&status, &order), &plan.why_not) {
        return Ok(Json(json!({ "done": why, "command": plan.command, "answer": "" })));
    }
    possible(&plan)?;
    still(&status, if_state.as_deref())?;
    shared.give(&status, order, plan.command).await
}

#[derive(Deserialize)]
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
    let (name, only_plan) = (name_of(named)?, only_planned(query)?);
    let Stop { force, if_state } = read(&body)?;
    let line = Line::new(&["down"]).flag("force", force).without_json().name(&name);
    let (asked, of) = (shared.clone(), name.clone());
    // One that does not answer is ended, too: what it left is removed.
    let status = match blocking(move || asked.folders.status(&of)).await {
        // What is down already is as it was asked to be.
        Err(refusal) if refusal.code == ErrorCode::NotUp => {
            let does = format!("Nothing: {name} is down already.");
            return Ok(Json(match only_plan {
                true => json!(Plan::possible(does, None, line.typed())),
                false => json!({ "done": does, "command": line.typed(), "answer": "" }),
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

async fn new_volume(
    State(shared): Asked,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let only_plan = only_planned(query)?;
    let new: NewVolume = read(&body)?;
    let line = new.line(false)?;
    match &new {
        NewVolume::Up(up) if only_plan => {
            Ok(Json(json!(Plan::possible(up.does(), None, line.typed()))))
        }
        NewVolume::Rename(rename) if only_plan => {
            Ok(Json(json!(Plan::possible(rename.does(), None, line.typed()))))
        }
        NewVolume::Create(_) if only_plan => {
            let Json(planned) = shared.carry_out(new.line(true)?).await?;
            let does = "Writes superblocks to the members, and nothing else; what lies there is saved before, and \
                        `braid undo` puts it back.";
            let mut plan = json!(Plan::possible(does.to_owned(), None, line.typed()));
            plan["plan"] = planned["answer"].clone();
            Ok(Json(plan))
        }
        _ => shared.carry_out(line).await,
    }
}

fn reports_of(shared: &Shared) -> Result<&Reports, Refusal> {
    shared.reports.as_ref().ok_or_else(|| {
        Refusal::not_found("this server was not told where reports are")
            .next("braid web --lab FOLDER")
    })
}

async fn reports(State(shared): Asked) -> Result<Json<Value>, Refusal> {
    let failed = |error: std::io::Error| Refusal::broken(format!("the folder of reports: {error}"));
    let listed = blocking(move || reports_of(&shared)?.list().map_err(failed)).await?;
    Ok(Json(json!({ "reports": listed })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    path: String,
}

fn no_report(path: &str) -> Refusal {
    Refusal::not_found(format!("there is no report {path:?}"))
        .next("GET /api/v1/reports lists those that are there")
}

async fn open_report(State(shared): Asked, body: Bytes) -> Result<Json<Value>, Refusal> {
    let Open { path } = read(&body)?;
    blocking(move || {
        let reports = reports_of(&shared)?;
        if reports.results(&path).is_none() {
            reports.read(&path).ok_or_else(|| no_report(&path))?;
        }
        let ticket = shared.tickets.issue(path, Instant::now());
        let ticket = ticket.map_err(|error| Refusal::broken(error.to_string()))?;
        Ok(Json(json!({ "url": format!("/reports/{ticket}") })))
    })
    .await
}

async fn report(State(shared): Asked, named: Named) -> Result<Response, Refusal> {
    let Path(ticket) = named.map_err(|error| Refusal::bad(error.body_text()))?;
    let over = || {
        Refusal::not_found("that address of a report has been used, or is too old")
            .next("open it again")
    };
    let path = shared.tickets.redeem(&ticket, Instant::now()).ok_or_else(over)?;
    let (bytes, kind) = blocking(move || {
        let reports = reports_of(&shared)?;
        let Some(folder) = reports.results(&path) else {
            return reports.read(&path).ok_or_else(|| no_report(&path));
        };
        let _permit = shared.begin()?;
        let most = usize::try_from(LARGEST).unwrap_or(usize::MAX);
        Ok((program::draw(&shared.program, &folder, most)?, "text/html; charset=utf-8"))
    })
    .await?;
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, page::REPORT_POLICY),
        (header::X_FRAME_OPTIONS, "SAMEORIGIN"),
    ];
    Ok((headers, bytes).into_response())
}
