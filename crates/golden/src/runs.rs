//! Runs: a member's image as text.
//!
//! Each line stands for the bytes that follow those of the line before. Numbers are decimal;
//! `AGE`, `DISKS`, `STRIDE`, `FIRST`, `POWERS` and `SECTOR` are the arguments of [`Content`]'s
//! functions of these names, and count array sectors; of `POWERS` each digit is one.
//!
//! ```text
//!   fill BYTE COUNT                       COUNT bytes of the value BYTE (two hexadecimal digits)
//!   hex DIGITS                            bytes
//!   data AGE SECTOR COUNT                 COUNT sectors of content, from SECTOR on
//!   p AGE DISKS STRIDE SECTOR COUNT       COUNT sectors of P
//!   q AGE DISKS STRIDE FIRST SECTOR COUNT COUNT sectors of Q
//!   g AGE STRIDE POWERS SECTOR COUNT      COUNT sectors of a Q whose powers have gaps
//!   repeat TIMES STEP                     the lines until `end`, TIMES times: on each turn
//!   end                                   every SECTOR is greater by STEP than on the one before
//! ```
//!
//! So a member of a raid5 of 3 with chunks of 64 KiB, from its data offset on, is
//!
//! ```text
//!   repeat 80 768          three rows of two chunks of 128 sectors are 768 sectors of the array
//!   data 1 0 128
//!   data 1 384 128
//!   p 1 2 128 512 128
//!   end
//! ```
//!
//! `scripts/compact-golden.py` writes them. Groups do not nest.

use crate::pattern::{Content, Sector};

/// The image that runs stand for, over an array's content.
///
/// # Panics
///
/// If the text is not in the format above; the message has the line.
#[must_use]
pub fn expand(text: &str, content: &Content) -> Vec<u8> {
    let mut image = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(head) = line.strip_prefix("repeat ") else {
            expand_line(line, 0, content, &mut image);
            continue;
        };
        let [times, step] = numbers(head, line);
        let group: Vec<&str> = lines.by_ref().take_while(|line| *line != "end").collect();
        for turn in 0..times {
            for line in &group {
                expand_line(line, turn * step, content, &mut image);
            }
        }
    }
    image
}

/// Appends the bytes of one line, its sectors moved on by `moved`.
fn expand_line(line: &str, moved: u64, content: &Content, image: &mut Vec<u8>) {
    let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut sectors = |start: u64, count: u64, sector: &dyn Fn(u64) -> Sector| {
        for at in start + moved..start + moved + count {
            image.extend_from_slice(&sector(at).bytes());
        }
    };
    match kind {
        "data" => {
            let [age, start, count] = numbers(rest, line);
            sectors(start, count, &|at| content.sector(age as usize, at));
        }
        "p" => {
            let [age, disks, stride, start, count] = numbers(rest, line);
            sectors(start, count, &|at| content.p(age as usize, disks, stride, at));
        }
        "q" => {
            let [age, disks, stride, first, start, count] = numbers(rest, line);
            sectors(start, count, &|at| content.q(age as usize, disks, stride, first, at));
        }
        "g" => {
            let words: Vec<&str> = rest.split(' ').collect();
            let [age, stride, powers, start, count] = words[..] else {
                panic!("{line:?} has not the 5 words of its kind");
            };
            let [age, stride] = numbers(&format!("{age} {stride}"), line);
            let [start, count] = numbers(&format!("{start} {count}"), line);
            let powers: Option<Vec<u32>> = powers.chars().map(|digit| digit.to_digit(10)).collect();
            let powers = powers.unwrap_or_else(|| panic!("{line:?} has powers that are no digits"));
            sectors(start, count, &|at| content.g(age as usize, stride, &powers, at));
        }
        "fill" => {
            let (byte, count) = rest.split_once(' ').unwrap_or((rest, ""));
            let [count] = numbers(count, line);
            image.resize(image.len() + count as usize, hex(byte, line)[0]);
        }
        "hex" => image.extend(hex(rest, line)),
        _ => panic!("{line:?} is no run"),
    }
}

/// Exactly `N` numbers.
fn numbers<const N: usize>(text: &str, line: &str) -> [u64; N] {
    let parsed: Option<Vec<u64>> = text.split(' ').map(|word| word.parse().ok()).collect();
    parsed
        .and_then(|numbers| numbers.try_into().ok())
        .unwrap_or_else(|| panic!("{line:?} has not the {N} numbers of its kind"))
}

/// Bytes from pairs of hexadecimal digits; at least one.
fn hex(text: &str, line: &str) -> Vec<u8> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.as_bytes()
        .chunks(2)
        .map(|digits| if digits.len() == 2 { pair(digits) } else { None })
        .collect::<Option<Vec<u8>>>()
        .filter(|bytes| !bytes.is_empty())
        .unwrap_or_else(|| panic!("{line:?} has not the hexadecimal digits of its kind"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Piece;

    fn content() -> Content {
        Content::new(&[Piece { offset: 0, length: 32 << 10, key: "test".into() }])
    }

    #[test]
    fn lines_follow_one_another() {
        let image = expand("hex 00ff10\nfill a5 3\ndata 1 9 2\nfill 00 1\n", &content());
        let mut expected = vec![0x00, 0xff, 0x10, 0xa5, 0xa5, 0xa5];
        expected.extend(content().sector(1, 9).bytes());
        expected.extend(content().sector(1, 10).bytes());
        expected.push(0);
        assert_eq!(image, expected);
    }

    #[test]
    fn a_group_moves_on_by_its_step_and_leaves_what_has_no_sector() {
        let group =
            expand("repeat 3 4\ndata 1 1 2\nhex 07\np 1 2 2 0 1\nend\nhex 08\n", &content());
        let flat = "data 1 1 2\nhex 07\np 1 2 2 0 1\ndata 1 5 2\nhex 07\np 1 2 2 4 1\n\
                    data 1 9 2\nhex 07\np 1 2 2 8 1\nhex 08\n";
        assert_eq!(group, expand(flat, &content()));
    }

    #[test]
    fn parity_is_the_sum_of_its_row() {
        let content = content();
        let [a, b, c] = [3, 11, 19].map(|sector| content.sector(1, sector).bytes());
        let p = expand("p 1 3 8 3 1\n", &content);
        let q = expand("q 1 3 8 1 3 1\n", &content);
        let g = expand("g 1 8 120 3 1\n", &content);
        let double = |byte: u8| (byte << 1) ^ if byte & 0x80 == 0 { 0 } else { 0x1d };
        for at in 0..512 {
            assert_eq!(p[at], a[at] ^ b[at] ^ c[at]);
            // Disk 1 has g^0, disk 2 g^1, disk 0 g^2.
            assert_eq!(q[at], b[at] ^ double(c[at]) ^ double(double(a[at])));
            assert_eq!(g[at], double(a[at]) ^ double(double(b[at])) ^ c[at]);
        }
    }
}
