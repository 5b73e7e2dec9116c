//! Addresses of exports.

use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::secure::Security;
use crate::users::{Rights, Users};
use braid_nbd::uri::{PORT, unix_uri};
use braid_tls::Access;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// A Unix socket or a TCP address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket at this path: open to its owner alone (0600), or to all (0666) if it lists users, whose connections
    /// are judged one by one.
    Unix(PathBuf, Users),
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
#[error(
    "{text:?} is no address: unix:PATH, unix:PATH,users=NAME:NAME=read, tcp:IP:PORT or tcp:PORT (which is on 127.0.0.1)"
)]
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
    /// A listed user is not there.
    #[error("{address}: this machine has no user {name:?}")]
    NoUser {
        /// The address.
        address: Address,
        /// The user's name.
        name: String,
    },
    /// Listed users cannot come to the socket.
    #[error("{address}: the listed users cannot reach the socket, because {} has mode {mode:o}", folder.display())]
    Unreachable {
        /// The address.
        address: Address,
        /// The folder that only its owner may enter.
        folder: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Any user could put another socket in the place of this one.
    #[error("{address}: every user of this machine can replace the socket, because {} has mode {mode:o}", folder.display())]
    Replaceable {
        /// The address.
        address: Address,
        /// The socket's folder.
        folder: PathBuf,
        /// Its permissions.
        mode: u32,
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
            let (path, users) = match path.rsplit_once(",users=") {
                Some((path, users)) => (path, users.parse().map_err(|()| error())?),
                None => (path, Users::default()),
            };
            return if path.is_empty() {
                Err(error())
            } else {
                Ok(Address::Unix(path.into(), users))
            };
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
            Address::Unix(path, users) if users.is_empty() => write!(f, "unix:{}", path.display()),
            Address::Unix(path, users) => write!(f, "unix:{},users={users}", path.display()),
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
            Address::Unix(path, _) => unix_uri(path, ""),
            Address::Tcp(address) => format!("nbd://{address}"),
        };
        match plain.strip_prefix("nbd") {
            Some(rest) if protection != Protection::None => format!("nbds{rest}"),
            _ => plain,
        }
    }

    /// Returns the users that it lists, as `NAME=RIGHTS`.
    pub fn users(&self) -> Vec<String> {
        match self {
            Address::Unix(_, users) => users.texts().collect(),
            Address::Tcp(_) => Vec::new(),
        }
    }

    /// Returns whom this address lets at the volume, as a sentence with the better way; none for a Unix socket,
    /// which only its owner or listed users can open, and where clients are verified. NBD over TCP asks no client for its
    /// user.
    pub fn risk(&self, read_only: bool, protection: Protection) -> Option<String> {
        let address = match self {
            Address::Tcp(address) => address,
            Address::Unix(_, users) => {
                let may = match users.of_all() {
                    Access::None => return None,
                    Access::Write if !read_only => "read and overwrite",
                    Access::Read | Access::Write => "read",
                };
                return Some(format!(
                    "{self}: every user of this machine can {may} all of the volume, because users=* names all; next: \
                     users=NAME:NAME=read with their names"
                ));
            }
        };
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
    /// such a socket; listed users that are unknown, or cannot reach the socket; what the kernel answers.
    pub fn listen(&self, may_be_reached: bool) -> Result<Listener, ListenError> {
        let failed = |source: io::Error| ListenError::Failed { address: self.clone(), source };
        match self {
            Address::Unix(path, users) => {
                let rights = users.resolve();
                let rights =
                    rights.map_err(|name| ListenError::NoUser { address: self.clone(), name })?;
                self.check_folders(path, &rights)?;
                remove_stale(path)?;
                let fd = listen_unix(path, !users.is_empty()).map_err(failed)?;
                Ok(Listener { fd, address: self.clone(), rights, unlink: Some(path.to_owned()) })
            }
            Address::Tcp(address) if !may_be_reached && !address.ip().is_loopback() => {
                Err(ListenError::NotLoopback { address: *address })
            }
            Address::Tcp(address) => {
                let listener = std::net::TcpListener::bind(address).map_err(failed)?;
                let bound = Address::Tcp(listener.local_addr().map_err(failed)?);
                let rights = Rights::default();
                Ok(Listener { fd: listener.into(), address: bound, rights, unlink: None })
            }
        }
    }

    /// Checks that listed users can reach a socket at `path`, as far as modes tell, and that other users cannot replace it.
    /// Which group a folder lets in is not looked at: access lists count as a group's mode, too.
    fn check_folders(&self, path: &Path, rights: &Rights) -> Result<(), ListenError> {
        let failed = |source: io::Error| ListenError::Failed { address: self.clone(), source };
        let path = std::path::absolute(path).map_err(failed)?;
        if rights.ids().next().is_none() {
            return Ok(());
        }
        for (depth, folder) in path.ancestors().skip(1).enumerate() {
            let metadata = std::fs::metadata(folder).map_err(failed)?;
            let (address, folder) = (self.clone(), folder.to_owned());
            let (mode, owner) = (metadata.mode() & 0o7777, metadata.uid());
            if mode & 0o011 == 0 && rights.ids().any(|id| id != Some(owner)) {
                return Err(ListenError::Unreachable { address, folder, mode });
            }
            if depth == 0 && mode & 0o1002 == 0o002 {
                return Err(ListenError::Replaceable { address, folder, mode });
            }
        }
        Ok(())
    }
}

/// A listening socket; a socket file is removed with it.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    address: Address,
    rights: Rights,
    unlink: Option<PathBuf>,
}

impl Listener {
    /// Returns the address (with the chosen port for port 0).
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the rights of its clients.
    pub fn rights(&self) -> &Rights {
        &self.rights
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
    std::fs::remove_file(path).map_err(|source| {
        let address = Address::Unix(path.to_owned(), Users::default());
        ListenError::Failed { address, source }
    })
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

/// Makes a socket that only its owner may connect to, or all users if it is `open`. The mode is the socket's before it has
/// a path: a path could name another file by the time that its mode is set.
fn listen_unix(path: &Path, open: bool) -> io::Result<OwnedFd> {
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
    bind(&fd, &SocketAddrUnix::new(path)?)?;
    if open && let Err(error) = open_to_all(path) {
        // That is the failure which counts.
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    listen(&fd, BACKLOG)?;
    Ok(fd)
}

/// Lets all users connect to the socket at `path`. It is made sure first that the path names a socket, of this process's
/// user: the mode of anything else stays.
fn open_to_all(path: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let socket = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
    let found = rustix::fs::fstat(&socket)?;
    let is_own = found.st_uid == rustix::process::geteuid().as_raw();
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket || !is_own {
        return Err(io::Error::other("another user replaced the socket"));
    }
    rustix::fs::chmod(format!("/proc/self/fd/{}", socket.as_raw_fd()), Mode::from(0o666))?;
    Ok(())
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
        let users = "unix:/s/x,y,users=alice=write:www-data=read";
        let address: Address = users.parse().unwrap();
        assert_eq!(address.to_string(), users);
        assert_eq!(address.uri(Protection::None), "nbd+unix:///?socket=/s/x%2Cy");
        let wrong = ["", "unix:", "/run/x", "tcp:", "tcp:host:1", "tcp:1.2.3.4:99999"];
        for text in
            wrong.into_iter().chain(["unix:/s,users=", "unix:,users=a", "unix:/s,users=a=all"])
        {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_unix_socket_is_its_owner_s_and_goes_with_the_listener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let address = Address::Unix(path.clone(), Users::default());
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
    fn listed_users_are_known_and_reach_a_socket_that_others_cannot_replace() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let path = folder.path().join("s");
        let set = |mode| std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode));
        let listen = |users: &str| {
            format!("unix:{},users={users}", path.display())
                .parse::<Address>()
                .unwrap()
                .listen(false)
        };
        set(0o711).unwrap();
        let mode = |_: &Listener| std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(listen("4711=read").as_ref().map(mode).unwrap(), 0o666);
        assert!(matches!(listen("no-such-user"), Err(ListenError::NoUser { .. })));
        set(0o700).unwrap();
        let own = rustix::process::geteuid().as_raw();
        assert!(listen(&own.to_string()).is_ok(), "its owner");
        assert!(listen("*=none").is_ok(), "there is no user to reach it");
        assert!(matches!(listen("4711"), Err(ListenError::Unreachable { mode: 0o700, .. })));
        set(0o777).unwrap();
        assert!(matches!(listen("4711"), Err(ListenError::Replaceable { .. })));
        set(0o1777).unwrap();
        assert!(listen("4711").is_ok(), "sticky");
        assert!(!path.exists());
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
        assert_eq!(risk("unix:/run/s,users=a:*=none", false), None);
        assert!(
            risk("unix:/run/s,users=*", true)
                .unwrap()
                .contains("every user of this machine can read all")
        );
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
