//! The programs that would refuse a member, and their reasons: a table of rules, each with the field that it is
//! about.
//!
//! The table contains only known behaviour of kernels and of mdadm. Rules that depend on the other members
//! (missing ones, event counts) are not in it, so a superblock that breaks no rule may still be refused for
//! such a reason.
//!
//! Sources: Linux `drivers/md/md.c` (`super_1_load`, `super_1_validate`, `super_90_load`),
//! `raid0.c` (`create_strip_zones`), `raid5.c` (`setup_conf`), `raid10.c` (`setup_geo`),
//! `md-bitmap.c` (`md_bitmap_read_sb`), and the releases in which features came and went.

use std::fmt;

use super::rules_checks as checks;
use super::written::{Written, v1};
use super::{Surroundings, fields};
use braid_md::Version;

/// A program that refuses. Versions are those of the first release that does, and of the first that no longer
/// does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Every kernel, every mdadm, and braid.
    Everyone,
    /// Every kernel that has md, so that mdadm cannot assemble it either.
    Linux,
    /// braid, for a reason that none of the rules has.
    Braid,
    /// Older kernels.
    LinuxBefore(&'static str),
    /// Newer kernels.
    LinuxFrom(&'static str),
    /// The kernels from one release to another.
    LinuxBetween(&'static str, &'static str),
    /// Older releases of mdadm, for what they would have to write or to pass to the kernel.
    MdadmBefore(&'static str),
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Everyone => f.write_str("everyone"),
            Who::Linux => f.write_str("Linux"),
            Who::Braid => f.write_str("braid"),
            Who::LinuxBefore(version) => write!(f, "Linux before {version}"),
            Who::LinuxFrom(version) => write!(f, "Linux {version} and later"),
            Who::LinuxBetween(from, until) => write!(f, "Linux from {from} until before {until}"),
            Who::MdadmBefore(version) => write!(f, "mdadm before {version}"),
        }
    }
}

impl Who {
    /// True if something is wrong with the superblock, rather than new or old.
    #[must_use]
    pub fn is_every_release(self) -> bool {
        matches!(self, Who::Everyone | Who::Linux | Who::Braid)
    }
}

/// A rule that a superblock breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule's name, which does not change.
    pub rule: &'static str,
    /// The field's name in `md_p.h`.
    pub field: &'static str,
    /// The program that refuses.
    pub who: Who,
    /// The reason, in a sentence with the values.
    pub why: String,
}

/// A rule: `find` gives the sentence if it is broken.
pub(super) struct Rule {
    name: &'static str,
    field: &'static str,
    who: Who,
    find: fn(&Written<'_>, &Surroundings<'_>) -> Option<String>,
}

const fn rule(
    name: &'static str,
    field: &'static str,
    who: Who,
    find: fn(&Written<'_>, &Surroundings<'_>) -> Option<String>,
) -> Rule {
    Rule { name, field, who, find }
}

/// For version 1.
const RULES_1: &[Rule] = &[
    rule("magic", "magic", Who::Everyone, checks::magic),
    rule("major_version", "major_version", Who::Everyone, checks::major_version),
    rule("max_dev", "max_dev", Who::Everyone, checks::max_dev),
    rule("super_offset", "super_offset", Who::Everyone, checks::super_offset),
    rule("checksum", "sb_csum", Who::Everyone, checks::checksum),
    rule("unknown_features", "feature_map", Who::LinuxBefore("6.19"), checks::unknown_features),
    rule("padding", "pad0", Who::Linux, |sb, _| checks::padding(sb, v1::PAD0, 4)),
    rule("padding", "pad3", Who::Linux, |sb, _| checks::padding(sb, v1::PAD3, 28)),
    rule(
        "logical_block_size",
        "logical_block_size",
        Who::LinuxBefore("6.19"),
        checks::logical_block_size,
    ),
    rule("data_size", "data_size", Who::Linux, checks::data_size),
    rule("device_too_small", "data_size", Who::Linux, checks::device_too_small),
    rule("data_offset", "data_offset", Who::Linux, checks::data_offset),
    rule("data_alignment", "data_offset", Who::Linux, checks::data_alignment),
    rule("level", "level", Who::Linux, checks::level),
    rule("linear", "level", Who::LinuxBetween("6.8", "6.14"), checks::linear),
    rule("raid0_layout", "layout", Who::LinuxFrom("5.4"), checks::raid0_layout),
    rule("raid0_layout_bit", "feature_map", Who::Linux, checks::raid0_layout_bit),
    rule("layout", "layout", Who::Linux, checks::layout),
    rule("chunk", "chunksize", Who::Linux, checks::chunk),
    rule("raid_disks", "raid_disks", Who::Linux, checks::raid_disks),
    rule("ppl_alone", "feature_map", Who::Linux, checks::ppl_alone),
    rule("journal_role", "dev_roles", Who::Linux, checks::journal_role),
    rule("bad_block_log", "bblog_offset", Who::Linux, checks::bad_block_log),
    rule("bitmap", "bitmap_offset", Who::Linux, checks::bitmap),
    rule("clustered", "bitmap_offset", Who::Linux, checks::clustered),
    rule("lockless", "bitmap_offset", Who::LinuxBefore("6.18"), checks::lockless),
];

/// For version 0.90.
const RULES_0_90: &[Rule] = &[
    rule("magic", "md_magic", Who::Everyone, checks::magic),
    rule("byte_order", "md_magic", Who::Linux, checks::byte_order),
    rule("major_version", "major_version", Who::Everyone, checks::major_version),
    rule("minor_version", "minor_version", Who::Everyone, checks::minor_version),
    rule("checksum", "sb_csum", Who::Everyone, checks::checksum),
    rule("level", "level", Who::Linux, checks::level),
    rule("linear", "level", Who::LinuxBetween("6.8", "6.14"), checks::linear),
    rule("raid0_layout", "layout", Who::LinuxFrom("5.4"), checks::raid0_layout),
    rule("layout", "layout", Who::Linux, checks::layout),
    rule("chunk", "chunk_size", Who::Linux, checks::chunk),
    rule("raid_disks", "raid_disks", Who::Linux, checks::raid_disks),
    rule("device_too_small", "size", Who::Linux, checks::device_too_small_old),
    rule("above_2_tib", "size", Who::LinuxBefore("3.1"), checks::above_2_tib),
];

/// All rules that the superblock breaks, the most serious first.
#[must_use]
pub fn refusals(sb: &Written<'_>, around: &Surroundings<'_>) -> Vec<Refusal> {
    let rules = if sb.version() == Version::V0_90 { RULES_0_90 } else { RULES_1 };
    let broken = rules.iter().filter_map(|rule| {
        let why = (rule.find)(sb, around)?;
        Some(Refusal { rule: rule.name, field: rule.field, who: rule.who, why })
    });
    let broken: Vec<Refusal> = broken.collect();
    let braid = sb.rejection(around).filter(|_| broken.iter().all(|r| r.who != Who::Everyone));
    let braid = braid.map(|rejection| Refusal {
        rule: "braid",
        field: "",
        who: Who::Braid,
        why: rejection.to_string(),
    });
    broken.into_iter().chain(braid).chain(too_old(sb)).collect()
}

/// Kernels and mdadms from before a feature that the superblock uses.
fn too_old(sb: &Written<'_>) -> impl Iterator<Item = Refusal> {
    let used = fields::FEATURES.iter().filter(|feature| sb.features().contains(feature.bit));
    used.flat_map(|feature| {
        let linux = feature.linux.map(Who::LinuxBefore);
        let mdadm = feature.mdadm.map(Who::MdadmBefore);
        linux.into_iter().chain(mdadm).map(|who| Refusal {
            rule: "feature",
            field: "feature_map",
            who,
            why: format!(
                "{} (feature bit {:#x}) is not known there",
                feature.meaning, feature.bit.0
            ),
        })
    })
}
