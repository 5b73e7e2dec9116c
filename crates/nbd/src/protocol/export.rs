//! The served exports: the description of an export, checked once, and the catalogue that a handshake chooses
//! from.
//!
//! Invariants (of [`Exports`], established by [`Exports::new`]):
//! - there is at least one export and no two have the same name;
//! - strings are within the protocol's limit and carry no NUL;
//! - block sizes obey section "Block size constraints", so that alignment can
//!   be tested with a mask;
//! - sizes fit in 63 bits, as every known client demands.
//!
//! Absent on purpose: the device behind an export. The session maps an
//! export's index to it.

use super::constants::*;

/// Block size constraints (section "Block size constraints"), in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// Offset and length of every request are multiples of it. Power of two, 1..=65536.
    pub minimum: u32,
    /// Requests in multiples of it are efficient. Power of two, at least 512 and `minimum`.
    pub preferred: u32,
    /// Longest payload of one read or write. A multiple of `minimum`, at most
    /// [`MAX_PAYLOAD_BYTES`].
    pub maximum_payload: u32,
}

impl Default for BlockSize {
    /// 512, 4096, 48 MiB: the constraints that every client can keep.
    fn default() -> Self {
        Self { minimum: 512, preferred: 4096, maximum_payload: MAX_PAYLOAD_BYTES }
    }
}

/// One export as its server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// The name that a client asks for. At most 4096 bytes, no NUL.
    pub name: String,
    /// For people; may be empty. At most 4096 bytes, no NUL.
    pub description: String,
    /// Size in bytes; a multiple of `block_size.minimum`, below 2^63.
    pub size_bytes: u64,
    /// Writes of any kind are answered with `NBD_EPERM`.
    pub read_only: bool,
    /// `NBD_CMD_FLUSH` is offered.
    pub can_flush: bool,
    /// `NBD_CMD_FLAG_FUA` is offered.
    pub can_fua: bool,
    /// `NBD_CMD_TRIM` is offered.
    pub can_trim: bool,
    /// `NBD_CMD_WRITE_ZEROES` is offered.
    pub can_write_zeroes: bool,
    /// `NBD_CMD_FLAG_FAST_ZERO` is offered; needs `can_write_zeroes`.
    pub can_fast_zero: bool,
    /// `NBD_CMD_CACHE` is offered.
    pub can_cache: bool,
    /// A flush on one connection covers writes completed on the others.
    pub can_multi_conn: bool,
    /// Seeks are expensive.
    pub rotational: bool,
    /// The constraints that requests must keep.
    pub block_size: BlockSize,
}

impl ExportInfo {
    /// A writable export that offers flush, FUA, trim, write zeroes and
    /// multiple connections, with the default block sizes.
    #[must_use]
    pub fn new(name: impl Into<String>, size_bytes: u64) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            size_bytes,
            read_only: false,
            can_flush: true,
            can_fua: true,
            can_trim: true,
            can_write_zeroes: true,
            can_fast_zero: false,
            can_cache: false,
            can_multi_conn: true,
            rotational: false,
            block_size: BlockSize::default(),
        }
    }

    /// The 16-bit transmission flags (section "Transmission flags").
    ///
    /// `chunked` says that structured replies or extended headers were
    /// negotiated, without which `NBD_FLAG_SEND_DF` MUST be clear. Commands
    /// that only write are not offered on a read-only export.
    #[must_use]
    pub fn transmission_flags(&self, chunked: bool) -> u16 {
        let writable = !self.read_only;
        let zeroes = writable && self.can_write_zeroes;
        [
            (NBD_FLAG_READ_ONLY, self.read_only),
            (NBD_FLAG_SEND_FLUSH, self.can_flush),
            (NBD_FLAG_SEND_FUA, self.can_fua),
            (NBD_FLAG_ROTATIONAL, self.rotational),
            (NBD_FLAG_SEND_TRIM, writable && self.can_trim),
            (NBD_FLAG_SEND_WRITE_ZEROES, zeroes),
            (NBD_FLAG_SEND_DF, chunked),
            (NBD_FLAG_CAN_MULTI_CONN, self.can_multi_conn),
            (NBD_FLAG_SEND_CACHE, self.can_cache),
            (NBD_FLAG_SEND_FAST_ZERO, zeroes && self.can_fast_zero),
        ]
        .into_iter()
        .filter(|(_, on)| *on)
        .fold(NBD_FLAG_HAS_FLAGS, |flags, (flag, _)| flags | flag)
    }

    /// Checks the invariants that the module header lists.
    ///
    /// # Errors
    /// The first rule that is broken, with the values that break it.
    pub fn check(&self) -> Result<(), ExportError> {
        for (what, text) in [("name", &self.name), ("description", &self.description)] {
            if text.len() > MAX_STRING_BYTES {
                let bytes = text.len();
                return Err(ExportError::StringTooLong { what, bytes });
            }
            if text.contains('\0') {
                return Err(ExportError::StringHasNul { what });
            }
        }
        let BlockSize { minimum, preferred, maximum_payload } = self.block_size;
        if !minimum.is_power_of_two() || minimum > MAX_MINIMUM_BLOCK_BYTES {
            return Err(ExportError::MinimumBlock { minimum });
        }
        if !preferred.is_power_of_two() || preferred < minimum.max(512) {
            return Err(ExportError::PreferredBlock { minimum, preferred });
        }
        let smallest = u64::from(preferred).min(self.size_bytes);
        if maximum_payload == 0
            || maximum_payload > MAX_PAYLOAD_BYTES
            || !maximum_payload.is_multiple_of(minimum)
            || u64::from(maximum_payload) < smallest
        {
            return Err(ExportError::MaximumPayload { maximum_payload, preferred });
        }
        let size_bytes = self.size_bytes;
        if size_bytes > i64::MAX as u64 {
            return Err(ExportError::SizeTooBig { size_bytes });
        }
        if !size_bytes.is_multiple_of(u64::from(minimum)) {
            return Err(ExportError::SizeUnaligned { size_bytes, minimum });
        }
        Ok(())
    }
}

/// Why a description cannot be served. A mistake of the server's configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The fields are the values that the messages name.
pub enum ExportError {
    /// Nothing to serve.
    #[error("no export is given")]
    NoExports,
    /// Two exports share a name.
    #[error("two exports are called {name:?}")]
    DuplicateName { name: String },
    /// A string is over the protocol's limit.
    #[error("the export's {what} has {bytes} bytes; NBD allows {MAX_STRING_BYTES}")]
    StringTooLong { what: &'static str, bytes: usize },
    /// A string contains NUL.
    #[error("the export's {what} contains NUL")]
    StringHasNul { what: &'static str },
    /// The minimum block size is out of range.
    #[error("minimum block size {minimum} is not a power of two up to {MAX_MINIMUM_BLOCK_BYTES}")]
    MinimumBlock { minimum: u32 },
    /// The preferred block size is out of range.
    #[error(
        "preferred block size {preferred} is not a power of two of at least 512 and the minimum {minimum}"
    )]
    PreferredBlock { minimum: u32, preferred: u32 },
    /// The maximum payload is out of range.
    #[error(
        "maximum payload {maximum_payload} is not a multiple of the minimum block between the preferred block {preferred} and {MAX_PAYLOAD_BYTES}"
    )]
    MaximumPayload { maximum_payload: u32, preferred: u32 },
    /// The size does not fit in 63 bits.
    #[error("{size_bytes} bytes are more than 2^63 - 1, which clients refuse")]
    SizeTooBig { size_bytes: u64 },
    /// The size is not a multiple of the minimum block.
    #[error(
        "size {size_bytes} is not a multiple of the minimum block size {minimum}: its end could not be reached"
    )]
    SizeUnaligned { size_bytes: u64, minimum: u32 },
}

/// The exports of one server, checked, in the order of `NBD_OPT_LIST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exports {
    list: Vec<ExportInfo>,
}

impl Exports {
    /// Checks every description and takes the list.
    ///
    /// # Errors
    /// An empty list, a repeated name, or the first broken rule of an export.
    pub fn new(list: Vec<ExportInfo>) -> Result<Self, ExportError> {
        if list.is_empty() {
            return Err(ExportError::NoExports);
        }
        for (index, export) in list.iter().enumerate() {
            export.check()?;
            if list[..index].iter().any(|other| other.name == export.name) {
                let name = export.name.clone();
                return Err(ExportError::DuplicateName { name });
            }
        }
        Ok(Self { list })
    }

    /// The index of the export of that name. The empty name is the default
    /// export, the first (unless another is really called "").
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        let exact = self.list.iter().position(|export| export.name == name);
        exact.or((name.is_empty()).then_some(0))
    }

    /// The export at `index`, which came from [`Self::find`] or `Negotiated`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&ExportInfo> {
        self.list.get(index)
    }

    /// All of them.
    #[must_use]
    pub fn as_slice(&self) -> &[ExportInfo] {
        &self.list
    }
}
