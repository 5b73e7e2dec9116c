//! Planted faults, for tests of the tests: rules of a volume's process, broken on purpose.

braid_canary::faults!(
    "service",
    Canary {
        /// A request that crosses to another shard loses its flags.
        CrossedFlagsLost: "src/volume/bridge.rs::what_crosses_keeps_its_flags_and_writes_hold_a_permit",
        /// A write that crosses to another shard has no permit there.
        CrossedWithoutPermit: "src/volume/bridge.rs::what_crosses_keeps_its_flags_and_writes_hold_a_permit",
        /// The permit of a write that crossed is given back before the write is done.
        PermitGivenBackEarly: "src/volume/bridge.rs::what_crossed_is_answered_and_lets_its_permit_go_when_it_is_done",
        /// A shard follows the first one while its own writes are under way.
        FollowsAtOnce: "src/volume/bridge.rs::a_shard_follows_when_the_writes_before_are_answered",
        /// Write-back mode begins while writes of before are under way.
        BeginsAtOnce: "src/volume/to_write_back.rs::write_back_begins_when_the_writes_before_are_answered",
        /// A kept cache is believed although the log below it was written.
        LogNotProved: "src/volume/warm.rs::a_write_to_the_origin_or_the_log_is_seen",
    }
);

#[cfg(test)]
mod tests {
    #[test]
    fn planted_faults_are_found() {
        braid_canary::hunt(super::Canary::ALL, file!());
    }
}
