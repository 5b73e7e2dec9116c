//! The orders of operators to an array, given as in production.

use braid_engine::Dev;
use braid_engine::assembled::Newcomer;
use braid_engine::redundant::{ControlError, JobKind, MemberState, NewMember, Speed, Status};
use braid_md::Uuid;
use braid_mem::Pool;

use crate::SimDisk;
use crate::found::{carried, label, number};
use crate::scenario::What;
use crate::stage::{Stage, is_in_use};

/// Memory for what is written to a new member before it is one, in bytes.
const POOL_FOR_NEWCOMERS: usize = 64 << 10;
/// The most roles that a raid1 grows to.
const MOST_ROLES: usize = 4;

impl Stage {
    /// Has an operator give an order; what is refused is refused.
    pub(crate) async fn order(&self, what: What) -> bool {
        let status = self.array.status();
        let pick = |pick, wanted: &dyn Fn(MemberState) -> bool| picked(&status, pick, wanted);
        let result: Result<(), String> = match what {
            What::Fail { pick: number_ } => {
                let Some(member) = pick(number_, &|state| state != MemberState::Faulty) else {
                    return false;
                };
                let disk = number(&member);
                if !self.may_harm(disk, what) {
                    return false;
                }
                self.tell("operator", || format!("fail {member}"));
                said(self.array.fail(&member).await)
            }
            What::Remove { pick: number_ } => {
                let is_out = |state| matches!(state, MemberState::Faulty | MemberState::Spare);
                let Some(member) = pick(number_, &is_out) else { return false };
                self.tell("operator", || format!("remove {member}"));
                let result = said(self.array.remove(&member).await);
                self.shelve(&member, &result);
                result
            }
            What::Add => self.add_blank(None).await,
            What::Replace { pick: number_ } => {
                let Some(member) = pick(number_, &|state| state == MemberState::InSync) else {
                    return false;
                };
                self.add_blank(Some(member)).await
            }
            What::AddAgain { pick: number_ } => self.add_again(number_, &status).await,
            What::Check => said(self.array.scrub(Some(JobKind::Check))),
            What::Repair => said(self.array.scrub(Some(JobKind::Repair))),
            What::NoScrub => said(self.array.scrub(None)),
            What::Speed { rate } => {
                self.array.set_speed(Speed { min: rate, max: Some(rate), latency: None });
                Ok(())
            }
            What::Grow => {
                let roles = status.raid_disks + 1;
                if roles > MOST_ROLES {
                    return false;
                }
                self.tell("operator", || format!("grow to {roles} roles"));
                said(self.array.set_raid_disks(roles).await)
            }
            What::Bitmap { chunk } => {
                self.tell("operator", || format!("a bitmap with chunks of {chunk} bytes"));
                said(self.array.add_bitmap(Some(chunk), None).await.map(drop))
            }
            What::NoBitmap => {
                self.tell("operator", || "no bitmap".to_owned());
                said(self.array.remove_bitmap().await.map(drop))
            }
            What::Clock { by_s } => {
                self.handle.set_clock(by_s);
                Ok(())
            }
            What::Hold => said(self.array.hold_passes().await),
            What::GoOn => {
                self.array.let_passes_go_on();
                Ok(())
            }
            _ => return false,
        };
        self.tell("operator", || match &result {
            Ok(()) => "it is done".to_owned(),
            Err(why) => format!("refused: {why}"),
        });
        true
    }

    /// A spare that was removed can be used again.
    fn shelve(&self, member: &str, result: &Result<(), String>) {
        let disk = number(member);
        if result.is_ok() {
            self.shelf.borrow_mut().spent.remove(&disk);
        }
    }

    /// Adds a blank disk: as a spare, or beside the member `replaces`.
    pub(crate) async fn add_blank(&self, replaces: Option<String>) -> Result<(), String> {
        let disk = self.shelf.borrow_mut().blank.pop().ok_or("no blank disk is left")?;
        self.tell("operator", || match &replaces {
            None => format!("add disk{disk}"),
            Some(member) => format!("replace {member} with disk{disk}"),
        });
        let sim = self.disk(disk).ok_or("no such disk")?;
        let new = self.admit(self.newcomer(disk, &sim)).await?;
        match replaces {
            None => said(self.array.add(new).await),
            Some(member) => said(self.array.replace(&member, new).await),
        }?;
        self.open_on_shards(disk);
        Ok(())
    }

    fn newcomer(&self, disk: usize, sim: &SimDisk) -> Newcomer<'static> {
        let size = Dev::new(sim.clone()).limits().size;
        let uuid = Uuid(std::array::from_fn(|_| self.dice.borrow_mut().below(256) as u8));
        let (label, dev) = (label(disk), self.opened.dev(disk));
        Newcomer { label, dev, known: None, anew: false, superblocks: &[], size, uuid }
    }

    /// Adds a disk that was a member before: back in its role, if it may.
    async fn add_again(&self, pick: u64, status: &Status) -> Result<(), String> {
        let count = self.disks.borrow().len();
        let may = |disk: &usize| {
            let name = label(*disk);
            let is_there = self.disk(*disk).is_some_and(|sim| !sim.is_gone());
            let is_blank = self.shelf.borrow().blank.contains(disk);
            is_there && !is_blank && !status.members.iter().any(|one| is_in_use(one, &name))
        };
        let fits: Vec<usize> = (0..count).filter(may).collect();
        if fits.is_empty() {
            return Err("there is none".to_owned());
        }
        let disk = fits[(pick % fits.len() as u64) as usize];
        let name = label(disk);
        self.tell("operator", || format!("add {name} again"));
        if status.members.iter().any(|one| one.label == name) {
            said(self.array.remove(&name).await)?;
        }
        let sim = self.disk(disk).ok_or("no such disk")?;
        sim.faults().clear();
        let known = carried(&sim.contents()).ok();
        let is_other = self.shelf.borrow().scribbled.contains(&disk);
        let known = known.filter(|_| !is_other);
        let newcomer = Newcomer { known: known.as_ref(), ..self.newcomer(disk, &sim) };
        let new = self.admit(newcomer).await?;
        said(self.array.add(new).await)?;
        self.open_on_shards(disk);
        Ok(())
    }

    fn open_on_shards(&self, disk: usize) {
        self.shards.open(&self.array, &label(disk), &self.opened.dev(disk));
    }

    /// The engine's description of a newcomer, once all required structures are on it.
    async fn admit(&self, newcomer: Newcomer<'_>) -> Result<NewMember, String> {
        let admitted = newcomer.admit(self.log, &self.array);
        let admitted = admitted.map_err(|why| why.to_string())?;
        let pool = Pool::new(POOL_FOR_NEWCOMERS).map_err(|error| error.to_string())?;
        admitted.prepare(&pool).await.map(|(new, _)| new)
    }
}

/// Returns the label of one of the members in a wanted state, if there is one.
fn picked(status: &Status, pick: u64, wanted: &dyn Fn(MemberState) -> bool) -> Option<String> {
    let fits: Vec<_> = status.members.iter().filter(|one| wanted(one.state)).collect();
    (!fits.is_empty()).then(|| fits[(pick % fits.len() as u64) as usize].label.clone())
}

fn said(result: Result<(), ControlError>) -> Result<(), String> {
    result.map_err(|why| why.to_string())
}
