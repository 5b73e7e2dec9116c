//! RAID 4, 5 and 6: data dealt to the members, and for each stripe of data its parity.
//!
//! ```text
//!             left-asymmetric    right-asymmetric     left-symmetric    right-symmetric
//! member       0   1   2   3      0   1   2   3      0   1   2   3      0   1   2   3
//! raid5      | 0 | 1 | 2 | P |  | P | 0 | 1 | 2 |  | 0 | 1 | 2 | P |  | P | 0 | 1 | 2 |
//! stripe 1   | 3 | 4 | P | 5 |  | 3 | P | 4 | 5 |  | 4 | 5 | P | 3 |  | 5 | P | 3 | 4 |
//!            | 6 | P | 7 | 8 |  | 6 | 7 | P | 8 |  | 8 | P | 6 | 7 |  | 7 | 8 | P | 6 |
//!            | P | 9 | a | b |  | 9 | a | b | P |  | P | 9 | a | b |  | 9 | a | b | P |
//!
//! raid6      | Q | 0 | 1 | P |  | P | Q | 0 | 1 |  | Q | 0 | 1 | P |  | P | Q | 0 | 1 |
//! stripe 1   | 2 | 3 | P | Q |  | 2 | P | Q | 3 |  | 2 | 3 | P | Q |  | 3 | P | Q | 2 |
//!            | 4 | P | Q | 5 |  | 4 | 5 | P | Q |  | 5 | P | Q | 4 |  | 4 | 5 | P | Q |
//!            | P | Q | 6 | 7 |  | Q | 6 | 7 | P |  | P | Q | 6 | 7 |  | Q | 6 | 7 | P |
//!
//!             ddf-zero-restart    ddf-N-restart       ddf-N-continue   left-symmetric-6
//! raid6      | P | Q | 0 | 1 |  | 0 | 1 | P | Q |  | 0 | 1 | Q | P |  | 0 | 1 | P | Q |
//! stripe 1   | 2 | P | Q | 3 |  | 2 | P | Q | 3 |  | 3 | Q | P | 2 |  | 3 | P | 2 | Q |
//!            | 4 | 5 | P | Q |  | P | Q | 4 | 5 |  | Q | P | 4 | 5 |  | P | 4 | 5 | Q |
//!            | Q | 6 | 7 | P |  | Q | 6 | 7 | P |  | P | 6 | 7 | Q |  | 6 | 7 | P | Q |
//! ```
//!
//! A *stripe* is one chunk of each member, at the same place. Its data chunks are numbered in the
//! order of the array; P is their exclusive or, and Q is the sum of g^power · data over GF(2^8). md
//! counts the powers of Q from the member behind Q on, round the members, without P and Q; in DDF's
//! layouts from member 0 on, where P and Q count as zeroes.
//!
//! Invariants: [`Raid456::role_of`] and [`Raid456::column_of`] are inverse; the powers of a stripe's
//! data are different. Deliberately absent: the arithmetic of parity, and arrays that are being
//! reshaped, which have two geometries.
//!
//! Source: Linux `drivers/md/raid5.c` (`setup_conf`, `raid5_size`, `raid5_compute_sector`,
//! `raid6_d0`, `raid6_idx_to_slot`), `crypto/async_tx/async_pq.c` (`MAX_DISKS`).

use braid_level::{ParityLayout, ParityLevel};

use super::{Geometry, GeometryError, Run};
use crate::{ArrayByte, ArraySpan, MemberByte, MemberSpan, Role};

/// Most sources and parities together that md computes a Q of.
const MOST_OF_Q: usize = 255;

/// The content of a member in a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Data: the index of the chunk in the stripe, from 0 in the order of the array.
    Data(usize),
    /// The exclusive or of the data.
    P,
    /// raid6's second parity.
    Q,
}

/// Data dealt to the members, and parity for each stripe.
#[derive(Clone, Debug)]
pub struct Raid456 {
    level: ParityLevel,
    layout: ParityLayout,
    members: usize,
    chunk_shift: u32,
    stripes: u64,
}

impl Raid456 {
    /// `member_size` is what may be used of each member, in bytes; the array takes whole chunks of
    /// it. A raid4 has [`ParityLayout::ParityLast`], whatever `layout` says: md does not look at it.
    ///
    /// # Errors
    /// Fewer members than the level needs, or too many; a chunk that is not a power of two from
    /// 4 KiB to 512 GiB; a layout that the level does not have; members smaller than a chunk.
    pub fn new(
        member_size: u64,
        members: usize,
        chunk: u64,
        level: ParityLevel,
        layout: ParityLayout,
    ) -> Result<Raid456, GeometryError> {
        let layout = if level == ParityLevel::Raid4 { ParityLayout::ParityLast } else { layout };
        if !layout.suits(level) {
            return Err(GeometryError::ParityLayout { level, layout });
        }
        let (least, most) = (level.least_members(), most_members(level, layout));
        if !(least..=most).contains(&members) {
            return Err(GeometryError::ParityMembers { level, count: members, least, most });
        }
        if let Some(needs) = level.level().refuses_chunk(chunk) {
            return Err(GeometryError::Chunk { level: level.level(), chunk, needs });
        }
        let stripes = member_size / chunk;
        if stripes == 0 {
            return Err(GeometryError::MemberSize { size: member_size, least: chunk });
        }
        let total = (stripes * chunk).checked_mul(members as u64);
        if total.is_none_or(|total| total > i64::MAX as u64) {
            return Err(GeometryError::TooLarge);
        }
        Ok(Raid456 { level, layout, members, chunk_shift: chunk.trailing_zeros(), stripes })
    }

    /// The level.
    pub fn level(&self) -> ParityLevel {
        self.level
    }

    /// Returns the layout of the parity.
    pub fn layout(&self) -> ParityLayout {
        self.layout
    }

    /// Data chunks of a stripe, at least 1.
    pub fn data(&self) -> usize {
        self.members - self.parities()
    }

    /// Parity chunks of a stripe, 1 or 2: as many members may be lost.
    pub fn parities(&self) -> usize {
        self.level.parities()
    }

    /// Chunk size in bytes, a power of two.
    pub fn chunk(&self) -> u64 {
        1 << self.chunk_shift
    }

    /// Returns the bytes of each member that the array uses, from the member's first on: whole chunks.
    pub fn member_size(&self) -> u64 {
        self.stripes << self.chunk_shift
    }

    /// The bytes of the array that `stripe` holds.
    #[inline]
    pub fn span_of_stripe(&self, stripe: u64) -> ArraySpan {
        let width = Geometry::stripe(self);
        ArraySpan::new(ArrayByte::new(stripe * width), width)
    }

    /// The rows of `stripe`: a chunk of each member.
    #[inline]
    pub fn rows_of_stripe(&self, stripe: u64) -> MemberSpan {
        MemberSpan::new(MemberByte::new(stripe << self.chunk_shift), self.chunk())
    }

    /// The stripe that has the rows around `row`.
    #[inline]
    pub fn stripe_of_row(&self, row: MemberByte) -> u64 {
        row.get() >> self.chunk_shift
    }

    /// Number of stripes, at least 1.
    pub fn stripes(&self) -> u64 {
        self.stripes
    }

    /// The member that has `column` of `stripe`.
    ///
    /// # Panics
    /// If the array has no such column.
    pub fn role_of(&self, stripe: u64, column: Column) -> Role {
        let parity = self.parity_of(stripe);
        Role::nth(match column {
            Column::P => parity.p,
            Column::Q => parity.q.expect("Q is of a raid6"),
            Column::Data(index) => {
                assert!(index < self.data(), "data chunk {index} of {}", self.data());
                match self.data_order(parity) {
                    DataOrder::Restart => {
                        let first = index + usize::from(index >= parity.lower());
                        first + usize::from(first >= parity.upper())
                    }
                    DataOrder::Continue { start, width } => (start + index) % width,
                }
            }
        })
    }

    /// Returns the column of member `role` in `stripe`: the inverse of [`Raid456::role_of`].
    ///
    /// # Panics
    /// If there is no such member.
    pub fn column_of(&self, stripe: u64, role: Role) -> Column {
        let role = role.index();
        assert!(role < self.members, "member {role} of {}", self.members);
        let parity = self.parity_of(stripe);
        if role == parity.p {
            return Column::P;
        }
        if Some(role) == parity.q {
            return Column::Q;
        }
        Column::Data(match self.data_order(parity) {
            DataOrder::Restart => {
                role - usize::from(role > parity.lower()) - usize::from(role > parity.upper())
            }
            DataOrder::Continue { start, width } => (role + width - start % width) % width,
        })
    }

    /// The power of g by which Q takes data chunk `data_index` of `stripe`: below
    /// [`Raid456::powers`], and another one for each chunk of the stripe.
    ///
    /// # Panics
    /// If the array is no raid6, or has no such chunk.
    pub fn power(&self, stripe: u64, data_index: usize) -> u8 {
        let role = self.role_of(stripe, Column::Data(data_index)).index();
        let Parity { p, q } = self.parity_of(stripe);
        let q = q.expect("Q is of a raid6");
        let power = if self.layout.is_ddf() {
            role
        } else {
            let behind_q = |role: usize| (role + self.members - q - 1) % self.members;
            behind_q(role) - usize::from(behind_q(p) < behind_q(role))
        };
        u8::try_from(power).expect("a Q of so many members is refused")
    }

    /// Returns the number of different powers of g in the stripes' Q, from 0 on.
    pub fn powers(&self) -> usize {
        if self.layout.is_ddf() { self.members } else { self.data() }
    }

    /// Returns true if the members for which `alive` holds suffice for every byte of the array.
    pub fn is_readable(&self, alive: &dyn Fn(Role) -> bool) -> bool {
        Role::all(self.members).filter(|&role| !alive(role)).count() <= self.parities()
    }

    /// Returns the place of a stripe's parity.
    #[inline]
    fn parity_of(&self, stripe: u64) -> Parity {
        use ParityLayout as L;
        let last = self.members - 1;
        // How far the parity has wandered over so many members.
        let turn = |stripe: u64, width: usize| (stripe % width as u64) as usize;
        let left = |width: usize| width - 1 - turn(stripe, width);
        let right = |width: usize| turn(stripe, width);
        let behind = |p: usize| (p + 1) % self.members;
        let (p, q) = match (self.level, self.layout) {
            (ParityLevel::Raid4, _) => (last, None),
            (ParityLevel::Raid5, L::LeftAsymmetric | L::LeftSymmetric) => {
                (left(self.members), None)
            }
            (ParityLevel::Raid5, L::RightAsymmetric | L::RightSymmetric) => {
                (right(self.members), None)
            }
            (ParityLevel::Raid5, L::ParityFirst) => (0, None),
            (ParityLevel::Raid5, _) => (last, None),
            (ParityLevel::Raid6, layout) => match layout {
                L::LeftAsymmetric | L::LeftSymmetric => {
                    let p = left(self.members);
                    (p, Some(behind(p)))
                }
                L::RightAsymmetric | L::RightSymmetric | L::DdfZeroRestart => {
                    let p = right(self.members);
                    (p, Some(behind(p)))
                }
                L::DdfNRestart => {
                    let p = last - turn(stripe + 1, self.members);
                    (p, Some(behind(p)))
                }
                L::DdfNContinue => {
                    let p = left(self.members);
                    (p, Some((p + last) % self.members))
                }
                L::LeftAsymmetric6 | L::LeftSymmetric6 => (left(last), Some(last)),
                L::RightAsymmetric6 | L::RightSymmetric6 => (right(last), Some(last)),
                L::ParityFirst => (0, Some(1)),
                L::ParityLast => (last - 1, Some(last)),
                L::ParityFirst6 => (0, Some(last)),
            },
        };
        Parity { p, q }
    }

    /// In which order the members have the data of a stripe with this parity.
    #[inline]
    fn data_order(&self, parity: Parity) -> DataOrder {
        match self.layout {
            ParityLayout::LeftSymmetric | ParityLayout::RightSymmetric => {
                let start = parity.q.unwrap_or(parity.p) + 1;
                DataOrder::Continue { start, width: self.members }
            }
            // Q is before P.
            ParityLayout::DdfNContinue => {
                DataOrder::Continue { start: parity.p + 1, width: self.members }
            }
            ParityLayout::LeftSymmetric6 | ParityLayout::RightSymmetric6 => {
                DataOrder::Continue { start: parity.p + 1, width: self.members - 1 }
            }
            _ => DataOrder::Restart,
        }
    }
}

impl Geometry for Raid456 {
    fn size(&self) -> u64 {
        (self.stripes << self.chunk_shift) * self.data() as u64
    }

    fn members(&self) -> usize {
        self.members
    }

    #[inline]
    fn locate(&self, offset: ArrayByte) -> Run {
        let offset = offset.get();
        let within = offset & (self.chunk() - 1);
        let chunk = offset >> self.chunk_shift;
        let data = self.data() as u64;
        let (stripe, index) = (chunk / data, (chunk % data) as usize);
        Run {
            role: self.role_of(stripe, Column::Data(index)),
            offset: MemberByte::new((stripe << self.chunk_shift) + within),
            len: self.chunk() - within,
        }
    }

    fn stripe(&self) -> u64 {
        (self.data() as u64) << self.chunk_shift
    }
}

/// The members that have the parity of a stripe.
#[derive(Clone, Copy)]
struct Parity {
    p: usize,
    q: Option<usize>,
}

impl Parity {
    /// The first of them.
    fn lower(self) -> usize {
        self.q.map_or(self.p, |q| q.min(self.p))
    }

    /// The second of them; behind all members if there is none.
    fn upper(self) -> usize {
        self.q.map_or(usize::MAX, |q| q.max(self.p))
    }
}

/// In which order the members have the data of a stripe.
enum DataOrder {
    /// From member 0 on, past the parity.
    Restart,
    /// From `start` on, round the first `width` members.
    Continue { start: usize, width: usize },
}

/// Returns the largest number of members that md allows: for raid6 as many as its Q can cover.
fn most_members(level: ParityLevel, layout: ParityLayout) -> usize {
    match level {
        ParityLevel::Raid4 | ParityLevel::Raid5 => crate::MAX_MEMBERS,
        // P and Q come on top of the members, which all count as sources.
        ParityLevel::Raid6 if layout.is_ddf() => MOST_OF_Q - 2,
        ParityLevel::Raid6 => MOST_OF_Q,
    }
}
