//! Names of sheets: at most 31 characters, none of `[]:*?/\`, and no two alike.

use std::collections::HashSet;

const LONGEST: usize = 31;

/// The names that are taken, in lower case: case makes no difference.
#[derive(Debug, Default)]
pub(super) struct SheetNames {
    taken: HashSet<String>,
}

impl SheetNames {
    /// A legal name like the wanted one.
    pub(super) fn take(&mut self, wanted: &str) -> String {
        let legal: String =
            super::printable(wanted)
                .chars()
                .map(|c| {
                    if matches!(c, '[' | ']' | ':' | '*' | '?' | '/' | '\\' | '\'') {
                        '-'
                    } else {
                        c
                    }
                })
                .collect();
        let legal = match legal.trim() {
            "" => "sheet",
            // Reserved by Excel.
            name if name.eq_ignore_ascii_case("history") => "history-",
            name => name,
        };
        let cut = |longest: usize| super::cut(legal, longest).trim_end().to_owned();
        let mut name = cut(LONGEST);
        for number in 2_usize.. {
            if self.taken.insert(name.to_lowercase()) {
                break;
            }
            let suffix = format!(" ({number})");
            name = cut(LONGEST - suffix.len()) + &suffix;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_legal_and_differ() {
        let mut names = SheetNames::default();
        assert_eq!(names.take("summary"), "summary");
        assert_eq!(names.take("Summary"), "Summary (2)");
        assert_eq!(names.take("a/b:[c]*?\\'"), "a-b--c-----");
        assert_eq!(names.take(""), "sheet");
        assert_eq!(names.take("History"), "history-");
        let long = "x".repeat(40);
        assert_eq!(names.take(&long).len(), 31);
        assert_eq!(names.take(&long), format!("{} (2)", "x".repeat(27)));
    }

    proptest! {
        #[test]
        fn any_names_are_accepted_by_the_format(wanted in proptest::collection::vec(".{0,40}", 1..20)) {
            let mut names = SheetNames::default();
            for wanted in wanted {
                let mut sheet = rust_xlsxwriter::Worksheet::new();
                prop_assert!(sheet.set_name(names.take(&wanted)).is_ok());
            }
        }
    }
}
