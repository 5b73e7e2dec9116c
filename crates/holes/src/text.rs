//! Maps as text.

use std::fmt;

use crate::error::{MapError, Wrong};
use crate::map::{Activity, Map, Phase, State};
use crate::{MAX_SIZE, MAX_TEXT};

/// Longest part of a word that an error quotes, in characters.
const QUOTED: usize = 40;

impl Map {
    /// Parses a mapfile of GNU ddrescue. Comments may contain any bytes.
    ///
    /// # Errors
    /// [`MapError`]: the first fault, with its line.
    pub fn parse(text: &[u8]) -> Result<Map, MapError> {
        if text.len() > MAX_TEXT {
            return Err(MapError::TooLong { bytes: text.len() });
        }
        let mut map: Option<Map> = None;
        for (line, words) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let at = |wrong| MapError::At { line, wrong };
            let mut words = words_of(words).peekable();
            if words.peek().is_none() {
                continue;
            }
            match &mut map {
                None => map = Some(Map::empty(parse_activity(words).map_err(at)?)),
                Some(map) => parse_block(map, words).map_err(at)?,
            }
        }
        map.ok_or(MapError::NoStatusLine)
    }
}

/// Returns the words of a line, up to a comment.
fn words_of(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.take_while(|word| word[0] != b'#')
}

fn parse_activity<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Result<Activity, Wrong> {
    let position = number(next(&mut words, "the position")?)?;
    let word = next(&mut words, "the phase, such as +,")?;
    let phase = Phase::ALL.into_iter().find(|phase| is_letter(word, phase.letter()));
    let phase = phase.ok_or_else(|| Wrong::NotAPhase { word: quoted(word) })?;
    // Versions before 1.20 wrote no pass.
    let pass = match words.next() {
        Some(word) => match u32::try_from(number(word)?) {
            Ok(pass @ 1..) => pass,
            _ => return Err(Wrong::NotANumber { word: quoted(word) }),
        },
        None => 1,
    };
    end(words)?;
    Ok(Activity { position, phase, pass })
}

fn parse_block<'a>(map: &mut Map, mut words: impl Iterator<Item = &'a [u8]>) -> Result<(), Wrong> {
    let start = number(next(&mut words, "the start of the block")?)?;
    let size = next(&mut words, "the size of the block")?;
    // The end is open: the size of the input was unknown.
    let size = if size == b"-1" { MAX_SIZE.saturating_sub(start) } else { number(size)? };
    let word = next(&mut words, "the state of the block, such as +,")?;
    let state = State::ALL.into_iter().find(|state| is_letter(word, state.letter()));
    let state = state.ok_or_else(|| Wrong::NotAState { word: quoted(word) })?;
    end(words)?;
    let before = map.size();
    if start > before {
        return Err(Wrong::Gap { start, end: before });
    }
    if start < before {
        return Err(Wrong::Overlap { start, end: before });
    }
    let end = start.checked_add(size).filter(|end| *end <= MAX_SIZE);
    map.push(end.ok_or(Wrong::BeyondEnd { start, size })?, state);
    Ok(())
}

fn next<'a>(
    words: &mut impl Iterator<Item = &'a [u8]>,
    needed: &'static str,
) -> Result<&'a [u8], Wrong> {
    words.next().ok_or(Wrong::Missing { needed })
}

fn end<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Result<(), Wrong> {
    match words.next() {
        Some(word) => Err(Wrong::Extra { word: quoted(word) }),
        None => Ok(()),
    }
}

fn is_letter(word: &[u8], letter: char) -> bool {
    word.len() == 1 && char::from(word[0]) == letter
}

/// Parses a number as C++ writes integers: decimal, `0x` and hexadecimal, `0` and octal.
fn number(word: &[u8]) -> Result<u64, Wrong> {
    let (digits, radix) = match word {
        [b'0', b'x' | b'X', digits @ ..] => (digits, 16),
        [b'0', digits @ ..] if !digits.is_empty() => (digits, 8),
        digits => (digits, 10),
    };
    if digits.is_empty() {
        return Err(Wrong::NotANumber { word: quoted(word) });
    }
    let mut value = Some(0u64);
    for digit in digits {
        let digit = char::from(*digit).to_digit(radix);
        let digit = digit.ok_or_else(|| Wrong::NotANumber { word: quoted(word) })?;
        let next =
            value.and_then(|value| value.checked_mul(radix.into())?.checked_add(digit.into()));
        value = next.filter(|value| *value <= MAX_SIZE);
    }
    value.ok_or_else(|| Wrong::TooLarge { word: quoted(word) })
}

fn quoted(word: &[u8]) -> String {
    String::from_utf8_lossy(word).chars().take(QUOTED).collect()
}

impl fmt::Display for Map {
    /// The text of the map, as ddrescue reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Activity { position, phase, pass } = self.activity;
        writeln!(f, "# Mapfile. Created by braid")?;
        writeln!(f, "# current_pos  current_status  current_pass")?;
        writeln!(f, "0x{position:08X}     {}               {pass}", phase.letter())?;
        writeln!(f, "#      pos        size  status")?;
        self.blocks().iter().try_for_each(|block| {
            let size = block.range.end - block.range.start;
            writeln!(f, "0x{:08X}  0x{size:08X}  {}", block.range.start, block.state.letter())
        })
    }
}
