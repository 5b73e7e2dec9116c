//! Planted faults, for tests of the tests: rules of an export over NBD, broken on purpose.

braid_canary::faults!(
    "export-nbd",
    Canary {
        /// FUA of a client's write is lost.
        FuaLost: "tests/writes.rs::what_modifies_holds_a_permit_until_it_is_answered",
        /// FUA of a write to parts of blocks is lost.
        FuaOfPartsLost: "src/session/blocks.rs::all_that_a_part_takes_is_written_with_its_flags",
        /// The bytes around a part of a block are not kept.
        NeighboursLost: "src/session/blocks.rs::bytes_around_a_part_stay",
        /// A part of a block does not wait for a write of the whole block.
        PartsNotKeptApart: "src/overlaps.rs::a_part_waits_for_whole_blocks_that_began_beside_another_part",
        /// The permit of a write is given back before the write is answered.
        PermitGivenBackEarly: "tests/writes.rs::what_modifies_holds_a_permit_until_it_is_answered",
        /// A write succeeds although an earlier part of it failed.
        FailedPartForgotten: "tests/writes.rs::a_write_in_parts_fails_if_one_of_them_does",
        /// Clients write to a locked volume.
        LockedIsWritten: "tests/writes.rs::nothing_modifies_a_locked_volume",
    }
);

#[cfg(test)]
mod tests {
    #[test]
    fn planted_faults_are_found() {
        braid_canary::hunt(super::Canary::ALL, file!());
    }
}
