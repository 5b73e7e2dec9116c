//! Messages to a service manager about a volume's process: sd_notify(3), by hand.
//!
//! Datagrams to the socket that `NOTIFY_SOCKET` names. The watchdog is fed only while all shards answer,
//! so that a process that hangs is ended and started again. Deliberately absent: reload, file descriptors
//! that are kept.
//!
//! Source: systemd's sd_notify(3), sd_watchdog_enabled(3).

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use braid_uring::Remote;

use super::shard;

/// The service manager.
pub struct Notify {
    socket: UnixDatagram,
    address: SocketAddr,
    /// Returns the interval of the watchdog; `None` without one.
    pub(super) watchdog: Option<Duration>,
}

impl Notify {
    /// The one that started this process; none if none did.
    ///
    /// # Errors
    /// It names a socket that cannot be one.
    pub fn from_environment() -> io::Result<Option<Notify>> {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let limit = number("WATCHDOG_USEC").filter(|limit| is_ours && *limit > 0);
        Notify::to(&name, limit.map(Duration::from_micros)).map(Some)
    }

    fn to(name: &OsString, limit: Option<Duration>) -> io::Result<Notify> {
        let address = match name.as_bytes() {
            // In the abstract name space.
            [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        // Twice as often as it has to be.
        let watchdog = limit.map(|limit| limit / 2);
        Ok(Notify { socket: UnixDatagram::unbound()?, address, watchdog })
    }

    /// Says `state`, lines of KEY=VALUE. A manager that does not listen is no reason to end.
    pub fn say(&self, state: &str) {
        if let Err(error) = self.socket.send_to_addr(state.as_bytes(), &self.address) {
            eprintln!("braid: the service manager cannot be told {state:?}: {error}");
        }
    }
}

/// Feeds the service manager's watchdog for as long as all shards answer.
pub(super) fn feed_watchdog(manager: &Arc<Notify>, remotes: &[Remote]) -> io::Result<()> {
    let Some(every) = manager.watchdog else { return Ok(()) };
    let (manager, remotes) = (Arc::clone(manager), remotes.to_vec());
    let feed = move || {
        loop {
            if shard::silent(&remotes, shard::PATIENCE).is_empty() {
                manager.say("WATCHDOG=1");
            }
            std::thread::sleep(every);
        }
    };
    std::thread::Builder::new().name("watchdog".to_owned()).spawn(feed).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_sockets_hear() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let name = format!("braid-notify-{}", std::process::id());
        let of_name = SocketAddr::from_abstract_name(&name).expect("an address");
        for (text, socket) in [
            (OsString::from(&path), UnixDatagram::bind(&path)),
            (OsString::from(format!("@{name}")), UnixDatagram::bind_addr(&of_name)),
        ] {
            let socket = socket.expect("a socket");
            let notify = Notify::to(&text, Some(Duration::from_secs(10))).expect("an address");
            notify.say("READY=1\nSTATUS=serves");
            let mut heard = [0; 64];
            let count = socket.recv(&mut heard).expect("a datagram");
            assert_eq!(&heard[..count], b"READY=1\nSTATUS=serves");
            assert_eq!(notify.watchdog, Some(Duration::from_secs(5)));
        }
    }
}
