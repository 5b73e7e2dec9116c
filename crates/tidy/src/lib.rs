//! Test-only: the rules of the house, as tests (`make check`).
//!
//! ```text
//!  *.rs, Cargo.toml, deny.toml ──▶ a rule: a pure function ──▶ findings ──┐
//!                                                ratchet.toml ────────────┴──▶ Rule::hold: a text that
//!                                                                              says what, why, and how
//! ```
//!
//! A rule is a file. What the code had against a rule when the rule came stands in `ratchet.toml`, whose
//! entries may only shrink: an entry that is no longer needed fails, too, so that the list gets shorter.
//!
//! Invariants: each rule has a test that shows it a violation, and finds it. The rules read syntax (by `syn`):
//! they know no types, and a rule's header says what it cannot see.
//!
//! Deliberately absent: what clippy, rustdoc and rustfmt know. `make check` and `make test` ask them.
#![cfg(test)]

mod casts;
mod circles;
mod dependencies;
mod functions;
mod language;
mod layers;
mod lines;
mod looks;
mod once;
mod panics;
mod paths;
mod ratchet;
mod source;

/// The name of a rule, its reason, and the way to comply.
struct Rule {
    name: &'static str,
    why: &'static str,
    comply: &'static str,
}

impl Rule {
    /// Nothing, or the text of the failure.
    fn judge(&self, findings: &[String]) -> Result<(), String> {
        if findings.is_empty() {
            return Ok(());
        }
        let Rule { name, why, comply } = self;
        let list = findings.join("\n  * ");
        Err(format!("\nrule: {name}\n\n  * {list}\n\nwhy: {why}\n\nto comply: {comply}\n"))
    }

    #[track_caller]
    fn hold(&self, findings: &[String]) {
        if let Err(text) = self.judge(findings) {
            panic!("{text}");
        }
    }
}

#[test]
fn a_failure_says_what_is_wrong_why_and_how_to_comply() {
    let rule = Rule { name: "NAME", why: "REASON", comply: "ADVICE" };
    assert_eq!(rule.judge(&[]), Ok(()));
    let text = rule.judge(&["FINDING".to_owned()]).expect_err("there is a finding");
    assert!(
        ["NAME", "REASON", "ADVICE", "FINDING"].iter().all(|part| text.contains(part)),
        "{text}"
    );
}
