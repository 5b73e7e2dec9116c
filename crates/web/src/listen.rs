//! The listener: where, for whom, and how much of everything.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Extension;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::app;
use crate::doors::{Door, Open};
use crate::guard::{Guard, Names};
use crate::reports::Reports;
use crate::shared::Shared;
use crate::tls::Tls;
use crate::token::Token;
use crate::tokens::TokenFile;
use crate::watch::Folders;

/// Bytes that the kernel may hold for a client to take.
const SEND_BUFFER: usize = 256 << 10;
/// The head of a request comes within that time, also the next one on the same connection.
const HEAD_COMES: Duration = Duration::from_secs(10);
/// Time after which an answer that the client does not take is given up, with its connection.
const STALLS: Duration = Duration::from_secs(20);
/// Bytes of a request's head.
const HEAD: usize = 16 << 10;

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address of the loopback; another one needs TLS.
    Tcp(SocketAddr),
    /// A socket of its owner's (0600).
    Unix(PathBuf),
}

/// All that a server is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// An address to listen at.
    pub listen: Listen,
    /// The token that admits requests; none is needed over a Unix socket.
    pub token: Option<Token>,
    /// Tokens beside that one.
    pub tokens: TokenFile,
    /// The folder of control sockets.
    pub run: PathBuf,
    /// The folder of records.
    pub records: PathBuf,
    /// The log of events that the monitor writes.
    pub events: PathBuf,
    /// This program.
    pub program: PathBuf,
    /// Reports of the laboratory lie below it.
    pub lab: Option<PathBuf>,
    /// Folders of cases of `braid rescue` that are shown.
    pub cases: Vec<PathBuf>,
    /// Certificate and key of TCP listeners; without them there are none beyond the loopback.
    pub tls: Option<Tls>,
    /// Further names by which it may be called, without the port.
    pub hosts: Vec<String>,
}

/// The address at which it listens.
#[derive(Clone, Debug)]
pub enum Bound {
    /// The page's address, without the token.
    Url(String),
    /// The socket.
    Unix(PathBuf),
}

/// Why it does not.
#[derive(Debug)]
pub enum ListenError {
    /// The address can be reached from elsewhere.
    Exposed(SocketAddr),
    /// The certificate or its key is of no use, and why.
    Tls(String),
    /// Another process listens there.
    InUse(PathBuf),
    /// There is no token for a listener that anybody of this machine can reach.
    NoToken,
    /// It could not be done: what, and why.
    Io(String, io::Error),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::Exposed(address) => {
                write!(f, "{address} can be reached from other machines, and there is no TLS")
            }
            ListenError::InUse(path) => {
                write!(f, "another process listens at {} already", path.display())
            }
            ListenError::Tls(why) => write!(f, "TLS cannot be had: {why}"),
            ListenError::NoToken => f.write_str("a TCP listener needs a token"),
            ListenError::Io(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for ListenError {}

fn failed(what: impl fmt::Display) -> impl FnOnce(io::Error) -> ListenError {
    let what = what.to_string();
    |error| ListenError::Io(what, error)
}

enum Listener {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

type App = TowerToHyperService<axum::Router>;

/// Serves until the process ends; `ready` hears where.
///
/// # Errors
/// It cannot listen.
pub fn serve(config: Config, ready: impl FnOnce(&Bound)) -> Result<(), ListenError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed("the runtime"))?.block_on(run(config, ready))
}

async fn run(config: Config, ready: impl FnOnce(&Bound)) -> Result<(), ListenError> {
    let acceptor = config.tls.as_ref().map(Tls::acceptor).transpose().map_err(ListenError::Tls)?;
    let (listener, bound, names) = bind(&config).await?;
    let reports = config.lab.as_deref().map(Reports::below).transpose();
    let reports = reports.map_err(failed("the folder of reports"))?;
    let token = match listener {
        Listener::Tcp(_) => Some(config.token.ok_or(ListenError::NoToken)?),
        Listener::Unix(_) => config.token,
    };
    let guard = Guard { names, scheme: scheme(acceptor.is_some()), token, tokens: config.tokens };
    let folders = Folders { run: config.run, records: config.records, events: config.events };
    let shared = Shared::new(guard, folders, config.program, reports, config.cases);
    tokio::spawn(shared.watch.clone().run());
    let app = app::router(shared);
    ready(&bound);
    let mut open = Open::default();
    loop {
        let door = Door::default();
        let app = TowerToHyperService::new(app.clone().layer(Extension(door.clone())));
        let acceptor = acceptor.clone();
        let accepted = match &listener {
            Listener::Tcp(tcp) => tcp.accept().await.map(|(stream, _)| {
                // Answers are small and go out at once; where that cannot be said they go out later.
                let _ = stream.set_nodelay(true);
                let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER);
                Box::pin(encrypted(stream, acceptor, app, door.clone()))
                    as Pin<Box<dyn Future<Output = ()> + Send>>
            }),
            Listener::Unix(unix) => unix.accept().await.map(|(stream, _)| {
                Box::pin(connection(stream, app, door.clone()))
                    as Pin<Box<dyn Future<Output = ()> + Send>>
            }),
        };
        match accepted {
            // None makes room before another one is there.
            Ok(connection) => {
                open.has_room().await;
                open.add(door, connection);
            }
            // A client that has gone already, or too many open files: these pass.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn bind(config: &Config) -> Result<(Listener, Bound, Names), ListenError> {
    match &config.listen {
        Listen::Tcp(address) if !address.ip().is_loopback() && config.tls.is_none() => {
            Err(ListenError::Exposed(*address))
        }
        Listen::Tcp(address) => {
            let bound = tokio::net::TcpListener::bind(address).await;
            let listener = bound.map_err(failed(format_args!("cannot listen at {address}")))?;
            let own = listener.local_addr().map_err(failed("the listener"))?;
            let names = names(own, &config.hosts, config.tls.is_some());
            let first = config.hosts.first().map(|host| format!("{host}:{}", own.port()));
            let called = first.unwrap_or_else(|| own.to_string());
            let url = format!("{}://{called}/", scheme(config.tls.is_some()));
            Ok((Listener::Tcp(listener), Bound::Url(url), Names::These(names)))
        }
        Listen::Unix(path) => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(ListenError::InUse(path.clone()));
            }
            let socket = std::fs::symlink_metadata(path).map(|found| {
                use std::os::unix::fs::FileTypeExt;
                found.file_type().is_socket()
            });
            if matches!(socket, Ok(true)) {
                std::fs::remove_file(path).map_err(failed("a socket that was left behind"))?;
            }
            // It is its owner's from the first moment.
            let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
            let bound = tokio::net::UnixListener::bind(path);
            rustix::process::umask(before);
            let listener =
                bound.map_err(failed(format_args!("cannot listen at {}", path.display())))?;
            Ok((Listener::Unix(listener), Bound::Unix(path.clone()), Names::Loopback))
        }
    }
}

fn scheme(is_encrypted: bool) -> &'static str {
    if is_encrypted { "https" } else { "http" }
}

/// All names of the server at `own`, as a browser says them: without the port of its scheme.
fn names(own: SocketAddr, hosts: &[String], is_encrypted: bool) -> Vec<String> {
    let port = own.port();
    let mut names = vec![own.to_string(), format!("localhost:{port}")];
    names.extend(hosts.iter().map(|host| format!("{}:{port}", host.to_ascii_lowercase())));
    let usual = if is_encrypted { ":443" } else { ":80" };
    let short: Vec<String> =
        names.iter().filter_map(|name| name.strip_suffix(usual)).map(str::to_owned).collect();
    names.extend(short);
    names
}

/// A connection over TCP, encrypted if there is something to do it with.
async fn encrypted(
    stream: tokio::net::TcpStream,
    acceptor: Option<tokio_rustls::TlsAcceptor>,
    app: App,
    door: Door,
) {
    match acceptor {
        None => connection(stream, app, door).await,
        // A client without a handshake is not served.
        Some(acceptor) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_COMES, acceptor.accept(stream)).await
            {
                connection(stream, app, door).await;
            }
        }
    }
}

/// One connection, to its end.
async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin, app: App, door: Door) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_COMES).max_buf_size(HEAD);
    let stream = TokioIo::new(Patient { stream, stalled: None, door });
    // How it ended is the client's to know.
    let _ = http.serve_connection(stream, app).await;
}

/// A stream that fails when the other end takes nothing for [`STALLS`].
struct Patient<S> {
    stream: S,
    stalled: Option<Pin<Box<Sleep>>>,
    door: Door,
}

impl<S> Patient<S> {
    /// Returns the result of an attempt to write, or an error if it has been tried for too long.
    fn judge<T>(
        &mut self,
        cx: &mut Context<'_>,
        tried: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if tried.is_ready() {
            self.stalled = None;
            return tried;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALLS)));
        stalled.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.stream).poll_write(cx, buf);
        // A flush is no sign of a client that takes its answer: hyper flushes after each byte that it reads.
        if tried.is_ready() {
            self.door.moved();
        }
        self.judge(cx, tried)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(cx, tried)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judge(cx, tried)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_as_browsers_say_them() {
        let names = |address: &str, hosts: &[&str], tls| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            super::names(address.parse().unwrap(), &hosts, tls)
        };
        assert_eq!(names("127.0.0.1:80", &[], true), ["127.0.0.1:80", "localhost:80"]);
        let short = ["127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost"];
        assert_eq!(names("127.0.0.1:80", &[], false), short);
        let named = ["[::]:8443", "localhost:8443", "nas.lan:8443"];
        assert_eq!(names("[::]:8443", &["NAS.lan"], true), named);
    }
}
