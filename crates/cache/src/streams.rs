//! Detects long sequential runs, which bypass the cache because they would only evict useful
//! blocks.

use braid_block::Span;

/// Number of runs tracked at a time.
const RUNS: usize = 16;

/// Ends and lengths of runs; the most recently continued run is the last.
pub(crate) struct Streams {
    runs: Vec<Run>,
    /// Length in bytes from which a run bypasses the cache; `None` for no limit.
    cutoff: Option<u64>,
}

#[derive(Clone, Copy)]
struct Run {
    end: u64,
    len: u64,
}

impl Streams {
    pub(crate) fn new(cutoff: Option<u64>) -> Streams {
        Streams { runs: Vec::with_capacity(RUNS), cutoff }
    }

    /// Returns whether `span` belongs to a long run.
    pub(crate) fn is_long(&mut self, span: Span) -> bool {
        let Some(cutoff) = self.cutoff else { return false };
        let before = match self.runs.iter().position(|run| run.end == span.offset) {
            Some(index) => self.runs.remove(index).len,
            None => {
                if self.runs.len() == RUNS {
                    self.runs.remove(0);
                }
                0
            }
        };
        let len = before + span.len;
        self.runs.push(Run { end: span.end(), len });
        len > cutoff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_told_beside_each_other() {
        let mut streams = Streams::new(Some(8192));
        for index in 0..4 {
            let is_long = index >= 2;
            assert_eq!(streams.is_long(Span::new(index * 4096, 4096)), is_long, "{index}");
            assert_eq!(streams.is_long(Span::new((1 << 30) + index * 4096, 4096)), is_long);
            assert!(!streams.is_long(Span::new((1 << 40) + index * 8192, 4096)), "not a run");
        }
        assert!(!Streams::new(None).is_long(Span::new(0, 1 << 30)));
    }
}
