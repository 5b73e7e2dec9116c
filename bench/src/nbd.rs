//! Connecting to an NBD server, up to the first request.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use braid_nbd::client::{ClientConfig, ClientHandshake, ClientNegotiated, ClientStep};
use braid_nbd::protocol::ReplyStyle;

use crate::{Error, Result};

/// Connects to the default export of the server at `socket`, with replies in `style` or simpler.
///
/// # Errors
/// If nothing listens there or no transmission comes about.
pub fn connect(socket: &Path, style: ReplyStyle) -> Result<(UnixStream, ClientNegotiated)> {
    let failed = || Error::io(format!("NBD server at {}", socket.display()));
    let mut stream = UnixStream::connect(socket).map_err(failed())?;
    let config = ClientConfig { export: String::new(), style, base_allocation: false };
    let mut handshake = ClientHandshake::new(config);
    let (mut input, mut answer) = (Vec::new(), Vec::new());
    loop {
        let progress = handshake.advance(&input, &mut answer);
        input.drain(..progress.consumed);
        stream.write_all(&answer).map_err(failed())?;
        answer.clear();
        match progress.step {
            // Nothing follows the last reply before the first request.
            ClientStep::Transmission(negotiated) => return Ok((stream, negotiated)),
            ClientStep::StartTls => {
                return Err(Error::Unexpected("TLS was not asked for".to_owned()));
            }
            ClientStep::Fatal(error) => return Err(Error::Unexpected(error.to_string())),
            ClientStep::NeedMore { .. } => {
                let mut buf = [0; 4096];
                let count = stream.read(&mut buf).map_err(failed())?;
                if count == 0 {
                    let message = format!("{} hangs up in the handshake", socket.display());
                    return Err(Error::Unexpected(message));
                }
                input.extend_from_slice(&buf[..count]);
            }
        }
    }
}
