//! Limit on the length of a function.
//!
//! `clippy::too_many_lines` counts alike, but its exceptions are attributes in the code, and none says how long
//! the function may be.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Block, Ident, ImplItemFn, ItemFn, ItemImpl, TraitItemFn, Type};

use crate::Rule;
use crate::ratchet::{held, ratchet};
use crate::source::{Source, production_files};

/// Lines of code in the body of one function.
const MOST: usize = 70;

/// Number of lines that a function above the limit may lose before its entry has to follow.
const SLACK: usize = 5;

const RULE: Rule = Rule {
    name: "a function has at most 70 lines of code",
    why: "the reader keeps all its variables and branches in mind at once. A longer function has steps, \
          and the steps have no names and no tests.",
    comply: "give a step a function whose name says what it does, with its inputs as arguments. Comments and \
             blank lines do not count. `BRAID_RATCHET=lower make only TEST=braid-tidy` lowers the entries \
             of functions that became shorter.",
};

struct Functions<'a> {
    file: &'a Source,
    /// The type of the `impl` block, with `::`.
    of: String,
    long: BTreeMap<String, usize>,
}

impl Functions<'_> {
    fn measure(&mut self, name: &Ident, body: &Block) {
        let braces = body.brace_token.span;
        let inside = braces.open().byte_range().end..braces.close().byte_range().start;
        let lines = self.file.bare[inside].lines().filter(|line| !line.trim().is_empty()).count();
        if lines > MOST {
            let name = format!("{} {}{name}", self.file.path, self.of);
            let longest = self.long.entry(name).or_default();
            *longest = lines.max(*longest);
        }
    }
}

impl Visit<'_> for Functions<'_> {
    fn visit_item_impl(&mut self, item: &ItemImpl) {
        let name = match &*item.self_ty {
            Type::Path(of) => of.path.segments.last().map(|one| format!("{}::", one.ident)),
            _ => None,
        };
        let outer = std::mem::replace(&mut self.of, name.unwrap_or_default());
        visit::visit_item_impl(self, item);
        self.of = outer;
    }

    fn visit_item_fn(&mut self, item: &ItemFn) {
        self.measure(&item.sig.ident, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &ImplItemFn) {
        self.measure(&item.sig.ident, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &TraitItemFn) {
        item.default.iter().for_each(|body| self.measure(&item.sig.ident, body));
        visit::visit_trait_item_fn(self, item);
    }
}

/// Returns the functions above the limit, by path and name, and their lines.
pub(crate) fn long_functions(files: &[Source]) -> BTreeMap<String, usize> {
    let long = files.iter().flat_map(|file| {
        let mut functions = Functions { file, of: String::new(), long: BTreeMap::new() };
        functions.visit_file(&file.syntax());
        functions.long
    });
    long.collect()
}

#[test]
fn functions_are_short() {
    let long = long_functions(production_files());
    RULE.hold(&held(&long, &ratchet().functions, SLACK, "lines of code"));
}

#[test]
fn a_long_function_is_found_and_comments_do_not_count() {
    let body = |lines: usize| format!("{{\n{}// c\n\n}}", "f();\n".repeat(lines));
    let text = format!(
        "fn a() {}\nimpl S<u8> {{ fn b() {} }}\ntrait T {{ fn c() {} fn d(); }}\n#[cfg(test)]\nfn e() {}",
        body(70),
        body(71),
        body(72),
        body(90),
    );
    let expected =
        [("p.rs S::b", 71), ("p.rs c", 72)].map(|(name, lines)| (name.to_owned(), lines));
    assert_eq!(long_functions(&[Source::new("p", "p.rs", &text)]), BTreeMap::from(expected));
}
