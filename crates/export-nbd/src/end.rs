//! Why a connection ended.

use std::io;
use std::time::Duration;

use braid_nbd::handshake::HandshakeError;
use braid_nbd::protocol::RefusalReason;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// The client asked for it, or closed its side between two requests.
    #[error("the client disconnected")]
    Disconnected,
    /// The volume is going down.
    #[error("the volume is going down")]
    Stopped,
    /// It was not through its handshake when others needed its place.
    #[error("the client was not through its handshake when there was no room for more")]
    GaveWay,
    /// Its user has no rights at the Unix socket.
    #[error("the user with the ID {0} is not listed for this socket (users=), and was turned away")]
    NotAllowed(u32),
    /// It was idle when others needed its place.
    #[error("the client that was idle longest was closed: another one needed its place")]
    Idle,
    /// The stream is out of step.
    #[error("{0:#010x} where a request should start")]
    BadMagic(u32),
    /// A request behind which the next one cannot be found.
    #[error("request refused: {0}")]
    Refused(RefusalReason),
    /// The client closed its side inside a request or a handshake.
    #[error("the client left in the middle of a message")]
    Truncated,
    /// The client did not go on: inside a message, or with memory that others wait for.
    #[error(
        "the client did not go on for {} s, inside a message or with replies unread",
        .0.as_secs()
    )]
    Stalled(Duration),
    /// The handshake broke the protocol.
    #[error("handshake: {0}")]
    Handshake(#[from] HandshakeError),
    /// TLS failed: the client's certificate, or a breach of the protocol.
    #[error("TLS: {0}")]
    Tls(String),
    /// The connection failed.
    #[error("connection: {0}")]
    Failed(#[from] io::Error),
}

impl End {
    /// Returns true if the client is to blame.
    pub fn is_protocol_error(&self) -> bool {
        !matches!(self, End::Disconnected | End::Stopped | End::Idle | End::Failed(_))
    }
}
