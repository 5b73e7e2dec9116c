//! Making connections: the seam to sockets, to TLS, and to the simulator's pipes.

use std::fs::File;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use braid_nbd::uri::{Socket as Place, UriTls};
use braid_tls::Channel;
use braid_uring::{Fd, Handle, Socket, Stream};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::secure::{self, Line};

/// Time without traffic after which the kernel asks the other side whether it is there.
const IDLE: Duration = Duration::from_secs(5);

/// A way to a server.
pub trait Connect: 'static {
    /// The connection.
    type Stream: Stream;

    /// Connects within `limit`.
    ///
    /// # Errors
    /// There is no way to the server, or it takes too long.
    fn connect(&self, limit: Duration) -> impl Future<Output = io::Result<Self::Stream>> + 'static;

    /// Returns true if connections are inside TLS: the server's greeting is over then.
    fn is_secured(&self) -> bool {
        false
    }
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The socket.
    pub place: Place,
    /// TLS, if it is used.
    pub tls: Option<UriTls>,
}

impl Address {
    /// Connects in the call, and starts TLS if it is used.
    ///
    /// # Errors
    /// As for [`Address::dial`]; the certificates cannot be used; the server has no TLS, or is not accepted.
    pub(crate) fn open(&self, limit: Duration) -> io::Result<(File, Option<Channel>)> {
        let mut file = File::from(self.dial(limit)?);
        let Some(tls) = &self.tls else { return Ok((file, None)) };
        limit_calls(&file, Some(limit))?;
        let channel = secure::start(&mut file, tls)?;
        limit_calls(&file, None)?;
        Ok((file, Some(channel)))
    }

    /// Connects in the call, to one of the addresses of a name after the other.
    ///
    /// # Errors
    /// The name has no address, or no server answers there.
    fn dial(&self, limit: Duration) -> io::Result<OwnedFd> {
        let host = match &self.place {
            Place::Unix(path) => return dial_unix(path),
            Place::Tcp(host) => host,
        };
        let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
        for address in host.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, limit) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
                    rustix::net::sockopt::set_tcp_keepidle(&stream, IDLE)?;
                    rustix::net::sockopt::set_tcp_keepintvl(&stream, IDLE)?;
                    rustix::net::sockopt::set_tcp_keepcnt(&stream, 3)?;
                    let timeout = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
                    rustix::net::sockopt::set_tcp_user_timeout(&stream, timeout)?;
                    return Ok(stream.into());
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Limits the time of each call that waits.
pub(crate) fn limit_calls(file: &File, limit: Option<Duration>) -> io::Result<()> {
    let both = [Timeout::Recv, Timeout::Send];
    Ok(both.into_iter().try_for_each(|timeout| set_socket_timeout(file, timeout, limit))?)
}

/// Connects without waiting for a server whose queue is full, which an attempt later finds empty.
fn dial_unix(path: &str) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&fd, &SocketAddrUnix::new(path)?)?;
    rustix::io::ioctl_fionbio(&fd, false)?;
    Ok(fd)
}

/// Connections of sockets for the shard of a handle.
pub struct Dial {
    /// The shard.
    pub handle: Handle,
    /// The server.
    pub address: Address,
}

/// The result of a thread that connects.
#[derive(Default)]
struct Dialled {
    result: Option<io::Result<(File, Option<Channel>)>>,
    waker: Option<Waker>,
}

impl Connect for Dial {
    type Stream = Line;

    fn is_secured(&self) -> bool {
        self.address.tls.is_some()
    }

    fn connect(&self, limit: Duration) -> impl Future<Output = io::Result<Line>> + 'static {
        let (handle, address) = (self.handle.clone(), self.address.clone());
        async move {
            let dialled = Arc::new(Mutex::new(Dialled::default()));
            let result = Arc::clone(&dialled);
            // Resolving a name waits for other machines, and has no other form than a call that blocks.
            std::thread::Builder::new().name("braid-dial".to_owned()).spawn(move || {
                let answer = address.open(limit);
                let mut dialled = result.lock().unwrap_or_else(PoisonError::into_inner);
                dialled.result = Some(answer);
                let waker = dialled.waker.take();
                drop(dialled);
                waker.into_iter().for_each(Waker::wake);
            })?;
            let (file, channel) = poll_fn(move |cx| {
                let mut dialled = dialled.lock().unwrap_or_else(PoisonError::into_inner);
                match dialled.result.take() {
                    Some(result) => Poll::Ready(result),
                    None => {
                        dialled.waker = Some(cx.waker().clone());
                        Poll::Pending
                    }
                }
            })
            .await?;
            rustix::io::ioctl_fionbio(&file, true)?;
            Line::new(Socket::new(&handle, &Fd::new(file.into())), channel)
        }
    }
}
