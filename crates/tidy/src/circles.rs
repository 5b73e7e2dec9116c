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
//! An `impl` for a type is a use of the file that defines the type, the parent's included: its methods are
//! parts of that type. An arrow into a folder from outside of it is one to the folder's own file (`mod.rs`),
//! too: names of a folder lead through it.
//!
//! It does not see: a way from child to child through their parent; calls of methods (`b.rs` calls what
//! an `impl Inner` in `a.rs` defines); output of macros; paths that begin with a name from a glob.
//! A circle that is allowed may get more arrows unseen, but no more files.

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

    /// The names of some files, in order.
    fn names(&self, indexes: &BTreeSet<usize>) -> Vec<String> {
        let names: BTreeSet<String> = indexes.iter().map(|index| self.name(*index)).collect();
        names.into_iter().collect()
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
                let own = self.modules[from].0.as_slice();
                // A type whose name is neither imported nor that of a module is of this file, or from a glob.
                let path = self
                    .absolute(from, named)
                    .or_else(|| named.is_implemented.then(|| [own, &named.segments].concat()));
                let Some(to) = path.and_then(|path| self.target(&path, 8)) else { continue };
                let there = self.modules[to].0.as_slice();
                let folders = (1..there.len())
                    .map(|length| &there[..length])
                    .filter(|folder| !own.starts_with(folder))
                    .filter_map(|folder| self.find(folder));
                let is_parent = own.split_last().is_some_and(|(_, parent)| parent == there);
                let file = (to != from && (named.is_implemented || !is_parent)).then_some(to);
                for to in file.into_iter().chain(folders) {
                    arrows.entry((from, to)).or_insert_with(|| self.files[from].place(named.at));
                }
            }
        }
        arrows
    }
}

/// The units of some files, by the folder of their root: `engine`, `bench/bin/recovery`. (A program beside a
/// library has no modules of its own: it counts as a file that no other uses.)
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
        unit.modules.push((module, names(file)));
        unit.files.push(file);
    }
    units
}

/// The strongly connected components of two nodes or more: nodes that reach one another.
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

type Circles = BTreeMap<String, Vec<Vec<String>>>;

/// Returns the circles of each unit, in order.
pub(crate) fn circles(files: &[Source]) -> Circles {
    let of = |unit: &Unit| {
        let all = components(unit.modules.len(), &unit.arrows());
        all.iter().map(|one| unit.names(one)).collect()
    };
    units(files).iter().map(|(name, unit)| (name.clone(), of(unit))).collect()
}

/// Returns the circles that are parts of the allowed ones.
pub(crate) fn kept(allowed: &Circles, mut found: Circles) -> Circles {
    found.retain(|name, circles| {
        circles.retain(|one| find_allowed(allowed, name, one).is_some());
        !circles.is_empty()
    });
    found
}

/// Returns the allowed circle that has all members of one.
fn find_allowed<'a>(
    allowed: &'a Circles,
    unit: &str,
    members: &[String],
) -> Option<&'a Vec<String>> {
    allowed.get(unit)?.iter().find(|known| members.iter().all(|member| known.contains(member)))
}

fn judge(files: &[Source], allowed: &Circles) -> Vec<String> {
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    let units = units(files);
    for (name, unit) in &units {
        let arrows = unit.arrows();
        for component in components(unit.modules.len(), &arrows) {
            let members = unit.names(&component);
            if let Some(known) = find_allowed(allowed, name, &members) {
                if *known != members {
                    findings.push(format!(
                        "{name}: a circle is smaller than allowed; in the ratchet it becomes {members:?}"
                    ));
                }
                used.insert((name, known));
                continue;
            }
            let is_new = |index: &usize| {
                !allowed
                    .get(name)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .any(|one| *one == unit.name(*index))
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
    let all = allowed.iter().flat_map(|(unit, all)| all.iter().map(move |known| (unit, known)));
    findings.extend(all.filter(|one| !used.contains(one)).map(|(unit, known)| {
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
    fn an_implementation_uses_the_file_of_its_type() {
        let with = |b, d| {
            findings(&[
                ("lib.rs", "mod a; mod b;"),
                ("a.rs", "pub struct A; fn f() { crate::b::d::g() }"),
                ("b/mod.rs", b),
                ("b/d.rs", d),
            ])
        };
        // Through the folder's own file, which names it; without a path; and through a glob.
        let uses = "mod d; use crate::a::A; impl A {}";
        assert!(with(uses, "pub fn g() {}")[0].starts_with(r#"p: ["a", "b"]"#));
        assert!(with("mod d; use crate::a::*; impl A {}", "pub fn g() {}").len() == 1);
        assert_eq!(with("mod d; impl A {}", "pub fn g() {}"), [""; 0]);
        assert_eq!(with("mod d; struct A; impl A {}", "pub fn g() {}"), [""; 0]);
        let parent = "mod d; pub struct B; fn f() { d::g() }";
        assert!(with(parent, "use super::B; impl B {}")[0].starts_with(r#"p: ["b", "b::d"]"#));
        assert_eq!(
            with(parent, "use super::B; trait T {} impl T for u8 { fn f(b: B) {} }"),
            [""; 0]
        );
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
        let known = listed(&["a", "b", "c"]);
        assert!(known[0].contains("smaller than allowed") && known.len() == 1, "{known:?}");
        let grown = listed(&["a", "c"]);
        assert!(
            grown[0].starts_with(r#"p: ["a", "b"]"#) && grown[1].contains("not needed"),
            "{grown:?}"
        );
    }
}
