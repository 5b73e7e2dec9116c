//! The volume's end of the control socket. It runs on a thread and a runtime of its own, so that
//! no request of a client and no slow reader of a status touches the data path.

use std::convert::Infallible;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::task::Poll;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, mpsc as turns, oneshot, watch};

use braid_control::{
    CacheCurve, Giver, Order, OrderAnswer, Plan, Process, SlowStatus, Status, StopAnswer,
};

/// Channel for the outcome of a request to end.
pub(crate) type StopSender = oneshot::Sender<StopAnswer>;

/// Events that the main thread of a volume waits for.
pub(crate) enum Event {
    /// SIGTERM or SIGINT.
    Signal,
    /// A client asked for the end, and waits for the outcome if it is still there.
    Stop { force: bool, giver: Giver, answer: StopSender },
    /// A shard serves no more, without having been told to: it panicked.
    ShardEnded,
    /// The FUSE mount is gone.
    Unmounted,
}

/// The volume, as its control socket reaches it from a thread of its own.
pub(crate) trait Volume: Send + Sync {
    /// Returns the status.
    fn status(&self) -> Status;

    /// Returns the curves of its caches for other sizes and policies; `None` if the caches do not answer.
    fn curves(&self) -> Option<Vec<CacheCurve>>;

    /// Follows the requests that begin from now on.
    fn follow(&self);

    /// Ends that, and answers what was seen.
    fn followed(&self) -> SlowStatus;

    /// Carries out an order, if its giver is still there when it begins, and waits until it is.
    fn carry_out(&self, order: Order, giver: Arc<Giver>) -> braid_control::Answer;

    /// Runs the checks of an order, and stops where the order would begin.
    fn plan(&self, order: Order) -> Plan;
}

#[derive(Clone)]
struct Shared {
    volume: Arc<dyn Volume>,
    events: Sender<Event>,
    /// Returns true while the volume is ending, by an order or a signal.
    is_ending: Arc<AtomicBool>,
    /// Held while requests are followed.
    following: Arc<Mutex<()>>,
}

/// The most bytes of a request's body.
const MOST: usize = 1 << 20;

/// Requests are followed for whole multiples of this.
const FOLLOWED: Duration = Duration::from_millis(100);

/// Time for the last answers after the end of the volume: a client that does not read
/// its answer by then gets none.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// The socket as it is served.
pub(crate) struct Server {
    end: oneshot::Sender<()>,
    ended: mpsc::Receiver<()>,
    is_ending: Arc<AtomicBool>,
}

impl Server {
    /// From here on, those that ask for the end wait for it however long it takes.
    pub(crate) fn is_ending(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
    }

    /// Takes no more requests, and waits until the answers to earlier ones are out.
    pub(crate) fn end(self) {
        // It may have ended by itself, which is as good.
        let _ = self.end.send(());
        let _ = self.ended.recv_timeout(LAST_ANSWERS);
    }
}

/// Serves the socket at `path` on a new thread.
///
/// # Errors
/// The socket cannot be made, or the thread cannot be started.
pub(crate) fn serve(
    path: &Path,
    volume: Arc<dyn Volume>,
    events: Sender<Event>,
) -> std::io::Result<Server> {
    // The caller made sure that no other process owns this name.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = listen(path)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let is_ending = Arc::<AtomicBool>::default();
    let following = Arc::default();
    let shared = Shared { volume, events, is_ending: Arc::clone(&is_ending), following };
    let (end, asked_to_end) = oneshot::channel::<()>();
    let (has_ended, ended) = mpsc::channel();
    std::thread::Builder::new().name("control".to_owned()).spawn(move || {
        let served = runtime.block_on(async move {
            let listener = tokio::net::UnixListener::from_std(listener)?;
            accept(&listener, &shared, asked_to_end).await;
            Ok::<(), std::io::Error>(())
        });
        if let Err(error) = served {
            eprintln!("control: {error}");
        }
        let _ = has_ended.send(());
    })?;
    Ok(Server { end, ended, is_ending })
}

/// Listens at `path`, for the owner alone from the first moment: Linux gives the file the permissions that the
/// socket has by then.
fn listen(path: &Path) -> std::io::Result<UnixListener> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&fd, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    rustix::net::bind(&fd, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&fd, 128)?;
    Ok(UnixListener::from(fd))
}

/// Serves connections until it is told to end, and those that are served then to the end of their answers.
async fn accept(
    listener: &tokio::net::UnixListener,
    shared: &Shared,
    asked_to_end: oneshot::Receiver<()>,
) {
    let (ending, is_ending) = watch::channel(false);
    // It has an end when every connection has dropped its own.
    let (served, mut all_served) = turns::channel::<()>(1);
    let mut asked = pin!(async {
        // A handle that is dropped asks for nothing: the process ends anyway.
        if asked_to_end.await.is_err() {
            std::future::pending::<()>().await;
        }
    });
    let mut next = pin!(listener.accept());
    loop {
        let accepted = std::future::poll_fn(|cx| {
            if asked.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            next.as_mut().poll(cx).map(Some)
        });
        match accepted.await {
            None => break,
            Some(Ok((stream, _))) => {
                let served = served.clone();
                let connection = connection(stream, shared.clone(), is_ending.clone());
                tokio::spawn(async move {
                    connection.await;
                    drop(served);
                });
            }
            // No descriptor is left: some are let go of soon.
            Some(Err(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
        next.set(listener.accept());
    }
    let _ = ending.send(true);
    drop(served);
    let _ = all_served.recv().await;
}

/// Serves one connection to its end, or to the end of its answer when the volume has ended.
async fn connection(
    stream: tokio::net::UnixStream,
    shared: Shared,
    mut is_ending: watch::Receiver<bool>,
) {
    // None if there are too few descriptors to hold another.
    let held = stream.as_fd().try_clone_to_owned().ok().map(Arc::new);
    let answer = service_fn(move |request| {
        let (shared, held) = (shared.clone(), held.clone());
        async move { Ok::<_, Infallible>(answer(shared, held, request).await) }
    });
    let mut served = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    let mut ending = pin!(is_ending.wait_for(|is_ending| *is_ending));
    let mut is_told = false;
    // A client that breaks off is not told.
    let _ = std::future::poll_fn(|cx| {
        if !is_told && ending.as_mut().poll(cx).is_ready() {
            is_told = true;
            served.as_mut().graceful_shutdown();
        }
        served.as_mut().poll(cx)
    })
    .await;
}

type Answer = Response<Full<Bytes>>;

async fn answer(
    shared: Shared,
    connection: Option<Arc<OwnedFd>>,
    request: Request<Incoming>,
) -> Answer {
    let result = match (request.method(), request.uri().path()) {
        (&Method::GET, "/v1/status") => {
            ask(&shared, |volume| volume.status()).await.map(|it| json(&it))
        }
        (&Method::GET, "/v1/curves") => {
            ask(&shared, |volume| volume.curves()).await.map(|it| json(&it))
        }
        (&Method::GET, "/v1/slow") => get_slow(&shared, request.uri().query()).await,
        (&Method::GET, "/metrics") => ask(&shared, |volume| volume.status()).await.map(|status| {
            let text = braid_metrics::render(&[status], &[]);
            with_type(Response::new(text.into()), braid_metrics::CONTENT_TYPE)
        }),
        (&Method::POST, "/v1/order") => post_order(&shared, connection, request).await,
        (&Method::POST, "/v1/plan") => match read_json(request).await {
            Ok(order) => ask(&shared, |volume| volume.plan(order)).await.map(|it| json(&it)),
            Err(refused) => Err(refused),
        },
        (&Method::POST, "/v1/stop") => post_stop(&shared, connection, request.uri().query()).await,
        (
            _,
            "/v1/status" | "/v1/curves" | "/v1/slow" | "/metrics" | "/v1/order" | "/v1/plan"
            | "/v1/stop",
        ) => Err(StatusCode::METHOD_NOT_ALLOWED.into()),
        _ => Err(StatusCode::NOT_FOUND.into()),
    };
    result.unwrap_or_else(|Refused(code, why)| {
        let mut answer = with_type(Response::new(why.into()), "text/plain; charset=utf-8");
        *answer.status_mut() = code;
        answer
    })
}

/// A request that is not answered: its status, and the reason, which may be empty where the status says it all.
struct Refused(StatusCode, String);

impl Refused {
    fn bad(why: impl Into<String>) -> Refused {
        Refused(StatusCode::BAD_REQUEST, why.into())
    }
}

impl From<StatusCode> for Refused {
    fn from(code: StatusCode) -> Refused {
        Refused(code, String::new())
    }
}

/// Asks the volume on a thread of its own: it asks the shards, which may be busy, and others are answered meanwhile.
async fn ask<T: Send + 'static>(
    shared: &Shared,
    f: impl FnOnce(&dyn Volume) -> T + Send + 'static,
) -> Result<T, Refused> {
    let volume = Arc::clone(&shared.volume);
    let asked = tokio::task::spawn_blocking(move || f(&*volume));
    asked.await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR.into())
}

/// Requests are followed until this is dropped, also when the asker breaks off.
struct Followed(Arc<dyn Volume>);

impl Drop for Followed {
    fn drop(&mut self) {
        let volume = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || drop(volume.followed()));
    }
}

async fn get_slow(shared: &Shared, query: Option<&str>) -> Result<Answer, Refused> {
    let seconds = query.and_then(|query| query.strip_prefix("seconds=")?.parse().ok());
    let seconds = seconds.filter(|seconds| (1..=60).contains(seconds));
    let seconds = seconds.ok_or_else(|| Refused::bad("the query is not seconds=1 to 60"))?;
    let Ok(_turn) = shared.following.try_lock() else { return Ok(json(&None::<SlowStatus>)) };
    ask(shared, |volume| volume.follow()).await?;
    let _followed = Followed(Arc::clone(&shared.volume));
    let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
    // The end of the volume does not wait for it.
    while tokio::time::Instant::now() < end && !shared.is_ending.load(Ordering::SeqCst) {
        tokio::time::sleep(FOLLOWED).await;
    }
    ask(shared, |volume| volume.followed()).await.map(|it| json(&it))
}

fn json(value: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(value).unwrap_or_default();
    with_type(Response::new(text.into()), "application/json")
}

fn with_type(mut answer: Answer, kind: &'static str) -> Answer {
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// The connection that gave an order, which is told that the order was accepted.
fn giver(connection: Option<Arc<OwnedFd>>) -> Result<Giver, Refused> {
    let giver = Giver::new(connection.ok_or(StatusCode::SERVICE_UNAVAILABLE)?);
    giver.accept();
    Ok(giver)
}

async fn read_json<T: DeserializeOwned>(request: Request<Incoming>) -> Result<T, Refused> {
    let body = Limited::new(request.into_body(), MOST).collect().await;
    let body = body.map_err(|error| Refused::bad(error.to_string()))?.to_bytes();
    serde_json::from_slice(&body).map_err(|error| Refused::bad(error.to_string()))
}

async fn post_order(
    shared: &Shared,
    connection: Option<Arc<OwnedFd>>,
    request: Request<Incoming>,
) -> Result<Answer, Refused> {
    let order: Order = read_json(request).await?;
    let giver = Arc::new(giver(connection)?);
    let given = Arc::clone(&giver);
    let answer = ask(shared, move |volume| volume.carry_out(order, given)).await?;
    Ok(json(&OrderAnswer::new(answer, giver.has_begun())))
}

async fn post_stop(
    shared: &Shared,
    connection: Option<Arc<OwnedFd>>,
    query: Option<&str>,
) -> Result<Answer, Refused> {
    let force = match query {
        None | Some("force=false") => false,
        Some("force=true") => true,
        Some(_) => return Err(Refused::bad("the query is not force=true or force=false")),
    };
    let giver = giver(connection)?;
    if shared.is_ending.load(Ordering::SeqCst) {
        giver.begin();
    }
    let (answer, receive) = oneshot::channel();
    let sent = shared.events.send(Event::Stop { force, giver, answer });
    // All is flushed and let go of by then: what is left to wait for is the end of the process.
    let gone = StopAnswer {
        stopped: true,
        process: Process::this(),
        holders: Vec::new(),
        error: None,
        next: None,
    };
    let stopped = match sent {
        Ok(()) => receive.await.unwrap_or(gone),
        Err(_) => gone,
    };
    let mut answer = json(&stopped);
    if !stopped.stopped {
        *answer.status_mut() = StatusCode::CONFLICT;
    }
    Ok(answer)
}
