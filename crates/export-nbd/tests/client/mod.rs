//! A client's side of a connection.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use braid_nbd::client::{ClientConfig, ClientHandshake, ClientNegotiated, ClientStep};
use braid_nbd::protocol::ReplyStyle;

/// Goes through the handshake.
pub(crate) fn greet(stream: &mut UnixStream, style: ReplyStyle) -> ClientNegotiated {
    let export = String::new();
    let mut handshake = ClientHandshake::new(ClientConfig { export, style, base_allocation: true });
    let (mut output, mut received) = (Vec::new(), Vec::new());
    loop {
        let progress = handshake.advance(&received, &mut output);
        received.drain(..progress.consumed);
        stream.write_all(&output).unwrap();
        output.clear();
        match progress.step {
            ClientStep::Transmission(negotiated) => return negotiated,
            ClientStep::NeedMore { .. } => {
                let mut more = [0; 4096];
                let count = stream.read(&mut more).unwrap();
                received.extend_from_slice(&more[..count]);
            }
            ClientStep::StartTls => panic!("TLS was not asked for"),
            ClientStep::Fatal(error) => panic!("{error}"),
        }
    }
}
