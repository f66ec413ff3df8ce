use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts those who wait for a group's turn.
#[derive(Debug, Default)]
pub(super) struct Queue(AtomicUsize);

/// A place in the queue, left when it is dropped.
#[derive(Debug)]
pub(super) struct Place<'a>(&'a Queue);

impl Queue {
    pub(super) fn enter(&self) -> Place<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Place(self)
    }

    pub(super) fn len(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
