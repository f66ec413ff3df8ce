use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Those that have connected and not yet said who they are. There are so many places; who comes when
/// all are taken gets that of the one who has been silent for longest. So nobody who speaks at once is kept
/// out by those who do not speak at all.
#[derive(Debug, Clone)]
pub(super) struct Lobby {
    places: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    last: u64,
    by: BTreeMap<u64, CancellationToken>,
}

/// A place, free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    lobby: Lobby,
    /// Cancelled when the place is given to another.
    pub(super) lost: CancellationToken,
}

impl Lobby {
    pub(super) fn new(places: usize) -> Self {
        Self { places, taken: Arc::default() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, if need be from another.
    pub(super) fn enter(&self) -> Place {
        let mut taken = self.taken();
        while taken.by.len() >= self.places.max(1) {
            if let Some((_, oldest)) = taken.by.pop_first() {
                oldest.cancel();
            }
        }
        let (number, lost) = (taken.last + 1, CancellationToken::new());
        taken.last = number;
        taken.by.insert(number, lost.clone());
        drop(taken);
        Place { number, lobby: self.clone(), lost }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.lobby.taken().by.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let lobby = Lobby::new(2);
        let (first, second) = (lobby.enter(), lobby.enter());
        assert!(!first.lost.is_cancelled());
        let third = lobby.enter();
        assert!(first.lost.is_cancelled() && !second.lost.is_cancelled());
        drop(second);
        let fourth = lobby.enter();
        assert!(!third.lost.is_cancelled() && !fourth.lost.is_cancelled());
        drop((first, third, fourth));
        assert!(lobby.taken().by.is_empty());
    }
}
