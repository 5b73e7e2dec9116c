//! How volumes are: asked for once, or followed by whoever wants to see what changes.
//!
//! Invariants
//! * Volumes are asked only while somebody looks, twice a second at most, however many look.
//! * Who is slow misses states in between, and is sent what changed since the last one that he was sent.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use braid_control::{ControlError, Named, Status};
use hyper::body::Frame;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, watch};

use crate::answer::Refusal;
use crate::{change, offers, state};

/// Between two looks.
const EVERY: Duration = Duration::from_millis(500);
/// After so long without a change something is sent, so that a client that has gone is noticed.
const QUIET: Duration = Duration::from_secs(15);

/// Where volumes are known by: their sockets, and their records.
#[derive(Clone, Debug)]
pub(crate) struct Folders {
    pub(crate) run: PathBuf,
    pub(crate) records: PathBuf,
}

impl Folders {
    /// All volumes by name: those that are up, that should be, and that are known.
    ///
    /// # Errors
    /// The folder of sockets cannot be read.
    pub(crate) fn look(&self) -> Result<Map<String, Value>, Refusal> {
        let up = self.sockets()?;
        let sockets: Vec<PathBuf> = up.iter().map(|one| one.socket.clone()).collect();
        let answers = braid_control::get_statuses(&sockets);
        let views = up.iter().zip(answers).map(|(one, answer)| {
            (
                one.name.clone(),
                answer.map_or_else(|error| silent(&one.name, &error), |status| view(&status)),
            )
        });
        let mut all: Map<String, Value> = views.collect();
        for name in self.known() {
            let down = || {
                let next = format!("`braid up {name}` brings it up");
                json!({ "name": name, "state": "down", "why": null, "next": next })
            };
            all.entry(name.as_str()).or_insert_with(down);
        }
        Ok(all)
    }

    /// How one volume is.
    ///
    /// # Errors
    /// It is not up (404), or does not answer (502).
    pub(crate) fn status(&self, name: &str) -> Result<Status, Refusal> {
        let up = self.sockets()?;
        let Some(named) = up.into_iter().find(|one| one.name == name) else {
            let refusal = Refusal::not_found(format!("no volume called {name} is up"));
            return Err(match self.known().contains(name) {
                true => refusal.next(format!("`braid up {name}` brings it up")),
                false => refusal.next("GET /api/v1/volumes lists those that are known"),
            });
        };
        braid_control::get_status(&named.socket).map_err(|error| unanswered(name, &error))
    }

    /// The control socket of a volume.
    ///
    /// # Errors
    /// It is not up.
    pub(crate) fn socket(&self, name: &str) -> Result<PathBuf, Refusal> {
        let found = self.sockets()?.into_iter().find(|one| one.name == name);
        found
            .map(|one| one.socket)
            .ok_or_else(|| Refusal::not_found(format!("no volume called {name} is up")))
    }

    fn sockets(&self) -> Result<Vec<Named>, Refusal> {
        let volumes = braid_control::volumes(&self.run);
        // This server's own socket may lie there, too.
        let is_volume = |one: &Named| crate::up::check_name(&one.name).is_ok();
        volumes.map(|all| all.into_iter().filter(is_volume).collect()).map_err(|error| {
            Refusal::broken(format!("cannot look for volumes in {}: {error}", self.run.display()))
        })
    }

    /// Names of volumes that have a record. Without the folder there are none.
    fn known(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(&self.records).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let name = file.strip_suffix(".toml")?.to_owned();
            crate::up::check_name(&name).ok().map(|()| name)
        });
        names.collect()
    }
}

/// Why a volume does not say how it is.
pub(crate) fn unanswered(name: &str, error: &ControlError) -> Refusal {
    let refusal = Refusal::new(axum::http::StatusCode::BAD_GATEWAY, format!("{name}: {error}"));
    refusal.next(error.next(name))
}

/// What is shown of a volume: what it says, the mark of its state, and what it offers.
pub(crate) fn view(status: &Status) -> Value {
    let mut view = json!(status);
    if let Value::Object(view) = &mut view {
        view.insert("if_state".to_owned(), state::mark(status).into());
        view.insert("offers".to_owned(), json!(offers::offers(status)));
    }
    view
}

fn silent(name: &str, error: &ControlError) -> Value {
    let (state, why, next) = match error {
        ControlError::Unreachable(_) => (
            "gone",
            "its process is gone".to_owned(),
            format!("`braid down {name}` removes what it left, `braid up {name}` starts it again"),
        ),
        other => ("stalled", other.to_string(), other.next(name)),
    };
    json!({ "name": name, "state": state, "why": why, "next": next })
}

/// What all who follow have in common.
pub(crate) struct Watch {
    folders: Folders,
    latest: watch::Sender<Arc<Value>>,
    wanted: Notify,
}

/// All volumes as one value; what went wrong is one, too.
fn look(folders: &Folders) -> Value {
    match folders.look() {
        Ok(volumes) => json!({ "volumes": volumes, "error": null }),
        Err(refusal) => json!({ "volumes": {}, "error": refusal.error }),
    }
}

impl Watch {
    pub(crate) fn new(folders: Folders) -> Arc<Watch> {
        let (latest, _) = watch::channel(Arc::new(Value::Null));
        Arc::new(Watch { folders, latest, wanted: Notify::new() })
    }

    /// Looks, for as long as anybody follows; to be run beside the server.
    pub(crate) async fn run(self: Arc<Watch>) {
        loop {
            if self.latest.receiver_count() == 0 {
                self.wanted.notified().await;
            }
            let folders = self.folders.clone();
            if let Ok(state) = tokio::task::spawn_blocking(move || look(&folders)).await {
                self.latest.send_replace(Arc::new(state));
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// A stream of server-sent events: `state`, and from then on `patch`.
    pub(crate) fn follow(self: &Arc<Watch>, permit: OwnedSemaphorePermit) -> Body {
        let (send, receive) = mpsc::channel(1);
        let mut states = self.latest.subscribe();
        // What was seen when somebody looked last may be old.
        states.mark_unchanged();
        self.wanted.notify_one();
        tokio::spawn(async move {
            let _permit = permit;
            let mut sent = Arc::new(Value::Null);
            loop {
                let text = match tokio::time::timeout(QUIET, states.changed()).await {
                    Ok(Err(_)) => return,
                    Ok(Ok(())) => {
                        let now = states.borrow_and_update().clone();
                        let text = event(&sent, &now);
                        sent = now;
                        text
                    }
                    Err(_) => Some(":\n\n".to_owned()),
                };
                if let Some(text) = text
                    && send.send(Bytes::from(text)).await.is_err()
                {
                    return;
                }
            }
        });
        Body::new(Events(receive))
    }
}

/// What is sent of `now` to somebody who has `sent`.
fn event(sent: &Value, now: &Value) -> Option<String> {
    if sent.is_null() {
        return Some(format!("event: state\ndata: {now}\n\n"));
    }
    change::patch(sent, now).map(|patch| format!("event: patch\ndata: {patch}\n\n"))
}

/// Events as a body: it ends when its sender does.
struct Events(mpsc::Receiver<Bytes>);

impl HttpBody for Events {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
