//! The partial parity log after a crash: recomputing the parity of writes that were in flight.
//!
//! ```text
//!   newest header ──▶ entries ──▶ partial parity ⊕ present data of the written roles ──▶ parity
//! ```

use std::ops::Range;
use std::rc::Rc;

use braid_array::geometry::{Column, Raid456};
use braid_array::{Geometry, MemberByte, MemberSpan, Role};
use braid_md::Resync;
use braid_md::ppl::{self, Newest};
use braid_md::rejection::PplRejection;

use super::{Partial, area_of};
use crate::canary::Canary;
use crate::redundant::core::Core;
use crate::redundant::log::{Outcome, RestartError, Restarted, read_area, write_role};
use crate::redundant::roster::Member;
use crate::redundant::stripe::columns::Columns;

/// Rows that are recomputed at a time after a crash, in bytes.
const RECOMPUTED: u64 = 16 << 10;

impl Partial {
    /// Recomputes the parity of writes that were in flight at a crash.
    pub(super) async fn make_good(
        &self,
        core: &Rc<Core>,
        geometry: &Raid456,
        is_dirty: bool,
    ) -> Result<Restarted, RestartError> {
        let found = core.agreement.resync();
        let restarted = |outcome, resync| Restarted { outcome, resync, unfit: Vec::new() };
        if !is_dirty || Canary::LogNotReplayed.is_planted() {
            return Ok(restarted(Outcome::Good(0), found));
        }
        let holders: Vec<(Role, Rc<Member>)> = {
            let slots = core.roster.slots();
            let readable = slots.iter().map(|(role, slot)| Some((role, slot.readable().cloned()?)));
            readable.flatten().collect()
        };
        let (mut doubts, mut torn) = (Vec::new(), Vec::new());
        let mut count = 0;
        for (role, member) in holders {
            let mut trouble = |trouble: Trouble| {
                let (all, why) = match trouble {
                    Trouble::Torn(why) => (&mut torn, why),
                    Trouble::Log(why) => (&mut doubts, why),
                    Trouble::Write(why) => return Err(RestartError::Write { why }),
                };
                self.doubtful.borrow_mut().push(member.number);
                all.push(format!("{}: {why}", member.label));
                Ok(())
            };
            match self.read_newest(core, &member).await {
                Ok((area, newest)) => {
                    for (entry, range) in newest.parity_ranges() {
                        match recompute(core, geometry, role, &area, entry, range).await {
                            Ok(()) => count += 1,
                            Err(why) => trouble(why)?,
                        }
                    }
                }
                Err(why) => trouble(why)?,
            }
        }
        let stopped = |_| RestartError::Write { why: "nothing is written any more".to_owned() };
        let _flushed = core.flush().await.map_err(stopped)?;
        if let Some(doubt) = doubts.into_iter().next() {
            return Ok(restarted(Outcome::Doubtful(doubt), Resync::From(0)));
        }
        core.fill_again_from(MemberByte::START).await;
        if core.gate.is_degraded() {
            // Parity defines the missing data: there is nothing to resynchronise, and later writes are logged.
            torn.into_iter().for_each(|why| core.note(format!("passed over in the log: {why}")));
            return Ok(restarted(Outcome::Good(count.max(1)), Resync::Clean));
        }
        if let Some(why) = torn.into_iter().next() {
            return Ok(restarted(Outcome::Doubtful(why), Resync::From(0)));
        }
        // Without a log entry the parity was not known to fit.
        let is_whole = count > 0 && found == Resync::From(0);
        let resync = if is_whole { Resync::Clean } else { found };
        Ok(restarted(Outcome::Good(count), resync))
    }

    async fn read_newest(
        &self,
        core: &Core,
        member: &Member,
    ) -> Result<(Vec<u8>, Newest), Trouble> {
        let no_room = || Trouble::Log("it has no room for a log".to_owned());
        let area = area_of(member).ok_or_else(no_room)?;
        let area = read_area(core, member, area).await.map_err(Trouble::Log)?;
        let newest = ppl::newest(&area, self.signature)?;
        Ok((area, newest))
    }
}

/// Recomputes the parity of the rows of a logged write from partial parity and present data.
async fn recompute(
    core: &Core,
    geometry: &Raid456,
    role: Role,
    area: &[u8],
    entry: &ppl::Entry,
    range: Range<usize>,
) -> Result<(), Trouble> {
    let kept = Newest::parity(area, entry, range)?;
    let covered = ppl::covered(entry, geometry.chunk(), geometry.data(), geometry.size())?;
    let p = geometry.role_of(covered.stripe, Column::P);
    ppl::check_parity_role(entry, p.get(), role.get())?;
    let written: Vec<Role> = (covered.first..covered.first + covered.count)
        .map(|index| geometry.role_of(covered.stripe, Column::Data(index)))
        .collect();
    let (first, end) = (MemberByte::new(covered.rows.0), MemberByte::new(covered.rows.1));
    let mut start = first;
    while start < end {
        let rows = MemberSpan::new(start, (end - start).min(RECOMPUTED));
        // Data that was written to a missing member is lost with it. The other data of these rows is unchanged,
        // and the old parity still fits.
        if written.iter().all(|role| core.is_readable(*role, rows)) {
            let offset = (start - first) as usize;
            let kept = (!kept.is_empty()).then(|| &kept[offset..offset + rows.len as usize]);
            let recomputed = recompute_rows(core, geometry, rows, p, &written, kept).await;
            recomputed.map_err(Trouble::Write)?;
        }
        start = rows.end();
    }
    Ok(())
}

async fn recompute_rows(
    core: &Core,
    geometry: &Raid456,
    rows: MemberSpan,
    p: Role,
    written: &[Role],
    kept: Option<&[u8]>,
) -> Result<(), String> {
    let memory = core.work.pool().get_wait(geometry.members() * rows.len as usize).await;
    let (mut columns, _) = Columns::new(geometry, rows, memory, |_| true);
    let mut wanted: Vec<(Role, MemberSpan)> = written.iter().map(|role| (*role, rows)).collect();
    wanted.sort_unstable_by_key(|(role, _)| *role);
    if let Some((role, _)) = columns.read(&core.roster, &wanted).await.first() {
        return Err(format!("the member in role {role} cannot be read at {rows}"));
    }
    let sum = {
        let mut sources: Vec<&[u8]> = written.iter().map(|role| columns.get(*role, rows)).collect();
        sources.extend(kept);
        let mut sum = vec![0; rows.len as usize];
        braid_parity::xor(&mut sum, &sources);
        sum
    };
    columns.get_mut(p, rows).copy_from_slice(&sum);
    let payload = columns.share(p);
    write_role(core, p, rows, payload).await
}

enum Trouble {
    /// A checksum does not match, as if the log was being written at the crash: then the writes in the log had
    /// not begun.
    Torn(String),
    Log(String),
    Write(String),
}

impl From<PplRejection> for Trouble {
    fn from(why: PplRejection) -> Trouble {
        match why.is_torn() {
            true => Trouble::Torn(why.to_string()),
            false => Trouble::Log(why.to_string()),
        }
    }
}
