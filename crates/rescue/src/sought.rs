//! Evidence of all members, as the question that the solver answers.
//!
//! ```text
//!   member  ├████████████──█──█──█──█──█──█──┤     the first 256 MiB, and windows of the rest
//! ```
//!
//! Windows are read three times: for structures, for what their parsers must learn, and for the blocks that say where
//! they belong.

use crate::assemble::inside;
use crate::claimants::Examined;
use crate::evidence::{Known, anchors, clues, gather, learn, settle};
use crate::{Clue, Fixed, Question};

/// Bytes of a member that are read from its start on.
const HEAD: u64 = 256 << 20;
/// Bytes of a window.
const WINDOW: u64 = 16 << 20;
/// Windows of the rest of a member.
const WINDOWS: u64 = 64;

/// Returns the windows of a member of `size` bytes: start and length, each start a multiple of 4096.
fn windows(size: u64) -> Vec<(u64, u64)> {
    let head = (0..size.min(HEAD)).step_by(WINDOW as usize);
    let rest = size.saturating_sub(HEAD);
    let step = (rest / WINDOWS).next_multiple_of(4096).max(WINDOW);
    let tail = (HEAD..size).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    head.chain(tail).map(|start| (start, WINDOW.min(size - start))).collect()
}

/// Reads the evidence of all members. Returns the question, and the structures that its anchors are.
#[must_use]
pub fn question(members: &[Examined], fixed: Fixed) -> (Question, Vec<Known>) {
    let mut known = Vec::new();
    each_window(members, |_, window, at| {
        gather(&mut known, anchors(window, at).into_iter().map(|(_, known)| known));
    });
    each_window(members, |_, window, _| learn(window, &mut known));
    let mut found = vec![Vec::new(); members.len()];
    each_window(members, |member, window, at| found[member].extend(clues(window, at, &known)));
    let mut sought = Vec::new();
    for (member, mut found) in found.into_iter().enumerate() {
        settle(&mut found);
        sought.extend(found.into_iter().map(|one| Clue {
            member,
            at: one.at,
            anchor: one.anchor,
            place: one.place,
            length: one.length,
        }));
    }
    let question = Question {
        sizes: members.iter().map(|member| member.patient.size()).collect(),
        anchors: known.iter().map(Known::anchor).collect(),
        bases: Vec::new(),
        clues: sought,
        scanned: members.iter().map(|member| windows(member.patient.size())).collect(),
        fixed,
    };
    (question, known)
}

/// Calls `f` with each window of each member: member, bytes, offset. Holes are zeros.
fn each_window(members: &[Examined], mut f: impl FnMut(usize, &[u8], u64)) {
    for (index, member) in members.iter().enumerate() {
        for (start, length) in windows(member.patient.size()) {
            let mut window = vec![0; usize::try_from(length).expect("a window is some MiB")];
            member.patient.read_around(start, &mut window, &mut Vec::new());
            f(index, &window, start);
        }
    }
}

/// Returns bytes of a member; `None` if they lie in a hole, or behind its end.
#[must_use]
pub fn content(members: &[Examined], member: usize, at: u64, length: usize) -> Option<Vec<u8>> {
    let member = &members[member];
    let range = at..at.checked_add(length as u64)?;
    if !inside(&member.holes, &range).is_empty() {
        return None;
    }
    let mut bytes = vec![0; length];
    member.patient.read(at, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_begin_on_the_grid_and_stay_inside() {
        for size in [1, 5000, HEAD, HEAD + 1, 3 * HEAD + 4097, 1 << 42] {
            let windows = windows(size);
            assert!(
                windows.iter().all(|(start, length)| start % 4096 == 0 && start + length <= size)
            );
            assert!(windows.len() as u64 <= HEAD / WINDOW + WINDOWS + 1, "{size}");
        }
    }
}
