//! Linear: the members one behind the other.
//!
//! ```text
//! array    0 ........ 99 | 100 .. 149 | 150 ........... 299
//! member   |----- 0 -----|---- 1 -----|--------- 2 --------|
//! ```
//!
//! Source: Linux `drivers/md/md-linear.c` (`linear_conf`, `which_dev`).

use super::{Geometry, GeometryError, Run, usable_sizes};
use crate::{ArrayByte, MemberByte, Role};

/// Members one behind the other.
#[derive(Clone, Debug)]
pub struct Linear {
    /// For each member, the first byte of the array behind it; strictly increasing.
    ends: Vec<u64>,
}

impl Linear {
    /// `sizes` are the members' in bytes; each is used up to a whole number of blocks of
    /// `block` bytes.
    ///
    /// # Errors
    /// No member, too many, or one without a single block.
    pub fn new(sizes: &[u64], block: u32) -> Result<Linear, GeometryError> {
        let mut end = 0;
        let ends = usable_sizes(sizes, block.into())?
            .into_iter()
            .map(|size| {
                end += size;
                end
            })
            .collect();
        Ok(Linear { ends })
    }
}

impl Geometry for Linear {
    fn size(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn members(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    fn locate(&self, offset: ArrayByte) -> Run {
        let offset = offset.get();
        let member = self.ends.partition_point(|&end| end <= offset);
        let start = if member == 0 { 0 } else { self.ends[member - 1] };
        Run {
            role: Role::nth(member),
            offset: MemberByte::new(offset - start),
            len: self.ends[member] - offset,
        }
    }

    fn stripe(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_follows_the_one_before() {
        let linear = Linear::new(&[1024, 512, 2048 + 100], 512).unwrap();
        assert_eq!(linear.size(), 1024 + 512 + 2048);
        let locate = |offset| {
            let Run { role, offset, len } = linear.locate(ArrayByte::new(offset));
            (role.get(), offset.get(), len)
        };
        assert_eq!(locate(0), (0, 0, 1024));
        assert_eq!(locate(1023), (0, 1023, 1));
        assert_eq!(locate(1024), (1, 0, 512));
        assert_eq!(locate(1536), (2, 0, 2048));
    }

    #[test]
    fn a_member_without_a_block_is_refused() {
        let error = Linear::new(&[4096, 511], 512).unwrap_err();
        assert_eq!(error, GeometryError::TooSmall { member: 1, size: 511, least: 512 });
        assert_eq!(Linear::new(&[], 512).unwrap_err(), GeometryError::MemberCount { count: 0 });
        assert_eq!(
            Linear::new(&[512; 385], 512).unwrap_err(),
            GeometryError::MemberCount { count: 385 }
        );
        assert_eq!(Linear::new(&[u64::MAX, u64::MAX], 512).unwrap_err(), GeometryError::TooLarge);
    }
}
