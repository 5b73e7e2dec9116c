//! The state of volumes: asked for once, or followed as it changes.
//!
//! Invariants
//! * Volumes are asked only while a client follows them, at most twice a second for all clients together. Each is
//!   asked on its own, so one that does not answer does not delay the others.
//! * A slow client misses intermediate states, and is sent the changes since the last state that it was sent.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::{Body, Bytes, HttpBody};
use braid_control::{ControlError, ErrorCode, Health, LoggedEvent, Named, Status, are_missed};
use hyper::body::Frame;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::answer::Refusal;
use crate::doors::UnderWay;
use crate::seen::{Heard, Seen, health_of, not_told};
use crate::{change, offers, state};

/// Between two looks.
const EVERY: Duration = Duration::from_millis(500);
/// Time within which answers are a part of the look that asked.
const GRACE: Duration = Duration::from_millis(250);
/// After so long without a change something is sent, so that a client that has gone is noticed.
const QUIET: Duration = Duration::from_secs(15);

/// Folders by which volumes are known: their sockets, and their records.
#[derive(Clone, Debug)]
pub(crate) struct Folders {
    pub(crate) run: PathBuf,
    pub(crate) records: PathBuf,
    /// The log of events that the monitor writes.
    pub(crate) events: PathBuf,
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
            let shown = match heard(&one.name, answer) {
                Heard::View(view) | Heard::Gone(view) => view,
                Heard::Silent(why, next) => not_told(&one.name, "stalled", Some(&why), &next),
            };
            (one.name.clone(), shown)
        });
        let mut all: Map<String, Value> = views.collect();
        add_those_down(&mut all, &self.known());
        Ok(all)
    }

    /// Returns what all volumes say that answer.
    ///
    /// # Errors
    /// The folder of sockets cannot be read.
    pub(crate) fn statuses(&self) -> Result<Vec<Status>, Refusal> {
        let sockets: Vec<PathBuf> = self.sockets()?.into_iter().map(|one| one.socket).collect();
        Ok(braid_control::get_statuses(&sockets).into_iter().flatten().collect())
    }

    /// The status of one volume.
    ///
    /// # Errors
    /// It is not up (404), or does not answer (502).
    pub(crate) fn status(&self, name: &str) -> Result<Status, Refusal> {
        let up = self.sockets()?;
        let Some(named) = up.into_iter().find(|one| one.name == name) else {
            let refusal = Refusal::not_found(format!("no volume called {name} is up"));
            return Err(match self.known().contains(name) {
                true => {
                    refusal.next(format!("`braid up {name}` brings it up")).code(ErrorCode::NotUp)
                }
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
    pub(crate) fn known(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(&self.records).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let name = file.strip_suffix(".toml")?.to_owned();
            crate::up::check_name(&name).ok().map(|()| name)
        });
        names.collect()
    }
}

/// Adds those that are known and not up.
fn add_those_down(all: &mut Map<String, Value>, known: &BTreeSet<String>) {
    for name in known {
        let down = || not_told(name, "down", None, &format!("`braid up {name}` brings it up"));
        all.entry(name.as_str()).or_insert_with(down);
    }
}

/// Why a volume does not say how it is.
pub(crate) fn unanswered(name: &str, error: &ControlError) -> Refusal {
    let refusal = Refusal::new(axum::http::StatusCode::BAD_GATEWAY, format!("{name}: {error}"));
    refusal.next(error.next(name))
}

/// Returns the view of a volume: its status, the mark of its state, and the orders that are offered.
pub(crate) fn view(status: &Status) -> Value {
    let mut view = status.with_health();
    if let Value::Object(view) = &mut view {
        view.insert("problems".to_owned(), json!(status.problems()));
        view.insert("if_state".to_owned(), state::mark(status).into());
        view.insert("offers".to_owned(), json!(offers::offers(status)));
    }
    view
}

/// Returns the refusal for a volume that answered so.
fn heard(name: &str, answer: Result<Status, ControlError>) -> Heard {
    match answer {
        Ok(status) => Heard::View(view(&status)),
        Err(ControlError::Unreachable(_)) => {
            let next = format!(
                "`braid down {name}` removes what it left, `braid up {name}` starts it again"
            );
            Heard::Gone(not_told(name, "gone", Some("its process is gone"), &next))
        }
        Err(other) => Heard::Silent(other.to_string(), other.next(name)),
    }
}

/// The data for clients that follow: the state of all volumes, and the last events.
#[derive(Debug, Default)]
struct Look {
    state: Value,
    events: Arc<Vec<LoggedEvent>>,
}

/// The log of events, which is read again when its file has changed.
#[derive(Debug, Default)]
struct Log {
    file: Option<(u64, u64, SystemTime)>,
    events: Arc<Vec<LoggedEvent>>,
}

impl Log {
    fn look(&mut self, path: &Path) -> Arc<Vec<LoggedEvent>> {
        let file = std::fs::metadata(path).ok();
        let file = file.and_then(|file| Some((file.ino(), file.len(), file.modified().ok()?)));
        if self.file != file {
            // One that cannot be read is looked at again, and so is one that was written meanwhile.
            match braid_control::read_events(path) {
                Ok(events) => (self.file, self.events) = (file, Arc::new(events)),
                Err(_) => self.events = Arc::default(),
            }
        }
        self.events.clone()
    }
}

/// State that all followers share.
pub(crate) struct Watch {
    folders: Folders,
    latest: watch::Sender<Arc<Look>>,
    wanted: Notify,
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Watch {
    pub(crate) fn new(folders: Folders) -> Arc<Watch> {
        let (latest, _) = watch::channel(Arc::new(Look::default()));
        Arc::new(Watch { folders, latest, wanted: Notify::new() })
    }

    /// Looks, for as long as anybody follows; to be run beside the server.
    pub(crate) async fn run(self: Arc<Watch>) {
        let (mut seen, mut log) = (Seen::default(), Log::default());
        let (tell, mut answers) = mpsc::unbounded_channel();
        loop {
            if self.latest.receiver_count() == 0 {
                self.wanted.notified().await;
                // The answers of the last look may be old.
                seen.forget();
            }
            let start = Instant::now();
            let folders = self.folders.clone();
            let mut looked = std::mem::take(&mut log);
            let found = tokio::task::spawn_blocking(move || {
                let events = looked.look(&folders.events);
                (folders.sockets(), folders.known(), events, looked)
            });
            let (up, known, events) = match found.await {
                Ok((Ok(up), known, events, looked)) => {
                    log = looked;
                    (up, known, events)
                }
                other => {
                    let error = other.map_or_else(
                        |error| error.to_string(),
                        |(refused, ..)| {
                            refused.map_or_else(|refusal| refusal.why, |_| String::new())
                        },
                    );
                    let state = json!({ "health": Health::Stalled, "volumes": {}, "error": error });
                    self.latest.send_replace(Arc::new(Look { state, events: Arc::default() }));
                    sleep_until(start + EVERY).await;
                    continue;
                }
            };
            let there: BTreeSet<String> = up.iter().map(|one| one.name.clone()).collect();
            for name in seen.begin(&there, now_ms()) {
                let socket = up.iter().find(|one| one.name == name).map(|one| one.socket.clone());
                let (Some(socket), tell) = (socket, tell.clone()) else { continue };
                // At most one for each volume, for as long as its question may take.
                tokio::task::spawn_blocking(move || {
                    let heard = heard(&name, braid_control::get_status(&socket));
                    // The server may be ending.
                    let _ = tell.send((name, heard));
                });
            }
            let mut is_told = false;
            while start.elapsed() < EVERY {
                let waits = !seen.is_idle() && start.elapsed() < GRACE;
                if !is_told && !waits && seen.is_complete(now_ms()) {
                    let mut volumes = seen.views(now_ms());
                    add_those_down(&mut volumes, &known);
                    let health = health_of(&volumes);
                    let state = json!({ "health": health, "volumes": volumes, "error": null });
                    let look = Look { state, events: events.clone() };
                    self.latest.send_replace(Arc::new(look));
                    is_told = true;
                }
                let next = start + if waits { GRACE } else { EVERY };
                if let Ok(Some((name, heard))) = timeout_at(next, answers.recv()).await {
                    seen.hear(&name, heard);
                }
            }
        }
    }

    /// A stream of server-sent events, `state` and from then on `patch` and `event`, and what ends it. It goes on
    /// behind the event with the id `after`, or with those that come, while `is_admitted`.
    pub(crate) fn follow(
        self: &Arc<Watch>,
        under_way: UnderWay,
        after: Option<u64>,
        is_admitted: impl Fn() -> bool + Send + 'static,
    ) -> (Body, AbortHandle) {
        let (send, receive) = mpsc::channel(1);
        let mut looks = self.latest.subscribe();
        // The views of the last look may be old.
        looks.mark_unchanged();
        self.wanted.notify_one();
        let stream = tokio::spawn(async move {
            let _under_way = under_way;
            let (mut sent, mut after) = (Arc::new(Look::default()), after);
            loop {
                let text = match tokio::time::timeout(QUIET, looks.changed()).await {
                    Ok(Err(_)) => return,
                    Ok(Ok(())) => {
                        let now = looks.borrow_and_update().clone();
                        let text = told(&sent.state, &now, &mut after);
                        sent = now;
                        text
                    }
                    Err(_) => ":\n\n".to_owned(),
                };
                // The token may have expired, or be removed.
                if !is_admitted() {
                    return;
                }
                if !text.is_empty() && send.send(Bytes::from(text)).await.is_err() {
                    return;
                }
            }
        });
        (Body::new(Events(receive)), stream.abort_handle())
    }
}

/// Returns the server-sent events for a client that was sent the state `sent`, and events up to the id `after`, which is
/// that of the last event from now on.
fn told(sent: &Value, now: &Look, after: &mut Option<u64>) -> String {
    let Look { state, events } = now;
    let last = events.last().map_or(0, |event| event.id);
    let before = after.replace(last);
    let mut text = match (sent.is_null(), before) {
        // From here a client goes on that sees no event before its connection breaks.
        (true, None) => format!("id: {last}\nevent: state\ndata: {state}\n\n"),
        (true, Some(_)) => format!("event: state\ndata: {state}\n\n"),
        (false, _) => match change::patch(sent, state) {
            Some(patch) => format!("event: patch\ndata: {patch}\n\n"),
            None => String::new(),
        },
    };
    let Some(before) = before else { return text };
    let is_missed = are_missed(before, events);
    if is_missed {
        let first = events.first().map(|event| event.id);
        let data = json!({ "after": before, "first": first });
        text += &format!("event: missed\ndata: {data}\n\n");
    }
    // An id that is later than all of them is of another log: all are new.
    for event in events.iter().filter(|event| event.id > before || before > last) {
        text += &format!("id: {}\nevent: event\ndata: {}\n\n", event.id, event.event);
    }
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_goes_on_behind_the_event_that_it_saw_last() {
        let event = |id, before| LoggedEvent { id, before, event: json!({ "n": id }) };
        let look = |ids: &[(u64, u64)]| Look {
            state: json!({ "x": 1 }),
            events: Arc::new(ids.iter().map(|(id, before)| event(*id, *before)).collect()),
        };
        let now = look(&[(5, 3), (6, 5), (9, 6)]);
        let first = |after: Option<u64>| {
            let mut after = after;
            let text = told(&Value::Null, &now, &mut after);
            assert_eq!(after, Some(9));
            text
        };
        let state = "event: state\ndata: {\"x\":1}\n\n";
        let told_of = |id| format!("id: {id}\nevent: event\ndata: {{\"n\":{id}}}\n\n");
        let missed = |after| format!("event: missed\ndata: {{\"after\":{after},\"first\":5}}\n\n");
        let all = [5, 6, 9].map(told_of).concat();
        assert_eq!(first(None), format!("id: 9\n{state}"));
        assert_eq!(first(Some(9)), state);
        assert_eq!(first(Some(5)), format!("{state}{}{}", told_of(6), told_of(9)));
        assert_eq!(first(Some(3)), format!("{state}{all}"));
        assert_eq!(first(Some(0)), format!("{state}{all}"));
        assert_eq!(first(Some(2)), format!("{state}{}{all}", missed(2)));
        assert_eq!(first(Some(10)), format!("{state}{}{all}", missed(10)));
        // While it follows, what comes is sent once.
        let (mut after, next) = (Some(6), look(&[(6, 5), (9, 6)]));
        assert_eq!(told(&next.state, &next, &mut after), told_of(9));
        assert_eq!(told(&next.state, &next, &mut after), "");
    }
}
