//! Problems of a volume, the worst first: the one list that the command line and the page show.

use serde::{Deserialize, Serialize};

use crate::status::Status;

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing has to be done.
    Info,
    /// An operator should look at it.
    Warning,
    /// Data or service is lost, or is lost with the next failure.
    Critical,
}

impl Severity {
    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }

    /// Returns the severity of a volume's state (see [`Status::state`]).
    pub fn of_state(state: &str) -> Severity {
        match state {
            "online" | "resyncing" | "down" | "ending" => Severity::Info,
            _ => Severity::Critical,
        }
    }
}

/// Something that is wrong with a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Its severity.
    pub severity: Severity,
    /// The problem, in one sentence without the volume's name.
    pub what: String,
    /// The next command, if there is one.
    pub next: Option<String>,
}

impl Status {
    /// Returns the problems, the worst first; among equals, the volume's state first. Empty for a volume without
    /// problems.
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut add = |severity, what: String, next: Option<String>| {
            found.push(Problem { severity, what, next });
        };
        let severity = Severity::of_state(&self.state);
        let why = self.why.as_deref().unwrap_or_default();
        if severity > Severity::Info {
            let state = &self.state;
            let what = if why.is_empty() { state.clone() } else { format!("{state}: {why}") };
            add(severity, what, self.next.clone());
        }
        for one in self.members.iter().filter(|one| !why.contains(&one.member)) {
            if let Some(error) = &one.lost {
                let what = format!(
                    "a flush of {} failed ({error}): what was written before may not be on it",
                    one.member
                );
                add(Severity::Critical, what, None);
            }
        }
        for array in &self.arrays {
            let Some(scrub) = array.last_scrub.as_ref().filter(|scrub| scrub.left() > 0) else {
                continue;
            };
            let what = format!("{}: {} bytes differ between members", array.called, scrub.left());
            add(Severity::Warning, what, Some(scrub.next(&self.name, array.has_parity())));
        }
        // Members that are slow or gone may be why the volume is as it is.
        for warning in self.warnings.iter().filter(|text| !why.contains(text.as_str())) {
            add(Severity::Warning, warning.clone(), None);
        }
        found.sort_by_key(|one| std::cmp::Reverse(one.severity));
        found
    }

    /// The severity of the worst problem; `Info` without one.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.problems().first().map_or(Severity::Info, |one| one.severity)
    }
}

#[cfg(test)]
mod tests {
    use super::{Severity, Status};

    fn status(state: &str, why: Option<&str>, warnings: &[&str]) -> Status {
        let status = serde_json::json!({
            "output_version": 1, "name": "v", "state": state, "why": why, "next": "`x`", "stack": "",
            "device": {
                "size_bytes": 1, "logical_block_bytes": 512, "physical_block_bytes": 512,
                "optimal_io_bytes": 512, "read_only": false, "volatile": false,
            },
            "members": [], "arrays": [], "warnings": warnings, "pid": 1,
            "uptime_seconds": 1, "io": "threads", "shards": 1, "cpu_ns": 0,
        });
        serde_json::from_value(status).expect("a status")
    }

    #[test]
    fn the_worst_is_told_first_and_nothing_twice() {
        let told = |status: Status| -> Vec<(Severity, String)> {
            status.problems().into_iter().map(|one| (one.severity, one.what)).collect()
        };
        let warnings = ["a is slow", "b is gone"];
        assert_eq!(told(status("online", None, &[])), []);
        assert_eq!(
            told(status("degraded", Some("b is gone"), &warnings)),
            [
                (Severity::Critical, "degraded: b is gone".to_owned()),
                (Severity::Warning, "a is slow".to_owned()),
            ]
        );
        assert_eq!(told(status("resyncing", Some("a crash"), &warnings)).len(), 2, "is no problem");
        let first = &status("stalled", None, &warnings).problems()[0];
        assert_eq!((first.what.as_str(), first.next.as_deref()), ("stalled", Some("`x`")));
    }
}
