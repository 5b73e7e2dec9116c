//! The start of an array after a crash: it is read, compared with what the oracle allows, and examined.

use std::cell::Cell;
use std::rc::Rc;

use braid_block::Span;
use braid_engine::Dev;
use braid_engine::redundant::Redundant;
use braid_md::Resync;

use crate::brief::brief;
use crate::rest::{STEP_NS, check_agreement, check_at_rest, read_all};
use crate::spec::Spec;
use crate::{Handle, Oracle, Rng, SimDisk};

/// An array that is started after a crash.
pub(crate) struct Restart {
    pub array: Redundant,
    pub handle: Handle,
    pub oracle: Oracle,
    /// True if its superblocks have to be written first.
    pub is_changed: bool,
    pub may_give_up: bool,
    /// Becomes true when all has been read: no crash follows then.
    pub calm: Rc<Cell<bool>>,
}

impl Restart {
    /// Starts the array, and returns its content, which is what the oracle allows; nothing if the array may be
    /// refused, and is.
    pub(crate) async fn read(&self) -> Result<Option<Vec<u8>>, String> {
        let excused = |why| if self.may_give_up { Ok(None) } else { Err(why) };
        if let Err(why) = self.array.restart().await {
            return excused(format!("it is not restarted: {why}"));
        }
        self.handle.spawn("array", self.array.run());
        if self.is_changed
            && let Err(why) = self.array.record().await
            && !self.may_give_up
        {
            return Err(format!("not recorded: {why}"));
        }
        let contents = read_all(&Dev::new(self.array.clone())).await;
        self.calm.set(true);
        let contents = match contents {
            Ok(contents) => contents,
            Err(why) => return excused(why),
        };
        let mut oracle = self.oracle.clone();
        let read = oracle.begin_read(Span::new(0, contents.len() as u64));
        oracle
            .end_read(read, Some(&contents))
            .map_err(|why| format!("after a crash {why}; {}", brief(&self.array)))?;
        Ok(Some(contents))
    }

    /// Compares its members `at_rest`, or as they are when it is up.
    pub(crate) async fn examine(
        &self,
        spec: &Spec,
        at_rest: bool,
        disks: &[SimDisk],
        contents: &[u8],
        choices: &mut Rng,
    ) -> Result<(), String> {
        if at_rest {
            let steps = async {
                for _ in 0..10 {
                    self.handle.sleep(STEP_NS).await;
                }
            };
            return check_at_rest(spec, &self.array, disks, contents, choices, steps).await;
        }
        let is_synced = self.array.status().resync == Resync::Clean && spec.has_parity();
        if is_synced { check_agreement(disks, "when it is up").map(drop) } else { Ok(()) }
    }
}
