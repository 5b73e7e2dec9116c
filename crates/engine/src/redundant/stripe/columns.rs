//! The rows of one stripe in memory: a buffer for each role.
//!
//! ```text
//!   role          0      1      2      3
//!   rows       | D 0  | D 1  |  P   |  Q   |     read, recovered or computed
//! ```
//!
//! Pure except for [`Columns::read`]. Deliberately absent: the choice of the columns to read (`braid_array`'s
//! planner), and the data of a client's write, which stay in the client's memory.

use std::rc::Rc;

use braid_array::geometry::{Column, Raid456};
use braid_array::parity_plan::{Band, Method};
use braid_array::{ByRole, Geometry, MemberByte, MemberSpan, Role};
use braid_block::{Io, Payload};
use braid_mem::Buf;

use crate::join_all;
use crate::redundant::roster::{Member, Roster};

/// The rows of one stripe in memory.
pub(in crate::redundant) struct Columns {
    pub(in crate::redundant) geometry: Raid456,
    pub(in crate::redundant) stripe: u64,
    /// The rows in the members' data.
    pub(in crate::redundant) rows: MemberSpan,
    /// `None` if no buffer is needed, and while a buffer is taken.
    bufs: ByRole<Option<Buf>>,
}

impl Columns {
    /// Cuts room for `rows` of each column that `is_needed` from the front of `memory`. Returns the rest.
    pub(in crate::redundant) fn new(
        geometry: &Raid456,
        rows: MemberSpan,
        mut memory: Buf,
        is_needed: impl Fn(Column) -> bool,
    ) -> (Columns, Buf) {
        let stripe = geometry.stripe_of_row(rows.offset);
        let room = |role: Role| {
            is_needed(geometry.column_of(stripe, role)).then(|| {
                let rest = memory.split_off(rows.len as usize);
                std::mem::replace(&mut memory, rest)
            })
        };
        let bufs = ByRole::new(geometry.members(), room);
        debug_assert!(geometry.rows_of_stripe(stripe).covers(rows));
        (Columns { geometry: geometry.clone(), stripe, rows, bufs }, memory)
    }

    pub(in crate::redundant) fn role_of(&self, column: Column) -> Role {
        self.geometry.role_of(self.stripe, column)
    }

    fn q_role(&self) -> Option<Role> {
        (self.geometry.parities() == 2).then(|| self.role_of(Column::Q))
    }

    fn range(&self, rows: MemberSpan) -> std::ops::Range<usize> {
        let start = (rows.offset - self.rows.offset) as usize;
        start..start + rows.len as usize
    }

    /// Returns the rows `rows` of `role`.
    pub(in crate::redundant) fn get(&self, role: Role, rows: MemberSpan) -> &[u8] {
        &self.bufs[role].as_ref().expect("the buffer is in place")[self.range(rows)]
    }

    pub(in crate::redundant) fn get_mut(&mut self, role: Role, rows: MemberSpan) -> &mut [u8] {
        let range = self.range(rows);
        &mut self.bufs[role].as_mut().expect("the buffer is in place")[range]
    }

    /// Makes all buffers that are there zero.
    pub(in crate::redundant) fn clear(&mut self) {
        self.bufs.iter_mut().filter_map(|(_, buf)| buf.as_mut()).for_each(|buf| buf.fill(0));
    }

    /// Shares the buffer of `role`, to be stored.
    pub(in crate::redundant) fn share(&mut self, role: Role) -> Payload {
        Payload::One(self.bufs[role].as_mut().expect("the buffer is in place").share())
    }

    /// Takes the buffer of `role` in three parts: before `rows`, `rows`, and behind. [`Columns::put_together`]
    /// is to follow.
    pub(in crate::redundant) fn take_apart(
        &mut self,
        role: Role,
        rows: MemberSpan,
    ) -> [Payload; 3] {
        let mut rest = self.take(role);
        let before = rest.take_front(rows.offset - self.rows.offset);
        let part = rest.take_front(rows.len);
        [before, part, rest]
    }

    pub(in crate::redundant) fn put_together(&mut self, role: Role, parts: [Payload; 3]) {
        let [mut whole, part, rest] = parts;
        whole.append(part);
        whole.append(rest);
        self.put_back(role, whole);
    }

    /// Takes the buffers back after the shares of [`Columns::share`] are dropped: they can be read and computed
    /// anew.
    pub(in crate::redundant) fn reclaim(&mut self) {
        self.bufs.iter_mut().filter_map(|(_, buf)| buf.as_mut()).for_each(|buf| {
            buf.detach();
        });
    }

    /// Takes the buffer of `role`, to be stored and not used again.
    pub(in crate::redundant) fn take(&mut self, role: Role) -> Payload {
        Payload::One(self.bufs[role].take().expect("the buffer is in place"))
    }

    fn put_back(&mut self, role: Role, mut payload: Payload) {
        payload.detach();
        self.bufs[role] = Some(payload.into_one().expect("the pieces of one buffer"));
    }

    /// Reads `wanted`, role by role and in the order of the rows. Returns the roles whose reads failed, with
    /// the member that failed, if there is one.
    pub(in crate::redundant) async fn read(
        &mut self,
        roster: &Roster,
        wanted: &[(Role, MemberSpan)],
    ) -> Vec<(Role, Option<Rc<Member>>)> {
        let mut roles: Vec<Option<Rc<Member>>> = Vec::with_capacity(wanted.len());
        let mut started = Vec::with_capacity(wanted.len());
        let mut pieces = Vec::with_capacity(wanted.len());
        {
            let slots = roster.slots();
            let mut rest: Option<(Role, MemberByte, Payload)> = None;
            for &(role, span) in wanted {
                let (at, mut payload) = match rest.take() {
                    Some((other, at, payload)) if other == role => (at, payload),
                    other => {
                        if let Some((role, _, payload)) = other {
                            pieces.push((role, None, payload));
                        }
                        (self.rows.offset, self.take(role))
                    }
                };
                pieces.push((role, None, payload.take_front(span.offset - at)));
                let part = payload.take_front(span.len);
                let member = slots[role].readable().cloned();
                pieces.push((role, Some(started.len()), Payload::None));
                started.push(match &member {
                    Some(member) => member.dev.start(Io::read(member.on_device(span.offset), part)),
                    None => crate::Pending::ready(
                        Io::read(span.offset.get(), part).complete(Err(braid_block::Errno::IO)),
                    ),
                });
                roles.push(member);
                rest = Some((role, span.end(), payload));
            }
            if let Some((role, _, payload)) = rest {
                pieces.push((role, None, payload));
            }
        }
        let mut completions = join_all(started).await;
        let mut failed: Vec<(Role, Option<Rc<Member>>)> = Vec::new();
        for ((completion, (role, _)), member) in completions.iter().zip(wanted).zip(&roles) {
            if completion.result.is_err() && failed.iter().all(|(other, _)| other != role) {
                failed.push((*role, member.clone()));
            }
        }
        let mut whole: Option<(Role, Payload)> = None;
        for (role, read, mut payload) in pieces {
            if let Some(index) = read {
                payload = std::mem::take(&mut completions[index].payload);
            }
            match &mut whole {
                Some((current, sum)) if *current == role => sum.append(payload),
                _ => {
                    if let Some((role, sum)) = whole.replace((role, payload)) {
                        self.put_back(role, sum);
                    }
                }
            }
        }
        if let Some((role, sum)) = whole {
            self.put_back(role, sum);
        }
        failed
    }

    /// Fills the data columns of `rows` for which `has` is false, from those for which it is true. Returns
    /// false, and does nothing, if they do not suffice.
    pub(in crate::redundant) fn recover(
        &mut self,
        rows: MemberSpan,
        has: &dyn Fn(Role) -> bool,
    ) -> bool {
        let data = self.geometry.data();
        let lost: Vec<usize> =
            (0..data).filter(|index| !has(self.role_of(Column::Data(*index)))).collect();
        let p = self.role_of(Column::P);
        let q = self.q_role().filter(|role| has(*role));
        match (&lost[..], has(p), q) {
            ([], ..) => true,
            (&[index], true, _) => {
                self.recover_by_p(rows, index);
                true
            }
            (&[index], false, Some(q)) => {
                self.recover_by_q(rows, index, q);
                true
            }
            (&[a, b], true, Some(q)) => {
                self.recover_two(rows, a, b, q);
                true
            }
            _ => false,
        }
    }

    fn recover_by_p(&mut self, rows: MemberSpan, index: usize) {
        let lost = self.role_of(Column::Data(index));
        let mut target = self.bufs[lost].take().expect("the buffer is in place");
        let others = (0..self.geometry.data()).filter(|other| *other != index);
        let mut sources: Vec<&[u8]> =
            others.map(|other| self.get(self.role_of(Column::Data(other)), rows)).collect();
        sources.push(self.get(self.role_of(Column::P), rows));
        braid_parity::xor(&mut target[self.range(rows)], &sources);
        self.bufs[lost] = Some(target);
    }

    fn recover_by_q(&mut self, rows: MemberSpan, index: usize, q: Role) {
        let lost = self.role_of(Column::Data(index));
        let mut target = self.bufs[lost].take().expect("the buffer is in place");
        let by_power = self.by_power(&|other| {
            (other != index).then(|| self.get(self.role_of(Column::Data(other)), rows))
        });
        let power = self.geometry.power(self.stripe, index);
        let range = self.range(rows);
        braid_parity::recover_by_q(&mut target[range], power, self.get(q, rows), &by_power);
        self.bufs[lost] = Some(target);
    }

    fn recover_two(&mut self, rows: MemberSpan, a: usize, b: usize, q: Role) {
        let roles = [a, b].map(|index| self.role_of(Column::Data(index)));
        let [mut first, mut second] =
            roles.map(|role| self.bufs[role].take().expect("the buffer is in place"));
        let by_power = self.by_power(&|other| {
            (other != a && other != b).then(|| self.get(self.role_of(Column::Data(other)), rows))
        });
        let [a, b] = [a, b].map(|index| self.geometry.power(self.stripe, index));
        let (p, q) = (self.get(self.role_of(Column::P), rows), self.get(q, rows));
        let range = self.range(rows);
        let (one, other) = (&mut first[range.clone()], &mut second[range]);
        braid_parity::recover_two(one, a, other, b, p, q, &by_power);
        self.bufs[roles[0]] = Some(first);
        self.bufs[roles[1]] = Some(second);
    }

    /// Returns the data blocks in the order of Q's powers; `block` returns that of a data column.
    fn by_power<'a>(&self, block: &dyn Fn(usize) -> Option<&'a [u8]>) -> Vec<Option<&'a [u8]>> {
        let mut by_power = vec![None; self.geometry.powers()];
        for index in 0..self.geometry.data() {
            by_power[usize::from(self.geometry.power(self.stripe, index))] = block(index);
        }
        by_power
    }

    /// Computes the parity of `rows` into the buffers of the roles that `is_wanted`. `new` returns the new data
    /// of a column that is not in its buffer.
    pub(in crate::redundant) fn compute<'a>(
        &mut self,
        rows: MemberSpan,
        is_wanted: &dyn Fn(Role) -> bool,
        new: &dyn Fn(usize) -> Option<&'a [u8]>,
    ) {
        let range = self.range(rows);
        let p_role = self.role_of(Column::P);
        let q_role = self.q_role().filter(|role| is_wanted(*role));
        let mut p = is_wanted(p_role).then(|| self.bufs[p_role].take().expect("in its place"));
        let mut q = q_role.map(|role| self.bufs[role].take().expect("in its place"));
        let block = |index: usize| {
            new(index).unwrap_or_else(|| self.get(self.role_of(Column::Data(index)), rows))
        };
        match (&mut p, &mut q) {
            (Some(p), Some(q)) => {
                let by_power = self.by_power(&|index| Some(block(index)));
                braid_parity::pq(&mut p[range.clone()], &mut q[range], &by_power);
            }
            (Some(p), None) => {
                let sources: Vec<&[u8]> = (0..self.geometry.data()).map(block).collect();
                braid_parity::xor(&mut p[range], &sources);
            }
            (None, Some(q)) => {
                let by_power = self.by_power(&|index| Some(block(index)));
                braid_parity::q(&mut q[range], &by_power);
            }
            (None, None) => {}
        }
        if p.is_some() {
            self.bufs[p_role] = p;
        }
        if let Some(role) = q_role {
            self.bufs[role] = q;
        }
    }

    /// Updates the parity of `rows` for the roles that `is_wanted`, by the difference between the old data of
    /// column `index` and `new`. Old data and parity were read. The buffer of the column then holds the
    /// difference.
    pub(in crate::redundant) fn update(
        &mut self,
        rows: MemberSpan,
        index: usize,
        new: &[u8],
        is_wanted: &dyn Fn(Role) -> bool,
    ) {
        let role = self.role_of(Column::Data(index));
        braid_parity::xor_into(self.get_mut(role, rows), new);
        let difference = self.bufs[role].take().expect("the buffer is in place");
        let range = self.range(rows);
        let p = self.role_of(Column::P);
        if is_wanted(p) {
            braid_parity::xor_into(self.get_mut(p, rows), &difference[range.clone()]);
        }
        if let Some(q) = self.q_role().filter(|role| is_wanted(*role)) {
            let power = self.geometry.power(self.stripe, index);
            braid_parity::update_q(self.get_mut(q, rows), power, &difference[range]);
        }
        self.bufs[role] = Some(difference);
    }

    /// Computes the XOR of the unwritten data in `band`'s rows, before [`Columns::update`]: from parity and the
    /// old data, or from the other columns, as `method` has read them.
    pub(in crate::redundant) fn partial(&self, band: &Band, method: Method, target: &mut [u8]) {
        let is_written = |index: &usize| (band.first..band.first + band.count).contains(index);
        let data = (0..self.geometry.data())
            .filter(|index| is_written(index) == (method == Method::Modify))
            .map(|index| self.role_of(Column::Data(index)));
        let parity = (method == Method::Modify).then(|| self.role_of(Column::P));
        let sources: Vec<&[u8]> =
            data.chain(parity).map(|role| self.get(role, band.rows)).collect();
        braid_parity::xor(target, &sources);
    }
}
