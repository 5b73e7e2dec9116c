//! TLS for NBD.
//!
//! ```text
//!   folder of PEM files ──▶ Certificates ──▶ Channel ──▶ names of the client ──▶ Clients ──▶ Access
//!                           (reloaded)        bytes both ways
//!   folder of PEM files ──▶ Trust ──▶ Channel ──▶ Secure: the channel over any stream
//! ```
//!
//! Invariants
//! * A failed reload keeps the certificates in use. A connection keeps those it started with.
//! * Nothing here prints or returns key material.
//! * Sessions are not resumed: a client is authenticated at each connection.
//!
//! Absent on purpose: sockets, pre-shared keys (rustls has none), names in the subject of a certificate.

mod certificates;
mod channel;
mod client;
mod clients;
mod der;
mod inbox;
mod stream;

pub use certificates::{Certificates, TlsError};
pub use channel::Channel;
pub use client::{Trust, TrustError};
pub use clients::{Access, Client, ClientError, Clients};
pub use der::Validity;
pub use inbox::Inbox;
pub use rustls::Error;
pub use stream::{Receive, Secure, ShakeError};
