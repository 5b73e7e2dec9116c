//! Options and their replies (sections "Newstyle negotiation", "Option types",
//! "Option reply types").
//!
//! ```text
//!   option, from the client          reply, from the server
//!    0 u64 0x49484156454F5054         0 u64 0x0003e889045565a9
//!    8 u32 option                     8 u32 option, repeated
//!   12 u32 length                    12 u32 reply type
//!   16 (length bytes)                16 u32 length
//!                                    20 (length bytes)
//!
//!   data of INFO, GO                 data of LIST_META_CONTEXT, SET_META_CONTEXT
//!    u32 n, n bytes of name           u32 n, n bytes of export name
//!    u16 count, u16 items...          u32 count, (u32 n, n bytes of query)...
//! ```
//!
//! Invariants: a parsed option borrows from the input and owns nothing; its
//! length fields have been compared with the option's length, to the byte.
//!
//! Absent on purpose: what is answered. That is [`crate::handshake`].

use super::constants::*;
use super::{be16, be32, be64};

/// The 16 bytes in front of an option's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHeader {
    /// Must be [`NBD_OPTS_MAGIC`].
    pub magic: u64,
    /// `NBD_OPT_*`, known or not.
    pub option: u32,
    /// Bytes of data that follow.
    pub length: u32,
}

impl OptionHeader {
    /// Reads the header; `None` until its 16 bytes are there.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= OPTION_HEADER_BYTES).then(|| Self {
            magic: be64(bytes, 0),
            option: be32(bytes, 8),
            length: be32(bytes, 12),
        })
    }
}

/// Why an option's data cannot be read; its text is the message of the
/// `NBD_REP_ERR_INVALID` that answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The fields are the values that the messages name.
pub enum OptionError {
    /// A length field points beyond the option's data.
    #[error("the option's data end inside a field")]
    Truncated,
    /// Data are left over.
    #[error("the option has {extra} bytes too many")]
    TrailingData { extra: usize },
    /// A string is over the limit.
    #[error("a string has {bytes} bytes; NBD allows {MAX_STRING_BYTES}")]
    StringTooLong { bytes: usize },
    /// A string is not text.
    #[error("a string is not UTF-8 or contains NUL")]
    NotText,
}

/// Takes fields off the front of an option's data.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], OptionError> {
        let (field, rest) = self.0.split_at_checked(count).ok_or(OptionError::Truncated)?;
        self.0 = rest;
        Ok(field)
    }

    fn u16(&mut self) -> Result<u16, OptionError> {
        Ok(be16(self.bytes(2)?, 0))
    }

    fn u32(&mut self) -> Result<u32, OptionError> {
        Ok(be32(self.bytes(4)?, 0))
    }

    /// A 32-bit length and that many bytes of text.
    fn text(&mut self) -> Result<&'a str, OptionError> {
        let bytes = usize::try_from(self.u32()?).map_err(|_| OptionError::Truncated)?;
        parse_text(self.bytes(bytes)?)
    }

    fn end(self) -> Result<(), OptionError> {
        match self.0.len() {
            0 => Ok(()),
            extra => Err(OptionError::TrailingData { extra }),
        }
    }
}

/// Checks a string: at most 4096 bytes, UTF-8, no NUL (section "Conventions").
///
/// # Errors
/// [`OptionError::StringTooLong`] or [`OptionError::NotText`].
pub fn parse_text(bytes: &[u8]) -> Result<&str, OptionError> {
    if bytes.len() > MAX_STRING_BYTES {
        let bytes = bytes.len();
        return Err(OptionError::StringTooLong { bytes });
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(OptionError::NotText),
    }
}

/// The data of `NBD_OPT_INFO` and `NBD_OPT_GO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InfoRequest<'a> {
    /// The export's name; empty for the default one.
    pub name: &'a str,
    /// `NBD_INFO_NAME` is asked for.
    pub wants_name: bool,
    /// `NBD_INFO_DESCRIPTION` is asked for.
    pub wants_description: bool,
    /// `NBD_INFO_BLOCK_SIZE` is asked for.
    pub wants_block_size: bool,
}

/// Reads the data of `NBD_OPT_INFO` and `NBD_OPT_GO`. Unknown items MUST be
/// ignored and repeated ones count once.
///
/// # Errors
/// What is wrong with the data's layout or the name.
pub fn parse_info(data: &[u8]) -> Result<InfoRequest<'_>, OptionError> {
    let mut fields = Fields(data);
    let mut request = InfoRequest {
        name: fields.text()?,
        wants_name: false,
        wants_description: false,
        wants_block_size: false,
    };
    for _ in 0..fields.u16()? {
        match fields.u16()? {
            NBD_INFO_NAME => request.wants_name = true,
            NBD_INFO_DESCRIPTION => request.wants_description = true,
            NBD_INFO_BLOCK_SIZE => request.wants_block_size = true,
            _ => {}
        }
    }
    fields.end()?;
    Ok(request)
}

/// The data of `NBD_OPT_LIST_META_CONTEXT` and `NBD_OPT_SET_META_CONTEXT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaRequest<'a> {
    /// The export's name; empty for the default one.
    pub name: &'a str,
    /// No query at all: for a list this means everything, for a set nothing.
    pub no_queries: bool,
    /// One of the queries is exactly `base:allocation`.
    pub names_base_allocation: bool,
    /// One of the queries is `base:`, a wildcard for lists only.
    pub names_base_wildcard: bool,
}

/// Reads the data of the two metadata context options. Queries in unknown
/// namespaces MUST be ignored, and so are unknown leaf names in `base:`.
///
/// # Errors
/// What is wrong with the data's layout, the name or a query.
pub fn parse_meta(data: &[u8]) -> Result<MetaRequest<'_>, OptionError> {
    let mut fields = Fields(data);
    let name = fields.text()?;
    let count = fields.u32()?;
    let mut request = MetaRequest {
        name,
        no_queries: count == 0,
        names_base_allocation: false,
        names_base_wildcard: false,
    };
    // A query takes at least four bytes, so a huge count soon runs out of data.
    for _ in 0..count {
        match fields.text()? {
            BASE_ALLOCATION => request.names_base_allocation = true,
            "base:" => request.names_base_wildcard = true,
            _ => {}
        }
    }
    fields.end()?;
    Ok(request)
}

/// Appends an option reply whose data are `parts`, one after the other.
///
/// The parts' total must fit in 32 bits: all of them are strings within
/// [`MAX_STRING_BYTES`] and small fixed fields.
pub fn put_option_reply(out: &mut Vec<u8>, option: u32, reply_type: u32, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&NBD_REP_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&reply_type.to_be_bytes());
    out.extend_from_slice(&(length as u32).to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Appends an option as a client sends it; its data are `parts`.
pub fn put_option(out: &mut Vec<u8>, option: u32, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&NBD_OPTS_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&(length as u32).to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_request_to_the_byte() {
        let data = [0, 0, 0, 2, b'v', b'0', 0, 3, 0, 3, 0, 99, 0, 3];
        let request = parse_info(&data).unwrap();
        assert_eq!(request.name, "v0");
        assert!(request.wants_block_size && !request.wants_name && !request.wants_description);
        for cut in 0..data.len() {
            assert_eq!(parse_info(&data[..cut]), Err(OptionError::Truncated), "cut {cut}");
        }
        let mut longer = data.to_vec();
        longer.push(0);
        assert_eq!(parse_info(&longer), Err(OptionError::TrailingData { extra: 1 }));
    }

    #[test]
    fn meta_request_to_the_byte() {
        let mut data = vec![0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 15];
        data.extend_from_slice(b"base:allocation");
        data.extend_from_slice(&[0, 0, 0, 5]);
        data.extend_from_slice(b"base:");
        data.extend_from_slice(&[0, 0, 0, 5]);
        data.extend_from_slice(b"x-y:z");
        let request = parse_meta(&data).unwrap();
        assert!(request.names_base_allocation && request.names_base_wildcard);
        assert!(!request.no_queries);
        for cut in 0..data.len() {
            assert_eq!(parse_meta(&data[..cut]), Err(OptionError::Truncated), "cut {cut}");
        }
        assert!(parse_meta(&[0; 8]).unwrap().no_queries);
        // Four billion queries in eight bytes.
        let many = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(parse_meta(&many), Err(OptionError::Truncated));
    }

    #[test]
    fn strings_are_bounded_text() {
        assert_eq!(parse_text(&[b'a'; 4096]).map(str::len), Ok(4096));
        let bytes = 4097;
        assert_eq!(parse_text(&[b'a'; 4097]), Err(OptionError::StringTooLong { bytes }));
        assert_eq!(parse_text(b"a\0b"), Err(OptionError::NotText));
        assert_eq!(parse_text(&[0xff]), Err(OptionError::NotText));
    }
}
