//! Planted faults, for tests of the tests: rules of an export to virtual machines, broken on purpose.

braid_canary::faults!(
    "export-vhost",
    Canary {
        /// Writes of a guest that never flushes are ordinary writes.
        WriteThroughLost: "tests/guest/main.rs::writes_of_a_guest_that_cannot_flush_are_durable",
        /// Zeroes that must keep their space give it up.
        SpaceGivenUp: "tests/guest/main.rs::writes_of_a_guest_that_cannot_flush_are_durable",
        /// A request that a server answered before it was killed is carried out again.
        AnsweredIsRepeated: "tests/guest/main.rs::requests_in_flight_of_a_server_that_was_killed_are_carried_out_once",
        /// Requests that a killed server left in flight are carried out in another order.
        OrderLost: "tests/guest/main.rs::requests_in_flight_of_a_server_that_was_killed_are_carried_out_once",
        /// A buffer to be read behind one to be written is taken.
        AnyOrderOfBuffers: "tests/guest/hostile.rs::rings_that_break_the_rules_end_the_connection",
    }
);
