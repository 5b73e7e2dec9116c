//! Arrays that are handed over in a state: degraded, half rebuilt, after a crash.
//!
//! ```text
//!   begin (host)  ──▶  first (guest)  ──▶  middle (host)  ──▶  second (guest)
//! ```
//!
//! Each step finds the same images, and may be empty. All stories of a test go through the steps
//! together, so that there are two boots whatever their number.

use crate::common::{MIB, Scratch};
use crate::guest::{Answer, Guest};
use crate::lab::Engine;
use crate::trials::Trials;
use crate::{all, is_wanted, shared};

/// One array's way.
pub(crate) struct Story {
    /// The array's name too, of at most 32 bytes.
    pub(crate) id: &'static str,
    /// The number of images.
    pub(crate) images: usize,
    /// The first step on the host.
    pub(crate) begin: fn(&Scratch, &Story),
    /// The kernel's first step.
    pub(crate) first: &'static str,
    /// True if the kernel is killed while the work that `first` has started still runs.
    pub(crate) crash: bool,
    /// The step on the host after that.
    pub(crate) middle: fn(&Scratch, &Story, &Answer),
    /// The kernel's last step.
    pub(crate) second: &'static str,
    /// True if it is among the few that every run of the tests includes.
    pub(crate) quick: bool,
    /// The subject of the story, for the table.
    pub(crate) shows: &'static str,
}

/// A missing step on the host.
pub(crate) fn nothing(_: &Scratch, _: &Story) {}

impl Story {
    pub(crate) fn image(&self, index: usize) -> String {
        format!("{}.{index}", self.id)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        (0..self.images).map(|index| self.image(index)).collect()
    }

    /// The stack of all images.
    pub(crate) fn stack(&self) -> String {
        let names: Vec<String> = self.names().iter().map(|name| format!("./{name}")).collect();
        format!("md({})", names.join(", "))
    }
}

/// Tells those of this run.
pub(crate) fn tell(engine: &Engine, direction: &'static str, stories: &[Story]) {
    let scratch = shared();
    let mut trials = Trials::new(direction);
    let mut first = Guest::new();
    let wanted = stories.iter().filter(|one| (one.quick || all()) && is_wanted(one.id));
    // Those that end in a crash come last: nothing can be done after it.
    let (crashing, others): (Vec<&Story>, Vec<&Story>) = wanted.partition(|one| one.crash);
    let mut begun = Vec::new();
    for &story in others.iter().chain(&crashing) {
        for name in story.names() {
            scratch.sparse(&name, 8 * MIB);
        }
        if trials.attempt(story.id, || (story.begin)(&scratch, story)).is_some() {
            first.section(story.id, &story.names(), story.first);
            begun.push(story);
        }
    }
    if !crashing.is_empty() {
        // At once, with nothing written out. A user-mode kernel would start anew by that key, and
        // with it the whole script: there klab kills it.
        first.line(
            "pause 2\ncase $KLAB_ENGINE in uml*) klab-crash ;; esac\necho b >/proc/sysrq-trigger",
        );
    }
    let answers = first.run(engine, &scratch);

    let mut second = Guest::new();
    let mut handed_back = Vec::new();
    for story in begun {
        let middle = || (story.middle)(&scratch, story, answers.of(story.id));
        if trials.attempt(story.id, middle).is_none() {
            continue;
        }
        match story.second {
            "" => trials.held(engine, story.id, story.shows),
            body => {
                second.section(story.id, &story.names(), body);
                handed_back.push(story);
            }
        }
    }
    let answers = second.run(engine, &scratch);
    for story in handed_back {
        if trials.attempt(story.id, || answers.of(story.id).verdict()).is_some() {
            trials.held(engine, story.id, story.shows);
        }
    }
    trials.finish();
}
