//! The volume of this machine that serves an NBD address, if one does: known by its socket, or by the port on which
//! it listens and an address of this machine.
//!
//! Deliberately absent: servers that pass on to a volume, and volumes whose control sockets lie in another folder.

use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use braid_control::{Status, get_statuses, volumes};
use braid_nbd::uri::{Socket, Uri};

/// Returns true if `address`, which a volume listens on (`unix:PATH` or `HOST:PORT`), is the server at `uri`.
pub(super) fn is_at(address: &str, uri: &Uri) -> bool {
    match (&uri.socket, address.strip_prefix("unix:")) {
        (Socket::Unix(one), Some(other)) => is_same(Path::new(one), Path::new(other)),
        (Socket::Tcp(host), None) => is_same_host(host, address),
        _ => false,
    }
}

/// Returns the volumes that answer at control sockets in the folder `run`, but for the one called `own`, and that
/// serve `uri`.
pub(super) fn servers(run: &Path, own: &str, uri: &Uri) -> Vec<Status> {
    let others = volumes(run).unwrap_or_default().into_iter().filter(|one| one.name != own);
    let sockets: Vec<_> = others.map(|one| one.socket).collect();
    let serves = |status: &Status| {
        let uris = status.exports.iter().flat_map(|export| &export.uris);
        uris.filter_map(|text| text.parse::<Uri>().ok()).any(|one| match one.socket {
            Socket::Unix(path) => is_at(&format!("unix:{path}"), uri),
            Socket::Tcp(host) => is_at(&host, uri),
        })
    };
    get_statuses(&sockets).into_iter().flatten().filter(serves).collect()
}

/// Compares sockets by device and inode; by path where none is there.
fn is_same(one: &Path, other: &Path) -> bool {
    let inode = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    one == other || inode(one).is_some_and(|found| inode(other) == Some(found))
}

/// Returns true if a connection to `host` reaches a listener at `listening`, both `HOST:PORT`.
fn is_same_host(host: &str, listening: &str) -> bool {
    let port = |text: &str| text.rsplit_once(':').map(|(_, port)| port.to_owned());
    // Names are asked for only if the ports are the same.
    if port(host) != port(listening) {
        return false;
    }
    let resolve = |text: &str| text.to_socket_addrs().map(Vec::from_iter).unwrap_or_default();
    let listeners = resolve(listening);
    let reaches = |to: &SocketAddr| {
        let is_it = |one: &SocketAddr| one == to || (one.ip().is_unspecified() && is_here(to));
        listeners.iter().any(is_it)
    };
    resolve(host).iter().any(reaches)
}

/// Returns true for an address of this machine: the kernel's way to it begins there. Nothing is sent.
fn is_here(to: &SocketAddr) -> bool {
    let from = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let way = || -> std::io::Result<SocketAddr> {
        let socket = UdpSocket::bind(from)?;
        socket.connect(to)?;
        socket.local_addr()
    };
    to.ip().is_loopback() || way().is_ok_and(|local| local.ip() == to.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_known_by_any_name_of_its_address() {
        let at = |address: &str, uri: &str| is_at(address, &uri.parse().expect("a URI"));
        assert!(at("127.0.0.1:10809", "nbd://127.0.0.1/x"));
        assert!(at("127.0.0.1:7", "nbd://localhost:7"));
        assert!(at("0.0.0.0:7", "nbd://127.0.0.1:7/"));
        assert!(!at("127.0.0.1:8", "nbd://127.0.0.1:7/"));
        // An address for documentation, which no machine has.
        assert!(!at("0.0.0.0:7", "nbd://192.0.2.1:7/"));
        assert!(at("unix:/run/s", "nbd+unix:///?socket=/run/s"));
        assert!(!at("unix:/run/s", "nbd+unix:///?socket=/run/t"));
        assert!(!at("unix:/run/s", "nbd://127.0.0.1/run/s"));
    }
}
