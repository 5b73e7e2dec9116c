//! Planted faults, for tests of the tests: rules by which members are read and chosen, broken on purpose.

braid_canary::faults!(
    "md",
    Canary {
        /// A superblock counts although its checksum is wrong.
        ChecksumIgnored: "tests/hostile.rs::every_flipped_byte_is_seen",
        /// A member that is being filled may describe the array, if others have as many events.
        FilledDescribes: "tests/assembly.rs::a_member_that_is_being_filled_does_not_speak_for_the_others",
        /// A member that is two events behind counts as current.
        TwoBehindIsCurrent: "tests/assembly.rs::one_event_behind_is_fine_two_are_not",
        /// A member that went on alone is merged with the others.
        AloneIsMerged: "tests/assembly.rs::two_sides_that_went_on_alone",
        /// Ranges of bad blocks that touch stay apart.
        BadRangesStayApart: "tests/roundtrip.rs::bad_blocks_are_a_set_of_units",
        /// The bits of another member's bitmap are left out.
        CopyOfBitmapIgnored: "tests/roundtrip.rs::copies_of_a_bitmap_count_together",
        /// The earlier cleared event of two copies of a bitmap counts.
        EarlierClearedCounts: "tests/roundtrip.rs::copies_of_a_bitmap_count_together",
    }
);
