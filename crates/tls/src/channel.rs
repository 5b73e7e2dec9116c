//! The records of one connection: ciphertext on one side, plaintext on the other.
//!
//! ```text
//!   received ──feed──▶ records ──read──▶ plaintext, into the caller's buffer
//!   plaintext ──send──▶ records of up to 16 KiB ──sink──▶ as few calls as the sink takes
//! ```
//!
//! Invariant: [`Channel::send`] reports plaintext as sent only when the sink has taken all of its ciphertext. Until
//! then the caller presents the same bytes again, and they are not encrypted twice.

use std::io::{self, IoSlice, Read, Write};

use rustls::Connection;

/// Most bytes of plaintext that are encrypted before they are sent.
const MOST_AT_ONCE: usize = 256 << 10;

/// One connection.
#[derive(Debug)]
pub struct Channel {
    connection: Connection,
    /// Bytes of plaintext that are encrypted, and not reported as sent.
    ahead: usize,
}

impl Channel {
    pub(crate) fn new(connection: impl Into<Connection>) -> Channel {
        let mut connection = connection.into();
        // `send` bounds the bytes that are held.
        connection.set_buffer_limit(None);
        Channel { connection, ahead: 0 }
    }

    /// Returns true until both sides have finished the handshake.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Returns true if records wait to be flushed.
    pub fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Returns the DNS names of the certificate of the other side, which has been verified; none without one.
    pub fn peer_names(&self) -> Vec<String> {
        let chain = self.connection.peer_certificates();
        let Some(first) = chain.and_then(|chain| chain.first()) else { return Vec::new() };
        match webpki::EndEntityCert::try_from(first) {
            Ok(certificate) => certificate.valid_dns_names().map(str::to_owned).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Takes received bytes until some plaintext can be read, and returns the number of bytes taken.
    ///
    /// # Errors
    /// A breach of the protocol, or a certificate that is not accepted. The alert for the other side waits to be flushed.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<usize, rustls::Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            // A slice does not fail, and room is there: every whole record was taken out.
            let taken = self.connection.read_tls(&mut rest).unwrap_or(0);
            let state = self.connection.process_new_packets()?;
            if taken == 0 || state.plaintext_bytes_to_read() > 0 || state.peer_has_closed() {
                break;
            }
        }
        Ok(bytes.len() - rest.len())
    }

    /// Reads plaintext into `into`. Returns the number of bytes, 0 at the end of the connection, and `None` if more must
    /// be fed first.
    ///
    /// # Errors
    /// None are known.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match self.connection.reader().read(into) {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Encrypts `parts` and gives the records to `sink`. Returns the number of bytes of `parts` that are sent. After an
    /// error the caller presents at least the same bytes again.
    ///
    /// # Errors
    /// `WouldBlock` when the sink does not take all of the records, else the sink's failure.
    pub fn send(
        &mut self,
        parts: &[IoSlice<'_>],
        mut sink: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.flush(&mut sink)?;
        if self.ahead == 0 {
            let whole: usize = parts.iter().map(|part| part.len()).sum();
            self.ahead = match whole > MOST_AT_ONCE {
                true => self.connection.writer().write_vectored(&first(parts, MOST_AT_ONCE))?,
                false => self.connection.writer().write_vectored(parts)?,
            };
            self.flush(sink)?;
        }
        Ok(std::mem::take(&mut self.ahead))
    }

    /// Gives the records that wait to `sink`.
    ///
    /// # Errors
    /// `WouldBlock` when it does not take all of them, else its failure.
    pub fn flush(
        &mut self,
        sink: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<()> {
        let mut sink = Sink(sink);
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut sink) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells the other side that nothing more comes; to be flushed.
    pub fn end(&mut self) {
        self.connection.send_close_notify();
    }
}

/// Returns the first `most` bytes of `parts`.
fn first<'a>(parts: &'a [IoSlice<'_>], mut most: usize) -> Vec<IoSlice<'a>> {
    let mut taken = Vec::with_capacity(parts.len());
    for part in parts {
        let count = part.len().min(most);
        if count == 0 && most == 0 {
            break;
        }
        taken.push(IoSlice::new(&part[..count]));
        most -= count;
    }
    taken
}

struct Sink<F>(F);

impl<F: FnMut(&[IoSlice<'_>]) -> io::Result<usize>> Write for Sink<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.0)(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        (self.0)(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
