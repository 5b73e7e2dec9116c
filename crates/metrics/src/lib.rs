//! The metrics of volumes, in Prometheus' text format.
//!
//! ```text
//!   Status ──▶ families: node_md_* (md)  braid_volume_*, braid_export_*  braid_member_*  braid_cache_* …
//!                └──▶ Page ──▶ text: HELP and TYPE once a family, then its samples
//! ```
//!
//! Invariants: units are base units (seconds, bytes); no two samples have the same name and labels, for any
//! stack; a family exists for all volumes or for none; a counter counts from the start of the volume, and
//! begins again with its process.
//!
//! Deliberately absent: I/O and clocks; any counting of its own, so that a scrape costs a volume no more
//! than a status.
//!
//! The encoder is our own: `prometheus-client` writes OpenMetrics, in which a counter's family has a different
//! name from its samples and HELP ends differently from node_exporter's. node_exporter's textfile collector
//! reads the older text format, and refuses a family whose HELP is not the one that it knows.

mod array;
mod cache;
mod md;
mod member;
mod page;
mod volume;

use braid_control::Status;
pub use page::CONTENT_TYPE;
use page::Page;

/// The metrics of the volumes that are `up`, and that those called `silent` do not answer.
#[must_use]
pub fn render(up: &[Status], silent: &[String]) -> String {
    let mut page = Page::default();
    for status in up {
        let mut of = page.of(&status.name);
        volume::add(&mut of, status);
        member::add(&mut of, status);
        array::add(&mut of, status);
        cache::add(&mut of, status);
    }
    md::add(&mut page, up);
    for name in silent {
        volume::add_up(&mut page.of(name), false);
    }
    page.text()
}

/// Names that are told apart: the second of two that are equal becomes `NAME #2`. Two RAM disks of a
/// stack are spelled alike.
fn told_apart<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for name in names {
        let another = |count: usize| match count {
            1 => name.to_owned(),
            count => format!("{name} #{count}"),
        };
        let free = (1..).map(another).find(|one| !told.contains(one));
        told.extend(free);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::told_apart;

    #[test]
    fn names_that_are_equal_are_told_apart_also_from_those_that_look_like_it() {
        let names = ["a", "a", "a #2", "b", "a"];
        assert_eq!(told_apart(names.into_iter()), ["a", "a #2", "a #2 #2", "b", "a #3"]);
    }
}
