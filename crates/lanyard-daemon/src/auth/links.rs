//! Sign-in links that were made and not used. Only the hash of a code is kept, and only in memory: a link is good once,
//! for a few minutes, and not past the daemon that made it.
//!
//! Guesses are not counted: a code has 256 random bits.

use parking_lot::Mutex;
use std::collections::VecDeque;

use lanyard_core::{Actor, Timestamp};

/// How long a link can be used: long enough to carry it to another window, too short to be found later.
const LINK_MS: u64 = 10 * 60 * 1_000;
/// Links that may be open at a time; the oldest goes.
const LINKS_MAX: usize = 64;

/// The links that can be used.
#[derive(Debug, Default)]
pub(crate) struct Links {
    open: Mutex<VecDeque<Link>>,
}

#[derive(Debug)]
struct Link {
    hash: [u8; 32],
    /// Who signs in with it.
    actor: Actor,
    expires_at: Timestamp,
}

impl Links {
    /// Keeps a link; answers until when.
    pub(crate) fn add(&self, code: &str, actor: Actor, now: Timestamp) -> Timestamp {
        let expires_at = now.plus_millis(LINK_MS);
        let mut open = self.open.lock();
        open.retain(|link| now < link.expires_at);
        if open.len() >= LINKS_MAX {
            open.pop_front();
        }
        open.push_back(Link { hash: super::hash(code), actor, expires_at });
        expires_at
    }

    /// Until when a link can be used; nothing when it is used up or its time is over.
    pub(crate) fn open_until(&self, code: &str, now: Timestamp) -> Option<Timestamp> {
        let hash = super::hash(code);
        let open = self.open.lock();
        open.iter().find(|link| link.hash == hash).map(|link| link.expires_at).filter(|until| now < *until)
    }

    /// Who signs in with a code. It is used up with that, also where its time was over.
    pub(crate) fn take(&self, code: &str, now: Timestamp) -> Option<Actor> {
        let hash = super::hash(code);
        let mut open = self.open.lock();
        let place = open.iter().position(|link| link.hash == hash)?;
        let link = open.remove(place)?;
        (now < link.expires_at).then_some(link.actor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_link_is_good_once_and_for_ten_minutes() {
        let links = Links::default();
        let me = Actor::operator("browser");
        assert_eq!(links.add("a", me.clone(), at(0)), at(600_000));
        assert_eq!(links.take("b", at(1)), None);
        assert_eq!(links.open_until("a", at(1)), Some(at(600_000)));
        assert_eq!(links.open_until("a", at(600_000)), None);
        assert_eq!(links.take("a", at(599_999)), Some(me.clone()));
        assert_eq!(links.take("a", at(599_999)), None);
        assert_eq!(links.open_until("a", at(1)), None);
        links.add("c", me, at(0));
        assert_eq!(links.take("c", at(600_000)), None);
    }

    #[test]
    fn the_oldest_link_goes_when_there_are_too_many() {
        let links = Links::default();
        for number in 0..=LINKS_MAX {
            links.add(&number.to_string(), Actor::operator("browser"), at(0));
        }
        assert_eq!(links.take("0", at(1)), None);
        assert!(links.take("1", at(1)).is_some());
        assert!(links.take(&LINKS_MAX.to_string(), at(1)).is_some());
    }
}
