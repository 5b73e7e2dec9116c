//! Files of one crate that use one another in a circle.
//!
//! An arrow goes from a file to the file that has what a path of it names: `use crate::a::X`,
//! `super::f()`, `child::g()`. A name that a module only passes on (`pub use`) leads to where it comes
//! from, so a facade is no stop on the way.
//!
//! A file and its own children are a family. The parent's file is their table of contents (`mod a;`,
//! `pub use a::A;`: no uses at all), often their list (of levels, tools, rules of trust) and what all of
//! them speak. So an arrow from a child to the file of its own parent does not count: otherwise each new
//! file with its one line in a list would be another circle. Arrows from the parent to a child count, and
//! so do those from a child to anything further up.
//!
//! Textual. It does not see: a way from child to child through their parent; methods (an `impl Inner` in
//! `a.rs` that `b.rs` calls); what a macro writes; paths that begin with a name from a glob. A circle that
//! is allowed may get more arrows unseen, but no more files.

use std::collections::{BTreeMap, BTreeSet};

use crate::Rule;
use crate::paths::{Named, Names, names};
use crate::ratchet::ratchet;
use crate::source::{Source, production_files};

const RULE: Rule = Rule {
    name: "the files of a crate do not use one another in a circle",
    why: "files in a circle cannot be read, tested or moved one at a time: the laboratory once had one of \
          39 files, and six uses made it.",
    comply: "move what both need to a file below both, or give the lower file what it needs as an \
             argument. crates/tidy/src/circles.rs says what counts as a use. Circles that are there still \
             stand in crates/tidy/ratchet.toml, which only gets shorter.",
};

type Module = Vec<String>;

/// The files of one program or library.
#[derive(Default)]
struct Unit<'a> {
    modules: Vec<(Module, Names)>,
    files: Vec<&'a Source>,
}

/// An arrow, and where it stands.
type Arrows = BTreeMap<(usize, usize), String>;

impl Unit<'_> {
    fn find(&self, path: &[String]) -> Option<usize> {
        self.modules.iter().position(|(module, _)| module == path)
    }

    fn name(&self, index: usize) -> String {
        let module = &self.modules[index].0;
        if module.is_empty() { "crate".to_owned() } else { module.join("::") }
    }

    /// The path from the root, where it is of this unit.
    fn absolute(&self, from: usize, named: &Named) -> Option<Module> {
        let mut base = self.modules[from].0.clone();
        let file = base.clone();
        base.extend(named.within.iter().cloned());
        let first = named.segments.first()?.as_str();
        match first {
            "crate" => base.clear(),
            "self" | "super" => {}
            _ => {
                let is_child = |name: &String| {
                    self.find(&[&file[..], std::slice::from_ref(name)].concat()).is_some()
                };
                if is_child(&named.segments[0]) {
                    return Some([&file[..], &named.segments].concat());
                }
                // A module that is imported by its name; not by way of another import.
                let import = self.modules[from].1.paths.iter().find(|other| {
                    let start = &other.segments[0];
                    let is_own =
                        ["crate", "self", "super"].contains(&start.as_str()) || is_child(start);
                    is_own && other.import.as_ref().is_some_and(|(name, _)| name == first)
                })?;
                let start = self.absolute(from, import)?;
                return Some([&start[..], &named.segments[1..]].concat());
            }
        }
        let mut rest = named.segments.iter().skip(usize::from(first != "super")).peekable();
        while rest.next_if(|segment| *segment == "super").is_some() {
            base.pop();
        }
        base.extend(rest.cloned());
        Some(base)
    }

    /// The file that has what a path names; `None` of a path that names a module as a whole.
    fn target(&self, path: &[String], depth: usize) -> Option<usize> {
        let known =
            (0..=path.len()).rev().find_map(|length| Some((length, self.find(&path[..length])?)));
        let (length, module) = known?;
        let name = path.get(length)?;
        let names = &self.modules[module].1;
        if names.defined.contains(name) || depth == 0 {
            return Some(module);
        }
        let imports = || names.paths.iter().filter_map(|one| Some((one, &one.import.as_ref()?.0)));
        for (import, _) in imports().filter(|(_, imported)| *imported == name) {
            if let Some(start) = self.absolute(module, import) {
                return self.target(&[&start[..], &path[length + 1..]].concat(), depth - 1);
            }
        }
        for (import, _) in imports().filter(|(_, imported)| *imported == "*") {
            let start = self.absolute(module, import).unwrap_or_default();
            let parent = &start[..start.len().max(1) - 1];
            if let Some(from) = self.find(parent).filter(|_| !start.is_empty())
                && self.modules[from].1.defined.contains(name)
            {
                return Some(from);
            }
        }
        Some(module)
    }

    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (from, (_, names)) in self.modules.iter().enumerate() {
            for named in &names.paths {
                if let Some((name, true)) = &named.import
                    && !names.words.contains(name)
                {
                    continue;
                }
                let path = self.absolute(from, named);
                let parent = self.modules[from].0.split_last().map(|(_, parent)| parent);
                let is_counted =
                    |to: &usize| *to != from && parent != Some(self.modules[*to].0.as_slice());
                if let Some(to) = path.and_then(|path| self.target(&path, 8)).filter(is_counted) {
                    arrows.entry((from, to)).or_insert_with(|| self.files[from].place(named.at));
                }
            }
        }
        arrows
    }
}

/// The units of some files, by the folder of their root: `engine`, `bench/bin/recovery`. (A program beside
/// a library has no modules of its own: it counts as a file that nobody uses.)
fn units(files: &[Source]) -> BTreeMap<String, Unit<'_>> {
    let mut units: BTreeMap<String, Unit<'_>> = BTreeMap::new();
    for file in files {
        let Some((_, below)) = file.path.split_once("/src/") else { continue };
        let parts = below.trim_end_matches(".rs").split('/').map(str::to_owned);
        let (mut module, mut unit): (Module, String) = (parts.collect(), file.package.clone());
        if module[0] == "bin" {
            unit = format!("{unit}/bin/{}", module[1]);
            module.drain(..2);
        }
        module.pop_if(|last| ["lib", "main", "mod"].contains(&last.as_str()));
        let unit = units.entry(unit).or_default();
        unit.modules.push((module, names(&file.code)));
        unit.files.push(file);
    }
    units
}

/// The strongly connected components of two nodes or more: those who reach one another.
fn components(nodes: usize, arrows: &Arrows) -> Vec<BTreeSet<usize>> {
    let reached = |start: usize| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(from) = open.pop() {
            let next = arrows.range((from, 0)..(from + 1, 0)).map(|((_, to), _)| *to);
            open.extend(next.filter(|to| reached.insert(*to)));
        }
        reached
    };
    let reached: Vec<BTreeSet<usize>> = (0..nodes).map(reached).collect();
    let of = |node: usize| -> BTreeSet<usize> {
        reached[node].iter().copied().filter(|other| reached[*other].contains(&node)).collect()
    };
    let all: BTreeSet<BTreeSet<usize>> = (0..nodes).map(of).filter(|one| !one.is_empty()).collect();
    all.into_iter().collect()
}

fn judge(files: &[Source], allowed: &BTreeMap<String, Vec<Vec<String>>>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut left: BTreeSet<(&str, &Vec<String>)> = BTreeSet::new();
    left.extend(allowed.iter().flat_map(|(unit, all)| all.iter().map(|one| (unit.as_str(), one))));
    for (name, unit) in &units(files) {
        let arrows = unit.arrows();
        for component in components(unit.modules.len(), &arrows) {
            let mut members: Vec<String> =
                component.iter().map(|index| unit.name(*index)).collect();
            members.sort();
            let known = left.iter().find(|(of, known)| {
                of == name && members.iter().all(|member| known.contains(member))
            });
            if let Some(known) = known.copied() {
                left.remove(&known);
                if *known.1 != members {
                    findings.push(format!(
                        "{name}: a circle is smaller than allowed; in the ratchet it becomes {members:?}"
                    ));
                }
                continue;
            }
            let is_new = |index: &usize| {
                let all = allowed.get(name).into_iter().flatten().flatten();
                !all.collect::<Vec<_>>().contains(&&unit.name(*index))
            };
            let is_old = !component.iter().any(is_new);
            let shown = arrows.iter().filter(|((from, to), _)| {
                component.contains(from)
                    && component.contains(to)
                    && (is_old || is_new(from) || is_new(to))
            });
            let arrows: Vec<String> = shown
                .take(20)
                .map(|((from, to), at)| {
                    format!("\n      {} -> {} at {at}", unit.name(*from), unit.name(*to))
                })
                .collect();
            findings.push(format!("{name}: {members:?}{}", arrows.concat()));
        }
    }
    findings.extend(left.iter().map(|(unit, known)| {
        format!("{unit}: the circle {known:?} is gone or has grown: its entry in the ratchet is not needed")
    }));
    findings
}

#[test]
fn files_do_not_use_one_another_in_a_circle() {
    RULE.hold(&judge(production_files(), &ratchet().circles));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<Source> {
        let path = |path: &str| format!("crates/p/src/{path}");
        files.iter().map(|(name, text)| Source::new("p", &path(name), text)).collect()
    }

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        judge(&of(files), &BTreeMap::new())
    }

    #[test]
    fn a_circle_is_found_with_its_arrows() {
        let found = findings(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B;\nfn f() { super::c::g(); }"),
            ("b.rs", "struct B;\nuse crate::{c::{g as h}};"),
            ("c.rs", "fn g() {}\nimpl crate::a::A {}"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(r#"p: ["a", "b", "c"]"#), "{found:?}");
        assert!(found[0].contains("c -> a at crates/p/src/c.rs:2"), "{found:?}");
    }

    #[test]
    fn a_name_that_is_passed_on_leads_to_where_it_comes_from() {
        // Through the root, a facade, and an import of a module.
        let (root, facade) = ("mod a; mod b; pub use b::B;", "mod deep; pub use deep::*;");
        let up = [("lib.rs", root), ("b/mod.rs", facade), ("b/deep.rs", "pub struct B;")];
        let with = |a, deep| {
            let mut files = up.to_vec();
            files.push(("a.rs", a));
            files[2].1 = deep;
            findings(&files)
        };
        assert_eq!(with("use crate::B; use crate::b; fn f() { b::B; }", "pub struct B;"), [""; 0]);
        let circle = with("use crate::B;", "pub struct B; fn f() { crate::a::f() }");
        assert!(circle[0].starts_with(r#"p: ["a", "b::deep"]"#), "{circle:?}");
    }

    #[test]
    fn a_child_may_use_its_parent_and_nothing_further_up() {
        let list = "mod c; pub use c::c; pub struct P; fn f(p: P) { c::c(p) }";
        assert_eq!(
            findings(&[("lib.rs", list), ("c.rs", "use super::P; pub fn c(p: P) {}")]),
            [""; 0]
        );
        let parent = "mod d; pub(in crate::x) fn c(p: u8) { d::d() }";
        let deep = [("lib.rs", list), ("c.rs", parent), ("c/d.rs", "use crate::P; pub fn d() {}")];
        let found = findings(&deep);
        assert!(found[0].starts_with(r#"p: ["c", "c::d", "crate"]"#), "{found:?}");
        // Tests of a file are no uses.
        let tests = "mod c; pub struct P; #[cfg(test)] mod t { use super::c::c; }";
        assert_eq!(findings(&[("lib.rs", tests), deep[1], deep[2]]), [""; 0]);
    }

    #[test]
    fn the_list_of_circles_only_shrinks() {
        let files = of(&[
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "struct B; use crate::a::A;"),
            ("lib.rs", ""),
        ]);
        let listed = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            judge(&files, &BTreeMap::from([("p".to_owned(), vec![names])]))
        };
        assert_eq!(listed(&["a", "b"]), [""; 0]);
        assert!(listed(&["a", "b", "c"])[0].contains("smaller than allowed"));
        let grown = listed(&["a", "c"]);
        assert!(
            grown[0].starts_with(r#"p: ["a", "b"]"#) && grown[1].contains("not needed"),
            "{grown:?}"
        );
    }
}
