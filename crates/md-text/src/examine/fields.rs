//! Every field of a superblock in order: where it lies, what it is called, and what it means.
//!
//! Invariant: the fields of a table follow each other without a gap and without an overlap
//! (a test holds that), so that `--explain` leaves no byte out.
//!
//! Source: Linux `include/uapi/linux/raid/md_p.h`, whose names these are.

use braid_md::Features;

/// The way in which a field's bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number of the field's width.
    Number,
    /// A number that can be negative.
    Signed,
    /// A number in hexadecimal.
    Hex,
    /// Sectors of 512 bytes.
    Sectors,
    /// Sectors, forwards or backwards.
    SignedSectors,
    /// Sectors, all bits set for: all of it.
    SectorsOrAll,
    /// Blocks of 1 KiB.
    Kib,
    /// Text that ends with the first NUL.
    Text,
    /// 16 bytes.
    Uuid,
    /// 40 bits of seconds since 1970, 24 bits of microseconds.
    Time,
    /// 32 bits of seconds since 1970.
    OldTime,
    /// A level's number.
    Level,
    /// A layout of the array's level.
    Layout,
    /// Feature bits.
    Features,
    /// A bitmap's place in sectors, or 16 bits each of place and size of a partial parity log.
    BitmapOrPpl,
    /// Write-mostly and fail-fast.
    DeviceFlags,
    /// 0.90's state bits.
    OldState,
    /// 64 bits, the halves in the machine's order.
    OldEvents,
    /// Zero, or something that is not known.
    Reserved,
}

/// A field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) meaning: &'static str,
}

const fn field(
    offset: usize,
    length: usize,
    name: &'static str,
    kind: Kind,
    meaning: &'static str,
) -> Field {
    Field { offset, length, name, kind, meaning }
}

/// Version 1, up to the roles.
pub(super) const FIELDS_1: &[Field] = &[
    field(0, 4, "magic", Kind::Hex, "Marks this as a superblock of md."),
    field(4, 4, "major_version", Kind::Number, "The format: 1."),
    field(
        8,
        4,
        "feature_map",
        Kind::Features,
        "What a reader must know in order to use the array.",
    ),
    field(12, 4, "pad0", Kind::Reserved, "Reserved."),
    field(16, 16, "set_uuid", Kind::Uuid, "Identifies the array: the same on all members."),
    field(32, 32, "set_name", Kind::Text, "The array's name, mostly host:name."),
    field(64, 8, "ctime", Kind::Time, "When the array was made."),
    field(72, 4, "level", Kind::Level, "How data is kept."),
    field(76, 4, "layout", Kind::Layout, "Where the level puts copies or parity."),
    field(80, 8, "size", Kind::Sectors, "Used of each member, where all use the same."),
    field(88, 4, "chunksize", Kind::Sectors, "Goes to one member before the next."),
    field(92, 4, "raid_disks", Kind::Number, "Members that take part."),
    field(96, 4, "bitmap_offset", Kind::BitmapOrPpl, "Where the bitmap or the log is, from here."),
    field(100, 4, "new_level", Kind::Level, "The level after the reshape."),
    field(104, 8, "reshape_position", Kind::Sectors, "How far the reshape got, in the array."),
    field(112, 4, "delta_disks", Kind::Signed, "Members that the reshape adds."),
    field(116, 4, "new_layout", Kind::Hex, "The layout after the reshape."),
    field(120, 4, "new_chunk", Kind::Sectors, "The chunk after the reshape."),
    field(124, 4, "new_offset", Kind::SignedSectors, "How far the reshape moves the data."),
    field(128, 8, "data_offset", Kind::Sectors, "Where the data start on this member."),
    field(136, 8, "data_size", Kind::Sectors, "How much of this member can hold data."),
    field(144, 8, "super_offset", Kind::Sectors, "Where this superblock lies."),
    field(152, 8, "recovery_offset", Kind::Sectors, "How far this member was rebuilt, if at all."),
    field(160, 4, "dev_number", Kind::Number, "This member's place in the list of roles."),
    field(164, 4, "cnt_corrected_read", Kind::Number, "Read errors that were corrected."),
    field(168, 16, "device_uuid", Kind::Uuid, "Identifies this member."),
    field(184, 1, "devflags", Kind::DeviceFlags, "How this member is treated."),
    field(185, 1, "bblog_shift", Kind::Number, "The bad-block log counts in 512 << this bytes."),
    field(186, 2, "bblog_size", Kind::Sectors, "The size of the bad-block log."),
    field(188, 4, "bblog_offset", Kind::SignedSectors, "Where the bad-block log is, from here."),
    field(192, 8, "utime", Kind::Time, "When this superblock was last written."),
    field(200, 8, "events", Kind::Number, "Grows with each change: the member with more is newer."),
    field(208, 8, "resync_offset", Kind::SectorsOrAll, "Up to where copies and parity agree."),
    field(216, 4, "sb_csum", Kind::Hex, "Sum over the superblock up to the last role."),
    field(220, 4, "max_dev", Kind::Number, "How many roles follow."),
    field(
        224,
        4,
        "logical_block_size",
        Kind::Number,
        "In bytes, since Linux 6.19; 0: not recorded.",
    ),
    field(228, 28, "pad3", Kind::Reserved, "Reserved."),
];

/// Version 0.90, up to the table of disks.
pub(super) const FIELDS_0_90: &[Field] = &[
    field(0, 4, "md_magic", Kind::Hex, "Marks this as a superblock of md."),
    field(4, 4, "major_version", Kind::Number, "The format: 0."),
    field(8, 4, "minor_version", Kind::Number, "90, or 91 during a reshape."),
    field(12, 4, "patch_version", Kind::Number, "Of no importance."),
    field(16, 4, "gvalid_words", Kind::Number, "Of no importance."),
    field(20, 4, "set_uuid0", Kind::Hex, "Identifies the array: first part."),
    field(24, 4, "ctime", Kind::OldTime, "When the array was made."),
    field(28, 4, "level", Kind::Level, "How data is kept."),
    field(32, 4, "size", Kind::Kib, "Used of each member."),
    field(36, 4, "nr_disks", Kind::Number, "Disks in the table."),
    field(40, 4, "raid_disks", Kind::Number, "Members that take part."),
    field(44, 4, "md_minor", Kind::Number, "The number of the md device that was preferred."),
    field(48, 4, "not_persistent", Kind::Number, "Not 0 for an array without superblocks."),
    field(52, 4, "set_uuid1", Kind::Hex, "Identifies the array: second part."),
    field(56, 4, "set_uuid2", Kind::Hex, "Third part: mostly made from the host's name."),
    field(60, 4, "set_uuid3", Kind::Hex, "Fourth part: mostly made from the host's name."),
    field(64, 64, "gstate_creserved", Kind::Reserved, "Reserved."),
    field(128, 4, "utime", Kind::OldTime, "When this superblock was last written."),
    field(132, 4, "state", Kind::OldState, "Whether copies and parity agree."),
    field(136, 4, "active_disks", Kind::Number, "Members in sync."),
    field(140, 4, "working_disks", Kind::Number, "Disks that have not failed."),
    field(144, 4, "failed_disks", Kind::Number, "Disks that have."),
    field(148, 4, "spare_disks", Kind::Number, "Disks that wait."),
    field(152, 4, "sb_csum", Kind::Hex, "Sum over the 4096 bytes."),
    field(
        156,
        8,
        "events",
        Kind::OldEvents,
        "Grows with each change: the member with more is newer.",
    ),
    field(164, 8, "cp_events", Kind::OldEvents, "The events when the checkpoint was taken."),
    field(172, 4, "recovery_cp", Kind::SectorsOrAll, "How far a resync got."),
    field(176, 8, "reshape_position", Kind::Sectors, "How far the reshape got, in the array."),
    field(184, 4, "new_level", Kind::Level, "The level after the reshape."),
    field(188, 4, "delta_disks", Kind::Signed, "Members that the reshape adds."),
    field(192, 4, "new_layout", Kind::Hex, "The layout after the reshape."),
    field(196, 4, "new_chunk", Kind::Number, "The chunk after the reshape, in bytes."),
    field(200, 56, "gstate_sreserved", Kind::Reserved, "Reserved."),
    field(256, 4, "layout", Kind::Layout, "Where the level puts copies or parity."),
    field(260, 4, "chunk_size", Kind::Number, "Goes to one member before the next, in bytes."),
    field(264, 4, "root_pv", Kind::Number, "Of no importance."),
    field(268, 4, "root_block", Kind::Number, "Of no importance."),
    field(272, 240, "pstate_reserved", Kind::Reserved, "Reserved."),
];

/// A bit of the feature map, and the versions that are too old for it.
pub(super) struct Feature {
    pub(super) bit: Features,
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    /// The first kernel that knows it, where that is sure and still of interest.
    pub(super) linux: Option<&'static str>,
    /// The first mdadm that knows it.
    pub(super) mdadm: Option<&'static str>,
}

const fn feature(
    bit: Features,
    name: &'static str,
    meaning: &'static str,
    linux: Option<&'static str>,
    mdadm: Option<&'static str>,
) -> Feature {
    Feature { bit, name, meaning, linux, mdadm }
}

/// All feature bits, from the lowest.
pub(super) const FEATURES: &[Feature] = &[
    feature(Features::BITMAP, "bitmap", "a write-intent bitmap", None, None),
    feature(Features::RECOVERY_OFFSET, "recovery_offset", "a recovery that goes on", None, None),
    feature(Features::RESHAPE, "reshape", "a reshape under way", None, None),
    feature(Features::BAD_BLOCKS, "bad_blocks", "recorded bad blocks", Some("3.1"), Some("3.3")),
    feature(Features::REPLACEMENT, "replacement", "a replacement", Some("3.3"), Some("3.3")),
    feature(
        Features::RESHAPE_BACKWARDS,
        "reshape_backwards",
        "a reshape from the end to the start",
        Some("3.5"),
        Some("3.3"),
    ),
    feature(
        Features::NEW_OFFSET,
        "new_offset",
        "a reshape that moves the data",
        Some("3.5"),
        Some("3.3"),
    ),
    feature(Features::RECOVERY_BITMAP, "recovery_bitmap", "a recovery by the bitmap", None, None),
    feature(Features::CLUSTERED, "clustered", "an array of a cluster", Some("4.1"), Some("3.4")),
    feature(Features::JOURNAL, "journal", "a journal device", Some("4.4"), Some("3.4")),
    feature(Features::PPL, "ppl", "a partial parity log", Some("4.12"), Some("4.1")),
    feature(
        Features::MULTIPLE_PPLS,
        "multiple_ppls",
        "a partial parity log of several entries",
        Some("4.14"),
        Some("4.1"),
    ),
    feature(
        Features::RAID0_LAYOUT,
        "raid0_layout",
        "raid0's recorded layout",
        Some("5.4"),
        Some("4.2"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_leave_no_byte_out() {
        for (fields, end) in [(FIELDS_1, 256), (FIELDS_0_90, 512)] {
            let mut next = 0;
            for field in fields {
                assert_eq!(field.offset, next, "{}", field.name);
                next += field.length;
            }
            assert_eq!(next, end);
        }
    }

    #[test]
    fn there_is_a_word_for_each_known_feature() {
        let all = FEATURES.iter().fold(0, |bits, feature| bits | feature.bit.0);
        assert_eq!(all, Features::KNOWN.0);
    }
}
