//! Campaign in, cells and the order of the trials out. Pure.
//!
//! Invariants:
//!
//! * every cell appears once in each repetition, and repetition r is over before r + 1 begins
//!   (blocking: what drifts over the hours hits all cells alike);
//! * inside a repetition the order is a shuffle by the campaign's seed;
//! * the offsets of a trial depend on workload and repetition and not on the subject, so the
//!   pairs that are compared saw the same offsets.

use std::fmt;

use crate::campaign::{Campaign, Op, Pattern};
use crate::rng::{SplitMix64, mix};
use braid_stack::ByteSize;

/// One workload, fully spelt out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Workload {
    /// The tool's name in the registry.
    pub tool: String,
    /// Order of the offsets.
    pub pattern: Pattern,
    /// Direction.
    pub op: Op,
    /// Bytes of one request.
    pub block_size: ByteSize,
    /// Requests in flight of each process.
    pub iodepth: u32,
    /// Processes.
    pub processes: u32,
    /// Past the page cache.
    pub direct: bool,
    /// A flush after so many writes; 0 is one at the end.
    pub flush_every: u32,
}

impl Workload {
    /// A name that tells workloads of one campaign apart: `sequential read 1M, depth 8`.
    pub fn label(&self) -> String {
        self.to_string()
    }

    /// The depth that suits a block size when the campaign names none.
    fn default_iodepth(block_size: ByteSize) -> u32 {
        if block_size.0 >= 256 << 10 { 8 } else { 32 }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tool != "fio" {
            write!(f, "{}: ", self.tool)?;
        }
        write!(f, "{} {} {}, depth {}", self.pattern, self.op, self.block_size, self.iodepth)?;
        if self.processes > 1 {
            write!(f, " x {}", self.processes)?;
        }
        if !self.direct {
            f.write_str(", buffered")?;
        }
        if self.flush_every > 0 {
            write!(f, ", flush every {}", self.flush_every)?;
        }
        Ok(())
    }
}

/// A workload on a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Index into the campaign's subjects.
    pub subject: usize,
    /// Number of the workload, 0-based, in the campaign's order.
    pub workload_index: usize,
    /// The workload.
    pub workload: Workload,
}

/// A cell in one repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Position in the schedule, from 1; names the raw file.
    pub number: u32,
    /// From 1.
    pub repetition: u32,
    /// What is run.
    pub cell: Cell,
    /// Seed of the offsets.
    pub seed: u64,
}

/// The workloads of a campaign, in the order in which they were written.
pub fn plan_workloads(campaign: &Campaign) -> Vec<Workload> {
    let mut workloads = Vec::new();
    for job in &campaign.jobs {
        for &pattern in &job.pattern.0 {
            for &op in &job.op.0 {
                for &block_size in &job.block_size.0 {
                    workloads.push(Workload {
                        tool: job.tool.clone(),
                        pattern,
                        op,
                        block_size,
                        iodepth: job
                            .iodepth
                            .unwrap_or_else(|| Workload::default_iodepth(block_size)),
                        processes: job.processes,
                        direct: job.direct,
                        flush_every: job.flush_every,
                    });
                }
            }
        }
    }
    workloads
}

/// Every workload on every subject.
pub fn plan_matrix(campaign: &Campaign) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (workload_index, workload) in plan_workloads(campaign).into_iter().enumerate() {
        for subject in 0..campaign.subjects.len() {
            cells.push(Cell { subject, workload_index, workload: workload.clone() });
        }
    }
    cells
}

/// The trials in the order in which they run.
pub fn plan_trials(campaign: &Campaign) -> Vec<Trial> {
    let cells = plan_matrix(campaign);
    let mut trials = Vec::with_capacity(cells.len() * campaign.repetitions as usize);
    for repetition in 1..=campaign.repetitions {
        let mut block = cells.clone();
        SplitMix64::new(mix(&[campaign.seed, u64::from(repetition)])).shuffle(&mut block);
        for cell in block {
            let number = trials.len() as u32 + 1;
            let seed = mix(&[campaign.seed, u64::from(repetition), cell.workload_index as u64]);
            trials.push(Trial { number, repetition, cell, seed });
        }
    }
    trials
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::quick_campaign;

    fn quick() -> Campaign {
        let subjects = [("stripe".to_owned(), "raid0(chunk=64K, a.img, b.img)".to_owned())];
        quick_campaign("a.img", &subjects).unwrap()
    }

    #[test]
    fn quick_is_sixteen_cells_and_forty_eight_trials() {
        assert_eq!(plan_matrix(&quick()).len(), 16);
        assert_eq!(plan_trials(&quick()).len(), 48);
    }

    #[test]
    fn each_repetition_holds_every_cell_once() {
        let campaign = quick();
        let mut cells = plan_matrix(&campaign);
        cells.sort_by_key(|cell| (cell.workload_index, cell.subject));
        for block in plan_trials(&campaign).chunks(cells.len()) {
            let mut found: Vec<Cell> = block.iter().map(|trial| trial.cell.clone()).collect();
            found.sort_by_key(|cell| (cell.workload_index, cell.subject));
            assert_eq!(found, cells);
            assert!(block.iter().all(|trial| trial.repetition == block[0].repetition));
        }
    }

    #[test]
    fn the_seed_decides_the_order_and_nothing_else_does() {
        let campaign = quick();
        assert_eq!(plan_trials(&campaign), plan_trials(&campaign));
        let other = Campaign { seed: campaign.seed + 1, ..campaign.clone() };
        assert_ne!(plan_trials(&campaign), plan_trials(&other));
    }

    #[test]
    fn repetitions_are_shuffled_differently() {
        let trials = plan_trials(&quick());
        let order = |block: &[Trial]| -> Vec<(usize, usize)> {
            block.iter().map(|t| (t.cell.workload_index, t.cell.subject)).collect()
        };
        assert_ne!(order(&trials[..16]), order(&trials[16..32]));
    }

    #[test]
    fn compared_pairs_share_their_offsets() {
        let trials = plan_trials(&quick());
        for trial in &trials {
            let twin = trials.iter().find(|other| {
                other.repetition == trial.repetition
                    && other.cell.workload_index == trial.cell.workload_index
                    && other.cell.subject != trial.cell.subject
            });
            assert_eq!(twin.unwrap().seed, trial.seed);
        }
    }

    proptest::proptest! {
        /// For every seed, each repetition is a permutation of the matrix and the numbers count up.
        #[test]
        fn every_schedule_is_complete(seed: u64, repetitions in 1_u32..6) {
            let campaign = Campaign { seed, repetitions, ..quick() };
            let trials = plan_trials(&campaign);
            let mut seen = std::collections::BTreeSet::new();
            for (index, trial) in trials.iter().enumerate() {
                proptest::prop_assert_eq!(trial.number as usize, index + 1);
                proptest::prop_assert_eq!(trial.repetition as usize, index / 16 + 1);
                let key = (trial.repetition, trial.cell.workload_index, trial.cell.subject);
                proptest::prop_assert!(seen.insert(key));
            }
            proptest::prop_assert_eq!(seen.len(), 16 * repetitions as usize);
        }
    }
}
