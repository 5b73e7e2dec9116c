//! The paths that a file names: in `use` trees, and in its code.

use std::collections::BTreeSet;

/// A path of two names or more, or one that is imported.
#[derive(Debug, PartialEq)]
pub(crate) struct Named {
    pub(crate) segments: Vec<String>,
    /// The byte at which it begins.
    pub(crate) at: usize,
    /// The modules within the file that it stands in.
    pub(crate) within: Vec<String>,
    /// What a `use` calls it here (`*`: all of it), and whether the `use` is a re-export.
    pub(crate) import: Option<(String, bool)>,
}

/// What a file says, in one walk.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) paths: Vec<Named>,
    /// What the file defines, at any depth.
    pub(crate) defined: BTreeSet<String>,
    /// Every word outside of `use`.
    pub(crate) words: BTreeSet<String>,
}

const DEFINES: [&str; 9] =
    ["const", "enum", "fn", "macro_rules", "static", "struct", "trait", "type", "union"];

/// Reads code that has neither comments nor literals.
pub(crate) fn names(code: &str) -> Names {
    let tokens = tokens(code);
    let token = |at: usize| tokens.get(at).map_or("", |token| token.1);
    let (mut names, mut depth, mut at) = (Names::default(), 0, 0);
    // The modules that are open, and the depth that each ends at.
    let mut open: Vec<(String, usize)> = Vec::new();
    while at < tokens.len() {
        let before = if at == 0 { "" } else { token(at - 1) };
        match token(at) {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                open.retain(|(_, ends)| *ends < depth);
            }
            "mod" if token(at + 2) == "{" => open.push((token(at + 1).to_owned(), depth)),
            "use" => {
                let within: Vec<String> = open.iter().map(|(name, _)| name.clone()).collect();
                let is_public = matches!(before, "pub" | ")");
                at = tree(&tokens, at + 1, &[], &mut |segments, name| {
                    let (import, within) = (Some((name, is_public)), within.clone());
                    names.paths.push(Named { segments, at: tokens[at].0, within, import });
                });
                continue;
            }
            word if is_word(word) => {
                if DEFINES.contains(&before)
                    || before == "!" && token(at.max(2) - 2) == "macro_rules"
                {
                    names.defined.insert(word.to_owned());
                }
                let is_visibility = before == "in" && token(at.max(2) - 2) == "(";
                if before != "mod" {
                    names.words.insert(word.to_owned());
                }
                if !matches!(before, "::" | ".") && token(at + 1) == "::" && !is_visibility {
                    let steps = (0..).step_by(2).take_while(|step| {
                        is_word(token(at + step)) && (*step == 0 || token(at + step - 1) == "::")
                    });
                    let segments = steps.map(|step| token(at + step).to_owned()).collect();
                    let within = open.iter().map(|(name, _)| name.clone()).collect();
                    names.paths.push(Named { segments, at: tokens[at].0, within, import: None });
                }
            }
            _ => {}
        }
        at += 1;
    }
    names
}

/// One `use` tree, from `at` to behind its `,`, `;` or up to its `}`.
fn tree(
    tokens: &[(usize, &str)],
    mut at: usize,
    prefix: &[String],
    found: &mut impl FnMut(Vec<String>, String),
) -> usize {
    let mut segments = prefix.to_vec();
    let mut alias = None;
    while let Some((_, token)) = tokens.get(at) {
        match *token {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.1 != "}") {
                    at = tree(tokens, at, &segments, found);
                }
                segments.clear();
            }
            "," | ";" | "}" => break,
            "as" => {
                alias = tokens.get(at + 1).map(|token| token.1.to_owned());
                at += 1;
            }
            "self" if !segments.is_empty() => {}
            word if is_word(word) || word == "*" => segments.push(word.to_owned()),
            _ => {}
        }
        at += 1;
    }
    if let Some(last) = segments.last().cloned() {
        found(segments, alias.unwrap_or(last));
    }
    at + usize::from(tokens.get(at).is_some_and(|token| token.1 != "}"))
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn tokens(code: &str) -> Vec<(usize, &str)> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(first) = code[at..].chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            c if is_part(c) => code[at..].find(|c| !is_part(c)).unwrap_or(code.len() - at),
            ':' if code[at..].starts_with("::") => 2,
            c => c.len_utf8(),
        };
        if !first.is_whitespace() {
            tokens.push((at, &code[at..at + length]));
        }
        at += length;
    }
    tokens
}

#[test]
fn paths_of_imports_and_of_code_are_read() {
    let code = "pub(crate) use a::{self, b::C as D, e::*}; use crate::f; pub(in crate::g) struct S;
                mod inner { fn h() { super::i::j::<u8>(x.k); } } fn l() { crate::m() }";
    let names = names(code);
    let told: Vec<String> = names
        .paths
        .iter()
        .map(|one| {
            let import = one.import.as_ref().map(|(name, public)| format!(" = {name} {public}"));
            let within: String = one.within.iter().map(|name| format!("{name}/")).collect();
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
    ];
    assert_eq!(told, expected);
    assert!(["S", "h", "l"].iter().all(|name| names.defined.contains(*name)), "{names:?}");
    assert!(names.words.contains("k") && !names.words.contains("D"), "{names:?}");
}
