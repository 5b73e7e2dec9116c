//! Test-only: runs the tests of the workspace beside each other (`make test`).
//!
//! ```text
//!  cargo test --no-run --message-format=json ──▶ program: programs, tests ──┐
//!  tests/run.toml ──▶ plan: groups, limits ────────────────────────────────┼──▶ run ──▶ report
//!  target/test-times.json: what the last run took ─────────────────────────┘     ▲
//!                                         procfs: how busy the processors are ───┘
//! ```
//!
//! `cargo test` runs one program after the other, with as many threads as there are processors, so a test that
//! waits occupies a processor. Here each test is a process, and others are started beside it until the processors
//! are busy. A process for each test also gives its processor time, ends a hang with everything that it started,
//! and shows what a test leaves behind.
//!
//! Deliberately absent: retries. A test that fails once in twenty runs is mended.

pub mod plan;
pub mod procfs;
pub mod program;
pub mod report;
pub mod run;
