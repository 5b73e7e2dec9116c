//! A buddy allocator over page numbers: which pages of an arena are taken.
//!
//! ```text
//! order 2  |        0        |        4        |      blocks of 4 pages
//! order 1  |   0    |   2    |   4    |   6    |      blocks of 2
//! order 0  | 0 | 1  | 2 | 3  | 4 | 5  | 6 | 7  |      single pages
//! ```
//!
//! Freed blocks go back to the list of their own order and are merged with their buddies only
//! when a larger block is wanted and none is there: the steady state (the same few sizes over
//! and over) pops and pushes one list. Pure bookkeeping: no memory is touched here.

/// Number of orders: blocks of `1 << 0` to `1 << (ORDERS - 1)` pages.
const ORDERS: usize = 20;

#[derive(Debug)]
pub(crate) struct Buddy {
    free: [Vec<u32>; ORDERS],
}

impl Buddy {
    /// The first `open` of `pages` free; every list has room for all it can ever hold, so that no later call
    /// allocates.
    pub(crate) fn new(pages: u32, open: u32) -> Buddy {
        let mut buddy = Buddy {
            free: std::array::from_fn(|order| Vec::with_capacity((pages >> order) as usize)),
        };
        buddy.fill(0, open);
        buddy
    }

    /// Takes back all pages from `from` to `end`, where all that were ever filled in end, if all of them are free.
    pub(crate) fn close(&mut self, from: u32, end: u32) -> bool {
        self.merge_all();
        let beyond = |(order, list): (usize, &Vec<u32>)| -> u32 {
            list.iter().map(|page| (page + (1 << order)).saturating_sub((*page).max(from))).sum()
        };
        if self.free.iter().enumerate().map(beyond).sum::<u32>() != end - from {
            return false;
        }
        for order in 0..ORDERS {
            let reaches = |page: &mut u32| *page + (1 << order) > from;
            for page in self.free[order].extract_if(.., reaches).collect::<Vec<_>>() {
                self.fill(page, from);
            }
        }
        true
    }

    /// Pages of the largest block that an arena of `pages` can give.
    pub(crate) fn largest(pages: u32) -> u32 {
        1 << pages.ilog2().min(ORDERS as u32 - 1)
    }

    /// The order of the smallest block that holds `pages` pages.
    pub(crate) fn order_for(pages: u32) -> u8 {
        pages.max(1).next_power_of_two().trailing_zeros() as u8
    }

    /// Takes a block of `1 << order` pages and answers its first page, or `None` when no free
    /// run is long enough.
    #[inline]
    pub(crate) fn take(&mut self, order: u8) -> Option<u32> {
        match self.free.get_mut(order as usize)?.pop() {
            Some(page) => Some(page),
            None => self.take_slow(order),
        }
    }

    /// Gives a block back.
    #[inline]
    pub(crate) fn give(&mut self, page: u32, order: u8) {
        self.free[order as usize].push(page);
    }

    #[cold]
    fn take_slow(&mut self, order: u8) -> Option<u32> {
        if let Some(page) = self.split_larger(order) {
            return Some(page);
        }
        self.merge_all();
        let list = order as usize;
        self.free[list].pop().or_else(|| self.split_larger(order))
    }

    /// Cuts the smallest larger block down to `order`, freeing the upper halves.
    fn split_larger(&mut self, order: u8) -> Option<u32> {
        let from = (order as usize + 1..ORDERS).find(|&larger| !self.free[larger].is_empty())?;
        let page = self.free[from].pop()?;
        for half in (order as usize..from).rev() {
            self.free[half].push(page + (1 << half));
        }
        Some(page)
    }

    /// Joins free buddies, smallest order first, until none are left apart.
    fn merge_all(&mut self) {
        for order in 0..ORDERS - 1 {
            let (lower, upper) = self.free.split_at_mut(order + 1);
            let list = &mut lower[order];
            list.sort_unstable_by(|a, b| b.cmp(a));
            let mut kept = 0;
            let mut index = 0;
            while index < list.len() {
                let page = list[index];
                let buddy = page ^ (1 << order);
                // Sorted downwards: the lower buddy follows the upper one.
                if buddy < page && list.get(index + 1) == Some(&buddy) {
                    upper[0].push(buddy);
                    index += 2;
                } else {
                    list[kept] = page;
                    kept += 1;
                    index += 1;
                }
            }
            list.truncate(kept);
        }
    }

    /// Adds the pages from `page` to `end` to the free ones.
    pub(crate) fn fill(&mut self, mut page: u32, end: u32) {
        while page < end {
            let aligned = if page == 0 { 31 } else { page.trailing_zeros() };
            let fits = (end - page).ilog2();
            let order = aligned.min(fits).min(ORDERS as u32 - 1);
            self.free[order as usize].push(page);
            page += 1 << order;
        }
    }

    /// Free pages in all.
    #[cfg(test)]
    fn free_pages(&self) -> u32 {
        self.free.iter().enumerate().map(|(order, list)| (list.len() as u32) << order).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_spent_arena_says_no_and_recovers() {
        let mut buddy = Buddy::new(8, 8);
        let pages: Vec<u32> = (0..8).map(|_| buddy.take(0).unwrap()).collect();
        assert_eq!(buddy.take(0), None);
        for page in pages {
            buddy.give(page, 0);
        }
        assert_eq!(buddy.take(3), Some(0));
        assert_eq!(buddy.free_pages(), 0);
    }

    proptest! {
        /// Whatever is taken and given, blocks never overlap, are aligned to their size, and
        /// all pages come back.
        #[test]
        fn blocks_never_overlap(pages in 1u32..200, floor in 1u32..200, steps in prop::collection::vec((0u8..6, any::<bool>(), any::<prop::sample::Index>()), 0..200)) {
            let floor = floor.min(pages);
            let mut buddy = Buddy::new(pages, floor);
            buddy.fill(floor, pages);
            let mut held: Vec<(u32, u8)> = Vec::new();
            for (order, give, which) in steps {
                if give && !held.is_empty() {
                    let (page, order) = held.swap_remove(which.index(held.len()));
                    buddy.give(page, order);
                } else if let Some(page) = buddy.take(order) {
                    prop_assert_eq!(page % (1 << order), 0);
                    prop_assert!(page + (1 << order) <= pages);
                    for &(other, size) in &held {
                        prop_assert!(page + (1 << order) <= other || other + (1 << size) <= page);
                    }
                    held.push((page, order));
                }
            }
            let taken: u32 = held.iter().map(|&(_, order)| 1 << order).sum();
            prop_assert_eq!(buddy.free_pages() + taken, pages);
            let is_free = |page: u32| held.iter().all(|&(at, order)| page < at || at + (1 << order) <= page);
            let can_close = (floor..pages).all(is_free);
            prop_assert_eq!(buddy.close(floor, pages), can_close);
            let left = if can_close { floor } else { pages };
            prop_assert_eq!(buddy.free_pages() + taken, left);
        }
    }
}
