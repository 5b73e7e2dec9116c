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

use super::{CHUNKS, FarSets, GeometryError, Mirrored, Owner, Raid10Layout, Run};
use crate::{ArrayByte, ByRole, MemberByte, Role};

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
        if !CHUNKS.contains(&chunk) || !chunk.is_power_of_two() {
            return Err(GeometryError::Raid10Chunk { chunk });
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

    /// How the copies are laid out.
    pub fn layout(&self) -> Raid10Layout {
        self.layout
    }

    /// How many bytes follow in one piece from `offset` of the array on: the rest of the chunk, or
    /// of the array where each member holds every chunk.
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
            role: self.columns.role(repetition, column),
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
        let column = self.columns.column(repetition as usize, role);
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

/// Which member each column of a row is on, in each repetition.
#[derive(Clone, Debug)]
struct Columns {
    width: usize,
    /// Index: repetition × width + column.
    members: Vec<u16>,
    /// The inverse: repetition × width + member.
    columns: Vec<u16>,
}

impl Columns {
    /// # Errors
    /// A layout by which two chunks meet in one place, or two copies on one member.
    fn new(layout: Raid10Layout, width: usize) -> Result<Columns, GeometryError> {
        let refuse = |reason| GeometryError::Raid10Layout { number: layout.number(), reason };
        if layout.is_offset() && layout.far() > 1 && !width.is_multiple_of(layout.near()) {
            // md continues near copies that do not fit the row one row further, where another
            // chunk's far copies are.
            return Err(refuse(
                "md puts two chunks in one place when near copies of the offset layout do not divide the members",
            ));
        }
        let mut members: Vec<u16> = (0u16..).take(width).collect();
        for index in width..width * layout.far() {
            let before = usize::from(members[index - width]);
            members.push(next_member(layout, width, before) as u16);
        }
        let columns = invert(&members, width)
            .ok_or_else(|| refuse("md puts two chunks in one place with so many members"))?;
        let columns = Columns { width, members, columns };
        if !columns.are_copies_apart(layout) {
            return Err(refuse("md puts two copies on one member with so many members"));
        }
        Ok(columns)
    }

    #[inline]
    fn role(&self, repetition: usize, column: usize) -> Role {
        Role::new(self.members[repetition * self.width + column])
    }

    fn column(&self, repetition: usize, role: Role) -> usize {
        self.columns[repetition * self.width + role.index()].into()
    }

    /// Whether the copies of a chunk, wherever in a row it begins, lie on different members.
    fn are_copies_apart(&self, layout: Raid10Layout) -> bool {
        (0..self.width).all(|chunk| {
            let first = chunk * layout.near();
            let mut taken = ByRole::new(self.width, |_| false);
            (first..first + layout.near()).all(|slot| {
                (0..layout.far()).all(|repetition| {
                    let role = self.role(repetition, slot % self.width);
                    !std::mem::replace(&mut taken[role], true)
                })
            })
        })
    }
}

/// The member of the next repetition: `near` further, around the members of the set. When sets do
/// not divide the members, the last set has the rest too.
fn next_member(layout: Raid10Layout, width: usize, member: usize) -> usize {
    let size = match layout.far_sets() {
        FarSets::All => width,
        FarSets::Divided => width / layout.far(),
        FarSets::Copies => layout.copies(),
    };
    let rest = width % size;
    let last = width - rest - size;
    let next = member + layout.near();
    // md compares the member after the step. With several near copies that takes some members into
    // a foreign set, which the caller finds out.
    if rest != 0 && next > last {
        last + (next - last) % (size + rest)
    } else {
        member / size * size + next % size
    }
}

/// For each block of `width` numbers below `width`, its inverse; `None` if one comes twice.
fn invert(members: &[u16], width: usize) -> Option<Vec<u16>> {
    let mut columns = vec![None; members.len()];
    for (index, &member) in members.iter().enumerate() {
        let column = (index % width) as u16;
        let place = &mut columns[index - index % width + usize::from(member)];
        if place.replace(column).is_some() {
            return None;
        }
    }
    columns.into_iter().collect()
}
