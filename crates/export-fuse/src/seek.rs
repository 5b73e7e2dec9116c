//! The next data, or hole, of a volume.

use braid_block::{Errno, Limits, Span};
use braid_engine::Dev;

use crate::session::NXIO;

/// The first byte from `offset` on, which is inside, that is data (or, if false, in a hole).
/// The end of the volume counts as a hole. Ranges that only another machine knows count as data: a seek is answered in the call.
pub(crate) fn find(dev: &Dev, offset: u64, data: bool) -> Result<u64, Errno> {
    let Limits { size, logical_block, .. } = *dev.limits();
    let mut at = offset - offset % u64::from(logical_block);
    while at < size {
        let rest = Span::new(at, size - at);
        for extent in dev.extents(rest).without_asking(rest.len) {
            if extent.zero != data {
                return Ok(at.max(offset));
            }
            at += extent.len;
        }
    }
    if data { Err(NXIO) } else { Ok(size) }
}
