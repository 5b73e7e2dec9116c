//! The paths that a file names: in `use` trees, and in its code.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, ItemImpl, ItemMod, ItemUse, Path, Type, UseTree, Visibility};

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
    /// Whether it is the type of an `impl`.
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

const DEFINES: [&str; 8] = ["const", "enum", "fn", "static", "struct", "trait", "type", "union"];

/// Returns the names in a file, those in the arguments of macros included.
pub(crate) fn names(file: &syn::File) -> Names {
    let mut walk = Walk::default();
    walk.visit_file(file);
    walk.names
}

#[derive(Default)]
struct Walk {
    names: Names,
    within: Vec<String>,
}

impl Walk {
    fn add(&mut self, path: &[&Ident], is_implemented: bool) {
        let at = path[0].span().byte_range().start;
        let segments = path.iter().map(ToString::to_string).collect();
        let within = self.within.clone();
        self.names.paths.push(Named { segments, at, within, import: None, is_implemented });
    }

    /// Adds the imports of a `use` tree below a prefix.
    fn tree(&mut self, tree: &UseTree, prefix: &[&Ident], is_public: bool) {
        let mut path = prefix.to_vec();
        let mut name = None;
        match tree {
            UseTree::Path(one) => {
                path.push(&one.ident);
                return self.tree(&one.tree, &path, is_public);
            }
            UseTree::Group(all) => {
                return all.items.iter().for_each(|one| self.tree(one, prefix, is_public));
            }
            UseTree::Name(one) if one.ident != "self" || prefix.is_empty() => path.push(&one.ident),
            UseTree::Name(_) => {}
            UseTree::Rename(one) => {
                path.extend((one.ident != "self").then_some(&one.ident));
                name = Some(one.rename.to_string());
            }
            UseTree::Glob(_) => name = Some("*".to_owned()),
        }
        let Some(last) = path.last().map(ToString::to_string) else { return };
        self.add(&path, false);
        let added = self.names.paths.last_mut().expect("one was added");
        added.segments.extend(matches!(tree, UseTree::Glob(_)).then(|| "*".to_owned()));
        added.import = Some((name.unwrap_or(last), is_public));
    }
}

impl Visit<'_> for Walk {
    fn visit_item(&mut self, item: &Item) {
        let defined = match item {
            Item::Const(one) => Some(&one.ident),
            Item::Enum(one) => Some(&one.ident),
            Item::Fn(one) => Some(&one.sig.ident),
            Item::Macro(one) => one.ident.as_ref(),
            Item::Static(one) => Some(&one.ident),
            Item::Struct(one) => Some(&one.ident),
            Item::Trait(one) => Some(&one.ident),
            Item::Type(one) => Some(&one.ident),
            Item::Union(one) => Some(&one.ident),
            _ => None,
        };
        self.names.defined.extend(defined.map(ToString::to_string));
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &ItemMod) {
        self.within.push(item.ident.to_string());
        item.content.iter().flat_map(|(_, items)| items).for_each(|item| self.visit_item(item));
        self.within.pop();
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        self.tree(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_item_impl(&mut self, item: &ItemImpl) {
        if let Type::Path(of) = &*item.self_ty {
            self.add(&of.path.segments.iter().map(|one| &one.ident).collect::<Vec<_>>(), true);
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
            self.add(&path.segments.iter().map(|one| &one.ident).collect::<Vec<_>>(), false);
        }
        visit::visit_path(self, path);
    }

    /// Arguments of macros, which have no syntax of their own.
    fn visit_token_stream(&mut self, stream: &TokenStream) {
        let trees: Vec<TokenTree> = stream.clone().into_iter().collect();
        let is = |at: usize, mark| matches!(trees.get(at), Some(TokenTree::Punct(one)) if one.as_char() == mark);
        let ident = |at: usize| match trees.get(at) {
            Some(TokenTree::Ident(ident)) => Some(ident),
            _ => None,
        };
        // The name that follows after `::`.
        let next = |at: usize| {
            ident(at + 3).filter(|_| is(at + 1, ':') && is(at + 2, ':')).map(|_| at + 3)
        };
        let goes_on = |at: usize| {
            is(at.wrapping_sub(1), '.')
                || is(at.wrapping_sub(1), ':') && is(at.wrapping_sub(2), ':')
        };
        for (at, tree) in trees.iter().enumerate() {
            match tree {
                TokenTree::Group(group) => self.visit_token_stream(&group.stream()),
                TokenTree::Ident(word) => {
                    self.visit_ident(word);
                    let before = ident(at.wrapping_sub(1));
                    if before.is_some_and(|before| DEFINES.iter().any(|word| before == word)) {
                        self.names.defined.insert(word.to_string());
                    }
                    if next(at).is_some() && !goes_on(at) {
                        let path = std::iter::successors(Some(at), |at| next(*at));
                        self.add(&path.filter_map(ident).collect::<Vec<_>>(), false);
                    }
                }
                _ => {}
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
    let names = names(&syn::parse_file(code).expect("the code is Rust"));
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
