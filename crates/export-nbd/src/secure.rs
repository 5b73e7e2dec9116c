//! TLS of a server: its certificates, the rights of its clients, and where they must use it.

use std::sync::Arc;

use braid_mem::Pool;
use braid_tls::{Certificates, Clients, Secure, ShakeError};
use braid_uring::Stream;

use crate::end::End;

/// The parts of TLS that all connections of a server have in common.
#[derive(Clone, Debug)]
pub struct Security {
    /// The server's certificates.
    pub certificates: Arc<Certificates>,
    /// The rights of clients.
    pub clients: Arc<Clients>,
    /// The addresses at which TLS is required.
    pub required: Required,
}

/// The addresses at which clients without TLS are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Required {
    /// None: TLS is offered.
    Nowhere,
    /// TCP. A Unix socket admits its owner only, or the users that it lists.
    Tcp,
    /// All.
    Everywhere,
}

impl Required {
    /// Returns true if TLS is required at a TCP address (`is_tcp`), or at a Unix socket.
    pub fn at(self, is_tcp: bool) -> bool {
        match self {
            Required::Nowhere => false,
            Required::Tcp => is_tcp,
            Required::Everywhere => true,
        }
    }
}

/// TLS for one connection, which takes memory when its client asks for TLS.
pub(crate) struct Lock {
    pub(crate) security: Security,
    /// Memory for received ciphertext.
    pub(crate) inboxes: Pool,
    /// Bytes of it for a connection.
    pub(crate) inbox_bytes: usize,
}

impl Lock {
    /// Carries out the server's side of TLS's handshake. The caller limits its time.
    pub(crate) async fn accept<S: Stream>(&self, inner: S) -> Result<Secure<S>, End> {
        let channel = self.security.certificates.channel();
        let channel = channel.map_err(|error| End::Tls(error.to_string()))?;
        let inbox = self.inboxes.get_wait(self.inbox_bytes).await;
        let secure = Secure::new(inner, channel, inbox);
        match secure.shake().await {
            Ok(()) => Ok(secure),
            Err(ShakeError::Ended) => Err(End::Truncated),
            Err(ShakeError::Tls(why)) => Err(End::Tls(why)),
            Err(ShakeError::Failed(error)) => Err(End::Failed(error)),
        }
    }
}
