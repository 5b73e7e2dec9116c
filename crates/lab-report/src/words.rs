//! Lists in words.

/// So many of a long list are named one by one.
const FEW: usize = 4;

/// "a, b and c"; of more than nine "a, b, c, d and 6 others".
pub(crate) fn enumerate(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [most @ .., last] if most.len() <= 2 * FEW => format!("{} and {last}", most.join(", ")),
        many => format!("{} and {} others", many[..FEW].join(", "), many.len() - FEW),
    }
}
