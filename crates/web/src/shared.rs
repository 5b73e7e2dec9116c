//! State that requests are answered from, and the commands of this program that are run for them.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use braid_control::{Carried, Order, Plan, Status, post_order, post_plan};
use braid_shell::CommandLine;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answer::Refusal;
use crate::followers::Followers;
use crate::guard::Guard;
use crate::program;
use crate::reports::Reports;
use crate::ticket::Tickets;
use crate::watch::{Folders, Watch, unanswered};

/// Commands that are under way at a time.
const COMMANDS: usize = 4;

/// State that requests are answered from.
pub(crate) struct Shared {
    pub(crate) guard: Guard,
    pub(crate) folders: Folders,
    pub(crate) program: PathBuf,
    pub(crate) reports: Option<Reports>,
    /// The folders of cases that are shown.
    pub(crate) cases: Vec<PathBuf>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) tickets: Tickets,
    pub(crate) followers: Followers,
    commands: Arc<Semaphore>,
}

impl Shared {
    pub(crate) fn new(
        guard: Guard,
        folders: Folders,
        program: PathBuf,
        reports: Option<Reports>,
        cases: Vec<PathBuf>,
    ) -> Arc<Shared> {
        let watch = Watch::new(folders.clone());
        Arc::new(Shared {
            guard,
            folders,
            program,
            reports,
            cases,
            watch,
            tickets: Tickets::default(),
            followers: Followers::default(),
            commands: Arc::new(Semaphore::new(COMMANDS)),
        })
    }

    /// For one more command of this program.
    pub(crate) fn begin(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        self.commands.clone().try_acquire_owned().map_err(|_| {
            Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{COMMANDS} operations are under way already"),
            )
            .next("try again when one of them has ended")
        })
    }

    /// Asks the volume called `name` what an order would do.
    pub(crate) async fn plan(
        self: &Arc<Shared>,
        name: String,
        order: Order,
    ) -> Result<Plan, Refusal> {
        let shared = self.clone();
        blocking(move || {
            let socket = shared.folders.socket(&name)?;
            post_plan(&socket, &order).map_err(|error| unanswered(&name, &error))
        })
        .await
    }

    /// Gives an order to the volume that `status` is of.
    pub(crate) async fn give(
        self: Arc<Shared>,
        status: &Status,
        order: Order,
    ) -> Result<Json<Value>, Refusal> {
        let permit = self.begin()?;
        let (name, bytes) = (status.name.clone(), order.bytes_of_work(status.device.size_bytes));
        let command = order.command(&name).typed();
        let answer = blocking(move || {
            let _permit = permit;
            let socket = self.folders.socket(&name)?;
            post_order(&socket, &order, bytes).map_err(|error| unanswered(&name, &error))
        });
        let Carried { text, changed } = answer.await??;
        let answer = json!({ "done": text });
        Ok(Json(json!({ "done": text, "changed": changed, "command": command, "answer": answer })))
    }

    /// Runs a command of this program, which ends even if the client has gone.
    pub(crate) async fn carry_out(
        self: Arc<Shared>,
        line: CommandLine,
    ) -> Result<Json<Value>, Refusal> {
        let permit = self.begin()?;
        let command = line.typed();
        let answer = blocking(move || {
            let _permit = permit;
            program::run(&self.program, &line)
        });
        let answer = answer.await?;
        Ok(Json(json!({
            "done": said(&answer), "changed": true, "command": command, "answer": answer,
        })))
    }
}

/// Returns a sentence about the result of a command.
fn said(answer: &Value) -> Value {
    match (answer, answer["done"].is_string(), answer["name"].as_str()) {
        (Value::String(text), ..) if text.is_empty() => "done".into(),
        (Value::String(text), ..) => text.as_str().into(),
        (_, true, _) => answer["done"].clone(),
        // What `up` says, and what `create` does.
        (_, _, Some(name)) => {
            let place = answer["device"].as_str().or(answer["nbd"][0].as_str());
            let next = answer["next"].as_str().map(|next| format!("; next: `{next}`"));
            let is = if next.is_some() { "is created" } else { "is up" };
            let place = place.map(|place| format!(": {place}")).unwrap_or_default();
            format!("{name} {is}{place}{}", next.unwrap_or_default()).into()
        }
        _ => Value::Null,
    }
}

/// Has `work` done on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Refusal::broken(error.to_string())))
}
