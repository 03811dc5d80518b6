//! Waiting for many sockets at once, in one thread: what a client of thousands of streams costs must not drown what
//! the server costs.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use anyhow::Result;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;

/// Sockets told of at a time.
const BATCH: usize = 1_024;

pub(crate) struct Ready {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Ready {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, events: Vec::with_capacity(BATCH) })
    }

    /// From here on `wait` answers `number` whenever the socket has something to read.
    pub(crate) fn add(&self, socket: &impl AsFd, number: usize) -> Result<()> {
        Ok(epoll::add(&self.epoll, socket, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?)
    }

    /// The numbers of sockets that can be read; none when the time is over.
    pub(crate) fn wait(&mut self, at_most: Duration) -> Result<Vec<usize>> {
        self.events.clear();
        let timeout = at_most.try_into()?;
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.events.iter().map(|event| event.data.u64() as usize).collect())
    }
}
