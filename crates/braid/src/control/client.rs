//! The asking end of the control socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;

use super::{Order, OrderAnswer, Status, StopAnswer};

/// Why a volume did not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// Nobody is at the socket.
    #[error("no process answers at the control socket: {0}")]
    Unreachable(io::Error),
    /// It took too long.
    #[error("the volume's process did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It answered something else.
    #[error("the volume's process answered something unexpected: {0}")]
    Malformed(String),
}

/// Asks the volume at `socket` how it is.
pub(crate) fn get_status(socket: &Path) -> Result<Status, ControlError> {
    request(socket, "GET", "/v1/status", Bytes::new(), Duration::from_secs(5))
}

/// Asks the volume at `socket` to end.
pub(crate) fn post_stop(
    socket: &Path,
    force: bool,
    limit: Duration,
) -> Result<StopAnswer, ControlError> {
    request(socket, "POST", &format!("/v1/stop?force={force}"), Bytes::new(), limit)
}

/// Has the volume at `socket` carry out an order.
pub(crate) fn post_order(socket: &Path, order: &Order) -> Result<OrderAnswer, ControlError> {
    let body = serde_json::to_vec(order).map_err(malformed)?;
    request(socket, "POST", "/v1/order", body.into(), Duration::from_secs(70))
}

fn request<T: DeserializeOwned>(
    socket: &Path,
    method: &str,
    target: &str,
    body: Bytes,
    limit: Duration,
) -> Result<T, ControlError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ControlError::Unreachable)?;
    runtime.block_on(async {
        match tokio::time::timeout(limit, exchange(socket, method, target, body)).await {
            Ok(body) => serde_json::from_slice(&body?).map_err(malformed),
            Err(_) => Err(ControlError::TimedOut(limit)),
        }
    })
}

async fn exchange(
    socket: &Path,
    method: &str,
    target: &str,
    body: Bytes,
) -> Result<Bytes, ControlError> {
    let stream =
        tokio::net::UnixStream::connect(socket).await.map_err(ControlError::Unreachable)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(malformed)?;
    let request = hyper::Request::builder()
        .method(method)
        .uri(target)
        .header("host", "braid")
        .header("content-type", "application/json")
        .body(Full::new(body))
        .map_err(malformed)?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(malformed)?;
        let body = response.into_body().collect().await.map_err(malformed)?;
        Ok(body.to_bytes())
    };
    let mut connection = std::pin::pin!(connection);
    let mut answer = std::pin::pin!(answer);
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

fn malformed(error: impl std::fmt::Display) -> ControlError {
    ControlError::Malformed(error.to_string())
}
