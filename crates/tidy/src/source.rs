//! The files of the workspace, and their text without what is no code.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Packages that only tests and measurements use: a panic there is how they speak.
pub(crate) const FOR_TESTS: [&str; 6] = ["bench", "golden", "mutate", "runner", "sim", "tidy"];

/// One file of Rust.
#[derive(Debug)]
pub(crate) struct Source {
    /// The folder of its package: `engine`, `bench`.
    pub(crate) package: String,
    /// From the folder of the workspace.
    pub(crate) path: String,
    /// As it stands.
    pub(crate) text: String,
    /// Without comments, the insides of literals, and what is compiled for tests only. As long as `text`.
    pub(crate) code: String,
    /// Lines that are not for tests only.
    pub(crate) lines: usize,
}

impl Source {
    pub(crate) fn new(package: &str, path: &str, text: &str) -> Source {
        let (code, lines) = production(&blank(text));
        let (package, path) = (package.to_owned(), path.to_owned());
        Source { package, path, text: text.to_owned(), code, lines }
    }

    /// The path and the line of a byte.
    pub(crate) fn place(&self, at: usize) -> String {
        let line = 1 + self.text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
        format!("{}:{line}", self.path)
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
    let of_package = |(name, folder): &(String, String)| {
        let all = files(name, &format!("{folder}/src"));
        let for_tests: Vec<String> = all.iter().flat_map(test_modules).collect();
        all.into_iter()
            .filter(|one| !for_tests.iter().any(|start| one.path.starts_with(start.as_str())))
            .collect::<Vec<_>>()
    };
    packages().iter().filter(|(name, _)| name != "tidy").flat_map(of_package).collect()
}

/// [`production_files`] of what is shipped.
pub(crate) fn shipped_files() -> impl Iterator<Item = &'static Source> {
    production_files().iter().filter(|file| !FOR_TESTS.contains(&file.package.as_str()))
}

/// Every file of Rust below a folder, in order.
pub(crate) fn files(package: &str, folder: &str) -> Vec<Source> {
    let Ok(entries) = fs::read_dir(root().join(folder)) else { return Vec::new() };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry.expect("an entry of a folder");
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() && entry.file_name() != "target" {
            all.extend(files(package, &path));
        } else if path.ends_with(".rs") {
            let text = fs::read_to_string(entry.path()).expect("a file of Rust is text");
            all.push(Source::new(package, &path, &text));
        }
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

/// How the paths of those files begin that a file declares by `#[cfg(test)] mod x;`.
fn test_modules(file: &Source) -> Vec<String> {
    let text = blank(&file.text);
    let folder = folder_of_children(&file.path);
    let declared = test_items(&text).into_iter().filter_map(|item| {
        let name = text[item].trim_end().strip_suffix(';')?.split_whitespace().next_back()?;
        Some([format!("{folder}/{name}.rs"), format!("{folder}/{name}/")])
    });
    declared.flatten().collect()
}

/// Where the modules lie that a file declares.
fn folder_of_children(path: &str) -> &str {
    let stem = path.trim_end_matches(".rs");
    let is_root = ["/lib", "/main", "/mod"].iter().any(|end| stem.ends_with(end));
    if is_root { stem.rsplit_once('/').map_or(stem, |(folder, _)| folder) } else { stem }
}

/// Spaces instead of comments and of what stands in literals; line ends stay.
pub(crate) fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    let mut hide = |range: Range<usize>| {
        out[range].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    };
    let find = |from: usize, what: &str| {
        text.as_bytes()[from.min(text.len())..]
            .windows(what.len())
            .position(|window| window == what.as_bytes())
            .map_or(text.len(), |found| from + found)
    };
    while at < bytes.len() {
        let after_name = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
        let raw = !after_name || bytes[at - 1] == b'b';
        at = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => {
                let end = find(at, "\n");
                hide(at..end);
                end
            }
            b'/' if bytes[at..].starts_with(b"/*") => {
                let end = (find(at, "*/") + 2).min(bytes.len());
                hide(at..end);
                end
            }
            b'r' if raw && bytes.get(at + 1 + hashes) == Some(&b'"') => {
                let start = at + 2 + hashes;
                let end = find(start, &format!("\"{}", "#".repeat(hashes)));
                hide(start..end);
                (end + 1 + hashes).min(bytes.len())
            }
            quote @ (b'"' | b'\'') => {
                let end = end_of_literal(bytes, at, quote);
                // A quote that opens no literal begins the name of a lifetime.
                hide(at + 1..end.unwrap_or(at + 1));
                end.unwrap_or(at) + 1
            }
            _ => at + 1,
        };
    }
    String::from_utf8(out).expect("whole characters become spaces")
}

/// Where the quote is that ends a literal.
fn end_of_literal(bytes: &[u8], at: usize, quote: u8) -> Option<usize> {
    let rest = bytes.get(at + 1..)?;
    if quote == b'\'' && *rest.first()? != b'\\' {
        // One character, of up to four bytes: its first byte says how many.
        let width = [0xc0, 0xe0, 0xf0].iter().filter(|start| rest[0] >= **start).count() + 1;
        return (*rest.get(width)? == quote).then_some(at + 1 + width);
    }
    let mut is_escaped = false;
    let end = rest.iter().position(|byte| {
        let ends = !is_escaped && *byte == quote;
        is_escaped = !is_escaped && *byte == b'\\';
        ends
    });
    Some(at + 1 + end.unwrap_or(rest.len()))
}

/// Where the items lie that `#[cfg(test)]` stands before, of text without comments and literals.
fn test_items(text: &str) -> Vec<Range<usize>> {
    let mut items: Vec<Range<usize>> = Vec::new();
    for (start, attribute) in text.match_indices("#[cfg(test)]") {
        if items.last().is_some_and(|item| item.contains(&start)) {
            continue;
        }
        let mut depth = 0_usize;
        let from = start + attribute.len();
        let end = text[from..].bytes().position(|byte| {
            match byte {
                b'{' => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && matches!(byte, b';' | b'}')
        });
        items.push(start..end.map_or(text.len(), |end| from + end + 1));
    }
    items
}

/// Blanked text without what is for tests only, and the number of the lines that are left.
fn production(text: &str) -> (String, usize) {
    let (mut out, mut lines) = (text.as_bytes().to_vec(), text.lines().count());
    for item in test_items(text) {
        lines -= text[item.clone()].lines().count();
        out[item].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    (String::from_utf8(out).expect("whole characters become spaces"), lines)
}

#[test]
fn comments_literals_and_tests_are_no_code() {
    let text = r####"
        let a = "x.unwrap()"; // y.unwrap()
        let b = r#"z".unwrap()"#; /* w.unwrap() */
        let c: &'a str = f('"', '\'', b"\"", 'ü').real();
        #[cfg(test)]
        mod tests { fn t() { only.unwrap() } }
        after();
    "####;
    let source = Source::new("p", "crates/p/src/lib.rs", text);
    assert!(!source.code.contains("unwrap"), "{}", source.code);
    assert!(source.code.contains(".real()") && source.code.contains("after()"), "{}", source.code);
    assert_eq!(source.code.len(), text.len());
    assert_eq!((text.lines().count(), source.lines), (8, 6));
    assert_eq!(source.place(text.find("after").expect("it is there")), "crates/p/src/lib.rs:7");
}

#[test]
fn modules_for_tests_are_known_by_their_declaration() {
    let file = Source::new("p", "crates/p/src/a.rs", "#[cfg(test)]\nmod tests;\nmod real;");
    assert_eq!(test_modules(&file), ["crates/p/src/a/tests.rs", "crates/p/src/a/tests/"]);
    assert_eq!(folder_of_children("crates/p/src/a/mod.rs"), "crates/p/src/a");
    assert_eq!(folder_of_children("crates/p/src/lib.rs"), "crates/p/src");
}
