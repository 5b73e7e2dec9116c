//! The volume's end of the control socket. It runs on a thread and a runtime of its own, so that
//! no request of a client and no slow reader of a status touches the data path.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::serve::IncomingStream;
use axum::{Json, Router};
use serde::Deserialize;
use tokio::sync::oneshot;

use braid_control::{CacheCurve, Giver, Order, OrderAnswer, Process, Status, StopAnswer};

/// Where it is said how a request to end went.
pub(crate) type StopSender = oneshot::Sender<StopAnswer>;

/// What the main thread of a volume waits for.
pub(crate) enum Event {
    /// SIGTERM or SIGINT.
    Signal,
    /// Somebody asked for the end, if still there when it begins, and wants to know how that went.
    Stop { force: bool, giver: Giver, answer: StopSender },
    /// A shard serves no more, without having been told to: it panicked.
    ShardEnded,
    /// The FUSE mount is gone.
    Unmounted,
}

/// The volume, as its control socket reaches it from a thread of its own.
pub(crate) trait Volume: Send + Sync {
    /// How it is.
    fn status(&self) -> Status;

    /// What its caches would be if they were others; none if they do not answer.
    fn curves(&self) -> Option<Vec<CacheCurve>>;

    /// Carries out an order, if its giver is still there when it begins, and waits until it is.
    fn carry_out(&self, order: Order, giver: Giver) -> OrderAnswer;
}

#[derive(Clone)]
struct Shared {
    volume: Arc<dyn Volume>,
    events: Sender<Event>,
    /// Whether the volume is ending, by an order or a signal.
    is_ending: Arc<AtomicBool>,
}

/// The connection that a request came on. None if there are too few descriptors to hold another.
#[derive(Clone)]
struct Connection(Option<Arc<OwnedFd>>);

impl Connected<IncomingStream<'_, tokio::net::UnixListener>> for Connection {
    fn connect_info(stream: IncomingStream<'_, tokio::net::UnixListener>) -> Connection {
        Connection(stream.io().as_fd().try_clone_to_owned().ok().map(Arc::new))
    }
}

impl Connection {
    /// Whoever gives an order by it, who is told that it was taken.
    fn giver(self) -> Result<Giver, StatusCode> {
        let giver = Giver::new(self.0.ok_or(StatusCode::SERVICE_UNAVAILABLE)?);
        giver.accept();
        Ok(giver)
    }
}

#[derive(Deserialize)]
struct StopQuery {
    #[serde(default)]
    force: bool,
}

/// How long answers may take to get out once the volume has ended: a client that does not read
/// its answer goes without.
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
    let app = Router::new()
        .route("/v1/status", get(get_status))
        .route("/v1/curves", get(get_curves))
        .route("/metrics", get(get_metrics))
        .route("/v1/stop", post(post_stop))
        .route("/v1/order", post(post_order))
        .with_state(Shared { volume, events, is_ending: Arc::clone(&is_ending) })
        .into_make_service_with_connect_info::<Connection>();
    let (end, asked_to_end) = oneshot::channel::<()>();
    let (has_ended, ended) = mpsc::channel();
    std::thread::Builder::new().name("control".to_owned()).spawn(move || {
        let served = runtime.block_on(async move {
            let listener = tokio::net::UnixListener::from_std(listener)?;
            // A handle that is dropped asks for nothing: the process ends anyway.
            let asked = async move {
                if asked_to_end.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            axum::serve(listener, app).with_graceful_shutdown(asked).await
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

async fn get_status(State(shared): State<Shared>) -> Result<Json<Status>, StatusCode> {
    // It asks the shards, which may be busy; others are answered meanwhile.
    let asked = tokio::task::spawn_blocking(move || shared.volume.status());
    asked.await.map(Json).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

/// The same in Prometheus' text.
async fn get_metrics(State(shared): State<Shared>) -> Result<impl IntoResponse, StatusCode> {
    let Json(status) = get_status(State(shared)).await?;
    let text = braid_metrics::render(&[status], &[]);
    Ok(([(header::CONTENT_TYPE, braid_metrics::CONTENT_TYPE)], text))
}

async fn get_curves(
    State(shared): State<Shared>,
) -> Result<Json<Option<Vec<CacheCurve>>>, StatusCode> {
    let asked = tokio::task::spawn_blocking(move || shared.volume.curves());
    asked.await.map(Json).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

async fn post_order(
    State(shared): State<Shared>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    Json(order): Json<Order>,
) -> Result<Json<OrderAnswer>, StatusCode> {
    let giver = connection.giver()?;
    // It waits for members, and the status must be had meanwhile.
    let done = tokio::task::spawn_blocking(move || shared.volume.carry_out(order, giver));
    done.await.map(Json).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

async fn post_stop(
    State(shared): State<Shared>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    Query(query): Query<StopQuery>,
) -> Result<impl IntoResponse, StatusCode> {
    let giver = connection.giver()?;
    if shared.is_ending.load(Ordering::SeqCst) {
        giver.begin();
    }
    let (answer, receive) = oneshot::channel();
    let sent = shared.events.send(Event::Stop { force: query.force, giver, answer });
    // All is flushed and let go of by then: what is left to wait for is the end of the process.
    let gone =
        StopAnswer { stopped: true, process: Process::this(), holders: Vec::new(), error: None };
    let answer = match sent {
        Ok(()) => receive.await.unwrap_or(gone),
        Err(_) => gone,
    };
    let code = if answer.stopped { StatusCode::OK } else { StatusCode::CONFLICT };
    Ok((code, Json(answer)))
}
