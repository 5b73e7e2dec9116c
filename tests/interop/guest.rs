//! One boot of a kernel, with a section of script for each of many arrays.
//!
//! ```text
//!   section ID, images a b c ──┐                       ┌──▶ @ ID key value …
//!   section ID, images d e ────┼──▶ one boot, one script ──▶ @ ID ended STATUS
//!   …                        ──┘   (guest.sh + them)   └──▶ ID.log, for when it failed
//! ```
//!
//! The images lie in the shared folder and become loop devices in the guest, so that there may
//! be any number of them. Sections run one after the other, in subshells: one that fails leaves
//! the next ones alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::common::Scratch;
use crate::lab::Engine;

const PRELUDE: &str = include_str!("guest.sh");

/// A script in the making.
pub(crate) struct Guest {
    script: String,
    sections: Vec<String>,
}

/// The result of a section.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    values: BTreeMap<String, String>,
    /// The error, with the end of its log.
    failure: Option<String>,
}

impl Guest {
    pub(crate) fn new() -> Guest {
        Guest { script: PRELUDE.to_owned(), sections: Vec::new() }
    }

    /// Adds a section, which begins with `images` attached.
    pub(crate) fn section(&mut self, id: &str, images: &[String], body: &str) {
        let number = self.sections.len();
        self.sections.push(id.to_owned());
        let images = images.join(" ");
        write!(
            self.script,
            "
(
    set -euo pipefail
    ID={id} MD=/dev/md{number} SYS=/sys/block/md{number}/md
    exec >/share/$ID.log 2>&1
    set -x
    attach {images}
{body}
)
echo \"@ {id} ended $?\"
"
        )
        .expect("a string takes all");
    }

    /// Adds what is done beside the sections.
    pub(crate) fn line(&mut self, line: &str) {
        self.script.push_str(line);
        self.script.push('\n');
    }

    /// Boots, and answers what became of each section.
    pub(crate) fn run(self, engine: &Engine, scratch: &Scratch) -> Answers {
        let Guest { script, sections } = self;
        if sections.is_empty() {
            return Answers(BTreeMap::new());
        }
        std::fs::write(scratch.join("guest-script.sh"), script).expect("a script can be written");
        let output = engine.run(scratch.path(), "guest-script.sh", sections.len());
        let mut answers = BTreeMap::new();
        for id in sections {
            let mut answer = Answer::default();
            for line in output.out.lines() {
                let words: Vec<&str> = line.splitn(4, ' ').collect();
                if let ["@", of, key, value] = words[..]
                    && of == id
                {
                    answer.values.insert(key.to_owned(), value.to_owned());
                }
            }
            let ended = answer.values.get("ended").map(String::as_str);
            if ended != Some("0") {
                let log = std::fs::read_to_string(scratch.join(&format!("{id}.log")));
                let log = log.unwrap_or_default();
                let from = log.lines().count().saturating_sub(25);
                let tail: Vec<&str> = log.lines().skip(from).collect();
                let status = ended.unwrap_or("missing: the guest ended early");
                answer.failure = Some(format!(
                    "in the guest: status {status}\n{}\n{}",
                    tail.join("\n"),
                    if ended.is_none() { output.to_string() } else { String::new() }
                ));
            }
            answers.insert(id, answer);
        }
        Answers(answers)
    }
}

/// The results of all sections.
pub(crate) struct Answers(BTreeMap<String, Answer>);

impl Answers {
    /// The result of one section, which must have succeeded.
    #[track_caller]
    pub(crate) fn of(&self, id: &str) -> &Answer {
        let answer = &self.0[id];
        if let Some(failure) = &answer.failure {
            panic!("{failure}");
        }
        answer
    }
}

impl Answer {
    /// Its value of `key`.
    #[track_caller]
    pub(crate) fn get(&self, key: &str) -> &str {
        self.values.get(key).unwrap_or_else(|| panic!("the guest did not say {key}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn number(&self, key: &str) -> u64 {
        let value = self.get(key);
        value.parse().unwrap_or_else(|error| panic!("{key} is {value:?}: {error}"))
    }

    /// Its words in the table.
    pub(crate) fn verdict(&self) -> String {
        match self.values.get("mismatches") {
            Some(count) => format!("content equal, {count} mismatches"),
            None => "content equal".into(),
        }
    }
}
