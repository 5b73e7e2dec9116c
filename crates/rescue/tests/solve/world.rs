//! Arrays that are drawn from a seed and striped by arithmetic. Content is computed when it is read, so members may
//! be as large as they like.

use std::collections::BTreeSet;
use std::rc::Rc;

use braid_array::geometry::{Column, Linear, Raid0, Raid1, Raid10, Raid456};
use braid_array::{ArrayByte, Geometry, MemberByte, Mirrored, Role};
use braid_level::{Level, ParityLayout, Raid0Layout, Raid10Layout};
use braid_rescue::{Anchor, Clue, Pattern, Question, Structure};
use braid_seed::{Rng, mix};

pub(crate) const SECTOR: u64 = 512;
const BLOCK: u64 = 4096;
const MIB: u64 = 1 << 20;

/// The place of each byte, over members of known sizes.
pub(crate) enum Truth {
    Plain(Box<dyn Geometry>),
    Copies(Box<dyn Mirrored>),
    Parity(Raid456),
}

impl Truth {
    pub(crate) fn new(pattern: Pattern, lengths: &[u64]) -> Truth {
        let Pattern { level, layout, chunk, members } = pattern;
        let least = lengths.iter().copied().min().unwrap();
        match level {
            Level::Linear => Truth::Plain(Box::new(Linear::new(lengths, 512).unwrap())),
            Level::Raid0 => {
                let layout = Raid0Layout::from_number(layout).unwrap();
                Truth::Plain(Box::new(Raid0::new(lengths, chunk, layout, 512).unwrap()))
            }
            Level::Raid1 => Truth::Copies(Box::new(Raid1::new(least, members).unwrap())),
            Level::Raid10 => {
                let layout = Raid10Layout::from_number(layout).unwrap();
                Truth::Copies(Box::new(Raid10::new(least, members, chunk, layout).unwrap()))
            }
            _ => {
                let level = level.with_parity().unwrap();
                let layout = ParityLayout::from_number(level, layout).unwrap();
                Truth::Parity(Raid456::new(least, members, chunk, level, layout).unwrap())
            }
        }
    }

    /// The places of a byte: role and offset in the member's data.
    fn locate(&self, at: u64) -> Vec<(usize, u64)> {
        let at = ArrayByte::new(at);
        let place = |run: braid_array::Run| (run.role.index(), run.offset.get());
        match self {
            Truth::Plain(geometry) => vec![place(geometry.locate(at))],
            Truth::Copies(copies) => {
                (0..copies.copies()).map(|copy| place(copies.locate(at, copy))).collect()
            }
            Truth::Parity(raid) => vec![place(raid.locate(at))],
        }
    }

    /// A sector of the array at a byte, from the sectors that `read` has of each role.
    pub(crate) fn read(
        &self,
        at: u64,
        read: &dyn Fn(usize, u64) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let places = self.locate(at);
        let direct = places.iter().find_map(|&(role, row)| read(role, row));
        let Truth::Parity(raid) = self else { return direct };
        if direct.is_some() {
            return direct;
        }
        let (role, row) = places[0];
        let stripe = raid.stripe_of_row(MemberByte::new(row));
        let powers = if raid.parities() == 2 { raid.powers() } else { raid.data() };
        let (mut data, mut p, mut q) = (vec![Some(vec![0; SECTOR as usize]); powers], None, None);
        let power =
            |index| if raid.parities() == 2 { raid.power(stripe, index).into() } else { index };
        let mut gone = Vec::new();
        for other in 0..Geometry::members(raid) {
            let content = read(other, row);
            match raid.column_of(stripe, Role::nth(other)) {
                Column::P => p = content,
                Column::Q => q = content,
                Column::Data(index) => {
                    if content.is_none() {
                        gone.push(power(index));
                    }
                    data[power(index)] = content;
                }
            }
        }
        let Column::Data(wanted) = raid.column_of(stripe, Role::nth(role)) else {
            panic!("data lie on data")
        };
        let wanted = power(wanted);
        let sources: Vec<Option<&[u8]>> = data.iter().map(Option::as_deref).collect();
        let (mut one, mut other) = (vec![0; SECTOR as usize], vec![0; SECTOR as usize]);
        match (gone.as_slice(), &p, &q) {
            ([_], Some(p), _) => {
                let all: Vec<&[u8]> =
                    sources.iter().flatten().copied().chain([p.as_slice()]).collect();
                braid_parity::xor(&mut one, &all);
            }
            ([power], None, Some(q)) => {
                braid_parity::recover_by_q(&mut one, *power as u8, q, &sources)
            }
            ([a, b], Some(p), Some(q)) => {
                let another = if *a == wanted { *b } else { *a };
                braid_parity::recover_two(
                    &mut one,
                    wanted as u8,
                    &mut other,
                    another as u8,
                    p,
                    q,
                    &sources,
                );
            }
            _ => return None,
        }
        Some(one)
    }
}

/// An array with its members.
pub(crate) struct World {
    pub pattern: Pattern,
    pub truth: Truth,
    /// For each role its member and where the member's data begin.
    pub seats: Vec<Option<(usize, u64)>>,
    pub sizes: Vec<u64>,
    /// Bytes that the array uses of each role's member.
    pub lengths: Vec<u64>,
    /// The structure: where it begins in the array, its size.
    pub base: u64,
    pub size: u64,
    pub places: BTreeSet<u64>,
    pub clues: Vec<Clue>,
    /// Members that are copies of others.
    pub clones: Vec<(usize, usize)>,
    seed: u64,
    /// Parts of 64 KiB, in a hundred, that hold nothing.
    empty: u64,
    /// The structure, if it is a real one.
    image: Rc<[u8]>,
}

/// Properties that are drawn, beyond a pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub missing: usize,
    pub unequal_offsets: bool,
    pub foreign: usize,
    pub clones: usize,
    /// Share of blocks, in a hundred, of which there is a copy elsewhere.
    pub journal: u64,
    pub empty: u64,
    pub blocks: usize,
    pub base: u64,
    pub unequal_sizes: bool,
}

impl World {
    pub(crate) fn new(seed: u64, pattern: Pattern, plan: Plan) -> World {
        let mut world = World::empty(seed, pattern, plan, Rc::new([]));
        world.fill(&mut Rng::new(mix(&[seed, 5])), plan);
        world
    }

    /// An array with this content, and no clues yet.
    pub(crate) fn of_image(seed: u64, pattern: Pattern, plan: Plan, image: Rc<[u8]>) -> World {
        World::empty(seed, pattern, plan, image)
    }

    fn empty(seed: u64, pattern: Pattern, plan: Plan, image: Rc<[u8]>) -> World {
        let mut rng = Rng::new(mix(&[seed, 1]));
        let Pattern { members, chunk, level, layout } = pattern;
        // Several turns of the layout, and not less than 48 MiB.
        let turn = chunk.max(64 << 10) * 3 * members as u64;
        let shape = braid_level::Shape { level, layout, chunk };
        let bytes = (48 * MIB).max(image.len() as u64 + plan.base);
        let data = bytes as f64 / shape.data_members(members).unwrap();
        let least = turn.max(data as u64 + 4 * MIB).next_multiple_of(4 * MIB);
        let length = |rng: &mut Rng| {
            least + if plan.unequal_sizes { rng.below(least / MIB) * MIB } else { 0 }
        };
        let lengths: Vec<u64> = (0..members).map(|_| length(&mut rng)).collect();
        let capacity =
            shape.size_over(&lengths.iter().copied().map(Some).collect::<Vec<_>>()).unwrap();
        let size = (capacity - plan.base).min(capacity / 16 * 15) / MIB * MIB;
        let size = if image.is_empty() { size } else { image.len() as u64 };
        let mut present: Vec<bool> = vec![true; members];
        for _ in 0..plan.missing {
            let role = rng.index(members);
            present[role] = false;
            if !braid_level::size::suffice(level, layout, &present) {
                present[role] = true;
            }
        }
        let mut order: Vec<usize> =
            (0..present.iter().filter(|one| **one).count() + plan.foreign).collect();
        rng.shuffle(&mut order);
        let common =
            *[0, MIB, 128 * MIB, 264_192 * SECTOR, 2048 * SECTOR].get(rng.index(5)).unwrap();
        let offset = |rng: &mut Rng| {
            if plan.unequal_offsets { rng.within(1..=4096) * BLOCK } else { common }
        };
        let mut sizes = vec![least + 9 * MIB; order.len()];
        let mut seats = Vec::new();
        for role in 0..members {
            let seat = present[role].then(|| (order.pop().unwrap(), offset(&mut rng)));
            if let Some((member, offset)) = seat {
                sizes[member] = offset + lengths[role];
            }
            seats.push(seat);
        }
        let truth = Truth::new(pattern, &lengths);
        World {
            pattern,
            truth,
            seats,
            sizes,
            lengths,
            base: plan.base,
            size,
            places: BTreeSet::new(),
            clues: Vec::new(),
            clones: Vec::new(),
            seed,
            empty: plan.empty,
            image,
        }
    }

    /// Draws blocks that say where they belong, in runs as tables of inodes are, and all their sightings.
    fn fill(&mut self, rng: &mut Rng, plan: Plan) {
        while self.places.len() < plan.blocks {
            let first = rng.below(self.size / BLOCK - 64) * BLOCK;
            let run = if rng.percent(50) { 1 } else { rng.within(2..=40) };
            self.places.extend((0..run).map(|index| first + index * BLOCK));
        }
        let mut clues = Vec::new();
        for &place in &self.places {
            let mut spots = self.truth.locate(self.base + place);
            if let Truth::Parity(raid) = &self.truth {
                let (role, row) = spots[0];
                let original = self.array(self.base + place);
                for other in (0..self.pattern.members).filter(|other| *other != role) {
                    if self.column(raid, other, row) == original {
                        spots.push((other, row));
                    }
                }
            }
            if rng.percent(plan.journal) {
                let elsewhere = rng.below(self.size / BLOCK) * BLOCK;
                spots.extend(self.truth.locate(self.base + elsewhere));
            }
            for (role, row) in spots {
                if let Some((member, offset)) = self.seats[role] {
                    clues.push(Clue { member, at: offset + row, anchor: 0, place, length: 4096 });
                }
            }
        }
        for _ in 0..plan.clones {
            let of = rng.index(self.sizes.len());
            let clone = self.sizes.len();
            self.sizes.push(self.sizes[of]);
            self.clones.push((clone, of));
            let same: Vec<Clue> = clues.iter().filter(|clue| clue.member == of).copied().collect();
            clues.extend(same.into_iter().map(|clue| Clue { member: clone, ..clue }));
        }
        rng.shuffle(&mut clues);
        self.clues = clues;
    }

    /// The same content in another geometry, over members that may be others.
    pub(crate) fn in_other_geometry(
        &self,
        pattern: Pattern,
        seats: Vec<Option<(usize, u64)>>,
    ) -> World {
        let lengths = vec![self.lengths[0]; pattern.members];
        World {
            pattern,
            truth: Truth::new(pattern, &lengths),
            seats,
            sizes: self.sizes.clone(),
            lengths,
            places: self.places.clone(),
            clues: Vec::new(),
            clones: Vec::new(),
            image: Rc::clone(&self.image),
            ..*self
        }
    }

    /// True if blocks were drawn for each member with data, ten at least, and one of two parities is left: without
    /// both, P and Q of sparse arrays pass for data, and those of DDF for those of md.
    pub(crate) fn has_enough_evidence(&self) -> bool {
        let missing = self.seats.iter().filter(|seat| seat.is_none()).count();
        if self.pattern.level == Level::Raid6 && missing > 1 {
            return false;
        }
        let mut counts = vec![0; self.pattern.members];
        for place in &self.places {
            self.truth.locate(self.base + place).iter().for_each(|(role, _)| counts[*role] += 1);
        }
        let seats = self.seats.iter().zip(&counts);
        seats.filter(|(seat, count)| seat.is_some() && **count > 0).all(|(_, count)| *count >= 10)
    }

    /// The members and offsets at which a byte of the structure lies.
    pub(crate) fn at(&self, place: u64) -> Vec<(usize, u64)> {
        let spots = self.truth.locate(self.base + place).into_iter();
        spots
            .filter_map(|(role, row)| {
                self.seats[role].map(|(member, offset)| (member, offset + row))
            })
            .collect()
    }

    pub(crate) fn question(&self) -> Question {
        let anchor = Anchor { structure: Structure::Xfs, uuid: [7; 16], size: Some(self.size) };
        Question {
            sizes: self.sizes.clone(),
            anchors: vec![anchor],
            clues: self.clues.clone(),
            ..Question::default()
        }
    }

    /// The sector of the array at a byte.
    pub(crate) fn array(&self, at: u64) -> Vec<u8> {
        if let Some(from) = at.checked_sub(self.base)
            && let Some(sector) = self.image.get(from as usize..(from + SECTOR) as usize)
        {
            return sector.to_vec();
        }
        if !self.image.is_empty() {
            return vec![0; SECTOR as usize];
        }
        let block = at / BLOCK * BLOCK;
        let is_clue =
            block.checked_sub(self.base).is_some_and(|place| self.places.contains(&place));
        let area = at / (64 << 10);
        if !is_clue && Rng::new(mix(&[self.seed, 2, area])).percent(self.empty) {
            return vec![0; SECTOR as usize];
        }
        noise(mix(&[self.seed, 3, at / SECTOR]))
    }

    /// The sector of a role at a row.
    fn column(&self, raid: &Raid456, role: usize, row: u64) -> Vec<u8> {
        let stripe = raid.stripe_of_row(MemberByte::new(row));
        let data = |index: usize| {
            let first = raid.span_of_stripe(stripe).offset.get();
            self.array(first + index as u64 * raid.chunk() + row % raid.chunk())
        };
        let column = raid.column_of(stripe, Role::nth(role));
        if let Column::Data(index) = column {
            return data(index);
        }
        let mut parity = vec![0; SECTOR as usize];
        let all: Vec<Vec<u8>> = (0..raid.data()).map(data).collect();
        if column == Column::P {
            all.iter().for_each(|one| braid_parity::xor_into(&mut parity, one));
        } else {
            let mut sources = vec![None; raid.powers()];
            for (index, one) in all.iter().enumerate() {
                sources[usize::from(raid.power(stripe, index))] = Some(one.as_slice());
            }
            braid_parity::q(&mut parity, &sources);
        }
        parity
    }

    /// The sector of a member.
    fn sector(&self, member: usize, at: u64) -> Vec<u8> {
        let member =
            self.clones.iter().find(|(clone, _)| *clone == member).map_or(member, |(_, of)| *of);
        let role = self.seats.iter().position(|seat| seat.is_some_and(|(one, _)| one == member));
        let other = || noise(mix(&[self.seed, 4, member as u64, at]));
        let Some(role) = role else { return other() };
        let Some(row) = at.checked_sub(self.seats[role].unwrap().1) else { return other() };
        match &self.truth {
            Truth::Parity(raid) if row < raid.member_size() => self.column(raid, role, row),
            Truth::Plain(geometry) if row < self.lengths[role] => {
                self.plain(geometry.as_ref(), role, row)
            }
            Truth::Copies(copies) => match copies.owner(Role::nth(role), MemberByte::new(row)) {
                Some(owner) => self.array(owner.offset.get()),
                None => other(),
            },
            _ => other(),
        }
    }

    /// The sector of a role of a level without redundancy.
    fn plain(&self, geometry: &dyn Geometry, role: usize, row: u64) -> Vec<u8> {
        let chunk = self.pattern.chunk;
        if self.pattern.level == Level::Linear {
            return self.array(self.lengths[..role].iter().sum::<u64>() + row);
        }
        // Rows grow with the bytes of the array: the first chunk in this row or behind, then a few more.
        let row_of = |index: u64| geometry.locate(ArrayByte::new(index * chunk)).offset.get();
        let (mut low, mut high) = (0, geometry.size() / chunk);
        while low < high {
            let middle = low.midpoint(high);
            if row_of(middle) / chunk < row / chunk { low = middle + 1 } else { high = middle }
        }
        let mut near = low..(low + self.pattern.members as u64).min(geometry.size() / chunk);
        let is_it = |index: &u64| {
            let run = geometry.locate(ArrayByte::new(index * chunk));
            run.role.index() == role && run.offset.get() / chunk == row / chunk
        };
        // The rest of a member that is no whole chunk is not used.
        near.find(is_it).map_or_else(
            || vec![0; SECTOR as usize],
            |index| self.array(index * chunk + row % chunk),
        )
    }

    /// Content of a member.
    pub(crate) fn read(&self, member: usize, at: u64, length: usize) -> Option<Vec<u8>> {
        if at + length as u64 > self.sizes[member] {
            return None;
        }
        let first = at / SECTOR * SECTOR;
        let sectors = (first..at + length as u64).step_by(SECTOR as usize);
        let bytes: Vec<u8> = sectors.flat_map(|at| self.sector(member, at)).collect();
        let skipped = (at - first) as usize;
        Some(bytes[skipped..skipped + length].to_vec())
    }
}

fn noise(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..SECTOR / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
}
