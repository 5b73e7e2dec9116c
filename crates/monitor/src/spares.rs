//! Moves of spares, as commands of `braid`: what an operator would type, with the records that this keeps.
//!
//! The superblock by which it was a spare of the one array goes before it is given to anybody; what else it may
//! carry by then belongs to another use, and `braid member add` refuses it.
//!
//! Invariants: one move at a time; nothing that watches waits for it; a spare that the one array does not take is
//! given back at once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use braid_control::{Failure, SpareMove};
use serde_json::Value;

use crate::program::{Wanted, run};
use crate::receivers::wait_until;
use crate::watch::Step;

/// For one command: longer than a volume takes to begin an order and to carry it out.
const LIMIT: Duration = Duration::from_secs(120);
/// The most bytes that one may print.
const MOST: u64 = 1 << 20;

/// Interface to the program that moves spares.
pub(crate) struct Mover {
    program: PathBuf,
    under_way: Option<JoinHandle<Result<(), String>>>,
}

impl Mover {
    /// By this program, which is `braid`.
    pub(crate) fn new(program: &Path) -> Mover {
        Mover { program: program.to_owned(), under_way: None }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }

    /// Outcome of the last step, once it has ended.
    pub(crate) fn ended(&mut self) -> Option<Result<(), String>> {
        let ended = self.under_way.take_if(|under_way| under_way.is_finished())?;
        Some(ended.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    /// Begins a step.
    pub(crate) fn start(&mut self, step: Step, spare: SpareMove) {
        let braid = Braid { program: self.program.clone() };
        self.under_way = Some(std::thread::spawn(move || match step {
            Step::Move => braid.carry(&spare),
            Step::Place => braid.give(&spare, &spare.to, &spare.array),
            Step::Return => braid.give(&spare, &spare.from, &spare.from_array),
        }));
    }

    /// Waits for what is under way, for at most `grace`.
    pub(crate) fn wait(&self, grace: Duration) {
        wait_until(Instant::now() + grace, || {
            self.under_way.as_ref().is_none_or(JoinHandle::is_finished)
        });
    }
}

/// This program, for its commands.
struct Braid {
    program: PathBuf,
}

impl Braid {
    /// From the one array to the other, or back.
    fn carry(&self, spare: &SpareMove) -> Result<(), String> {
        let SpareMove { member, from, from_array, to, array, .. } = spare;
        self.run(&["member", "remove", from, member, "--array", from_array])?;
        self.give(spare, to, array).map_err(|why| match self.give(spare, from, from_array) {
            Ok(()) => why,
            Err(back) => format!("{why}; and {from} does not take it back: {back}"),
        })
    }

    /// To an array, when it is in none.
    fn give(&self, spare: &SpareMove, volume: &str, array: &str) -> Result<(), String> {
        let SpareMove { member, from_uuid, .. } = spare;
        let carries = self.run(&["examine", member, "--json"]).unwrap_or_default();
        let carries: Value = serde_json::from_str(&carries).unwrap_or_default();
        let superblocks = carries["members"][0]["superblocks"].as_array();
        let is_old = |superblock: &Value| {
            from_uuid.is_some()
                && superblock["array_uuid"].as_str() == from_uuid.as_deref()
                && superblock["role"] == "spare"
        };
        if superblocks.is_some_and(|all| !all.is_empty() && all.iter().all(is_old)) {
            self.run(&["wipe", member])?;
        }
        self.run(&["member", "add", volume, member, "--array", array]).map(drop)
    }

    /// Runs a command to its end; answers what it printed, or why it was refused.
    fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("NO_COLOR", "1").env("BRAID_ERRORS", "json");
        let wanted = if arguments.contains(&"--json") { Wanted::Output } else { Wanted::All };
        let ran = run(command, wanted, LIMIT, MOST).map_err(|unanswered| unanswered.why)?;
        let text = String::from_utf8_lossy(&ran.output).trim().to_owned();
        match ran.status {
            Some(0) => Ok(text),
            // The event that reports it names the next command.
            _ => {
                let why = Failure::said_last(&text).map_or(text, |failure| failure.why);
                let lines: Vec<&str> = why.lines().map(str::trim).collect();
                Err(lines.join(", ").trim_start_matches("braid: ").to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn spare() -> SpareMove {
        let text = |text: &str| text.to_owned();
        SpareMove {
            member: text("/dev/s"),
            from: text("home"),
            from_array: text("h"),
            from_uuid: Some(text("home-uuid")),
            to: text("needy"),
            array: text("n"),
        }
    }

    /// Returns the orders that a `braid` received that knows of the spare's superblock, and refuses to add it to
    /// `refusing`; and the outcome of the move.
    fn carried(superblock: &str, refusing: &str) -> (Vec<String>, Result<(), String>) {
        let folder = tempfile::tempdir().expect("a folder");
        let (program, note) = (folder.path().join("braid"), folder.path().join("note"));
        let script = format!(
            "#!/bin/sh\necho \"$*\" >> {note}\ncase \"$1 $2 $3\" in\n\
             \"examine /dev/s --json\") echo '{{\"members\":[{{\"superblocks\":[{superblock}]}}]}}' ;;\n\
             {refusing}) printf '{{\"outcome\":\"refused\",\"why\":\"%s is refused\",\"next\":\"something else\"}}\\n' \"$3\" >&2; exit 3 ;;\nesac\n",
            note = note.display()
        );
        std::fs::write(&program, script).expect("a script");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        let outcome = loop {
            match (Braid { program: program.clone() }).carry(&spare()) {
                // A process that another test forks holds the script open for writing for a moment.
                Err(why) if why.contains("Text file busy") => {
                    let _ = std::fs::remove_file(&note);
                    std::thread::sleep(Duration::from_millis(5));
                }
                outcome => break outcome,
            }
        };
        let asked = std::fs::read_to_string(note).expect("a note");
        let asked = asked.lines().filter(|line| !line.starts_with("examine"));
        (asked.map(ToOwned::to_owned).collect(), outcome)
    }

    const OF_HOME: &str = r#"{"array_uuid":"home-uuid","role":"spare"}"#;
    const REMOVE: &str = "member remove home /dev/s --array h";
    const WIPE: &str = "wipe /dev/s";
    const GIVE: &str = "member add needy /dev/s --array n";
    const BACK: &str = "member add home /dev/s --array h";

    #[test]
    fn a_spare_is_taken_and_given_or_given_back() {
        let nobody = "nobody";
        assert_eq!(
            carried(OF_HOME, nobody),
            ([REMOVE, WIPE, GIVE].map(ToOwned::to_owned).to_vec(), Ok(()))
        );
        let (asked, outcome) = carried(OF_HOME, "\"member add needy\"");
        assert_eq!(asked, [REMOVE, WIPE, GIVE, WIPE, BACK]);
        assert_eq!(outcome, Err("needy is refused".to_owned()));
        let (asked, outcome) = carried(OF_HOME, "\"member add\"*");
        assert_eq!(asked, [REMOVE, WIPE, GIVE, WIPE, BACK]);
        assert_eq!(
            outcome,
            Err("needy is refused; and home does not take it back: home is refused".to_owned())
        );
        let (asked, outcome) = carried(OF_HOME, "\"member remove home\"");
        assert_eq!((asked, outcome), (vec![REMOVE.to_owned()], Err("home is refused".to_owned())));
    }

    #[test]
    fn nothing_is_wiped_but_what_made_it_a_spare() {
        for superblock in [
            "",
            r#"{"array_uuid":"somebody-else","role":"spare"}"#,
            r#"{"array_uuid":"home-uuid","role":"active"}"#,
            r#"{"array_uuid":"home-uuid","role":"spare"},{"array_uuid":"other","role":"active"}"#,
        ] {
            let (asked, outcome) = carried(superblock, "nobody");
            assert_eq!((asked, outcome), ([REMOVE, GIVE].map(ToOwned::to_owned).to_vec(), Ok(())));
        }
    }
}
