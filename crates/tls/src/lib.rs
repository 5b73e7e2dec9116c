//! TLS for NBD, without I/O.
//!
//! ```text
//!   folder of PEM files ──▶ Certificates ──▶ Channel ──▶ names of the client ──▶ Clients ──▶ Access
//!                           (reloaded)        bytes both ways
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
mod clients;
mod der;

pub use certificates::{Certificates, TlsError};
pub use channel::Channel;
pub use clients::{Access, Client, ClientError, Clients};
pub use der::Validity;
