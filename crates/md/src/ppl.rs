//! md's partial parity log of raid5, in md's own format.
//!
//! ```text
//!  a member's area: a ring of units (with plain PPL one unit, always at the start)
//!
//!  | header | parity of entry 0, 1, … | header | parity … |        (zeroes, or an older turn)
//!  ^ 4096 B ^ in the entries' order    ^ where the parity before it ends
//!
//!  header     0  512 bytes 0xff          entry   0  data_sector  le64  array sectors of 512 bytes
//!           512  signature     le32              8  pp_size      le32  bytes
//!           516  padding       le32             12  data_size    le32  bytes
//!           520  generation    le64             16  parity_disk  le32  a role
//!           528  entries_count le32             20  checksum     le32  of its partial parity
//!           532  checksum      le32
//!           536  148 entries of 24 bytes, 8 bytes of padding
//!
//!  an entry covers rows × columns of one stripe; W: written
//!
//!     column 0   column 1   column 2        data_start: the first W, in bytes of the array
//!   +----------+----------+----------+      parity_len: rows
//!   |          |  W       |  W       |      data_len:   rows × columns
//!   |          |  W       |  W       |      partial parity: XOR of what is not written (column 0)
//!   +----------+----------+----------+
//! ```
//!
//! A write of less than a stripe first leaves the partial parity on the member that has the
//! stripe's parity. After a crash parity = partial parity XOR the columns that were written,
//! whatever of them arrived. An entry without partial parity is of a whole stripe: its parity is
//! the XOR of all columns.
//!
//! What the kernel does (Linux 6.6)
//! * Checksums are CRC-32C. The signature is that of the array's UUID as its bytes lie on disk.
//! * At the start it walks from the area's start: each header's entries say where the next one
//!   is. It stops at a wrong checksum, another signature, or a generation below the one before;
//!   equal ones go on. The last one before that is the newest, and only its entries are made good.
//!   If there is none at the start, nothing is made good. It starts the array in all these cases,
//!   also where it is degraded, and resyncs what the superblock says.
//! * Only a dirty array's entries are made good. An entry whose partial parity has another
//!   checksum is passed over, the others are not. If any was made good and none had to be
//!   passed over, and everything was to be resynced, the array is clean after it.
//! * Rows whose written columns are not all there are passed over; nothing is said about the rest.
//!   The step is a page if all ends at pages, else a sector.
//! * When it starts an array, or takes a member in, it zeroes the area and writes an empty header
//!   of generation 0; then it counts from 1 over all members. Nothing wraps.
//! * One unit of a member is under way at a time, the next begins when the writes that it
//!   describes are durable. An area from 264 KiB is a ring (`MULTIPLE_PPLS`), whose units have
//!   at most 128 KiB of parity; a unit that does not fit behind the last one goes to the start.
//! * mdadm makes an area of 1 MiB behind the superblock (before it and the bad-block log for 1.0),
//!   zeroed, with an empty header on every member, and leaves the initial resync due as ever.
//!
//! Where this module is stricter: more than 148 entries are refused (the kernel reads on behind the
//! header), and so are entries that are no rectangle (which md never writes; Intel's firmware may).
//! A header in the area's last page, which the kernel may write but does not look for, is found. A damaged header
//! behind the newest is an error: the kernel makes good the unit before, which was durable in place, and so lays old
//! parity over what the damaged unit described.
//!
//! Invariant: nothing that an entry says is used before [`covered`] has compared it with the array.
//! Deliberately absent: I/O, arithmetic on parity, the logs of external metadata (signatures of
//! their own, other units).
//!
//! Source: Linux `drivers/md/raid5-ppl.c` (`ppl_load_distributed`, `ppl_recover`,
//! `ppl_recover_entry`, `ppl_write_empty_header`, `ppl_submit_iounit`, `ppl_init_child_log`),
//! `include/uapi/linux/raid/md_p.h`; mdadm `super1.c` (`write_init_ppl1`, `write_init_super1`).

mod units;

use std::ops::Range;

use crate::rejection::PplRejection;
use crate::superblock::fields::{ByteOrder, Fields, FieldsMut};
use crate::{SECTOR, Uuid};

pub use units::Units;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 4096;
/// Entries that a header has room for.
pub const MOST_ENTRIES: usize = 148;
/// Bytes of the area that mdadm makes.
pub const AREA_BYTES: u64 = 1 << 20;
/// Bytes of partial parity that a unit of a ring has at most.
pub const RING_PARITY_BYTES: u64 = 128 * 1024;

const ENTRY_BYTES: usize = 24;
/// Sectors from which on an array's bytes do not fit 63 bits.
const SECTORS_LIMIT: u64 = 1 << 54;

/// The place of each field, in bytes.
mod at {
    pub(super) const SIGNATURE: usize = 512;
    pub(super) const GENERATION: usize = 520;
    pub(super) const COUNT: usize = 528;
    pub(super) const CHECKSUM: usize = 532;
    pub(super) const ENTRIES: usize = 536;
    // In an entry.
    pub(super) const PARITY_LEN: usize = 8;
    pub(super) const DATA_LEN: usize = 12;
    pub(super) const PARITY_ROLE: usize = 16;
    pub(super) const PARITY_CHECKSUM: usize = 20;
}

/// A write that was logged: rows of some columns of one stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Entry {
    /// The first row of the first column, in bytes of the array; whole sectors.
    pub data_start: u64,
    /// Bytes that were written: rows × columns.
    pub data_len: u32,
    /// Bytes of partial parity: the rows, or 0 for a whole stripe.
    pub parity_len: u32,
    /// The role that has the stripe's parity, and this log.
    pub parity_role: u16,
    /// [`parity_checksum`] of the partial parity.
    pub checksum: u32,
}

/// The start of a unit.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Header {
    /// Whose log it is: [`signature`].
    pub signature: u32,
    /// Later units have more.
    pub generation: u64,
    /// At most [`MOST_ENTRIES`].
    pub entries: Vec<Entry>,
}

/// The unit whose entries count, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newest {
    /// Its header.
    pub header: Header,
    /// Start of the header, in bytes from the area's start.
    pub offset: usize,
}

/// The range that an entry covers. Columns count the stripe's data in the order of the array's addresses,
/// whichever members have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covered {
    /// The stripe's number.
    pub stripe: u64,
    /// From and up to where, in bytes of each member's data.
    pub rows: (u64, u64),
    /// The first column.
    pub first: usize,
    /// Number of columns.
    pub count: usize,
}

/// Returns the signature of an array's headers.
#[must_use]
pub fn signature(array_uuid: &Uuid) -> u32 {
    crc32c::crc32c(&array_uuid.0)
}

/// The checksum of partial parity that lies in pieces.
pub fn parity_checksum<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    pieces.into_iter().fold(0, crc32c::crc32c_append)
}

impl Entry {
    fn parse(bytes: &[u8], index: usize) -> Result<Entry, PplRejection> {
        let field = fields(bytes);
        let sector = field.u64(0);
        if sector >= SECTORS_LIMIT {
            return Err(PplRejection::DataSector { entry: index, sector });
        }
        let role = field.u32(at::PARITY_ROLE);
        let parity_role =
            u16::try_from(role).map_err(|_| PplRejection::ParityRole { entry: index, role })?;
        Ok(Entry {
            data_start: sector * SECTOR,
            data_len: field.u32(at::DATA_LEN),
            parity_len: field.u32(at::PARITY_LEN),
            parity_role,
            checksum: field.u32(at::PARITY_CHECKSUM),
        })
    }

    fn encode_into(&self, bytes: &mut [u8]) {
        let mut field = FieldsMut::new(bytes, ByteOrder::Little);
        field.put_u64(0, self.data_start / SECTOR);
        field.put_u32(at::PARITY_LEN, self.parity_len);
        field.put_u32(at::DATA_LEN, self.data_len);
        field.put_u32(at::PARITY_ROLE, u32::from(self.parity_role));
        field.put_u32(at::PARITY_CHECKSUM, self.checksum);
    }

    /// Returns the bytes by which the entry's partial parity moves the next one: whole sectors, as the kernel
    /// counts.
    fn parity_step(&self) -> usize {
        self.parity_len as usize / SECTOR as usize * SECTOR as usize
    }
}

impl Header {
    /// The header that mdadm and the kernel leave in a fresh area: no entries, generation 0.
    #[must_use]
    pub fn empty(signature: u32) -> Header {
        Header { signature, generation: 0, entries: Vec::new() }
    }

    /// The [`HEADER_BYTES`] as they lie on disk.
    ///
    /// # Panics
    /// As [`Header::encode_into`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        self.encode_into(&mut bytes);
        bytes
    }

    /// Writes the header over all of `bytes`, without allocating.
    ///
    /// # Panics
    /// If `bytes` has not [`HEADER_BYTES`] or there are more than [`MOST_ENTRIES`].
    pub fn encode_into(&self, bytes: &mut [u8]) {
        Header::encode_parts(self.signature, self.generation, &self.entries, bytes);
    }

    /// Writes a header of these parts over all of `bytes`, without allocating.
    ///
    /// # Panics
    /// As [`Header::encode_into`].
    pub fn encode_parts(signature: u32, generation: u64, entries: &[Entry], bytes: &mut [u8]) {
        assert_eq!(bytes.len(), HEADER_BYTES, "a header's bytes");
        assert!(entries.len() <= MOST_ENTRIES, "{} entries", entries.len());
        let (reserved, rest) = bytes.split_at_mut(at::SIGNATURE);
        reserved.fill(0xff);
        rest.fill(0);
        let mut field = FieldsMut::new(bytes, ByteOrder::Little);
        field.put_u32(at::SIGNATURE, signature);
        field.put_u64(at::GENERATION, generation);
        field.put_u32(at::COUNT, entries.len() as u32);
        let places = field.bytes[at::ENTRIES..].chunks_exact_mut(ENTRY_BYTES);
        for (entry, place) in entries.iter().zip(places) {
            entry.encode_into(place);
        }
        let sum = header_checksum(field.bytes);
        field.put_u32(at::CHECKSUM, sum);
    }

    /// Reads the first [`HEADER_BYTES`] of `bytes` as a header of the array with this signature.
    ///
    /// # Errors
    /// [`PplRejection`]: it is cut off, its checksum or signature is another one, or it has more
    /// entries, larger sectors or roles than there can be.
    pub fn parse(bytes: &[u8], signature: u32) -> Result<Header, PplRejection> {
        let bytes =
            bytes.get(..HEADER_BYTES).ok_or(PplRejection::Truncated { got: bytes.len() })?;
        let field = fields(bytes);
        let (stored, computed) = (field.u32(at::CHECKSUM), header_checksum(bytes));
        if stored != computed {
            return Err(PplRejection::Checksum { stored, computed });
        }
        let found = field.u32(at::SIGNATURE);
        if found != signature {
            return Err(PplRejection::Signature { found, expected: signature });
        }
        let count = field.u32(at::COUNT);
        if count as usize > MOST_ENTRIES {
            return Err(PplRejection::TooManyEntries { count });
        }
        let places = bytes[at::ENTRIES..].chunks_exact(ENTRY_BYTES).take(count as usize);
        let entries = places.enumerate().map(|(index, place)| Entry::parse(place, index));
        Ok(Header {
            signature: found,
            generation: field.u64(at::GENERATION),
            entries: entries.collect::<Result<_, _>>()?,
        })
    }

    /// Bytes of the header and the partial parity behind it.
    #[must_use]
    pub fn unit_len(&self) -> usize {
        HEADER_BYTES + self.entries.iter().map(Entry::parity_step).sum::<usize>()
    }
}

/// The header that is in force, as the kernel finds it (see the module's head).
///
/// # Errors
/// [`PplRejection`] of the header at the area's start: then there is none. The same of a damaged one where the chain
/// ends: torn or rotten, the unit before it was durable in place, and must not be made good over what followed.
pub fn newest(area: &[u8], signature: u32) -> Result<Newest, PplRejection> {
    let mut newest = Newest { header: Header::parse(area, signature)?, offset: 0 };
    loop {
        let offset = newest.offset + newest.header.unit_len();
        let behind = area.get(offset..).unwrap_or_default();
        match Header::parse(behind, signature) {
            Ok(header) if header.generation >= newest.header.generation => {
                newest = Newest { header, offset };
            }
            Err(why @ PplRejection::Checksum { .. }) if is_damaged_header(behind, signature) => {
                return Err(why);
            }
            _ => return Ok(newest),
        }
    }
}

/// Returns true if these bytes are a header of this array except for at most one flipped bit.
fn is_damaged_header(bytes: &[u8], signature: u32) -> bool {
    let Some(bytes) = bytes.get(..HEADER_BYTES) else { return false };
    let ones = &bytes[..at::SIGNATURE];
    let wrong: u32 = ones.iter().map(|byte| byte.count_zeros()).sum();
    wrong + (fields(bytes).u32(at::SIGNATURE) ^ signature).count_ones() <= 1
}

impl Newest {
    /// The entries with the place of their partial parity in the area, in order.
    pub fn parity_ranges(&self) -> impl Iterator<Item = (&Entry, Range<usize>)> {
        let mut start = self.offset + HEADER_BYTES;
        self.header.entries.iter().map(move |entry| {
            let range = start..start + entry.parity_len as usize;
            start += entry.parity_step();
            (entry, range)
        })
    }

    /// An entry's partial parity, of the place that [`Newest::parity_ranges`] has given.
    ///
    /// # Errors
    /// [`PplRejection`] if it does not lie in the area or has another checksum.
    pub fn parity<'a>(
        area: &'a [u8],
        entry: &Entry,
        range: Range<usize>,
    ) -> Result<&'a [u8], PplRejection> {
        let outside =
            PplRejection::ParityOutside { start: range.start, end: range.end, area: area.len() };
        let parity = area.get(range).ok_or(outside)?;
        let (stored, computed) = (entry.checksum, parity_checksum([parity]));
        if stored == computed {
            Ok(parity)
        } else {
            Err(PplRejection::ParityChecksum { stored, computed })
        }
    }
}

/// Returns the range that an entry covers on an array of `array_size` bytes whose stripes have `data_columns`
/// chunks of data.
///
/// # Errors
/// [`PplRejection`] if it is no rectangle of whole sectors in one stripe of the array, or names a role that the
/// array does not have.
pub fn covered(
    entry: &Entry,
    chunk: u64,
    data_columns: usize,
    array_size: u64,
) -> Result<Covered, PplRejection> {
    let shape = |why: &'static str| PplRejection::Shape {
        data_start: entry.data_start,
        data_len: entry.data_len,
        parity_len: entry.parity_len,
        why,
    };
    let (data_len, parity_len) = (u64::from(entry.data_len), u64::from(entry.parity_len));
    let columns = data_columns as u64;
    if chunk == 0 || columns == 0 {
        return Err(shape("the array has no stripes"));
    }
    if usize::from(entry.parity_role) > data_columns {
        let (role, members) = (entry.parity_role, data_columns + 1);
        return Err(PplRejection::NoSuchRole { role, members });
    }
    // Without partial parity all columns were written.
    let rows = if parity_len == 0 { data_len / columns } else { parity_len };
    if data_len == 0 || rows == 0 || !data_len.is_multiple_of(rows) {
        return Err(shape("what was written is no multiple of its rows"));
    }
    if !entry.data_start.is_multiple_of(SECTOR) || !rows.is_multiple_of(SECTOR) {
        return Err(shape("it is not in whole sectors"));
    }
    let count = data_len / rows;
    if parity_len == 0 && count != columns {
        return Err(shape("without partial parity it must be rows of all columns"));
    }
    let (number, in_chunk) = (entry.data_start / chunk, entry.data_start % chunk);
    if rows > chunk || in_chunk > chunk - rows {
        return Err(shape("its rows go beyond their chunk"));
    }
    let (stripe, first) = (number / columns, number % columns);
    if first + count > columns {
        return Err(shape("its columns go beyond their stripe"));
    }
    let end = chunk.checked_mul(columns).and_then(|len| len.checked_mul(stripe + 1));
    if end.is_none_or(|end| end > array_size) {
        return Err(PplRejection::OutsideArray { data_start: entry.data_start, array_size });
    }
    let start = stripe * chunk + in_chunk;
    let (first, count) = (first as usize, count as usize);
    Ok(Covered { stripe, rows: (start, start + rows), first, count })
}

/// Checks that an entry's parity is where the layout has it (`by_layout`), and that its log lies on that member
/// (`member`).
///
/// # Errors
/// [`PplRejection::ParityElsewhere`].
pub fn check_parity_role(entry: &Entry, by_layout: u16, member: u16) -> Result<(), PplRejection> {
    let role = entry.parity_role;
    if role == by_layout && role == member {
        Ok(())
    } else {
        Err(PplRejection::ParityElsewhere { role, by_layout, member })
    }
}

/// Returns the checksum of a header's bytes, with its own field taken as zero.
fn header_checksum(bytes: &[u8]) -> u32 {
    let (before, behind) = bytes.split_at(at::CHECKSUM);
    parity_checksum([before, &[0; 4], &behind[4..]])
}

/// Numbers of a header or an entry.
fn fields(bytes: &[u8]) -> Fields<'_> {
    Fields::new(bytes, ByteOrder::Little)
}
