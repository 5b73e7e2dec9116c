//! "Did you mean": the one known name that is nearest to a mistyped one.

/// The only nearest of `known` to `typed`, if it is near enough to be a slip of the fingers: at most
/// two edits, and at most a third of the word. A tie suggests nothing, because a guess between
/// `raid0` and `raid1` is worse than none.
pub fn suggest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No name comes near this; it bounds the work on hostile input.
    if typed.len() > 32 {
        return None;
    }
    let typed: Vec<char> = typed.to_lowercase().chars().collect();
    let limit = (typed.len().div_ceil(3)).min(2);
    let mut best: Option<(usize, &'a str)> = None;
    let mut is_tie = false;
    for name in known {
        let distance = edit_distance(&typed, &name.chars().collect::<Vec<_>>());
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

/// Insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let width = b.len() + 1;
    let mut table = vec![0_usize; (a.len() + 1) * width];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            let at = i * width + j;
            if i == 0 || j == 0 {
                table[at] = i + j;
                continue;
            }
            let replaced = table[at - width - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(table[at - width] + 1).min(table[at - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(table[at - 2 * width - 2] + 1);
            }
            table[at] = least;
        }
    }
    table[a.len() * width + b.len()]
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
