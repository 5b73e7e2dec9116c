//! The numbers of the NBD protocol, under the names the specification gives
//! them (section "Values"; the magics from "Handshake" and "Transmission").
//!
//! Invariants: every value is exactly the specification's; all multi-byte
//! fields on the wire are big-endian. The limits at the end are ours, each
//! with the sentence of the specification that leaves it to us.
//!
//! Absent on purpose: oldstyle negotiation (no longer developed), and the
//! experimental `RESIZE` and withdrawn `PEEK_EXPORT` extensions.

// ---- magics ------------------------------------------------------------

/// First eight bytes a server sends, ASCII `NBDMAGIC`.
pub const NBD_INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Second eight bytes a newstyle server sends, and the start of every option: ASCII `IHAVEOPT`.
pub const NBD_OPTS_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Start of every option reply.
pub const NBD_REP_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Start of a 28-byte request.
pub const NBD_REQUEST_MAGIC: u32 = 0x2560_9513;
/// Start of a 32-byte request (extended headers).
pub const NBD_EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
/// Start of a simple reply.
pub const NBD_SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Start of a structured reply chunk.
pub const NBD_STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
/// Start of an extended reply chunk.
pub const NBD_EXTENDED_REPLY_MAGIC: u32 = 0x6e8a_278c;

// ---- handshake and client flags ----------------------------------------

/// Handshake flag: the server speaks fixed newstyle.
pub const NBD_FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
/// Handshake flag: the server can leave out the 124 zeroes after `NBD_OPT_EXPORT_NAME`.
pub const NBD_FLAG_NO_ZEROES: u16 = 1 << 1;
/// Client flag: the client speaks fixed newstyle.
pub const NBD_FLAG_C_FIXED_NEWSTYLE: u32 = 1 << 0;
/// Client flag: leave out the 124 zeroes after `NBD_OPT_EXPORT_NAME`.
pub const NBD_FLAG_C_NO_ZEROES: u32 = 1 << 1;

// ---- transmission flags -------------------------------------------------

/// Always set.
pub const NBD_FLAG_HAS_FLAGS: u16 = 1 << 0;
/// The export is read-only; the server errors every write.
pub const NBD_FLAG_READ_ONLY: u16 = 1 << 1;
/// `NBD_CMD_FLUSH` is supported.
pub const NBD_FLAG_SEND_FLUSH: u16 = 1 << 2;
/// `NBD_CMD_FLAG_FUA` is supported.
pub const NBD_FLAG_SEND_FUA: u16 = 1 << 3;
/// The export behaves like a rotating disk.
pub const NBD_FLAG_ROTATIONAL: u16 = 1 << 4;
/// `NBD_CMD_TRIM` is supported.
pub const NBD_FLAG_SEND_TRIM: u16 = 1 << 5;
/// `NBD_CMD_WRITE_ZEROES` and `NBD_CMD_FLAG_NO_HOLE` are supported.
pub const NBD_FLAG_SEND_WRITE_ZEROES: u16 = 1 << 6;
/// `NBD_CMD_FLAG_DF` is supported. Clear unless structured replies were negotiated.
pub const NBD_FLAG_SEND_DF: u16 = 1 << 7;
/// Flush and FUA reach over all connections to this export.
pub const NBD_FLAG_CAN_MULTI_CONN: u16 = 1 << 8;
/// `NBD_CMD_CACHE` is supported.
pub const NBD_FLAG_SEND_CACHE: u16 = 1 << 10;
/// `NBD_CMD_FLAG_FAST_ZERO` is supported. Clear unless `NBD_FLAG_SEND_WRITE_ZEROES` is set.
pub const NBD_FLAG_SEND_FAST_ZERO: u16 = 1 << 11;
/// `NBD_CMD_BLOCK_STATUS` may carry a payload. Never advertised by this server.
pub const NBD_FLAG_BLOCK_STAT_PAYLOAD: u16 = 1 << 12;

// ---- options -------------------------------------------------------------

/// Choose an export and enter transmission; cannot be refused politely.
pub const NBD_OPT_EXPORT_NAME: u32 = 1;
/// End the session.
pub const NBD_OPT_ABORT: u32 = 2;
/// List the exports.
pub const NBD_OPT_LIST: u32 = 3;
/// Upgrade to TLS.
pub const NBD_OPT_STARTTLS: u32 = 5;
/// Describe an export.
pub const NBD_OPT_INFO: u32 = 6;
/// Describe an export and enter transmission.
pub const NBD_OPT_GO: u32 = 7;
/// Use structured replies.
pub const NBD_OPT_STRUCTURED_REPLY: u32 = 8;
/// List the metadata contexts of an export.
pub const NBD_OPT_LIST_META_CONTEXT: u32 = 9;
/// Select metadata contexts of an export.
pub const NBD_OPT_SET_META_CONTEXT: u32 = 10;
/// Use extended headers.
pub const NBD_OPT_EXTENDED_HEADERS: u32 = 11;

// ---- option replies -------------------------------------------------------

/// The option is accepted, or its list is complete.
pub const NBD_REP_ACK: u32 = 1;
/// One export of `NBD_OPT_LIST`.
pub const NBD_REP_SERVER: u32 = 2;
/// One item about an export.
pub const NBD_REP_INFO: u32 = 3;
/// One metadata context.
pub const NBD_REP_META_CONTEXT: u32 = 4;
/// Bit 31 marks an error reply.
pub const NBD_REP_FLAG_ERROR: u32 = 1 << 31;
/// The option is unknown here.
pub const NBD_REP_ERR_UNSUP: u32 = NBD_REP_FLAG_ERROR | 1;
/// The option is known and forbidden.
pub const NBD_REP_ERR_POLICY: u32 = NBD_REP_FLAG_ERROR | 2;
/// The option's data make no sense, or not now.
pub const NBD_REP_ERR_INVALID: u32 = NBD_REP_FLAG_ERROR | 3;
/// The platform cannot do it.
pub const NBD_REP_ERR_PLATFORM: u32 = NBD_REP_FLAG_ERROR | 4;
/// TLS first.
pub const NBD_REP_ERR_TLS_REQD: u32 = NBD_REP_FLAG_ERROR | 5;
/// No such export.
pub const NBD_REP_ERR_UNKNOWN: u32 = NBD_REP_FLAG_ERROR | 6;
/// The server is shutting down.
pub const NBD_REP_ERR_SHUTDOWN: u32 = NBD_REP_FLAG_ERROR | 7;
/// The client must ask for `NBD_INFO_BLOCK_SIZE` first.
pub const NBD_REP_ERR_BLOCK_SIZE_REQD: u32 = NBD_REP_FLAG_ERROR | 8;
/// The request or its reply is too large.
pub const NBD_REP_ERR_TOO_BIG: u32 = NBD_REP_FLAG_ERROR | 9;
/// Extended headers are needed, or already decide the matter.
pub const NBD_REP_ERR_EXT_HEADER_REQD: u32 = NBD_REP_FLAG_ERROR | 10;

// ---- information items ------------------------------------------------------

/// Size and transmission flags; always sent.
pub const NBD_INFO_EXPORT: u16 = 0;
/// The canonical name.
pub const NBD_INFO_NAME: u16 = 1;
/// A description for people.
pub const NBD_INFO_DESCRIPTION: u16 = 2;
/// Minimum and preferred block size, maximum payload.
pub const NBD_INFO_BLOCK_SIZE: u16 = 3;

// ---- commands and their flags -------------------------------------------------

/// Read.
pub const NBD_CMD_READ: u16 = 0;
/// Write.
pub const NBD_CMD_WRITE: u16 = 1;
/// Disconnect; has no reply.
pub const NBD_CMD_DISC: u16 = 2;
/// Make completed writes durable.
pub const NBD_CMD_FLUSH: u16 = 3;
/// Discard.
pub const NBD_CMD_TRIM: u16 = 4;
/// Read ahead.
pub const NBD_CMD_CACHE: u16 = 5;
/// Write zeroes without sending them.
pub const NBD_CMD_WRITE_ZEROES: u16 = 6;
/// Ask for the allocation map.
pub const NBD_CMD_BLOCK_STATUS: u16 = 7;

/// Durable before the reply. Valid with every command when `NBD_FLAG_SEND_FUA` is set.
pub const NBD_CMD_FLAG_FUA: u16 = 1 << 0;
/// `NBD_CMD_WRITE_ZEROES`: do not make a hole.
pub const NBD_CMD_FLAG_NO_HOLE: u16 = 1 << 1;
/// `NBD_CMD_READ`: at most one content chunk.
pub const NBD_CMD_FLAG_DF: u16 = 1 << 2;
/// `NBD_CMD_BLOCK_STATUS`: exactly one extent.
pub const NBD_CMD_FLAG_REQ_ONE: u16 = 1 << 3;
/// `NBD_CMD_WRITE_ZEROES`: fail unless faster than writing.
pub const NBD_CMD_FLAG_FAST_ZERO: u16 = 1 << 4;
/// Extended headers: the length field counts payload that follows the header.
pub const NBD_CMD_FLAG_PAYLOAD_LEN: u16 = 1 << 5;

// ---- reply chunks ---------------------------------------------------------------

/// The last chunk of a reply.
pub const NBD_REPLY_FLAG_DONE: u16 = 1 << 0;
/// Nothing more to say; always with `NBD_REPLY_FLAG_DONE`.
pub const NBD_REPLY_TYPE_NONE: u16 = 0;
/// Data at an offset.
pub const NBD_REPLY_TYPE_OFFSET_DATA: u16 = 1;
/// Zeroes at an offset.
pub const NBD_REPLY_TYPE_OFFSET_HOLE: u16 = 2;
/// Extents with 32-bit lengths.
pub const NBD_REPLY_TYPE_BLOCK_STATUS: u16 = 5;
/// Extents with 64-bit lengths; extended headers only.
pub const NBD_REPLY_TYPE_BLOCK_STATUS_EXT: u16 = 6;
/// Bit 15 marks an error chunk.
pub const NBD_REPLY_FLAG_ERROR_TYPE: u16 = 1 << 15;
/// An error about the whole request.
pub const NBD_REPLY_TYPE_ERROR: u16 = NBD_REPLY_FLAG_ERROR_TYPE | 1;
/// An error at an offset.
pub const NBD_REPLY_TYPE_ERROR_OFFSET: u16 = NBD_REPLY_FLAG_ERROR_TYPE | 2;

/// `base:allocation`: the extent is not allocated.
pub const NBD_STATE_HOLE: u32 = 1 << 0;
/// `base:allocation`: the extent reads as zeroes.
pub const NBD_STATE_ZERO: u32 = 1 << 1;
/// The one metadata context that the specification defines.
pub const BASE_ALLOCATION: &str = "base:allocation";

// ---- sizes of fixed layouts, in bytes ---------------------------------------------

/// The server's greeting: two magics and the handshake flags.
pub const GREETING_BYTES: usize = 18;
/// Magic, option, length.
pub const OPTION_HEADER_BYTES: usize = 16;
/// Magic, option, reply type, length.
pub const OPTION_REPLY_HEADER_BYTES: usize = 20;
/// A compact request.
pub const REQUEST_BYTES: usize = 28;
/// An extended request.
pub const EXTENDED_REQUEST_BYTES: usize = 32;
/// A simple reply.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// The header of a structured reply chunk.
pub const STRUCTURED_REPLY_BYTES: usize = 20;
/// The header of an extended reply chunk.
pub const EXTENDED_REPLY_BYTES: usize = 32;
/// Zeroes after the reply to `NBD_OPT_EXPORT_NAME` unless negotiated away.
pub const EXPORT_NAME_ZEROES: usize = 124;

// ---- limits ---------------------------------------------------------------------

/// Longest string, in bytes (section "Conventions": MUST be no longer than 4096 bytes).
pub const MAX_STRING_BYTES: usize = 4096;
/// Largest minimum block size, in bytes (section "Block size constraints").
pub const MAX_MINIMUM_BLOCK_BYTES: u32 = 1 << 16;
/// Largest payload in either direction that this server agrees to, in bytes.
/// Above 2^25, below which a length SHOULD NOT be taken for an attack (section
/// "Block size constraints"), and above the 49,865,728 bytes of the longest
/// request in nbd-server's own tests.
pub const MAX_PAYLOAD_BYTES: u32 = 48 << 20;
/// Longest refused payload that is read and thrown away, in bytes; a longer one
/// ends the connection. Clients that heed no announced maximum have their own:
/// 64 MiB, which is libnbd's and nbdkit's.
pub const MAX_REFUSED_BYTES: u32 = 64 << 20;
/// Most extents in one block status chunk. The specification recommends at
/// most 2^20; 2^16 of them are 1 MiB on the wire and the client asks on.
pub const MAX_EXTENTS: usize = 1 << 16;
