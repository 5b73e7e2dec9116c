//! RAID 10: several copies of each chunk, dealt to the members.
//!
//! ```text
//!                    n2                        f2                        o2
//! member       0   1   2   3             0   1   2   3             0   1   2   3
//!            | 0 | 0 | 1 | 1 |         | 0 | 1 | 2 | 3 |         | 0 | 1 | 2 | 3 |
//!            | 2 | 2 | 3 | 3 |         | 4 | 5 | 6 | 7 |         | 3 | 0 | 1 | 2 |
//!            | 4 | 4 | 5 | 5 |         | …   section 0 |         | 4 | 5 | 6 | 7 |
//!            | 6 | 6 | 7 | 7 |         | 3 | 0 | 1 | 2 |         | 7 | 4 | 5 | 6 |
//!                                      | 7 | 4 | 5 | 6 |
//!                                      | …   section 1 |
//!
//! member       0   1   2                 0   1   2                 0   1   2
//!            | 0 | 0 | 1 |             | 0 | 1 | 2 |             | 0 | 1 | 2 |
//!            | 1 | 2 | 2 |             | 3 | 4 | 5 |             | 2 | 0 | 1 |
//!            | 3 | 3 | 4 |             | … section |             | 3 | 4 | 5 |
//!            | 4 | 5 | 5 |             | 2 | 0 | 1 |             | 5 | 3 | 4 |
//!                                      | 5 | 3 | 4 |
//! ```
//!
//! *Near* copies are dealt side by side, as a raid0 that says each chunk several times: near copy
//! `n` of chunk `c` is slot `c × near + n`, slots fill rows, and a row is as wide as there are
//! members. *Far* copies repeat that whole arrangement, each time shifted by `near` members: in
//! sections of the members, one behind the other (far), or row by row (offset). With far sets the
//! shift goes round within a few members instead of all. Copy `n × far + f` is near copy `n` of
//! repetition `f`, which is md's order.
//!
//! md accepts layouts whose formula puts two chunks in one place or two copies on one member, such
//! as n2o2 over five members: a kernel that fills such an array overwrites what it has just
//! written. mdadm makes none of them. They are refused here.
//!
//! Source: Linux `drivers/md/raid10.c` (`setup_geo`, `calc_sectors`, `raid10_size`,
//! `__raid10_find_phys`, `raid10_find_virt`).

use braid_level::raid10::Columns;
use braid_level::{Level, Raid10Layout};

use super::{GeometryError, Mirrored, Owner, Run};
use crate::{ArrayByte, MemberByte, Role};

/// Several copies of each chunk, dealt to the members.
#[derive(Clone, Debug)]
pub struct Raid10 {
    layout: Raid10Layout,
    members: usize,
    chunk_shift: u32,
    /// Rows of one repetition, in chunks of a member.
    rows: u64,
    /// Chunks of the array.
    chunks: u64,
    columns: Columns,
}

impl Raid10 {
    /// `member_size` is what may be used of each member, in bytes; the array takes whole chunks, as
    /// many as the far copies divide: [`Mirrored::member_size`].
    ///
    /// # Errors
    /// A chunk that is not a power of two from 4 KiB to 512 GiB; fewer members than copies, or too
    /// many; members without a chunk for each far copy; a layout that is not sound over so many
    /// members.
    pub fn new(
        member_size: u64,
        members: usize,
        chunk: u64,
        layout: Raid10Layout,
    ) -> Result<Raid10, GeometryError> {
        if !(1..=crate::MAX_MEMBERS).contains(&members) {
            return Err(GeometryError::MemberCount { count: members });
        }
        if let Some(needs) = Level::Raid10.refuses_chunk(chunk) {
            return Err(GeometryError::Chunk { level: Level::Raid10, chunk, needs });
        }
        let copies = layout.copies();
        if copies > members {
            return Err(GeometryError::Copies { layout, copies, members });
        }
        let columns = Columns::new(layout, members)?;
        // md computes the used size of a member back from the size of the array, rounding up. Since
        // near × far is at most the number of members, that is always rows × far.
        let rows = member_size / chunk / layout.far() as u64;
        if rows == 0 {
            return Err(GeometryError::MemberSize {
                size: member_size,
                least: chunk * layout.far() as u64,
            });
        }
        let used = rows * layout.far() as u64 * chunk;
        let total = used.checked_mul(members as u64).ok_or(GeometryError::TooLarge)?;
        if total > i64::MAX as u64 {
            return Err(GeometryError::TooLarge);
        }
        let chunks = rows * members as u64 / layout.near() as u64;
        let chunk_shift = chunk.trailing_zeros();
        Ok(Raid10 { layout, members, chunk_shift, rows, chunks, columns })
    }

    /// Chunk size in bytes.
    pub fn chunk(&self) -> u64 {
        1 << self.chunk_shift
    }

    /// Returns the layout of the copies.
    pub fn layout(&self) -> Raid10Layout {
        self.layout
    }

    /// Returns the number of bytes in one piece from `offset` of the array on: the rest of the chunk, or of the
    /// array if each member holds every chunk.
    #[inline]
    fn piece(&self, offset: u64) -> u64 {
        if self.layout.near() == self.members {
            return self.size() - offset;
        }
        self.chunk() - (offset & (self.chunk() - 1))
    }
}

impl Mirrored for Raid10 {
    fn size(&self) -> u64 {
        self.chunks << self.chunk_shift
    }

    fn members(&self) -> usize {
        self.members
    }

    fn copies(&self) -> usize {
        self.layout.copies()
    }

    #[inline]
    fn locate(&self, offset: ArrayByte, copy: usize) -> Run {
        let offset = offset.get();
        let far = self.layout.far();
        let (near, repetition) = (copy / far, copy % far);
        let within = offset & (self.chunk() - 1);
        let slot = (offset >> self.chunk_shift) * self.layout.near() as u64 + near as u64;
        let width = self.members as u64;
        let (row, column) = (slot / width, (slot % width) as usize);
        let member_row = if self.layout.is_offset() {
            row * far as u64 + repetition as u64
        } else {
            row + repetition as u64 * self.rows
        };
        Run {
            role: Role::new(self.columns.member(repetition, column)),
            offset: MemberByte::new((member_row << self.chunk_shift) + within),
            len: self.piece(offset),
        }
    }

    fn owner(&self, role: Role, offset: MemberByte) -> Option<Owner> {
        let offset = offset.get();
        if role.index() >= self.members || offset >= self.member_size() {
            return None;
        }
        let (near, far) = (self.layout.near() as u64, self.layout.far());
        let member_row = offset >> self.chunk_shift;
        let (row, repetition) = if self.layout.is_offset() {
            (member_row / far as u64, member_row % far as u64)
        } else {
            (member_row % self.rows, member_row / self.rows)
        };
        let column = self.columns.column(repetition as usize, role.index());
        let slot = row * self.members as u64 + column as u64;
        let chunk = slot / near;
        if chunk >= self.chunks {
            return None;
        }
        let within = offset & (self.chunk() - 1);
        let in_array = (chunk << self.chunk_shift) + within;
        let copy = (slot % near) as usize * far + repetition as usize;
        Some(Owner { offset: ArrayByte::new(in_array), copy, len: self.piece(in_array) })
    }

    /// The chunks of a row, or of the rows until slots begin at the first member again.
    fn stripe(&self) -> u64 {
        let members = self.members as u64;
        let near = self.layout.near() as u64;
        let chunks = if members.is_multiple_of(near) { members / near } else { members };
        chunks << self.chunk_shift
    }

    fn member_size(&self) -> u64 {
        (self.rows * self.layout.far() as u64) << self.chunk_shift
    }

    fn is_readable(&self, alive: &dyn Fn(Role) -> bool) -> bool {
        // After as many chunks as there are members the same members come again.
        (0..self.chunks.min(self.members as u64)).all(|chunk| {
            (0..self.copies()).any(|copy| {
                let first = ArrayByte::new(chunk << self.chunk_shift);
                alive(self.locate(first, copy).role)
            })
        })
    }
}
