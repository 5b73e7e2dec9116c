//! Extents, in the ways in which a device can know them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use braid_block::{Extent, Span};

use crate::background::Later;

/// The extents behind the beginning of a span, in order: all of it, or the first few if there are more.
pub enum Extents {
    /// Known in the call.
    Known(Vec<Extent>),
    /// Known elsewhere, where they are asked for once this is polled. Until then it costs nothing.
    Asked(Later<'static, Vec<Extent>>),
}

impl Extents {
    /// Returns `len` bytes of unknown content: a device that does not know.
    pub fn data(len: u64) -> Extents {
        Extents::Known(vec![Extent::data(len)])
    }

    /// Returns what is asked for elsewhere by `question`.
    pub fn asked(question: impl Future<Output = Vec<Extent>> + 'static) -> Extents {
        Extents::Asked(Box::pin(question))
    }

    /// Returns the extents that are known in the call; `None` if they would have to be asked for.
    pub fn at_once(self) -> Option<Vec<Extent>> {
        match self {
            Extents::Known(extents) => Some(extents),
            Extents::Asked(_) => None,
        }
    }

    /// Returns the extents of `len` bytes without asking anybody: what would have to be asked for counts as data.
    pub fn without_asking(self, len: u64) -> Vec<Extent> {
        self.at_once().unwrap_or_else(|| vec![Extent::data(len)])
    }

    /// Checks that they are extents of `span`, now or later.
    ///
    /// # Panics
    /// If they are none, or reach beyond its end.
    pub(crate) fn checked(self, span: Span) -> Extents {
        let check = move |extents: &[Extent]| {
            let covered: u64 = extents.iter().map(|extent| extent.len).sum();
            assert!(covered > 0 && covered <= span.len, "extents of {covered} bytes for {span}");
        };
        match self {
            Extents::Known(extents) => {
                check(&extents);
                Extents::Known(extents)
            }
            Extents::Asked(question) => Extents::asked(async move {
                let extents = question.await;
                check(&extents);
                extents
            }),
        }
    }
}

impl Future for Extents {
    type Output = Vec<Extent>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Vec<Extent>> {
        match &mut *self {
            Extents::Known(extents) => Poll::Ready(std::mem::take(extents)),
            Extents::Asked(question) => question.as_mut().poll(cx),
        }
    }
}
