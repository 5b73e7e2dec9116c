//! Names with `*` for any letters.

use super::Subject;

/// Some patterns of names.
#[derive(Debug, Clone, Copy)]
pub struct Patterns<'a>(pub &'a [String]);

impl Patterns<'_> {
    /// Returns true if a name matches a pattern.
    pub fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, name))
    }

    /// Returns a pattern that no subject's name matches.
    pub(crate) fn unknown_among(&self, subjects: &[Subject]) -> Option<String> {
        let is_known = |form: &String| subjects.iter().any(|one| matches(form, &one.name));
        self.0.iter().find(|form| !is_known(form)).cloned()
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(head) else {
        return false;
    };
    let mut starts = (0..=name.len()).filter(|at| name.is_char_boundary(*at));
    starts.any(|at| matches(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_letters() {
        assert!(matches("raid0*", "raid0 64K × 4"));
        assert!(matches("*64K*", "raid0 64K × 4"));
        assert!(!matches("raid0", "raid0 64K"));
        assert!(matches("*", ""));
        assert!(!Patterns(&[]).matches("raid0"));
    }
}
