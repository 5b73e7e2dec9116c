//! Addresses of exports as text (`doc/uri.md` of the NetworkBlockDevice project).
//!
//! ```text
//!   nbd+unix:///EXPORT?socket=PATH        nbd://HOST[:PORT]/EXPORT
//!   nbds+unix:///EXPORT?socket=PATH&tls-certificates=DIR    nbds://HOST[:PORT]/EXPORT?tls-certificates=DIR
//! ```
//!
//! Invariants: what [`unix_uri`] writes, [`Uri`] reads back, whatever bytes of
//! UTF-8 the path and the name have; no text makes anything here panic.
//!
//! Absent on purpose: user names, and parameters other than the socket and
//! those of TLS, which are ignored.

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

/// TLS of a URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTls {
    /// The folder of certificates.
    pub certificates: String,
    /// The name that the server's certificate must have: `tls-hostname`, else the host; `localhost` at a Unix socket.
    pub host: String,
}

impl Uri {
    /// Reads a URI with or without TLS. [`Uri::from_str`] refuses those with TLS, for clients that have none.
    ///
    /// # Errors
    /// Another scheme; TLS without `tls-certificates`; a Unix socket without its path.
    pub fn parse_with_tls(text: &str) -> Result<(Uri, Option<UriTls>), UriError> {
        let Some(rest) = text.strip_prefix("nbds") else { return Ok((text.parse()?, None)) };
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let find = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name));
        let certificates = find("tls-certificates=").filter(|folder| !folder.is_empty());
        let certificates = unescape(certificates.ok_or(UriError::NoCertificates)?);
        let is_unix = address.starts_with("+unix");
        let plain = if is_unix { format!("nbd{rest}") } else { format!("nbd{address}") };
        let uri: Uri = plain.parse()?;
        let host = match (find("tls-hostname="), &uri.socket) {
            (Some(name), _) => unescape(name),
            (None, Socket::Unix(_)) => "localhost".to_owned(),
            (None, Socket::Tcp(host)) => {
                let host = host.rsplit_once(':').map_or(host.as_str(), |(host, _)| host);
                host.trim_start_matches('[').trim_end_matches(']').to_owned()
            }
        };
        Ok((uri, Some(UriTls { certificates, host })))
    }
}

/// Why a text is no URI of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// `nbd+unix:` without a socket.
    #[error("it names no socket; write nbd+unix:///?socket=/path")]
    NoSocket,
    /// `nbds:` without certificates.
    #[error("TLS needs a folder with ca-cert.pem; write ?tls-certificates=/path")]
    NoCertificates,
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

    #[test]
    fn uris_with_tls_name_certificates_and_a_host() {
        let tls = |text: &str| {
            let (uri, tls) = Uri::parse_with_tls(text).unwrap();
            let tls = tls.unwrap();
            (uri.socket, uri.export, tls.certificates, tls.host)
        };
        let of = |socket: Socket, host: &str| {
            (socket, "x".to_owned(), "/a b".to_owned(), host.to_owned())
        };
        let tcp = |host: &str| Socket::Tcp(host.to_owned());
        assert_eq!(tls("nbds://nas/x?tls-certificates=/a%20b"), of(tcp("nas:10809"), "nas"));
        assert_eq!(tls("nbds://[::1]:9/x?tls-certificates=/a%20b"), of(tcp("[::1]:9"), "::1"));
        assert_eq!(
            tls("nbds://10.0.0.1:9/x?tls-hostname=nas&tls-certificates=/a%20b"),
            of(tcp("10.0.0.1:9"), "nas")
        );
        assert_eq!(
            tls("nbds+unix:///x?socket=/s&tls-certificates=/a%20b"),
            of(Socket::Unix("/s".to_owned()), "localhost")
        );
        for text in ["nbds://nas/x", "nbds://nas/x?tls-certificates="] {
            assert_eq!(Uri::parse_with_tls(text), Err(UriError::NoCertificates));
        }
        assert!(matches!(Uri::parse_with_tls("nbd://nas"), Ok((_, None))));
        assert_eq!(Uri::parse_with_tls("nbdsx://n?tls-certificates=a"), Err(UriError::Scheme));
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
            let _ = Uri::parse_with_tls(&text);
        }
    }
}
