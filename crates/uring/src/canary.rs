//! Planted faults, for tests of the tests: rules of operations that the kernel carries out, broken on purpose.

braid_canary::faults!(
    "uring",
    Canary {
        /// The kernel is not told that a write is to be durable.
        DurableLost: "src/operation.rs::the_kernel_is_told_that_a_write_is_to_be_durable",
        /// A transfer of a part counts as one of all.
        ShortIsWhole: "src/operation.rs::short_results_continue_where_they_stopped",
        /// A file that ends before the last byte of a transfer is no error.
        EndIsSuccess: "src/operation.rs::the_end_of_the_file_is_an_error_and_a_signal_is_not",
        /// The memory of an operation that is given up is free before the kernel is done with it.
        MemoryFreedEarly: "src/table.rs::memory_is_lent_to_the_kernel_until_its_result_comes",
        /// A flush succeeds after one that lost data.
        LossForgotten: "src/table.rs::a_durable_write_that_fails_tells_of_the_page_cache",
    }
);

#[cfg(test)]
mod tests {
    #[test]
    fn planted_faults_are_found() {
        braid_canary::hunt(super::Canary::ALL, file!());
    }
}
