//! Just enough of the NBD handshake to learn that a server is ready and how large its export is.
//!
//! Deliberately absent: reading and writing (the tools do it), TLS, structured replies.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::error::LabError;

const NBDMAGIC: u64 = 0x4e42_444d_4147_4943;
const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
const OPT_EXPORT_NAME: u32 = 1;
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
    let mut uri = String::from("nbd+unix:///?socket=");
    for byte in socket.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
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
    let address = parse_uri(uri)?;
    let failed =
        |source: io::Error| LabError::Nbd { uri: uri.to_owned(), reason: source.to_string() };
    match &address.socket {
        NbdSocket::Unix(path) => {
            let stream = UnixStream::connect(path).map_err(failed)?;
            stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
            stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
            ask_size(stream, &address.export).map_err(failed)
        }
        NbdSocket::Tcp(host) => {
            let stream = TcpStream::connect(host.as_str()).map_err(failed)?;
            stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
            stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
            ask_size(stream, &address.export).map_err(failed)
        }
    }
}

/// The client's side of the fixed newstyle handshake with NBD_OPT_EXPORT_NAME.
fn ask_size(mut stream: impl Read + Write, export: &str) -> io::Result<u64> {
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting)?;
    if be_u64(&greeting[..8]) != NBDMAGIC || be_u64(&greeting[8..16]) != IHAVEOPT {
        return Err(io::Error::other("it does not speak NBD (newstyle)"));
    }
    let mut hello = Vec::with_capacity(20 + export.len());
    // Client flags: fixed newstyle and no zeroes, as far as the server has offered them.
    hello.extend_from_slice(&(u32::from(greeting[17]) & 3).to_be_bytes());
    hello.extend_from_slice(&IHAVEOPT.to_be_bytes());
    hello.extend_from_slice(&OPT_EXPORT_NAME.to_be_bytes());
    hello.extend_from_slice(&(export.len() as u32).to_be_bytes());
    hello.extend_from_slice(export.as_bytes());
    stream.write_all(&hello)?;
    let mut answer = [0; 10];
    stream.read_exact(&mut answer)?;
    // Disconnect politely: magic, flags 0, command 2, and an empty rest. The size is known
    // already, so a server that has gone by now changes nothing.
    let mut farewell = [0; 28];
    farewell[..4].copy_from_slice(&0x2560_9513_u32.to_be_bytes());
    farewell[7] = 2;
    stream.write_all(&farewell)?;
    Ok(be_u64(&answer[..8]))
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
            drop(ask_size(Script(io::Cursor::new(bytes)), ""));
        }
    }

    #[test]
    fn a_server_is_asked_in_its_own_words() {
        let (mut server, client) = UnixStream::pair().unwrap();
        let asking = std::thread::spawn(move || ask_size(client, "e"));
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
        let mut farewell = [0; 28];
        server.read_exact(&mut farewell).unwrap();
        assert_eq!(asking.join().unwrap().unwrap(), 1 << 20);
    }
}
