//! Health: one word for a volume, and one for all volumes of a machine. `braid status --json` and the API have the
//! same words.

use serde::{Deserialize, Serialize};

use crate::problem::Severity;
use crate::status::Status;

macro_rules! healths {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)*) => {
        /// Health, the best first. The health of several volumes is the worst of them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Health {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant,)*
        }

        impl Health {
            /// All of them, in order.
            pub const ALL: &[Health] = &[$(Health::$variant),*];

            /// Returns the word.
            pub fn word(self) -> &'static str {
                match self { $(Health::$variant => $word),* }
            }
        }
    };
}

healths! {
    /// The volume is known and not up.
    Down = "down",
    /// The volume serves, and nothing has to be done.
    Ok = "ok",
    /// The volume serves, and a resync, recovery or scrub runs.
    Busy = "busy",
    /// The volume serves, and has a problem that costs no redundancy.
    Warning = "warning",
    /// Redundancy is missing.
    Degraded = "degraded",
    /// Requests fail, or acknowledged data may be lost.
    Failing = "failing",
    /// The volume does not answer.
    Stalled = "stalled",
    /// The volume takes no writes, or its process is gone.
    Failed = "failed",
}

impl Health {
    /// Returns the health of a volume of which only the state is known (see [`Status::state`]).
    pub fn of_state(state: &str) -> Health {
        match state {
            "down" => Health::Down,
            "online" => Health::Ok,
            "resyncing" | "ending" => Health::Busy,
            "degraded" => Health::Degraded,
            "failing" => Health::Failing,
            "stalled" => Health::Stalled,
            _ => Health::Failed,
        }
    }

    /// Returns the worst; `Ok` without any, and if all volumes are down.
    pub fn of_all(all: impl IntoIterator<Item = Health>) -> Health {
        all.into_iter().fold(Health::Ok, Health::max)
    }
}

impl Status {
    /// Returns the health by the state, the problems and the passes that run.
    #[must_use]
    pub fn health(&self) -> Health {
        let is_busy = self.arrays.iter().any(|array| array.job.is_some());
        let by_problems = match self.severity() {
            Severity::Info if is_busy => Health::Busy,
            Severity::Info => Health::Ok,
            Severity::Warning => Health::Warning,
            // A state that is critical has a word of its own.
            Severity::Critical if Severity::of_state(&self.state) == Severity::Critical => {
                Health::Degraded
            }
            Severity::Critical => Health::Failing,
        };
        Health::of_state(&self.state).max(by_problems)
    }

    /// Returns the status as JSON, with its health.
    #[must_use]
    pub fn with_health(&self) -> serde_json::Value {
        let mut view = serde_json::json!(self);
        view["health"] = serde_json::json!(self.health());
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: &str, warnings: &[&str], job: bool, lost: bool) -> Status {
        let member = serde_json::json!({
            "member": "m", "size_bytes": 1, "direct": null, "failures": 0, "last_failure": null,
            "lost": lost.then_some("EIO"), "gone": null,
        });
        let mut status: Status = serde_json::from_value(serde_json::json!({
            "output_version": 1, "name": "v", "state": state, "why": null, "next": null, "stack": "",
            "device": {
                "size_bytes": 1, "logical_block_bytes": 512, "physical_block_bytes": 512,
                "optimal_io_bytes": 512, "read_only": false, "volatile": false,
            },
            "attached": null, "nbd": null, "members": [member], "arrays": [], "warnings": warnings,
            "pid": 1, "uptime_seconds": 1, "io": "threads", "shards": 1, "cpu_ns": 0,
        }))
        .expect("a status");
        let job = job.then(|| {
            serde_json::json!({
                "kind": "check", "member": null, "done_bytes": 0, "total_bytes": 1,
                "bytes_per_second": 0, "eta_seconds": null,
            })
        });
        let array = serde_json::json!({
            "name": "a", "called": "a", "uuid": "u", "metadata": "1.2", "level": "raid1",
            "layout": null, "layout_number": 0, "chunk_bytes": null, "size_bytes": 1, "state": "clean",
            "raid_disks": 2, "in_sync": [true, true], "resync_from_bytes": null, "members": [],
            "events": 1, "bitmap_chunk_bytes": null, "bitmap_chunks": null, "bitmap_chunks_set": null,
            "job": job, "requested": null, "last_scrub": null, "mismatch_bytes": 0,
            "mismatch_offsets": [], "speed_min_bytes_per_second": 0,
            "speed_max_bytes_per_second": null, "speed_latency_us_p99": null, "log": [],
        });
        status.arrays.push(serde_json::from_value(array).expect("an array"));
        status
    }

    #[test]
    fn the_worst_of_state_problems_and_passes_counts() {
        let health = |state, warnings, job, lost| status(state, warnings, job, lost).health();
        assert_eq!(health("online", &[], false, false), Health::Ok);
        assert_eq!(health("online", &[], true, false), Health::Busy);
        assert_eq!(health("resyncing", &[], false, false), Health::Busy);
        assert_eq!(health("online", &["slow"], true, false), Health::Warning);
        assert_eq!(health("degraded", &["slow"], true, false), Health::Degraded);
        assert_eq!(health("online", &[], false, true), Health::Failing, "a flush failed");
        assert_eq!(health("stalled", &[], false, true), Health::Stalled);
        assert_eq!(health("failed", &[], false, false), Health::Failed);
        assert_eq!(health("a word of later", &[], false, false), Health::Failed);
        assert_eq!(status("online", &[], true, false).with_health()["health"], "busy");
    }

    #[test]
    fn of_all_is_the_worst_and_one_that_is_down_harms_nothing() {
        assert_eq!(Health::of_all([]), Health::Ok);
        assert_eq!(Health::of_all([Health::Down, Health::Busy]), Health::Busy);
        assert_eq!(Health::of_all(Health::ALL.iter().copied()), Health::Failed);
    }
}
