//! The protocol, from outside: bytes against the specification's layouts, every
//! refusal by name, and properties.

mod client;
mod handshake;
mod properties;
mod replies;
mod requests;

/// Joins fields into a message, so that a table reads like the specification.
pub(crate) fn bytes(fields: &[&[u8]]) -> Vec<u8> {
    fields.concat()
}

/// Magic of an option and of the greeting.
pub(crate) const IHAVEOPT: &[u8] = b"IHAVEOPT";
/// Magic of an option reply.
pub(crate) const REP: &[u8] = &[0, 3, 0xe8, 0x89, 4, 0x55, 0x65, 0xa9];

/// An option with its header.
pub(crate) fn option(number: u8, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u32).to_be_bytes();
    bytes(&[IHAVEOPT, &[0, 0, 0, number], &length, data])
}

/// An option reply with its header.
pub(crate) fn option_reply(number: u8, kind: [u8; 4], data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u32).to_be_bytes();
    bytes(&[REP, &[0, 0, 0, number], &kind, &length, data])
}

/// An option reply that may carry any message: only its header is compared.
pub(crate) fn is_error(reply: &[u8], number: u8, code: u8) -> bool {
    let head = bytes(&[REP, &[0, 0, 0, number], &[0x80, 0, 0, code]]);
    let length = reply.get(16..20).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
    reply.starts_with(&head) && length == Some(reply.len() as u32 - 20)
}
