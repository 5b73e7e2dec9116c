//! Addresses of exports as text (`doc/uri.md` of the NetworkBlockDevice project).
//!
//! ```text
//!   nbd+unix:///EXPORT?socket=PATH        nbd://HOST[:PORT]/EXPORT
//! ```
//!
//! Invariants: what [`unix_uri`] writes, [`Uri`] reads back, whatever bytes of
//! UTF-8 the path and the name have; no text makes anything here panic.
//!
//! Absent on purpose: `nbds:` (TLS), user names, and parameters other than
//! the socket, which are ignored.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

/// NBD's registered TCP port.
pub const PORT: u16 = 10809;

/// The address of an NBD URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// The server's socket.
    pub socket: Socket,
    /// The export's name; empty is the default export.
    pub export: String,
}

/// The socket of an NBD server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Socket {
    /// A path in the file system.
    Unix(String),
    /// `host:port`.
    Tcp(String),
}

/// Why a text is no URI of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// `nbd+unix:` without a socket.
    #[error("it names no socket; write nbd+unix:///?socket=/path")]
    NoSocket,
    /// Another scheme.
    #[error("only nbd+unix:///?socket=PATH and nbd://HOST:PORT are understood (no TLS)")]
    Scheme,
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(uri: &str) -> Result<Uri, UriError> {
        if let Some(rest) = uri.strip_prefix("nbd+unix://") {
            let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
            let socket = query.split('&').find_map(|pair| pair.strip_prefix("socket="));
            return Ok(Uri {
                socket: Socket::Unix(unescape(socket.ok_or(UriError::NoSocket)?)),
                export: unescape(path.strip_prefix('/').unwrap_or(path)),
            });
        }
        let rest = uri.strip_prefix("nbd://").ok_or(UriError::Scheme)?;
        let (host, export) = rest.split_once('/').unwrap_or((rest, ""));
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let host = if has_port { host.to_owned() } else { format!("{host}:{PORT}") };
        Ok(Uri { socket: Socket::Tcp(host), export: unescape(export) })
    }
}

/// The URI of an export of a server at a Unix socket; the default export has no name.
pub fn unix_uri(socket: impl AsRef<OsStr>, export: &str) -> String {
    format!("nbd+unix:///{}?socket={}", escape(export), escape(socket))
}

/// The bytes of a path or name as a part of a URI; its slashes stay.
pub fn escape(text: impl AsRef<OsStr>) -> String {
    let bytes = text.as_ref().as_bytes();
    let mut escaped = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            escaped.push(char::from(*byte));
        } else {
            // A string takes whatever is written.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// Inverts [`escape`]; a percent sign without two digits stands for itself.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(byte)) => {
                plain.push(byte);
                at += 3;
            }
            (byte, _) => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_understood() {
        let unix: Uri = "nbd+unix:///disk%201?socket=/run/a%20b.sock".parse().unwrap();
        assert_eq!(unix.socket, Socket::Unix("/run/a b.sock".into()));
        assert_eq!(unix.export, "disk 1");
        for (text, host) in [
            ("nbd://host/x", "host:10809"),
            ("nbd://[::1]:99", "[::1]:99"),
            ("nbd://[::1]", "[::1]:10809"),
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().socket, Socket::Tcp(host.into()));
        }
        assert_eq!("nbds://host".parse::<Uri>(), Err(UriError::Scheme));
        assert_eq!("nbd+unix:///x".parse::<Uri>(), Err(UriError::NoSocket));
    }

    proptest::proptest! {
        #[test]
        fn a_socket_and_an_export_survive_their_uri(path in "/[^\\x00]{0,40}", export in ".{0,20}") {
            let uri: Uri = unix_uri(&path, &export).parse().unwrap();
            proptest::prop_assert_eq!(uri, Uri { socket: Socket::Unix(path), export });
        }

        #[test]
        fn no_text_makes_it_panic(text in "(nbd:|nbd\\+unix:)?.{0,40}") {
            let _ = text.parse::<Uri>();
        }
    }
}
