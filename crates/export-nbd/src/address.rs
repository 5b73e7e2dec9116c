//! Addresses of exports.

use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::secure::Security;
use braid_nbd::uri::{PORT, unix_uri};
use rustix::fs::Mode;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// A Unix socket or a TCP address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket at this path, open to its owner alone (0600).
    Unix(PathBuf),
    /// A TCP address.
    Tcp(SocketAddr),
}

/// The protection that TLS gives to all clients of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// None: clients may do without TLS.
    None,
    /// TLS is required; clients are not asked for certificates.
    Encrypted,
    /// TLS is required, and a certificate of each client.
    Verified,
}

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no address: unix:PATH, tcp:IP:PORT or tcp:PORT (which is on 127.0.0.1)")]
pub struct AddressError {
    /// The text.
    pub text: String,
}

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// NBD without TLS has neither authentication nor encryption: beyond this machine only if asked for.
    #[error(
        "{address} can be reached from other machines, and would let clients in without TLS, which protects nothing"
    )]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// Something is there already.
    #[error("{path} exists and is {what}: choose another path")]
    Occupied {
        /// The path.
        path: PathBuf,
        /// The existing object.
        what: &'static str,
    },
    /// The kernel refused.
    #[error("cannot listen on {address}: {source}")]
    Failed {
        /// The address.
        address: Address,
        /// Why.
        source: io::Error,
    },
}

impl std::str::FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        let error = || AddressError { text: text.to_owned() };
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(error()) } else { Ok(Address::Unix(path.into())) };
        }
        let address = text.strip_prefix("tcp:").ok_or_else(error)?;
        if let Ok(port) = address.parse::<u16>() {
            return Ok(Address::Tcp(([127, 0, 0, 1], port).into()));
        }
        if let Ok(ip) = address.parse::<std::net::IpAddr>() {
            return Ok(Address::Tcp((ip, PORT).into()));
        }
        address.parse().map(Address::Tcp).map_err(|_| error())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

impl Address {
    /// Returns the protection that all clients of this address have under `security`.
    pub fn protection(&self, security: Option<&Security>) -> Protection {
        let is_tcp = matches!(self, Address::Tcp(_));
        match security {
            Some(security) if security.required.at(is_tcp) => {
                match security.certificates.verifies_peers() {
                    true => Protection::Verified,
                    false => Protection::Encrypted,
                }
            }
            _ => Protection::None,
        }
    }

    /// The URI a client connects to for the default export.
    pub fn uri(&self, protection: Protection) -> String {
        let plain = match self {
            Address::Unix(path) => unix_uri(path, ""),
            Address::Tcp(address) => format!("nbd://{address}"),
        };
        match plain.strip_prefix("nbd") {
            Some(rest) if protection != Protection::None => format!("nbds{rest}"),
            _ => plain,
        }
    }

    /// Returns whom this address lets at the volume, as a sentence with the better way; none for a Unix socket,
    /// which only its owner can open, and where clients are verified. NBD over TCP asks no client for its user.
    pub fn risk(&self, read_only: bool, protection: Protection) -> Option<String> {
        let Address::Tcp(address) = self else { return None };
        let whom = match address.ip().is_loopback() {
            true => "every user of this machine, and of containers that share its network,",
            false => "every client that reaches this address",
        };
        let may = if read_only { "read" } else { "read and overwrite" };
        let why = match protection {
            Protection::Verified => return None,
            Protection::Encrypted => {
                "because TLS asks no client for a certificate; next: --tls-verify-peer, or --allow NAME=read"
            }
            Protection::None => {
                "because NBD without TLS asks no client for its user; next: --nbd unix:PATH, a socket that only its \
                 owner can open, or --tls-certificates DIR --tls-verify-peer"
            }
        };
        Some(format!("{self}: {whom} can {may} all of the volume, {why}"))
    }

    /// Listens. The socket file of a server that has gone is replaced.
    ///
    /// # Errors
    /// A TCP address beyond the loopback unless it `may_be_reached`; anything at the path that is not
    /// such a socket; what the kernel answers.
    pub fn listen(&self, may_be_reached: bool) -> Result<Listener, ListenError> {
        let failed = |source: io::Error| ListenError::Failed { address: self.clone(), source };
        match self {
            Address::Unix(path) => {
                remove_stale(path)?;
                listen_unix(path).map_err(failed)
            }
            Address::Tcp(address) if !may_be_reached && !address.ip().is_loopback() => {
                Err(ListenError::NotLoopback { address: *address })
            }
            Address::Tcp(address) => {
                let listener = std::net::TcpListener::bind(address).map_err(failed)?;
                let bound = Address::Tcp(listener.local_addr().map_err(failed)?);
                Ok(Listener { fd: listener.into(), address: bound, unlink: None })
            }
        }
    }
}

/// A listening socket; a socket file is removed with it.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    address: Address,
    unlink: Option<PathBuf>,
}

impl Listener {
    /// Returns the address (with the chosen port for port 0).
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Another descriptor of it.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn try_clone_fd(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.unlink {
            // It may have been removed by hand, which is no harm.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes a socket without a listener.
fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    let occupied = |what| ListenError::Occupied { path: path.to_owned(), what };
    if !metadata.file_type().is_socket() {
        return Err(occupied("not a socket"));
    }
    if is_served(path) {
        return Err(occupied("the socket of a server that runs"));
    }
    std::fs::remove_file(path)
        .map_err(|source| ListenError::Failed { address: Address::Unix(path.to_owned()), source })
}

/// Returns true if a socket has a listener. The socket of a killed process accepts connections for a moment,
/// until the kernel has ended the accept in its io_uring: these get no greeting and are closed.
fn is_served(path: &Path) -> bool {
    for _ in 0..20 {
        let mut stream = match UnixStream::connect(path) {
            Ok(stream) => stream,
            Err(error) => return error.kind() != io::ErrorKind::ConnectionRefused,
        };
        let limited = stream.set_read_timeout(Some(Duration::from_secs(1)));
        match limited.and_then(|()| stream.read(&mut [0])) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            Ok(0) => {}
            _ => return true,
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

/// Makes a socket that only its owner may connect to. The mode is the socket's before it has a path: a path could
/// name another file by the time that its mode is set.
fn listen_unix(path: &Path) -> io::Result<Listener> {
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
    bind(&fd, &SocketAddrUnix::new(path)?)?;
    let listener =
        Listener { fd, address: Address::Unix(path.to_owned()), unlink: Some(path.to_owned()) };
    listen(&listener.fd, BACKLOG)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn addresses_are_read_and_named() {
        for (text, uri) in [
            ("unix:/run/x y.sock", "nbd+unix:///?socket=/run/x%20y.sock"),
            ("tcp:127.0.0.1:1234", "nbd://127.0.0.1:1234"),
            ("tcp:[::1]:1234", "nbd://[::1]:1234"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(address.uri(Protection::None), uri);
            assert_eq!(address.uri(Protection::Encrypted), uri.replacen("nbd", "nbds", 1));
        }
        assert_eq!("tcp:99".parse(), Ok(Address::Tcp(([127, 0, 0, 1], 99).into())));
        assert_eq!("tcp:10.0.0.1".parse(), Ok(Address::Tcp(([10, 0, 0, 1], 10809).into())));
        for text in ["", "unix:", "/run/x", "tcp:", "tcp:host:1", "tcp:1.2.3.4:99999"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_unix_socket_is_its_owner_s_and_goes_with_the_listener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let address = Address::Unix(path.clone());
        let listener = address.listen(false).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(matches!(address.listen(false), Err(ListenError::Occupied { .. })));
        drop(listener);
        assert!(!path.exists());
        // A server that was killed leaves its socket behind.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        address.listen(false).unwrap();
        std::fs::write(&path, "mine").unwrap();
        assert!(matches!(address.listen(false), Err(ListenError::Occupied { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn tcp_has_a_risk_and_a_unix_socket_has_none() {
        let risk = |text: &str, read_only| {
            text.parse::<Address>().unwrap().risk(read_only, Protection::None)
        };
        let of_tls = |protection| "tcp:99".parse::<Address>().unwrap().risk(false, protection);
        assert!(of_tls(Protection::Encrypted).unwrap().contains("--tls-verify-peer"));
        assert_eq!(of_tls(Protection::Verified), None);
        assert_eq!(risk("unix:/run/s", false), None);
        let of_loopback = risk("tcp:99", false).unwrap();
        assert!(of_loopback.starts_with("tcp:127.0.0.1:99: every user of this machine"));
        assert!(
            of_loopback.contains("can read and overwrite") && of_loopback.contains("unix:PATH")
        );
        assert!(
            risk("tcp:[::]:99", true)
                .unwrap()
                .contains("every client that reaches this address can read all")
        );
    }

    #[test]
    fn tcp_stays_on_the_loopback_unless_told() {
        let address: Address = "tcp:0.0.0.0:0".parse().unwrap();
        assert!(matches!(address.listen(false), Err(ListenError::NotLoopback { .. })));
        let loopback: Address = "tcp:127.0.0.1:0".parse().unwrap();
        let listener = loopback.listen(false).unwrap();
        assert_ne!(listener.address(), &loopback, "a port was chosen");
    }
}
