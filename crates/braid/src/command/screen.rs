//! A terminal that is drawn anew again and again: without flicker, with keys, and as it was before when it
//! ends, however it ends.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};

/// The terminal, while it is drawn on.
pub(super) struct Screen {
    /// Former state of the keyboard; `None` if standard input is not a terminal.
    before: Option<Termios>,
    /// A signal requested the end.
    ended: Arc<AtomicBool>,
    /// It has another size.
    resized: Arc<AtomicBool>,
}

/// Key reported after a change of the terminal's size: `^L`, which usually means redraw.
const REDRAW: u8 = 0x0c;

impl Screen {
    /// The terminal of standard output; none if it is no terminal.
    pub(super) fn open() -> io::Result<Option<Screen>> {
        if !io::stdout().is_terminal() {
            return Ok(None);
        }
        let (ended, resized) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        signal_hook::flag::register(SIGWINCH, Arc::clone(&resized))?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&ended))?;
        }
        let before = if io::stdin().is_terminal() { Some(tcgetattr(io::stdin())?) } else { None };
        if let Some(before) = &before {
            let mut now = before.clone();
            now.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            tcsetattr(io::stdin(), OptionalActions::Now, &now)?;
        }
        let screen = Screen { before, ended, resized };
        // The other screen, without a cursor.
        write_out("\x1b[?1049h\x1b[?25l")?;
        Ok(Some(screen))
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> (usize, usize) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            _ => (80, 24),
        }
    }

    /// Draws these lines, in one go.
    pub(super) fn draw(&self, lines: &[String]) -> io::Result<()> {
        write_out(&frame(lines))
    }

    /// Waits for a key until `time`. A signal counts as `q`, a change of the terminal's size as
    /// another key.
    pub(super) fn key(&self, time: Instant) -> io::Result<Option<u8>> {
        loop {
            if self.ended.load(Ordering::Relaxed) {
                return Ok(Some(b'q'));
            }
            if self.resized.swap(false, Ordering::Relaxed) {
                return Ok(Some(REDRAW));
            }
            let left = time.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if self.before.is_none() {
                std::thread::sleep(left.min(Duration::from_millis(100)));
                continue;
            }
            let stdin = io::stdin();
            let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut ready, Some(&left)) {
                Ok(0) => return Ok(None),
                // By one of the signals above.
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => {
                    let mut key = [0];
                    return match rustix::io::read(&stdin, &mut key)? {
                        0 => Ok(Some(b'q')),
                        _ => Ok(Some(key[0])),
                    };
                }
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may be gone, which is as good.
        let _ = write_out("\x1b[?25h\x1b[?1049l");
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Returns the text that draws `lines` over the screen: each line to its end, then clears below.
fn frame(lines: &[String]) -> String {
    format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n"))
}

/// The lines of `text` on a screen of so many columns and rows; those that were not there `before` are bright.
pub(super) fn watched(text: &str, before: &str, (columns, rows): (usize, usize)) -> Vec<String> {
    let before: Vec<&str> = before.lines().collect();
    let lines: Vec<&str> = text.lines().collect();
    let hidden = if lines.len() > rows { lines.len() - rows + 1 } else { 0 };
    let shown = lines.iter().take(lines.len() - hidden).map(|line| {
        let cut: String = line.chars().take(columns).collect();
        let is_new = !before.is_empty() && !before.contains(line);
        if is_new { format!("\x1b[1m{cut}\x1b[0m") } else { cut }
    });
    let more = (hidden > 0).then(|| format!("… and {hidden} lines more"));
    shown.chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_bright_and_nothing_is_beyond_the_edges() {
        let lines = watched("a\nbcdef\nc", "a\nb\nc", (4, 9));
        assert_eq!(lines, ["a", "\x1b[1mbcde\x1b[0m", "c"]);
        assert_eq!(watched("a\nb\nc", "", (9, 3)), ["a", "b", "c"]);
        assert_eq!(watched("a\nb\nc\nd", "", (9, 3)), ["a", "b", "… and 2 lines more"]);
        assert_eq!(frame(&["x".into(), "y".into()]), "\x1b[Hx\x1b[K\r\ny\x1b[K\x1b[J");
    }
}
