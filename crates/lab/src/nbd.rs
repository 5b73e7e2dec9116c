//! Just enough of NBD to learn that a server is ready and how large its export is, and to give an
//! export its first content.
//!
//! Deliberately absent: reading (the tools do it), more than one request at a time, TLS, structured
//! replies.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::error::LabError;

const NBDMAGIC: u64 = 0x4e42_444d_4147_4943;
const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
const OPT_EXPORT_NAME: u32 = 1;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
const CMD_WRITE: u16 = 1;
const CMD_DISCONNECT: u16 = 2;
const CMD_FLUSH: u16 = 3;
/// Transmission flag: the server takes flushes.
const HAS_FLUSH: u16 = 1 << 2;
/// A member may be slow, and a modelled one is meant to be.
const WRITE_PATIENCE: Duration = Duration::from_secs(120);
/// A server that says nothing for so long is not ready.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where an NBD URI points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NbdAddress {
    /// The socket.
    pub socket: NbdSocket,
    /// The export's name; empty is the default export.
    pub export: String,
}

/// The socket of an NBD server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NbdSocket {
    /// A path in the file system.
    Unix(String),
    /// `host:port`.
    Tcp(String),
}

/// The URI of a server at a Unix socket.
pub fn unix_uri(socket: &str) -> String {
    unix_uri_of(socket, "")
}

/// The URI of an export of a server at a Unix socket; the default export has no name.
pub fn unix_uri_of(socket: &str, export: &str) -> String {
    format!("nbd+unix:///{}?socket={}", escape(export.as_bytes()), escape(socket.as_bytes()))
}

/// Bytes of a path or name as a part of a URI: what [`unescape`] reads back.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut escaped = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            escaped.push(char::from(*byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// Parses `nbd+unix:///EXPORT?socket=PATH` and `nbd://HOST[:PORT]/EXPORT`.
///
/// # Errors
///
/// When the text is neither.
pub fn parse_uri(uri: &str) -> Result<NbdAddress, LabError> {
    let refuse = |reason: &str| LabError::Nbd { uri: uri.to_owned(), reason: reason.to_owned() };
    if let Some(rest) = uri.strip_prefix("nbd+unix://") {
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let socket = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("socket="))
            .ok_or_else(|| refuse("it names no socket; write nbd+unix:///?socket=/path"))?;
        return Ok(NbdAddress {
            socket: NbdSocket::Unix(unescape(socket)),
            export: unescape(path.strip_prefix('/').unwrap_or(path)),
        });
    }
    if let Some(rest) = uri.strip_prefix("nbd://") {
        let (host, export) = rest.split_once('/').unwrap_or((rest, ""));
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let host = if has_port { host.to_owned() } else { format!("{host}:10809") };
        return Ok(NbdAddress { socket: NbdSocket::Tcp(host), export: unescape(export) });
    }
    Err(refuse("only nbd+unix:///?socket=PATH and nbd://HOST:PORT are understood (no TLS)"))
}

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

/// Connects, asks for the size of the export, and leaves.
///
/// # Errors
///
/// When the URI is not understood, nothing listens, or the answer is not NBD.
pub fn query_size(uri: &str) -> Result<u64, LabError> {
    let (mut stream, export) = connect(uri, PATIENCE)?;
    let size = greet(&mut stream, &export).map_err(failed(uri))?.size_bytes;
    // The size is known already, so a server that has gone by now changes nothing.
    let _ = stream.write_all(&request(CMD_DISCONNECT, 0, 0));
    Ok(size)
}

/// Writes to an export, one request at a time.
pub(crate) struct Writer {
    uri: String,
    stream: Box<dyn Stream>,
    has_flush: bool,
}

impl Writer {
    /// Connects.
    ///
    /// # Errors
    ///
    /// As [`query_size`].
    pub(crate) fn connect(uri: &str) -> Result<Self, LabError> {
        let (mut stream, export) = connect(uri, WRITE_PATIENCE)?;
        let found = greet(&mut stream, &export).map_err(failed(uri))?;
        let has_flush = found.flags & HAS_FLUSH != 0;
        Ok(Self { uri: uri.to_owned(), stream, has_flush })
    }

    /// Writes at an offset, at most 32 MiB, and waits for the answer.
    ///
    /// # Errors
    ///
    /// When the server answers with an error, or with something else, or not at all.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), LabError> {
        let header = request(CMD_WRITE, offset, bytes.len() as u32);
        exchange(&mut self.stream, &header, bytes).map_err(failed(&self.uri))
    }

    /// Makes durable what was written, and leaves.
    ///
    /// # Errors
    ///
    /// As [`Writer::write`].
    pub(crate) fn finish(mut self) -> Result<(), LabError> {
        if self.has_flush {
            exchange(&mut self.stream, &request(CMD_FLUSH, 0, 0), &[])
                .map_err(failed(&self.uri))?;
        }
        self.stream.write_all(&request(CMD_DISCONNECT, 0, 0)).map_err(failed(&self.uri))
    }
}

/// A connection to either kind of socket.
trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

fn failed(uri: &str) -> impl FnOnce(io::Error) -> LabError {
    let uri = uri.to_owned();
    move |source| LabError::Nbd { uri, reason: source.to_string() }
}

/// Connects; answers the stream and the export's name.
fn connect(uri: &str, patience: Duration) -> Result<(Box<dyn Stream>, String), LabError> {
    let address = parse_uri(uri)?;
    let stream: io::Result<Box<dyn Stream>> = match &address.socket {
        NbdSocket::Unix(path) => UnixStream::connect(path).and_then(|stream| {
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            Ok(Box::new(stream) as _)
        }),
        NbdSocket::Tcp(host) => TcpStream::connect(host.as_str()).and_then(|stream| {
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as _)
        }),
    };
    Ok((stream.map_err(failed(uri))?, address.export))
}

/// What a server says about its export.
struct Export {
    size_bytes: u64,
    flags: u16,
}

/// The client's side of the fixed newstyle handshake with NBD_OPT_EXPORT_NAME.
fn greet(mut stream: impl Read + Write, export: &str) -> io::Result<Export> {
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting)?;
    if be_u64(&greeting[..8]) != NBDMAGIC || be_u64(&greeting[8..16]) != IHAVEOPT {
        return Err(io::Error::other("it does not speak NBD (newstyle)"));
    }
    // Client flags: fixed newstyle and no zeroes, as far as the server has offered them.
    let client_flags = u32::from(greeting[17]) & 3;
    let mut hello = Vec::with_capacity(20 + export.len());
    hello.extend_from_slice(&client_flags.to_be_bytes());
    hello.extend_from_slice(&IHAVEOPT.to_be_bytes());
    hello.extend_from_slice(&OPT_EXPORT_NAME.to_be_bytes());
    hello.extend_from_slice(&(export.len() as u32).to_be_bytes());
    hello.extend_from_slice(export.as_bytes());
    stream.write_all(&hello)?;
    let mut answer = [0; 10];
    stream.read_exact(&mut answer)?;
    if client_flags & 2 == 0 {
        stream.read_exact(&mut [0; 124])?;
    }
    let flags = u16::from_be_bytes([answer[8], answer[9]]);
    Ok(Export { size_bytes: be_u64(&answer[..8]), flags })
}

/// The head of a request. The handle is always 0: there is one request at a time.
fn request(command: u16, offset: u64, length: u32) -> [u8; 28] {
    let mut header = [0; 28];
    header[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    header[6..8].copy_from_slice(&command.to_be_bytes());
    header[16..24].copy_from_slice(&offset.to_be_bytes());
    header[24..].copy_from_slice(&length.to_be_bytes());
    header
}

/// Sends a request and reads its simple reply.
fn exchange(mut stream: impl Read + Write, header: &[u8], payload: &[u8]) -> io::Result<()> {
    stream.write_all(header)?;
    stream.write_all(payload)?;
    let mut reply = [0; 16];
    stream.read_exact(&mut reply)?;
    let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| reply[at + i]));
    match (word(0), word(4)) {
        (REPLY_MAGIC, 0) => Ok(()),
        // NBD's numbers are Linux's.
        (REPLY_MAGIC, error) => Err(io::Error::from_raw_os_error(error as i32)),
        _ => Err(io::Error::other("its answer is no NBD reply")),
    }
}

fn be_u64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_understood() {
        let unix = parse_uri("nbd+unix:///disk%201?socket=/run/a%20b.sock").unwrap();
        assert_eq!(unix.socket, NbdSocket::Unix("/run/a b.sock".into()));
        assert_eq!(unix.export, "disk 1");
        assert_eq!(parse_uri("nbd://host/x").unwrap().socket, NbdSocket::Tcp("host:10809".into()));
        assert_eq!(parse_uri("nbd://[::1]:99").unwrap().socket, NbdSocket::Tcp("[::1]:99".into()));
        assert_eq!(parse_uri("nbd://[::1]").unwrap().socket, NbdSocket::Tcp("[::1]:10809".into()));
        assert!(parse_uri("nbds://host").is_err());
        assert!(parse_uri("nbd+unix:///x").is_err());
    }

    proptest::proptest! {
        #[test]
        fn a_socket_path_survives_its_uri(path in "/[^\\x00]{0,40}") {
            let address = parse_uri(&unix_uri(&path)).unwrap();
            proptest::prop_assert_eq!(address.socket, NbdSocket::Unix(path));
        }

        #[test]
        fn no_answer_makes_it_panic(bytes: Vec<u8>) {
            struct Script(io::Cursor<Vec<u8>>);
            impl Read for Script {
                fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                    self.0.read(buffer)
                }
            }
            impl Write for Script {
                fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
                    Ok(buffer.len())
                }
                fn flush(&mut self) -> io::Result<()> {
                    Ok(())
                }
            }
            drop(greet(Script(io::Cursor::new(bytes.clone())), ""));
            drop(exchange(Script(io::Cursor::new(bytes)), &[], &[]));
        }
    }

    #[test]
    fn a_server_is_asked_in_its_own_words() {
        let (mut server, client) = UnixStream::pair().unwrap();
        let asking =
            std::thread::spawn(move || greet(client, "e").map(|e| (e.size_bytes, e.flags)));
        let mut greeting = NBDMAGIC.to_be_bytes().to_vec();
        greeting.extend_from_slice(&IHAVEOPT.to_be_bytes());
        greeting.extend_from_slice(&[0, 3]);
        server.write_all(&greeting).unwrap();
        let mut hello = [0; 21];
        server.read_exact(&mut hello).unwrap();
        assert_eq!(hello[..4], [0, 0, 0, 3]);
        assert_eq!(hello[15], 1);
        assert_eq!(hello[20], b'e');
        server.write_all(&[0, 0, 0, 0, 0, 16, 0, 0, 0, 1]).unwrap();
        assert_eq!(asking.join().unwrap().unwrap(), (1 << 20, 1));
    }

    #[test]
    fn a_write_is_answered_or_refused() {
        let (mut server, mut client) = UnixStream::pair().unwrap();
        let mut reply = REPLY_MAGIC.to_be_bytes().to_vec();
        reply.extend_from_slice(&[0; 12]);
        server.write_all(&reply).unwrap();
        exchange(&mut client, &request(CMD_WRITE, 1 << 32, 3), b"abc").unwrap();
        let mut seen = [0; 31];
        server.read_exact(&mut seen).unwrap();
        assert_eq!(seen[..8], [0x25, 0x60, 0x95, 0x13, 0, 0, 0, 1]);
        assert_eq!(seen[16..28], [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(&seen[28..], b"abc");

        reply[7] = 28;
        server.write_all(&reply).unwrap();
        let error = exchange(&mut client, &request(CMD_WRITE, 0, 0), &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        reply[0] = 0;
        server.write_all(&reply).unwrap();
        assert!(exchange(&mut client, &request(CMD_FLUSH, 0, 0), &[]).is_err());
    }
}
