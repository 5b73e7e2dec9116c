//! The reports of the laboratory: a list, and the addresses at which they are shown.

use std::time::Instant;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::asked::{Asked, Named, read};
use crate::reports::{LARGEST, Reports};
use crate::shared::{Shared, blocking};
use crate::{page, program};

fn reports_of(shared: &Shared) -> Result<&Reports, Refusal> {
    shared.reports.as_ref().ok_or_else(|| {
        Refusal::not_found("this server was not told where reports are")
            .next("braid web --lab FOLDER")
    })
}

pub(crate) async fn reports(State(shared): Asked) -> Result<Json<Value>, Refusal> {
    let failed = |error: std::io::Error| Refusal::broken(format!("the folder of reports: {error}"));
    let listed = blocking(move || reports_of(&shared)?.list().map_err(failed)).await?;
    Ok(Json(json!({ "reports": listed })))
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Open {
    path: String,
}

fn no_report(path: &str) -> Refusal {
    Refusal::not_found(format!("there is no report {path:?}"))
        .next("GET /api/v1/reports lists those that are there")
}

pub(crate) async fn open_report(State(shared): Asked, body: Bytes) -> Result<Json<Value>, Refusal> {
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

pub(crate) async fn report(State(shared): Asked, named: Named) -> Result<Response, Refusal> {
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
