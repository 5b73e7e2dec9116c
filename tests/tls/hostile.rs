//! Clients that do not go on, do without TLS, or send bytes at the wrong place.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::authority::Period;
use crate::common::{Scratch, UpVolume, skip_without};
use crate::{serve, size, uri, world};

const STARTTLS: u32 = 5;
const ACKNOWLEDGED: u32 = 1;
const TLS_REQUIRED: u32 = (1 << 31) + 5;

/// A client that has read the greeting and answered it.
fn greeted(volume: &UpVolume<'_>) -> TcpStream {
    let address = volume.uris[0].strip_prefix("nbds://").expect("over TLS");
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
    stream.read_exact(&mut [0; 18]).expect("a greeting");
    stream.write_all(&3_u32.to_be_bytes()).expect("flags");
    stream
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The type of the next reply to an option.
fn reply(stream: &mut TcpStream) -> u32 {
    let mut header = [0; 20];
    stream.read_exact(&mut header).expect("a reply");
    let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("4 bytes"));
    let mut data = vec![0; word(16) as usize];
    stream.read_exact(&mut data).expect("its data");
    word(12)
}

/// Reads to the end of the connection, which the server makes.
fn end(mut stream: TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    // A connection that is reset has ended, too.
    if let Err(error) = stream.read_to_end(&mut rest) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    rest
}

#[test]
fn no_way_around_tls_and_no_bytes_before_it_count() {
    skip_without!("openssl", "nbdinfo");
    let scratch = Scratch::new();
    let (authority, server) = world(&scratch);
    let client = authority.folder(&scratch, "client", "client", "DNS:host.example", Period::Valid);
    let volume = serve(&scratch, "v", &server, &[]);
    // Everything but STARTTLS is refused: LIST, INFO, GO, structured replies, contexts, extended headers.
    let mut plain = greeted(&volume);
    for number in [3, 6, 7, 8, 9, 10, 11] {
        plain.write_all(&option(number, &[0; 6])).expect("an option");
        assert_eq!(reply(&mut plain), TLS_REQUIRED, "option {number}");
    }
    // EXPORT_NAME has no error: the connection ends without a size.
    plain.write_all(&option(1, b"")).expect("an option");
    assert_eq!(end(plain), b"");
    // STARTTLS with an option behind it, as an attacker on the way would put there.
    let mut injected = greeted(&volume);
    injected.write_all(&[option(STARTTLS, b""), option(3, b"")].concat()).expect("options");
    let rest = end(injected);
    assert!(rest.len() <= 20, "nothing but the acknowledgement: {rest:?}");
    // STARTTLS, then NBD in the clear.
    let mut clear = greeted(&volume);
    clear.write_all(&option(STARTTLS, b"")).expect("an option");
    assert_eq!(reply(&mut clear), ACKNOWLEDGED);
    clear.write_all(&option(3, b"")).expect("an option");
    let rest = end(clear);
    assert!(
        !rest.windows(8).any(|bytes| bytes == b"IHAVEOPT" || bytes == b"\0\x03\xe8\x89\x04Ue\xa9"),
        "{rest:?}"
    );
    size(&uri(&volume, &client)).ok();
}

#[test]
fn a_crowd_of_silent_and_half_way_clients_keeps_no_client_out() {
    skip_without!("openssl", "nbdinfo");
    let scratch = Scratch::new();
    let (authority, server) = world(&scratch);
    let client = authority.folder(&scratch, "client", "client", "DNS:host.example", Period::Valid);
    let volume = serve(&scratch, "v", &server, &["--shards", "1"]);
    // More than there are places: a third says nothing, a third has asked for TLS, a third has sent half a hello.
    let crowd: Vec<TcpStream> = (0..400)
        .map(|number| {
            let mut stream = greeted(&volume);
            if number % 3 > 0 {
                stream.write_all(&option(STARTTLS, b"")).expect("an option");
                // A client that made room is closed, so the reply may not come.
            }
            if number % 3 == 2 {
                let _ = stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0]);
            }
            stream
        })
        .collect();
    for _ in 0..3 {
        size(&uri(&volume, &client)).ok();
    }
    assert_eq!(crowd.len(), 400);
}
