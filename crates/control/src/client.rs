//! The asking end of the control socket. Every question has a time limit, and every order ends with
//! one of: what became of it; it was not carried out and will not be; that is not known.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::cache_status::CacheCurve;
use crate::error_code::ErrorCode;
use crate::failure::Failure;
use crate::giver::{ACCEPTED, BEGUN, PHASE};
use crate::order::{Carried, Order, OrderAnswer, Plan};
use crate::slow_status::SlowStatus;
use crate::status::Status;
use crate::stop::StopAnswer;

/// For an answer that nothing but the volume's process is needed for.
const SOON: Duration = Duration::from_secs(5);
/// For an order that was taken to be begun: a device may have to be opened and looked at, and what
/// is under way goes first.
const TO_BEGIN: Duration = Duration::from_secs(20);
/// For an order that was begun: longer than the volume itself waits for its shard.
const TO_END: Duration = Duration::from_secs(70);
/// The most bytes of an answer: a thousand times a usual status.
const MOST: usize = 16 << 20;
/// For what was sent before this end hung up.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Why a volume did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No process is at the socket.
    #[error("no process answers at the control socket: {0}")]
    Unreachable(io::Error),
    /// It took too long.
    #[error("the volume's process did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It answered something else.
    #[error("the volume's process answered something unexpected: {0}")]
    Malformed(String),
    /// An order was not begun, and will not be.
    #[error("the volume's process {0}: the order was not carried out, and will not be")]
    NotBegun(String),
    /// An order was begun, and then there was no answer.
    #[error("the order was begun, but {0}: whether it was carried out is not known")]
    Unknown(String),
}

impl ControlError {
    /// The failure of a command that asked the volume called `name`.
    pub fn failure(&self, name: &str) -> Failure {
        let code = match self {
            ControlError::Unreachable(_) => {
                return Failure::failed(format!("no volume called {name} is up"))
                    .next("`braid status` lists those that are");
            }
            ControlError::TimedOut(_) | ControlError::Malformed(_) => ErrorCode::Failed,
            ControlError::NotBegun(_) => ErrorCode::GivenUp,
            ControlError::Unknown(_) => ErrorCode::OutcomeUnknown,
        };
        Failure::failed(format!("{name}: {self}")).next(self.next(name)).code(code)
    }

    /// Returns the next command for the volume called `name`.
    pub fn next(&self, name: &str) -> String {
        match self {
            ControlError::Unreachable(_) => "`braid status` lists the volumes that are up".into(),
            ControlError::Unknown(_) => format!("`braid status {name}` shows how it is now"),
            _ => format!(
                "`braid status {name}` says whether it answers again, `braid down {name} --force` \
                 ends its process and gets the device back"
            ),
        }
    }
}

/// Progress of an order, as the volume reported it last.
#[derive(Clone, Default)]
struct Progress(Arc<AtomicU8>);

impl Progress {
    fn hear(&self, phase: &[u8]) {
        let reached = match phase {
            phase if phase == ACCEPTED.as_bytes() => 1,
            phase if phase == BEGUN.as_bytes() => 2,
            _ => return,
        };
        self.0.fetch_max(reached, Ordering::SeqCst);
    }

    fn is_accepted(&self) -> bool {
        self.0.load(Ordering::SeqCst) >= 1
    }

    fn is_begun(&self) -> bool {
        self.0.load(Ordering::SeqCst) >= 2
    }
}

/// Asks the volume at `socket` how it is.
pub fn get_status(socket: &Path) -> Result<Status, ControlError> {
    get_status_within(socket, SOON)
}

/// The same, of one that is not waited for any longer than `limit`.
pub fn get_status_within(socket: &Path, limit: Duration) -> Result<Status, ControlError> {
    get(socket, "/v1/status", limit).map(Status::completed)
}

/// Asks the volume at `socket` what its caches would be if they were others; none if they do not answer.
pub fn get_curves(socket: &Path) -> Result<Option<Vec<CacheCurve>>, ControlError> {
    get(socket, "/v1/curves", SOON)
}

/// Has the volume at `socket` follow the requests of its clients for `span`, in whole seconds from 1 to 60; `None` while
/// it does so for another asker.
pub fn get_slow(socket: &Path, span: Duration) -> Result<Option<SlowStatus>, ControlError> {
    get(socket, &format!("/v1/slow?seconds={}", span.as_secs()), span + SOON)
}

/// Asks the volume at `socket` what an order would do. Nothing is changed.
pub fn post_plan(socket: &Path, order: &Order) -> Result<Plan, ControlError> {
    let body = serde_json::to_vec(order).map_err(malformed)?;
    ask(socket, "POST", "/v1/plan", body.into(), SOON + TO_BEGIN)
}

fn get<T: DeserializeOwned>(
    socket: &Path,
    target: &str,
    limit: Duration,
) -> Result<T, ControlError> {
    ask(socket, "GET", target, Bytes::new(), limit)
}

/// Asks for what the volume answers without beginning anything.
fn ask<T: DeserializeOwned>(
    socket: &Path,
    method: &str,
    target: &str,
    body: Bytes,
    limit: Duration,
) -> Result<T, ControlError> {
    let progress = Progress::default();
    run(async {
        let asked = async {
            let stream = connect(socket).await?;
            exchange(stream, method, target, body, progress).await
        };
        let body = timeout(limit, asked).await.unwrap_or(Err(ControlError::TimedOut(limit)));
        parse(&body?)
    })
}

/// Asks the volumes at `sockets` all at once, so that those that do not answer are waited for
/// together; in the order of `sockets`.
pub fn get_statuses(sockets: &[PathBuf]) -> Vec<Result<Status, ControlError>> {
    std::thread::scope(|scope| {
        let asking: Vec<_> =
            sockets.iter().map(|socket| scope.spawn(|| get_status(socket))).collect();
        let answer = |asked: std::thread::ScopedJoinHandle<'_, _>| {
            asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        asking.into_iter().map(answer).collect()
    })
}

/// Asks the volume at `socket` to end, which it may take `limit` for once it has begun to.
pub fn post_stop(socket: &Path, force: bool, limit: Duration) -> Result<StopAnswer, ControlError> {
    give(socket, &format!("/v1/stop?force={force}"), Bytes::new(), limit)
}

/// Has the volume at `socket` carry out an order, which has to go through `bytes` of content for it.
pub fn post_order(
    socket: &Path,
    order: &Order,
    bytes: u64,
) -> Result<Result<Carried, Failure>, ControlError> {
    let body = serde_json::to_vec(order).map_err(malformed)?;
    give::<OrderAnswer>(socket, "/v1/order", body.into(), TO_END + time_for(bytes))
        .map(Result::from)
}

/// Returns the time that a volume may take to read, compress and store `bytes` of content, or the way back: a slow
/// stick takes 4 MiB in a second.
pub fn time_for(bytes: u64) -> Duration {
    Duration::from_secs(bytes >> 22)
}

/// Gives an order, and follows it: until it is accepted, until it is begun, until it is answered.
fn give<T: DeserializeOwned>(
    socket: &Path,
    target: &str,
    body: Bytes,
    limit: Duration,
) -> Result<T, ControlError> {
    run(async {
        let progress = Progress::default();
        let stream = timeout(SOON, connect(socket)).await;
        let stream = stream.unwrap_or(Err(ControlError::TimedOut(SOON)))?;
        let end = stream.try_clone().map_err(ControlError::Unreachable)?;
        let mut answer = pin!(exchange(stream, "POST", target, body, progress.clone()));
        if let Ok(answered) = timeout(SOON, &mut answer).await {
            return judge(answered, &progress);
        }
        if progress.is_accepted()
            && !progress.is_begun()
            && let Ok(answered) = timeout(TO_BEGIN, &mut answer).await
        {
            return judge(answered, &progress);
        }
        if !progress.is_begun() {
            // First this end says that it has gone, then it looks whether the order was begun
            // before that was seen.
            let _ = end.shutdown(std::net::Shutdown::Write);
            let last = timeout(LAST_WORDS, &mut answer).await;
            match last {
                Ok(Ok(answered)) => return parse(&answered),
                _ if progress.is_begun() => {}
                _ => {
                    let did_not = match progress.is_accepted() {
                        false => format!("did not answer within {} s", SOON.as_secs()),
                        true => {
                            format!("did not come to it within {} s", (SOON + TO_BEGIN).as_secs())
                        }
                    };
                    return Err(ControlError::NotBegun(did_not));
                }
            }
        }
        eprintln!(
            "braid: the volume is at it; that is waited for, for up to {} s",
            limit.as_secs()
        );
        match timeout(limit, &mut answer).await {
            Ok(answered) => judge(answered, &progress),
            Err(_) => {
                let seconds = limit.as_secs();
                Err(ControlError::Unknown(format!("no answer came within {seconds} s")))
            }
        }
    })
}

/// Returns the result of an order from its answer, or from the end of the connection.
fn judge<T: DeserializeOwned>(
    answered: Result<Bytes, ControlError>,
    progress: &Progress,
) -> Result<T, ControlError> {
    match answered {
        Ok(body) => parse(&body),
        Err(error @ ControlError::Malformed(_)) if progress.is_begun() => {
            let ControlError::Malformed(why) = error else { return Err(error) };
            Err(ControlError::Unknown(format!("its process ended before it answered ({why})")))
        }
        // Whatever was begun was said to be, and what was said is read to its end.
        Err(ControlError::Malformed(why)) => {
            Err(ControlError::NotBegun(format!("ended before it began ({why})")))
        }
        Err(other) => Err(other),
    }
}

fn run<T>(work: impl Future<Output = Result<T, ControlError>>) -> Result<T, ControlError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ControlError::Unreachable)?;
    runtime.block_on(work)
}

/// Connects; a process that does not accept lets so many wait and turns the next away, which is
/// waited out.
async fn connect(socket: &Path) -> Result<UnixStream, ControlError> {
    loop {
        match tokio::net::UnixStream::connect(socket).await {
            Ok(stream) => return stream.into_std().map_err(ControlError::Unreachable),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(ControlError::Unreachable(error)),
        }
    }
}

async fn exchange(
    stream: UnixStream,
    method: &str,
    target: &str,
    body: Bytes,
    progress: Progress,
) -> Result<Bytes, ControlError> {
    let stream = tokio::net::UnixStream::from_std(stream).map_err(ControlError::Unreachable)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(malformed)?;
    let mut request = hyper::Request::builder()
        .method(method)
        .uri(target)
        .header("host", "braid")
        .header("content-type", "application/json")
        .body(Full::new(body))
        .map_err(malformed)?;
    hyper::ext::on_informational(&mut request, move |interim| {
        let phase = interim.headers().get(PHASE);
        progress.hear(phase.map_or(b"", |phase| phase.as_bytes()));
    });
    let answer = async {
        let response = sender.send_request(request).await.map_err(malformed)?;
        if response.status() == hyper::StatusCode::NOT_FOUND {
            let version = "it is of another version of braid, which does not know the request";
            return Err(ControlError::Malformed(version.to_owned()));
        }
        let is_refused = response.status() == hyper::StatusCode::BAD_REQUEST;
        let body = Limited::new(response.into_body(), MOST).collect().await.map_err(malformed)?;
        let body = body.to_bytes();
        // An order with more to it than the volume knows is not carried out in part.
        if is_refused {
            let why = String::from_utf8_lossy(&body);
            let version = "it is of another version of braid, which does not take the request";
            return Err(ControlError::Malformed(format!("{version}: {why}")));
        }
        Ok(body)
    };
    let mut connection = pin!(connection);
    let mut answer = pin!(answer);
    // The connection is driven until the answer is whole.
    std::future::poll_fn(|cx| {
        let driven = connection.as_mut().poll(cx);
        match (answer.as_mut().poll(cx), driven) {
            (std::task::Poll::Ready(result), _) => std::task::Poll::Ready(result),
            (_, std::task::Poll::Ready(Err(error))) => {
                std::task::Poll::Ready(Err(malformed(error)))
            }
            _ => std::task::Poll::Pending,
        }
    })
    .await
}

fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, ControlError> {
    serde_json::from_slice(body).map_err(malformed)
}

fn malformed(error: impl std::fmt::Display) -> ControlError {
    ControlError::Malformed(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::*;

    const TAKEN: &str = "HTTP/1.1 102 Processing\r\nbraid-order: accepted\r\n\r\n";
    const BEGINS: &str = "HTTP/1.1 102 Processing\r\nbraid-order: begun\r\n\r\n";

    /// Returns the result of an order to a volume that says `said`, and then is gone.
    fn given_to_one_that_says(said: &[&str]) -> Result<Result<Carried, Failure>, ControlError> {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 4096];
                assert!(stream.read(&mut request).unwrap() > 0);
                // What is too much is not read to its end.
                said.iter().for_each(|text| drop(stream.write_all(text.as_bytes())));
            });
            post_order(&socket, &Order::RaidDisks { count: 2, array: None }, 0)
        })
    }

    #[test]
    fn an_answer_without_end_is_none() {
        let body = "x".repeat(MOST + 1);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        let error = given_to_one_that_says(&[&head, &body]).unwrap_err();
        assert!(error.to_string().contains("length limit exceeded"), "{error}");
    }

    #[test]
    fn an_order_to_one_that_ends_says_whether_it_was_carried_out() {
        for said in [&[][..], &[TAKEN]] {
            let error = given_to_one_that_says(said).unwrap_err();
            assert!(matches!(error, ControlError::NotBegun(_)), "{error}");
            assert!(error.to_string().ends_with("was not carried out, and will not be"), "{error}");
            assert_eq!(error.failure("v").code, ErrorCode::GivenUp);
        }
        let error = given_to_one_that_says(&[TAKEN, BEGINS]).unwrap_err();
        assert!(matches!(error, ControlError::Unknown(_)), "{error}");
        assert!(error.to_string().ends_with("whether it was carried out is not known"), "{error}");
        assert_eq!(error.failure("v").code, ErrorCode::OutcomeUnknown);
        let refused = Failure::refused("b").next("c").code(ErrorCode::Locked);
        for (body, expected) in [
            (
                r#"{"text":"a","outcome":"done"}"#,
                Ok(Carried { text: "a".to_owned(), changed: true }),
            ),
            (r#"{"outcome":"refused","code":"locked","why":"b","next":"c"}"#, Err(refused)),
        ] {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            for said in [&[&head, body][..], &[TAKEN, BEGINS, &head, body]] {
                assert_eq!(given_to_one_that_says(said).unwrap(), expected);
            }
        }
    }
}
