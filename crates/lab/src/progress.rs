//! The progress line: the running trial, its duration and its expected end.
//!
//! On a terminal the line is redrawn; elsewhere each trial prints a plain line. Always on standard error.
//! Deliberately absent: a redraw while the tool runs, which would wake a processor that is being measured.

use std::io::IsTerminal;
use std::time::Duration;

/// Characters of the bar.
const BAR: usize = 24;
/// Tells a terminal to empty the line in which the cursor is.
const CLEAR: &str = "\r\x1b[2K";

#[derive(Clone, Copy, PartialEq)]
enum Face {
    None,
    Lines,
    Bar,
}

pub(crate) struct Progress {
    face: Face,
    /// Trials of this run, and of the campaign.
    to_do: usize,
    total: usize,
    done: usize,
    began: Option<Duration>,
    /// End of the last trial.
    now: Duration,
}

impl Progress {
    pub(crate) fn new(to_do: usize, total: usize, quiet: bool) -> Self {
        let face = if quiet || to_do == 0 {
            Face::None
        } else if std::io::stderr().is_terminal() {
            Face::Bar
        } else {
            Face::Lines
        };
        Self { face, to_do, total, done: 0, began: None, now: Duration::ZERO }
    }

    pub(crate) fn begin(&mut self, number: u32, what: &str, now: Duration) {
        let began = *self.began.get_or_insert(now);
        self.now = now;
        let line = describe(number as usize, self.total, what, now - began, self.remaining());
        match self.face {
            Face::None => {}
            Face::Lines => eprintln!("{line}"),
            Face::Bar => eprint!("{CLEAR}{}", bar(self.done, self.to_do, &line, columns())),
        }
    }

    pub(crate) fn end(&mut self, now: Duration) {
        self.done += 1;
        self.now = now;
    }

    pub(crate) fn warn(&self, text: &str) {
        let clear = if self.face == Face::Bar { CLEAR } else { "" };
        eprintln!("{clear}warning: {text}");
    }

    fn remaining(&self) -> Option<Duration> {
        let elapsed = self.now.checked_sub(self.began?)?;
        let each = elapsed.checked_div(u32::try_from(self.done).ok()?)?;
        Some(each * u32::try_from(self.to_do - self.done).ok()?)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.face == Face::Bar {
            eprint!("{CLEAR}");
        }
    }
}

/// Characters of the terminal's lines; 80 where it does not say.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.ok().map(|size| size.ws_col.into()).filter(|columns| *columns > 0).unwrap_or(80)
}

/// The bar and a line beside it, cut before the end of the terminal's line, where it would scroll.
fn bar(done: usize, to_do: usize, line: &str, columns: usize) -> String {
    let full = (BAR * done / to_do).min(BAR - 1);
    let line = format!("[{:<BAR$}] {line}", "=".repeat(full) + ">");
    line.chars().take(columns - 1).collect()
}

fn describe(
    number: usize,
    total: usize,
    what: &str,
    elapsed: Duration,
    remaining: Option<Duration>,
) -> String {
    let eta = remaining.map_or_else(String::new, |time| format!(", {} to go", clock(time)));
    format!("trial {number}/{total}  {what}  ({}{eta})", clock(elapsed))
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_trial_work_and_time() {
        let line = describe(17, 48, "stripe: random read 4K", Duration::from_secs(75), None);
        assert_eq!(line, "trial 17/48  stripe: random read 4K  (1:15)");
        assert_eq!(clock(Duration::from_secs(3723)), "1:02:03");
    }

    #[test]
    fn the_bar_grows_and_is_cut_at_the_end_of_the_line() {
        assert_eq!(bar(0, 4, "trial 1/4", 80), format!("[>{}] trial 1/4", " ".repeat(23)));
        assert_eq!(bar(2, 4, "é", 80), format!("[{}>{}] é", "=".repeat(12), " ".repeat(11)));
        assert_eq!(bar(4, 4, "trial", 30), format!("[{}>] tr", "=".repeat(23)));
    }

    #[test]
    fn the_rest_is_estimated_from_the_mean() {
        let mut progress = Progress::new(4, 4, true);
        progress.begin(1, "", Duration::from_secs(100));
        assert_eq!(progress.remaining(), None);
        progress.end(Duration::from_secs(110));
        progress.begin(2, "", Duration::from_secs(110));
        assert_eq!(progress.remaining(), Some(Duration::from_secs(30)));
    }
}
