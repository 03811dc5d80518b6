//! A few read-only connections. A reader that finds none free waits: this bounds memory, and the readers that hold back
//! the write-ahead log.

use parking_lot::{Condvar, Mutex};

use rusqlite::Connection;

use crate::error::StoreError;

pub(super) struct Pool {
    idle: Mutex<Vec<Connection>>,
    freed: Condvar,
}

impl Pool {
    pub(super) fn new(connections: Vec<Connection>) -> Self {
        Self { idle: Mutex::new(connections), freed: Condvar::new() }
    }

    /// Reads within one transaction: everything `read` sees is of one moment.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.lend(|conn| Self::within(conn, read))
    }

    /// Lends a connection that is in no transaction.
    pub(super) fn lend<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let lease = self.lease();
        let Some(conn) = &lease.conn else {
            return Err(StoreError::Stopped("the journal is closed".to_owned()));
        };
        work(conn)
    }

    fn within<T>(
        conn: &Connection,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let transaction = conn.unchecked_transaction()?;
        let answer = read(&transaction);
        // Nothing was written, so ending it either way is the same; an error here is the read's error at most.
        transaction.rollback()?;
        answer
    }

    fn lease(&self) -> Lease<'_> {
        let mut idle = self.idle.lock();
        loop {
            if let Some(conn) = idle.pop() {
                return Lease { pool: self, conn: Some(conn) };
            }
            self.freed.wait(&mut idle);
        }
    }

    /// Closes the connections that are idle; with no reader left that is all of them.
    pub(super) fn close(&self) {
        self.idle.lock().clear();
    }
}

/// A borrowed connection; dropping it gives it back.
struct Lease<'a> {
    pool: &'a Pool,
    conn: Option<Connection>,
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            self.pool.idle.lock().push(conn);
            self.pool.freed.notify_one();
        }
    }
}
