//! The paths that a file names: in `use` trees, and in its code.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream};
use syn::visit::{self, Visit};
use syn::{ItemImpl, ItemMod, ItemUse, Path, Type, UseTree, Visibility};

use crate::source::Source;

/// A path of two names or more, or one that is imported or that an `impl` is for.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) segments: Vec<String>,
    /// The byte at which it begins.
    pub(crate) at: usize,
    /// The modules within the file that it stands in.
    pub(crate) within: Vec<String>,
    /// The name that a `use` gives it here (`*`: all of it), and whether the `use` is a re-export.
    pub(crate) import: Option<(String, bool)>,
    /// True if it is the type of an `impl`.
    pub(crate) is_implemented: bool,
}

/// The names in a file.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) paths: Vec<Named>,
    /// Items that the file defines, at any depth.
    pub(crate) defined: BTreeSet<String>,
    /// Every word outside of `use`.
    pub(crate) words: BTreeSet<String>,
}

const DEFINES: [&str; 9] =
    ["const", "enum", "fn", "macro_rules", "static", "struct", "trait", "type", "union"];

/// Returns the names in a file, those in the arguments of macros included.
pub(crate) fn names(file: &Source) -> Names {
    let mut walk = Walk { code: &file.code, names: Names::default(), within: Vec::new() };
    walk.visit_file(&file.syntax());
    let mut before = "";
    for word in file.code.split(|c: char| !is_part(c)).filter(|word| !word.is_empty()) {
        walk.names.defined.extend(DEFINES.contains(&before).then(|| word.to_owned()));
        before = word;
    }
    walk.names
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

struct Walk<'a> {
    code: &'a str,
    names: Names,
    within: Vec<String>,
}

impl Walk<'_> {
    fn add(&mut self, at: usize, segments: Vec<String>) -> &mut Named {
        let within = self.within.clone();
        self.names.paths.push(Named { segments, at, within, ..Named::default() });
        self.names.paths.last_mut().expect("a path was added")
    }

    fn add_path(&mut self, path: &Path) -> &mut Named {
        let segments = path.segments.iter().map(|one| one.ident.to_string()).collect();
        self.add(path.segments[0].ident.span().byte_range().start, segments)
    }

    /// Adds the imports of a `use` tree below a prefix.
    fn tree(&mut self, tree: &UseTree, mut path: Vec<String>, at: usize, is_public: bool) {
        let (last, alias) = match tree {
            UseTree::Path(one) => {
                path.push(one.ident.to_string());
                return self.tree(&one.tree, path, at, is_public);
            }
            UseTree::Group(all) => {
                let each = |one| self.tree(one, path.clone(), at, is_public);
                return all.items.iter().for_each(each);
            }
            UseTree::Name(one) => (one.ident.to_string(), None),
            UseTree::Rename(one) => (one.ident.to_string(), Some(one.rename.to_string())),
            UseTree::Glob(_) => ("*".to_owned(), None),
        };
        path.extend((last != "self" || path.is_empty()).then_some(last));
        let name = alias.or_else(|| path.last().cloned()).unwrap_or_default();
        self.add(at, path).import = Some((name, is_public));
    }
}

impl Visit<'_> for Walk<'_> {
    fn visit_item_mod(&mut self, item: &ItemMod) {
        self.within.push(item.ident.to_string());
        item.content.iter().flat_map(|(_, items)| items).for_each(|item| self.visit_item(item));
        self.within.pop();
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        let at = item.use_token.span.byte_range().start;
        self.tree(&item.tree, Vec::new(), at, !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_item_impl(&mut self, item: &ItemImpl) {
        if let Type::Path(of) = &*item.self_ty {
            self.add_path(&of.path).is_implemented = true;
        }
        visit::visit_item_impl(self, item);
    }

    // `pub(in crate::a)` is no use of `a`.
    fn visit_visibility(&mut self, _: &Visibility) {}

    fn visit_ident(&mut self, ident: &Ident) {
        self.names.words.insert(ident.to_string());
    }

    fn visit_path(&mut self, path: &Path) {
        if path.segments.len() > 1 {
            self.add_path(path);
        }
        visit::visit_path(self, path);
    }

    /// Reads arguments of macros, which have no syntax of their own, as words and `::` between them.
    fn visit_token_stream(&mut self, stream: &TokenStream) {
        let ends = stream.clone().into_iter().map(|tree| tree.span().byte_range());
        let Some(inside) = ends.reduce(|first, last| first.start..last.end) else { return };
        for word in self.code[inside.clone()].split(|c| !is_part(c) && c != ':') {
            let parts: Vec<String> =
                word.split(':').filter(|part| !part.is_empty()).map(str::to_owned).collect();
            self.names.words.extend(parts.iter().cloned());
            if parts.len() > 1 {
                self.add(inside.start, parts);
            }
        }
    }
}

#[test]
fn paths_of_imports_and_of_code_are_read() {
    let code = "pub(crate) use a::{self, b::C as D, e::*}; use crate::f; pub(in crate::g) struct S;
                mod inner { fn h() { super::i::j::<u8>(x.k); } } fn l() { crate::m() }
                impl n::O { fn p() { f!(q.r, s: &mut crate::t::U, [v = crate::w]); f! { struct Y; } } }
                impl Z {}";
    let names = names(&Source::new("p", "a.rs", code));
    let told: Vec<String> = names
        .paths
        .iter()
        .map(|one| {
            let import = one.import.as_ref().map(|(name, public)| format!(" = {name} {public}"));
            let within: String = one.within.iter().map(|name| format!("{name}/")).collect();
            let within = if one.is_implemented { "impl ".to_owned() } else { within };
            format!("{within}{}{}", one.segments.join("::"), import.unwrap_or_default())
        })
        .collect();
    let expected = [
        "a = a true",
        "a::b::C = D true",
        "a::e::* = * true",
        "crate::f = f false",
        "inner/super::i::j",
        "crate::m",
        "impl n::O",
        "n::O",
        "crate::t::U",
        "crate::w",
        "impl Z",
    ];
    assert_eq!(told, expected);
    assert!(["S", "h", "l", "Y"].iter().all(|name| names.defined.contains(*name)), "{names:?}");
    assert!(
        ["k", "r", "v"].iter().all(|word| names.words.contains(*word))
            && !names.words.contains("D"),
        "{names:?}"
    );
}
