//! The actions on an array during a trial, and their times. Pure: time and results are arguments, commands are
//! values.
//!
//! ```text
//!            1/5            2/5
//!   healthy ──┬── degraded ──┬── recovery ──┬── check ──┬── healthy      Health::Story
//!             fail           take out,      when it     when it
//!                            put in         has ended   has ended
//! ```
//!
//! The fifths are of the measured time, which begins when the tool's ramp is over; times of events count from
//! the start of the tool, ramp included.
//!
//! Invariants: one command runs at a time; the array is queried at most four times a second; after a failed
//! command the story ends, and the event says why.

use std::collections::VecDeque;
use std::time::Duration;

use crate::array::Array;
use crate::command::{CommandLine, Exit, Finished};

/// Interval of queries whether a pass is over.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// The actions on the array during a trial, and the events.
#[derive(Debug, Clone, Default)]
pub struct Story {
    array: Option<Array>,
    acts: VecDeque<Act>,
    /// True if the first act has begun without a result.
    is_under_way: bool,
    last_asked: Option<Duration>,
    /// True if a check is begun again after its end.
    keeps_checking: bool,
    events: Vec<(f64, String)>,
}

/// An action or a wait.
#[derive(Debug, Clone)]
enum Act {
    /// Run a command, not before a time.
    Run { at: Duration, command: CommandLine, event: Option<String> },
    /// Wait until the array is whole.
    UntilWhole { event: &'static str },
    /// Wait until no pass runs.
    UntilQuiet { event: &'static str },
}

impl Story {
    /// Returns a story without actions.
    pub fn none() -> Self {
        Self::default()
    }

    fn new(array: &Array, acts: impl IntoIterator<Item = Act>) -> Self {
        Self { array: Some(array.clone()), acts: acts.into_iter().collect(), ..Self::default() }
    }

    /// Returns a story of checks, again and again, until the trial is over.
    pub(crate) fn of_checks(array: &Array) -> Self {
        Self { keeps_checking: true, ..Self::new(array, checks(array, Duration::ZERO)) }
    }

    /// Returns a story in which the removed victim is added at the start and filled.
    pub(crate) fn of_recovery(array: &Array) -> Self {
        Self::new(array, recovery(array, Duration::ZERO))
    }

    /// Returns a story in which a member fails after a fifth of the measured `runtime` (which begins after
    /// `ramp`), is replaced after two, and then the array is checked.
    pub(crate) fn of_a_failure(array: &Array, ramp: Duration, runtime: Duration) -> Self {
        let (fifth, then) = (ramp + runtime / 5, ramp + runtime * 2 / 5);
        let run = |at, command: Option<CommandLine>, event: Option<&str>| {
            command.map(|command| Act::Run { at, command, event: event.map(str::to_owned) })
        };
        let failed = array.victim.as_ref().map(|victim| format!("member {victim} failed"));
        let acts = run(fifth, array.fail(), failed.as_deref())
            .into_iter()
            .chain(run(then, array.take_out(), None))
            .chain(run(then, array.forget(), None))
            .chain(recovery(array, then))
            .chain(checks(array, then));
        Self::new(array, acts)
    }

    /// Returns true if an act is over, or the reason why the story ends here.
    fn outcome(&self, act: &Act, done: &Finished) -> Result<bool, String> {
        if let Act::Run { command, .. } = act {
            return match done.exit {
                Exit::Code(0) => Ok(true),
                _ => Err(format!("{command}: {}", done.why())),
            };
        }
        let Some(array) = &self.array else { return Ok(true) };
        let found = array.read(done).map_err(|why| format!("the array does not answer: {why}"))?;
        Ok(match act {
            Act::UntilWhole { .. } => !found.is_degraded,
            _ => found.pass.is_none(),
        })
    }

    /// Returns the events: seconds from the start of the trial's programs, and words.
    pub fn events(&self) -> &[(f64, String)] {
        &self.events
    }

    /// Returns the command to run now, if any. Its result goes to [`Story::did`] before the next one is
    /// returned.
    pub fn due(&mut self, elapsed: Duration) -> Option<CommandLine> {
        if self.is_under_way {
            return None;
        }
        let command = match self.acts.front()? {
            Act::Run { at, .. } if elapsed < *at => return None,
            Act::Run { command, .. } => command.clone(),
            Act::UntilWhole { .. } | Act::UntilQuiet { .. } => {
                if self.last_asked.is_some_and(|last| elapsed < last + ASK_EVERY) {
                    return None;
                }
                self.last_asked = Some(elapsed);
                self.array.as_ref()?.ask()
            }
        };
        self.is_under_way = true;
        Some(command)
    }

    /// Takes the result of the command from [`Story::due`].
    pub fn did(&mut self, elapsed: Duration, done: &Finished) {
        if !std::mem::take(&mut self.is_under_way) {
            return;
        }
        let Some(act) = self.acts.pop_front() else { return };
        match self.outcome(&act, done) {
            Ok(true) => {
                let event = match &act {
                    Act::Run { event, .. } => event.clone(),
                    Act::UntilWhole { event } | Act::UntilQuiet { event } => {
                        Some((*event).to_owned())
                    }
                };
                self.events.extend(event.map(|event| (elapsed.as_secs_f64(), event)));
            }
            Ok(false) => self.acts.push_front(act),
            Err(why) => {
                self.acts.clear();
                self.keeps_checking = false;
                self.events.push((elapsed.as_secs_f64(), why));
            }
        }
        if let (true, true, Some(array)) = (self.keeps_checking, self.acts.is_empty(), &self.array)
        {
            self.acts.extend(checks(array, elapsed));
        }
    }
}

/// Returns the acts of a recovery: the victim is added, and the array becomes whole.
fn recovery(array: &Array, at: Duration) -> impl Iterator<Item = Act> + use<> {
    let put_in = array.put_in().map(|command| Act::Run {
        at,
        command,
        event: Some("recovery began".to_owned()),
    });
    put_in.into_iter().chain([Act::UntilWhole { event: "recovery ended" }])
}

/// Returns the acts of a check.
fn checks(array: &Array, at: Duration) -> [Act; 2] {
    let begin = Act::Run { at, command: array.check(), event: Some("check began".to_owned()) };
    [begin, Act::UntilQuiet { event: "check ended" }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::tests::{kernel, said};

    const SECOND: Duration = Duration::from_secs(1);
    const TICK: Duration = Duration::from_millis(50);

    /// Plays a story on a machine in which a recovery and a check take two seconds each. Returns the commands
    /// with their times.
    fn play(story: &mut Story, total: Duration) -> Vec<(f64, String)> {
        let mut commands = Vec::new();
        let (mut whole_at, mut quiet_at) = (None, Duration::ZERO);
        let mut now = Duration::ZERO;
        while now < total {
            if let Some(command) = story.due(now) {
                let text = command.to_string();
                if text.contains("--fail") {
                    whole_at = Some(Duration::MAX);
                } else if text.contains("--add") {
                    whole_at = Some(now + 2 * SECOND);
                    quiet_at = now + 2 * SECOND;
                } else if text.contains("check") {
                    quiet_at = now + 2 * SECOND;
                }
                let degraded = whole_at.is_some_and(|at| now < at);
                let action = if now < quiet_at { "check" } else { "idle" };
                assert!(story.due(now).is_none(), "one at a time");
                story.did(now, &said(&format!("{action}\n{}\n", u8::from(degraded))));
                commands.push((now.as_secs_f64(), text));
            }
            now += TICK;
        }
        commands
    }

    #[test]
    fn a_failure_is_told_from_beginning_to_end() {
        let mut story = Story::of_a_failure(&kernel(), Duration::ZERO, 10 * SECOND);
        let commands = play(&mut story, 10 * SECOND);
        let events: Vec<&str> = story.events().iter().map(|(_, what)| what.as_str()).collect();
        assert_eq!(
            events,
            [
                "member /dev/loop3 failed",
                "recovery began",
                "recovery ended",
                "check began",
                "check ended"
            ]
        );
        let times: Vec<f64> = story.events().iter().map(|(at, _)| *at).collect();
        assert_eq!(times[0], 2.0);
        assert!((4.0..4.3).contains(&times[1]), "{times:?}");
        assert!((6.0..6.6).contains(&times[2]), "{times:?}");
        assert!((8.0..8.9).contains(&times[4]), "{times:?}");
        let asked: Vec<f64> = commands
            .iter()
            .filter(|(_, text)| text.starts_with("cat"))
            .map(|(at, _)| *at)
            .collect();
        assert!(asked.windows(2).all(|pair| pair[1] - pair[0] > 0.249), "{asked:?}");
    }

    #[test]
    fn nothing_fails_before_the_measured_time() {
        let mut story = Story::of_a_failure(&kernel(), 4 * SECOND, 5 * SECOND);
        play(&mut story, 9 * SECOND);
        let times: Vec<f64> = story.events().iter().map(|(at, _)| *at).collect();
        assert_eq!(times[0], 5.0);
        assert!((6.0..6.3).contains(&times[1]), "{times:?}");
    }

    #[test]
    fn checks_follow_each_other() {
        let mut story = Story::of_checks(&kernel());
        play(&mut story, 10 * SECOND);
        let began = story.events().iter().filter(|(_, what)| what == "check began").count();
        assert!((4..=5).contains(&began), "{:?}", story.events());
    }

    #[test]
    fn a_recovery_begins_at_once() {
        let mut story = Story::of_recovery(&kernel());
        let commands = play(&mut story, 5 * SECOND);
        assert!(commands[0].1.contains("--add") && commands[0].0 == 0.0);
        assert_eq!(story.events().last().unwrap().1, "recovery ended");
        assert_eq!(story.due(60 * SECOND), None);
    }

    #[test]
    fn a_command_that_fails_ends_the_story_and_is_told() {
        let mut story = Story::of_a_failure(&kernel(), Duration::ZERO, 10 * SECOND);
        assert!(story.due(2 * SECOND).is_some());
        let exit = Exit::Code(1);
        let stderr = "mdadm: set device faulty failed\n".to_owned();
        story.did(2 * SECOND, &Finished { exit, stdout: String::new(), stderr });
        assert!(story.events()[0].1.contains("set device faulty failed"));
        assert_eq!(story.due(9 * SECOND), None);
    }

    #[test]
    fn nothing_happens_in_no_story() {
        let mut story = Story::none();
        assert_eq!(story.due(SECOND), None);
        story.did(SECOND, &said("unasked"));
        assert!(story.events().is_empty());
    }
}
