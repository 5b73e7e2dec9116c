//! "Did you mean": the one known name that is nearest to a mistyped one.

/// The only nearest of `known` to `typed`, if it is near enough to be a slip of the fingers: at most
/// two edits, and at most a third of the word. A tie suggests nothing, because a guess between
/// `raid0` and `raid1` is worse than none.
pub fn suggest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No name comes near this; it bounds the work on hostile input.
    if typed.len() > 32 {
        return None;
    }
    let typed = typed.to_lowercase();
    let limit = (typed.chars().count().div_ceil(3)).min(2);
    let mut best: Option<(usize, &'a str)> = None;
    let mut is_tie = false;
    for name in known {
        // Insertions, deletions, replacements and swaps of neighbours.
        let distance = strsim::osa_distance(&typed, name);
        match best {
            Some((least, _)) if distance > least => {}
            Some((least, _)) if distance == least => is_tie = true,
            _ => {
                best = Some((distance, name));
                is_tie = false;
            }
        }
    }
    best.filter(|(distance, _)| *distance <= limit && !is_tie).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_name_or_nothing() {
        let known = ["linear", "raid0", "raid1", "ram", "file", "model"];
        for (typed, expected) in [
            ("liner", Some("linear")),
            ("lienar", Some("linear")),
            ("RAM", Some("ram")),
            ("raid", None),
            ("radi0", Some("raid0")),
            ("x", None),
            ("completely-different", None),
            ("", None),
        ] {
            assert_eq!(suggest(typed, known), expected, "{typed}");
        }
    }
}
