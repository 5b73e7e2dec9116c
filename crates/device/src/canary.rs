//! Planted faults, for tests of the tests: rules of files and of late media, broken on purpose.

braid_canary::faults!(
    "device",
    Canary {
        /// A write with FUA is an ordinary write.
        FuaLost: "src/file/durable.rs::what_is_to_be_durable_is_made_so_in_the_way_of_its_file_system",
        /// On FUSE the kernel is trusted to make a single write durable.
        FuseIsTrusted: "src/file/durable.rs::what_is_to_be_durable_is_made_so_in_the_way_of_its_file_system",
        /// A part of a file begins where the file begins.
        PartAtStart: "src/file.rs::any_range_is_read_in_the_call",
        /// A part of a file reaches beyond the file.
        PartBeyondEnd: "src/file.rs::a_part_lies_in_its_file",
        /// A file is not locked.
        NotLocked: "src/file.rs::any_range_is_read_in_the_call",
        /// Memory in place of a late write's has other bytes.
        BytesOfLateWriteLost: "src/metered.rs::memory_in_place_of_a_write_has_its_bytes",
        /// Time in which the process stood still counts as time of the medium.
        StandstillCounts: "tests/metered.rs::time_in_which_the_process_stood_still_does_not_count",
    }
);

#[cfg(test)]
mod tests {
    #[test]
    fn planted_faults_are_found() {
        braid_canary::hunt(super::Canary::ALL, file!());
    }
}
