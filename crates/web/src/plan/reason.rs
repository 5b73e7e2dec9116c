//! What is said of an order: what it does and what could be lost, or why it is not possible.

/// Why something is not possible, and what to do instead.
pub(super) struct Not(pub(super) String, pub(super) Option<String>);

impl Not {
    pub(super) fn because(why: impl Into<String>) -> Not {
        Not(why.into(), None)
    }

    pub(super) fn next(self, next: impl Into<String>) -> Not {
        Not(self.0, Some(next.into()))
    }
}

/// What is done, and what could be lost.
pub(super) type Said = Result<(String, Option<String>), Not>;
