//! SQLite: the pages of the schema's tree and of the trees that the schema names.
//!
//! Source: sqlite.org, Database File Format, sections 1.3, 1.6 and 2.

use super::bytes::{be16, be32, fault, part};
use super::{Fault, Finding};

const MOST_PAGES: usize = 1 << 20;
const MOST_FAULTS: usize = 64;

pub(super) fn sqlite(bytes: &[u8]) -> Finding {
    let size = match be16(bytes, 16) {
        Some(1) => 65_536,
        Some(size) if size >= 512 && size.is_power_of_two() => usize::from(size),
        _ => return Finding::bad(0..bytes.len().min(100), "the header has no size of a page"),
    };
    let count = be32(bytes, 28).unwrap_or(0) as usize;
    let is_counted = count > 0 && be32(bytes, 24) == be32(bytes, 92);
    if is_counted && count > bytes.len() / size {
        return Finding::bad(0..bytes.len().min(100), "it has fewer pages than its header says");
    }
    let pages = if is_counted { count } else { bytes.len() / size }.min(MOST_PAGES);
    let mut walk = Walk { bytes, size, pages, is_seen: vec![false; pages + 1], faults: Vec::new() };
    let mut roots = Vec::new();
    walk.tree(1, Some(&mut roots));
    for root in roots {
        walk.tree(root, None);
    }
    Finding::of(walk.faults)
}

/// A walk over trees, each page once.
struct Walk<'a> {
    bytes: &'a [u8],
    size: usize,
    pages: usize,
    is_seen: Vec<bool>,
    faults: Vec<Fault>,
}

impl Walk<'_> {
    /// Checks the pages of a tree; of the schema's, collects the roots that it names.
    fn tree(&mut self, root: usize, mut roots: Option<&mut Vec<usize>>) {
        let mut due = vec![root];
        while let Some(number) = due.pop() {
            if self.faults.len() == MOST_FAULTS {
                return;
            }
            match self.is_seen.get_mut(number).filter(|_| number > 0) {
                None => self.fault(number, "a tree leads to a page that is not there"),
                Some(seen) if *seen => self.fault(number, "two trees lead to one page"),
                Some(seen) => {
                    *seen = true;
                    if self.page(number, &mut due, roots.as_deref_mut()).is_none() {
                        self.fault(number, "a page of a tree is none");
                    }
                }
            }
        }
    }

    fn fault(&mut self, number: usize, why: &str) {
        let start = number.clamp(1, self.pages.max(1)).saturating_sub(1) * self.size;
        let why = format!("page {number}: {why}");
        self.faults.push(fault(self.bytes, start, start + self.size, why));
    }

    /// Checks the header and the cells of a page; `None` if they are damaged.
    fn page(
        &self,
        number: usize,
        due: &mut Vec<usize>,
        roots: Option<&mut Vec<usize>>,
    ) -> Option<()> {
        let page = part(self.bytes, (number - 1) * self.size, self.size)?;
        // The first page begins with the header of the file.
        let at = if number == 1 { 100 } else { 0 };
        let kind = *page.get(at)?;
        let is_inner = matches!(kind, 2 | 5);
        (is_inner || matches!(kind, 10 | 13)).then_some(())?;
        let cells = usize::from(be16(page, at + 3)?);
        let content = match be16(page, at + 5)? {
            0 => 65_536,
            content => usize::from(content),
        };
        let table = at + if is_inner { 12 } else { 8 };
        (table + 2 * cells <= content && content <= self.size).then_some(())?;
        let mut found = Vec::new();
        for cell in 0..cells {
            let cell = usize::from(be16(page, table + 2 * cell)?);
            (cell >= content && cell < self.size).then_some(())?;
            if is_inner {
                due.push(be32(page, cell)? as usize);
            } else if kind == 13 && roots.is_some() {
                found.extend(root_of(page, cell));
            }
        }
        if is_inner {
            due.push(be32(page, at + 8)? as usize);
        }
        if let Some(roots) = roots {
            roots.extend(found);
        }
        Some(())
    }
}

/// The root page in a row of the schema: type, name, table, root, text. None for views, and for long rows.
fn root_of(page: &[u8], cell: usize) -> Option<usize> {
    let (_, at) = varint(page, cell)?;
    let (_, at) = varint(page, at)?;
    let (header, mut of) = varint(page, at)?;
    let mut value = at.checked_add(usize::try_from(header).ok()?)?;
    let mut kinds = [0; 4];
    for kind in &mut kinds {
        (*kind, of) = varint(page, of)?;
    }
    for kind in &kinds[..3] {
        let length = kind.checked_sub(13).filter(|_| kind % 2 == 1)? / 2;
        value = value.checked_add(usize::try_from(length).ok()?)?;
    }
    let bytes = match kinds[3] {
        kind @ 1..=4 => part(page, value, usize::try_from(kind).ok()?)?,
        _ => return None,
    };
    let root = bytes.iter().fold(0_usize, |root, byte| root << 8 | usize::from(*byte));
    (root > 0).then_some(root)
}

/// A number of one to nine bytes, and the place behind it.
fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for index in 0..9 {
        let byte = *bytes.get(at.checked_add(index)?)?;
        if index == 8 {
            return Some((value << 8 | u64::from(byte), at + 9));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + index + 1));
        }
    }
    None
}
