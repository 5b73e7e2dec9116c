use super::*;

use std::sync::Arc;

use braid_nbd::handshake::{Handshake, Policy, Step};
use braid_nbd::protocol::{ExportInfo, Exports, NbdErrno, ParsedHeader, ReplyTo, parse};

/// The only request in flight.
const TO: ReplyTo = ReplyTo { cookie: 0, offset: 0 };

/// Receives until `asked` finds a complete message.
fn receive<T>(stream: &mut UnixStream, mut asked: impl FnMut(&mut Vec<u8>) -> Option<T>) -> T {
    let mut input = Vec::new();
    loop {
        if let Some(found) = asked(&mut input) {
            return found;
        }
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        input.push(byte[0]);
    }
}

/// Carries out the server's side of the handshake, with one export of 1 MiB.
fn serve(stream: &mut UnixStream, name: &str) -> Step {
    let exports = Exports::new(vec![ExportInfo::new(name, 1 << 20)]).unwrap();
    let mut handshake = Handshake::new(Arc::new(exports), Policy::default());
    let mut answers = stream.try_clone().unwrap();
    answers.write_all(&handshake.greeting()).unwrap();
    receive(stream, |input| {
        let mut output = Vec::new();
        let progress = handshake.advance(input, &mut output);
        input.drain(..progress.consumed);
        // A refused client does not wait for the reply to its disconnect.
        let _ = answers.write_all(&output);
        Some(progress.step).filter(|step| !matches!(step, Step::NeedMore { .. }))
    })
}

#[test]
fn a_server_says_how_large_its_export_is() {
    let (mut server, mut client) = UnixStream::pair().unwrap();
    let asking = std::thread::spawn(move || greet(&mut client, "e".to_owned()));
    assert!(matches!(serve(&mut server, "e"), Step::Transmission(_)));
    let found = asking.join().unwrap().unwrap();
    assert_eq!(found.size_bytes, 1 << 20);
    assert_ne!(found.transmission_flags & NBD_FLAG_SEND_FLUSH, 0);
}

#[test]
fn a_server_without_the_export_says_so() {
    let (mut server, mut client) = UnixStream::pair().unwrap();
    let asking = std::thread::spawn(move || greet(&mut client, "f".to_owned()));
    assert_eq!(serve(&mut server, "e"), Step::Aborted);
    let error = asking.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("refused"), "{error}");
}

#[test]
fn what_is_no_server_is_told() {
    for (said, told) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], "it does not speak NBD (newstyle)"),
        (b"NBDMAGIC", "failed to fill whole buffer"),
    ] {
        let (mut server, client) = UnixStream::pair().unwrap();
        server.write_all(said).unwrap();
        server.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(greet(client, String::new()).unwrap_err().to_string(), told);
    }
    for (uri, told) in [
        (
            "nbds://host",
            "only nbd+unix:///?socket=PATH and nbd://HOST:PORT are understood (no TLS)",
        ),
        ("nbd+unix:///x", "it names no socket; write nbd+unix:///?socket=/path"),
    ] {
        let told = format!("the NBD server at {uri} gave no size: {told}");
        assert_eq!(query_size(uri).unwrap_err().to_string(), told);
    }
}

#[test]
fn a_write_is_answered_or_refused() {
    let (mut server, mut client) = UnixStream::pair().unwrap();
    let write = Command::Write { offset: 512, length: 3, fua: false };
    server.write_all(ReplyStyle::Simple.ok(TO).as_bytes()).unwrap();
    exchange(&mut client, &write, b"abc").unwrap();
    let raw = receive(&mut server, |input| match parse(HeaderMode::Simple, input) {
        ParsedHeader::Request(raw) => Some(raw),
        _ => None,
    });
    let mut seen = [0; 3];
    server.read_exact(&mut seen).unwrap();
    assert_eq!((raw.offset, raw.length, &seen), (512, 3, b"abc"));

    server.write_all(ReplyStyle::Simple.error(TO, NbdErrno::NoSpc).as_bytes()).unwrap();
    let error = exchange(&mut client, &write, b"abc").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    server.write_all(&[0; SIMPLE_REPLY_BYTES]).unwrap();
    let error = exchange(&mut client, &Command::Flush, &[]).unwrap_err();
    assert_eq!(error.to_string(), "its answer is no NBD reply");
}

proptest::proptest! {
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
        drop(greet(Script(io::Cursor::new(bytes.clone())), String::new()));
        drop(exchange(Script(io::Cursor::new(bytes)), &Command::Flush, &[]));
    }
}
