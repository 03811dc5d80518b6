//! Bearer tokens in the file: hashes, and what they may do.

use lanyard_core::{SessionId, Timestamp, TokenId};
use rusqlite::Row;

use crate::error::StoreError;
use crate::journal::{Durability, StoredToken, Tokens};
use crate::sqlite::SqliteJournal;
use crate::sqlite::rows::{Sum, id_bytes};

impl Tokens for SqliteJournal {
    fn put_token(&self, token: &StoredToken) -> Result<(), StoreError> {
        let actor = serde_json::to_string(&token.actor)
            .map_err(|error| StoreError::Damaged(format!("the token cannot be written: {error}")))?;
        let id = token.id.as_u128().to_be_bytes();
        let session = token.session.map(id_bytes);
        let crc = sum(&id, &token.hash, &actor, session.as_ref(), token.created_at.as_millis());
        self.writer().commit(
            Durability::Synced,
            |_| {},
            |conn, _| {
                let mut put = conn.prepare_cached(
                    "INSERT OR REPLACE INTO tokens (id, hash, actor, session, created_at, crc) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?;
                put.execute((id, token.hash, actor, session, token.created_at.as_millis(), crc))?;
                Ok(())
            },
        )
    }

    fn tokens(&self) -> Result<Vec<StoredToken>, StoreError> {
        self.pool.read(|conn| {
            let mut all =
                conn.prepare_cached("SELECT id, hash, actor, session, created_at, crc FROM tokens")?;
            let mut rows = all.query([])?;
            let mut tokens = Vec::new();
            while let Some(row) = rows.next()? {
                // A damaged token opens nothing; the others still must.
                let Ok(Some(token)) = read(row) else {
                    tracing::error!("a stored token is damaged and will not be accepted");
                    continue;
                };
                tokens.push(token);
            }
            Ok(tokens)
        })
    }

    fn revoke_token(&self, id: TokenId) -> Result<bool, StoreError> {
        self.writer().commit(
            Durability::Synced,
            |_| {},
            |conn, _| {
                let mut revoke = conn.prepare_cached("DELETE FROM tokens WHERE id = ?1")?;
                Ok(revoke.execute([id.as_u128().to_be_bytes()])? > 0)
            },
        )
    }
}

fn sum(id: &[u8], hash: &[u8], actor: &str, session: Option<&[u8; 16]>, created_at: i64) -> u32 {
    let session = session.map(<[u8; 16]>::as_slice).unwrap_or_default();
    Sum::default().bytes(id).bytes(hash).bytes(actor.as_bytes()).bytes(session).int(created_at).done()
}

/// Reads `id, hash, actor, session, created_at, crc`; nothing when it is not as it was written.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Option<StoredToken>> {
    let (id, hash): ([u8; 16], [u8; 32]) = (row.get(0)?, row.get(1)?);
    let (actor, session): (String, Option<[u8; 16]>) = (row.get(2)?, row.get(3)?);
    let (created_at, crc): (i64, u32) = (row.get(4)?, row.get(5)?);
    let Ok(told) = serde_json::from_str(&actor) else { return Ok(None) };
    let good = crc == sum(&id, &hash, &actor, session.as_ref(), created_at);
    Ok(good.then(|| StoredToken {
        id: TokenId::from_u128(u128::from_be_bytes(id)),
        hash,
        actor: told,
        session: session.map(|id| SessionId::from_u128(u128::from_be_bytes(id))),
        created_at: Timestamp::from_millis(created_at),
    }))
}
