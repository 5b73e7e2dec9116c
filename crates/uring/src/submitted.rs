//! An operation under way, as a future.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::operation::Operation;
use crate::table::Table;

/// An operation under way: the future of its result and its memory.
pub(crate) struct Submitted {
    pub(crate) table: Rc<Table>,
    pub(crate) id: Option<u32>,
}

impl Future for Submitted {
    type Output = (i32, Operation);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let id = self.id.expect("a result is taken once");
        let poll = self.table.poll(id, cx);
        if poll.is_ready() {
            self.id = None;
        }
        poll
    }
}

impl Drop for Submitted {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.table.abandon(id);
        }
    }
}
