//! Messages and descriptors over the socket of a front-end.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::end::Why;
use crate::message::{HEADER, Header, MOST_FDS};

/// Time limit of the rest of a message. Between two messages a front-end may wait for ever.
const STALL: Duration = Duration::from_secs(10);

/// Sets the time limits of a socket.
///
/// # Errors
/// The kernel's.
pub(crate) fn prepare(stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(STALL))?;
    stream.set_write_timeout(Some(STALL))
}

/// Receives one message.
///
/// # Errors
/// Its end, a front-end that does not go on, or a header that is none.
pub(crate) fn receive(mut stream: &UnixStream) -> Result<(Header, Vec<u8>, Vec<File>), Why> {
    let (mut header, mut got, mut files) = ([0; HEADER], 0, Vec::new());
    while got < HEADER {
        match receive_part(stream, &mut header[got..], &mut files) {
            Ok(0) if got == 0 => return Err(Why::Disconnected),
            Ok(0) => return Err(Why::Truncated(STALL.as_secs())),
            Ok(count) => got += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && got == 0 => {}
            Err(error) => return Err(ended(error)),
        }
    }
    let header = Header::parse(header)?;
    let mut body = vec![0; header.len];
    stream.read_exact(&mut body).map_err(ended)?;
    Ok((header, body, files))
}

/// The end of a connection inside a message.
fn ended(error: io::Error) -> Why {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::UnexpectedEof => Why::Truncated(STALL.as_secs()),
        io::ErrorKind::ConnectionReset => Why::Disconnected,
        _ => Why::Failed(error),
    }
}

fn receive_part(stream: &UnixStream, into: &mut [u8], files: &mut Vec<File>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(into)];
    let received = recvmsg(stream, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            files.extend(fds.map(File::from));
        }
    }
    Ok(received.bytes)
}

/// Sends one message, with a descriptor if there is one.
///
/// # Errors
/// The connection's.
pub(crate) fn send(stream: &UnixStream, bytes: &[u8], fd: Option<&OwnedFd>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = fd.map(AsFd::as_fd).into_iter().collect();
    if !fds.is_empty() {
        // There is room for one.
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let mut done = sendmsg(stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    while done < bytes.len() {
        done += rustix::net::send(stream, &bytes[done..], SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

/// Sends one message of the server, unless the front-end is slow to take them: it has one that says the same, then.
pub(crate) fn send_now(stream: &UnixStream, bytes: &[u8]) {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = rustix::net::send(stream, bytes, flags);
}
