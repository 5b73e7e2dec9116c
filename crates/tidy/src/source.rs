//! The files of the workspace, and their text without what is no code.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Packages that only tests and measurements use: a panic there is how they speak.
pub(crate) const FOR_TESTS: [&str; 6] = ["bench", "golden", "mutate", "runner", "sim", "tidy"];

const QUOTES: [char; 2] = ['"', '\''];

/// One file of Rust.
#[derive(Debug)]
pub(crate) struct Source {
    /// The folder of its package: `engine`, `bench`.
    pub(crate) package: String,
    /// From the folder of the workspace.
    pub(crate) path: String,
    /// As it stands.
    pub(crate) text: String,
    /// Without comments and what is compiled for tests only. As long as `text`, with spaces for what is left out.
    pub(crate) bare: String,
    /// `bare` without the insides of literals.
    pub(crate) code: String,
    /// Bytes of the comments, those of documentation included.
    pub(crate) comments: Vec<Range<usize>>,
    /// Bytes of the literals that are not for tests only.
    pub(crate) literals: Vec<Range<usize>>,
    /// Bytes of the items that `#[cfg(test)]` stands before.
    tests: Vec<Range<usize>>,
    /// Number of lines that are not for tests only.
    pub(crate) lines: usize,
}

impl Source {
    pub(crate) fn new(package: &str, path: &str, text: &str) -> Source {
        let stream: TokenStream = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
        let (mut tokens, mut tests) = (Vec::new(), Vec::new());
        flatten(stream, &mut tokens, &mut tests);
        // The texts that spans refer to are kept by the thread. No span of this one is used from here on.
        proc_macro2::extra::invalidate_current_thread_spans();
        tokens.push(text.len()..text.len());
        let (mut comments, mut literals, mut end) = (Vec::new(), Vec::new(), 0);
        for token in tokens {
            let word = &text[token.clone()];
            if !text[end..token.start].trim().is_empty() {
                comments.push(end..token.start);
            }
            end = token.end;
            if ["//", "/*"].iter().any(|mark| word.starts_with(mark)) {
                comments.push(token);
            } else if let (Some(open), Some(close)) = (word.find(QUOTES), word.rfind(QUOTES))
                && open < close
            {
                literals.push(token.start + open + 1..token.start + close);
            }
        }
        literals.retain(|one| !tests.iter().any(|test| test.contains(&one.start)));
        let bare = blank(text, comments.iter().chain(&tests));
        let code = blank(&bare, &literals);
        let for_tests = tests.iter().map(|range| text[range.clone()].lines().count());
        let lines = text.lines().count() - for_tests.sum::<usize>();
        let (package, path, text) = (package.to_owned(), path.to_owned(), text.to_owned());
        Source { package, path, text, bare, code, comments, literals, tests, lines }
    }

    /// The syntax tree of what is not for tests only.
    pub(crate) fn syntax(&self) -> syn::File {
        syn::parse_file(&self.bare).unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }

    /// The number of the line of a byte, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        1 + self.text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count()
    }

    /// The path and the line of a byte.
    pub(crate) fn place(&self, at: usize) -> String {
        format!("{}:{}", self.path, self.line(at))
    }
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate lies in crates/tidy").to_owned()
}

/// The folders of the packages: the name, and the path from the folder of the workspace.
pub(crate) fn packages() -> Vec<(String, String)> {
    let entries = fs::read_dir(root().join("crates")).expect("the folder crates/");
    let names = entries.map(|entry| entry.expect("an entry of crates/").file_name());
    let mut all: Vec<(String, String)> = names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| root().join("crates").join(name).join("Cargo.toml").exists())
        .map(|name| (name.clone(), format!("crates/{name}")))
        .collect();
    all.push(("bench".to_owned(), "bench".to_owned()));
    all.sort();
    all
}

/// Every file of production code: below `src/`, and not declared for tests only.
pub(crate) fn production_files() -> &'static [Source] {
    static FILES: LazyLock<Vec<Source>> = LazyLock::new(read_production_files);
    &FILES
}

fn read_production_files() -> Vec<Source> {
    let read = |(name, folder): &(String, String)| read(name, &format!("{folder}/src"));
    let all = packages().into_iter().filter(|(name, _)| name != "tidy");
    all.flat_map(|one| read(&one))
        .filter(|(_, is_production)| *is_production)
        .map(|(file, _)| file)
        .collect()
}

/// Reads every file of Rust below a folder, and tells whether each is production code.
pub(crate) fn read(package: &str, folder: &str) -> Vec<(Source, bool)> {
    let all: Vec<Source> =
        texts(folder).iter().map(|(path, text)| Source::new(package, path, text)).collect();
    let for_tests: Vec<String> = all.iter().flat_map(test_modules).collect();
    let told = all.into_iter().map(|file| {
        let is_test = for_tests.iter().any(|start| file.path.starts_with(start));
        let is_production = file.path.contains("/src/") && !is_test;
        (file, is_production)
    });
    told.collect()
}

/// [`production_files`] of what is shipped.
pub(crate) fn shipped_files() -> impl Iterator<Item = &'static Source> {
    production_files().iter().filter(|file| !FOR_TESTS.contains(&file.package.as_str()))
}

/// Path and text of every file of Rust below a folder, in order.
pub(crate) fn texts(folder: &str) -> Vec<(String, String)> {
    let Ok(entries) = fs::read_dir(root().join(folder)) else { return Vec::new() };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry.expect("an entry of a folder");
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() && entry.file_name() != "target" {
            all.extend(texts(&path));
        } else if path.ends_with(".rs") {
            all.push((path, fs::read_to_string(entry.path()).expect("a file of Rust is text")));
        }
    }
    all.sort();
    all
}

/// The starts of the paths of the files that a file declares by `#[cfg(test)] mod x;`.
fn test_modules(file: &Source) -> Vec<String> {
    let folder = folder_of_children(&file.path);
    let declared = file.tests.iter().filter_map(|item| {
        let name = file.text[item.clone()].strip_suffix(';')?.split_whitespace().next_back()?;
        Some([format!("{folder}/{name}.rs"), format!("{folder}/{name}/")])
    });
    declared.flatten().collect()
}

/// The folder of the modules that a file declares.
fn folder_of_children(path: &str) -> &str {
    let stem = path.trim_end_matches(".rs");
    let is_root = ["/lib", "/main", "/mod"].iter().any(|end| stem.ends_with(end));
    if is_root { stem.rsplit_once('/').map_or(stem, |(folder, _)| folder) } else { stem }
}

/// Returns a text with spaces in place of some bytes. Ends of lines stay.
fn blank<'a>(text: &str, ranges: impl IntoIterator<Item = &'a Range<usize>>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for range in ranges {
        let inside = bytes[range.clone()].iter_mut();
        inside.filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    String::from_utf8(bytes).expect("whole characters become spaces")
}

/// Collects the bytes of all tokens in order, and of the items that `#[cfg(test)]` stands before.
fn flatten(stream: TokenStream, tokens: &mut Vec<Range<usize>>, tests: &mut Vec<Range<usize>>) {
    let is_mark =
        |tree: &TokenTree, mark| matches!(tree, TokenTree::Punct(one) if one.as_char() == mark);
    let mut trees = stream.into_iter().peekable();
    let mut test = None;
    while let Some(tree) = trees.next() {
        let range = tree.span().byte_range();
        // A comment of documentation is several trees with one span.
        if tokens.last() == Some(&range) {
            continue;
        }
        let next = trees.peek();
        if let Some(TokenTree::Group(attribute)) = next.filter(|_| is_mark(&tree, '#'))
            && attribute.to_string().replace(' ', "") == "[cfg(test)]"
        {
            test.get_or_insert(range.start);
        }
        let mut is_end = is_mark(&tree, ';');
        if let TokenTree::Group(group) = &tree {
            // `use a::{b};` ends at the semicolon.
            is_end = group.delimiter() == Delimiter::Brace
                && !next.is_some_and(|next| is_mark(next, ';'));
            tokens.push(group.span_open().byte_range());
            let nested = &mut Vec::new();
            flatten(group.stream(), tokens, if test.is_some() { nested } else { tests });
            tokens.push(group.span_close().byte_range());
        } else {
            tokens.push(range.clone());
        }
        if let Some(start) = test.take_if(|_| is_end) {
            tests.push(start..range.end);
        }
    }
}

#[test]
fn comments_literals_and_tests_are_no_code() {
    let text = r####"
        let a = "x.unwrap()"; // y.unwrap()
        let b = r#"z".unwrap()"#; /* w.unwrap() */
        let c: &'a str = f('"', '\'', b"\"", 'ü').real();
        #[cfg(test)]
        mod tests { /// Told.
            fn t() { only.unwrap() } }
        after();
    "####;
    let source = Source::new("p", "crates/p/src/lib.rs", text);
    let told = |ranges: &[Range<usize>]| -> Vec<&str> {
        ranges.iter().map(|range| text[range.clone()].trim()).collect()
    };
    assert_eq!(told(&source.comments), ["// y.unwrap()", "/* w.unwrap() */", "/// Told."]);
    assert_eq!(told(&source.literals), ["x.unwrap()", "z\".unwrap()", "\"", "\\'", "\\\"", "ü"]);
    assert!(source.bare.contains("x.unwrap()") && !source.bare.contains("y.unwrap()"));
    assert!(!source.code.contains("unwrap"), "{}", source.code);
    assert!(source.code.contains(".real()") && source.code.contains("after()"), "{}", source.code);
    assert_eq!(source.code.len(), text.len());
    assert_eq!((text.lines().count(), source.lines), (9, 6));
    assert_eq!(source.place(text.find("after").expect("it is there")), "crates/p/src/lib.rs:8");
}

#[test]
fn modules_for_tests_are_known_by_their_declaration() {
    let file = Source::new("p", "crates/p/src/a.rs", "#[cfg(test)]\nmod tests;\nmod real;");
    assert_eq!(test_modules(&file), ["crates/p/src/a/tests.rs", "crates/p/src/a/tests/"]);
    assert_eq!(folder_of_children("crates/p/src/a/mod.rs"), "crates/p/src/a");
    assert_eq!(folder_of_children("crates/p/src/lib.rs"), "crates/p/src");
}
