//! Planted faults, for tests of the tests: rules of an export over FUSE, broken on purpose.

braid_canary::faults!(
    "export-fuse",
    Canary {
        /// A write to a file opened with `O_DSYNC` is an ordinary write.
        DsyncLost: "src/session.rs::what_reaches_the_volume",
        /// An FSYNC is answered without a flush.
        FsyncIsNothing: "src/session.rs::what_reaches_the_volume",
        /// Requests beyond the end, or of parts of blocks, reach the volume.
        SpanNotChecked: "src/session.rs::what_reaches_the_volume",
        /// Zeroes that must keep their space give it up.
        SpaceGivenUp: "src/session.rs::holes_and_zeroes",
        /// A read-only volume is written.
        ReadOnlyIsWritten: "src/session.rs::files_and_directories",
        /// A hole is punched in a volume that would write its zeroes.
        HoleWithoutDiscard: "src/session.rs::holes_and_zeroes",
    }
);

#[cfg(test)]
mod tests {
    #[test]
    fn planted_faults_are_found() {
        braid_canary::hunt(super::Canary::ALL, file!());
    }
}
