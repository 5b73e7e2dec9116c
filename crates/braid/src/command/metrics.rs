//! `braid metrics`: metrics of volumes in Prometheus format, printed, written to a file, or served
//! on the loopback.
//!
//! The server keeps nothing between two scrapes. Number and duration of connections are limited:
//! slow clients are disconnected.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use braid_monitor::known_disks;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::cli;
use braid_service::beside::{Beside, may_replace};
use braid_service::control;
use braid_service::failure::{Context, Failure};
use braid_service::places::{Places, check_name};

/// Connections at a time; others wait to be accepted.
const CONNECTIONS: usize = 16;

/// Maximum duration of a connection, which serves one response. A volume that does not respond is
/// waited for 5 s.
const LIMIT: Duration = Duration::from_secs(10);

pub(super) fn metrics(options: &cli::Metrics) -> Result<(), Failure> {
    if let Some(name) = &options.name {
        check_name(name)?;
    }
    let places = Places::from_environment();
    if let Some(address) = options.listen {
        return listen(places, options.name.clone(), address);
    }
    let text = gather(&places, options.name.as_deref())?;
    match &options.textfile {
        Some(file) => replace(file, &text),
        None => std::io::stdout().write_all(text.as_bytes()).context("standard output"),
    }
}

/// The metrics of the volume that is named, or of all that are up; one that does not answer is down.
fn gather(places: &Places, name: Option<&str>) -> Result<String, Failure> {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => places.running_names()?,
    };
    let sockets: Vec<PathBuf> = names.iter().map(|name| places.control(name)).collect();
    let (mut up, mut silent) = (Vec::new(), Vec::new());
    // A scrape asks no disk: that would make it wait for what clients are waiting for.
    let disks = known_disks(places.state_folder()).unwrap_or_else(|error| {
        eprintln!("braid: what the monitor knows of disks is left out: {error}");
        BTreeMap::new()
    });
    for (name, answer) in names.into_iter().zip(control::get_statuses(&sockets)) {
        match answer {
            Ok(mut status) => {
                for member in &mut status.members {
                    member.disk = disks.get(&member.member).cloned();
                }
                up.push(status);
            }
            Err(_) => silent.push(name),
        }
    }
    Ok(braid_metrics::render(&up, &silent))
}

/// Replaces `file` by one with `text`, so that no reader sees a part of it. The collector is another user, reads
/// files that end with `.prom`, and often owns the folder.
fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let name = file.display();
    if !may_replace(file, b"# ").context(format_args!("cannot write {name}"))? {
        let why = format!("{name} holds something else, and metrics replace metrics only");
        return Err(Failure::refused(why).next("another FILE"));
    }
    let written = Beside::replace(file, 0o644, text.as_bytes());
    written.context(format_args!("cannot write {}", file.display()))
}

/// Serves at `address` until the process is ended.
fn listen(places: Places, name: Option<String>, address: SocketAddr) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot serve")?.block_on(async {
        let listener = TcpListener::bind(address).await;
        let listener = listener.context(format_args!("cannot listen on {address}"))?;
        let address = listener.local_addr().context("cannot listen")?;
        // Shows the port if any port was requested.
        println!("http://{address}/metrics");
        let (places, free) = (Arc::new(places), Arc::new(Semaphore::new(CONNECTIONS)));
        loop {
            let permit = Arc::clone(&free).acquire_owned().await.context("cannot serve")?;
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors: some come back.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (places, name) = (Arc::clone(&places), name.clone());
            let answer = hyper::service::service_fn(move |request| {
                answer(request, Arc::clone(&places), name.clone())
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer);
            tokio::spawn(async move {
                // Whatever became of it, it is over.
                let _ = tokio::time::timeout(LIMIT, connection).await;
                drop(permit);
            });
        }
    })
}

async fn answer(
    request: Request<Incoming>,
    places: Arc<Places>,
    name: Option<String>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let plain = |code: StatusCode, text: String| {
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = code;
        response
    };
    if request.uri().path() != "/metrics"
        || !matches!(*request.method(), Method::GET | Method::HEAD)
    {
        return Ok(plain(StatusCode::NOT_FOUND, "GET /metrics is all there is\n".to_owned()));
    }
    let gathered = tokio::task::spawn_blocking(move || gather(&places, name.as_deref())).await;
    Ok(match gathered {
        Ok(Ok(text)) => {
            let mut response = plain(StatusCode::OK, text);
            let kind = hyper::header::HeaderValue::from_static(braid_metrics::CONTENT_TYPE);
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        Ok(Err(failure)) => plain(StatusCode::INTERNAL_SERVER_ERROR, failure.text()),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    })
}
