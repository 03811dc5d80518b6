//! Bearer tokens, kept in memory.

use lanyard_core::TokenId;

use crate::error::StoreError;
use crate::journal::{StoredToken, Tokens};
use crate::memory::MemoryJournal;

impl Tokens for MemoryJournal {
    fn put_token(&self, token: &StoredToken) -> Result<(), StoreError> {
        self.kept().tokens.insert(token.id, token.clone());
        Ok(())
    }

    fn tokens(&self) -> Result<Vec<StoredToken>, StoreError> {
        Ok(self.kept().tokens.values().cloned().collect())
    }

    fn revoke_token(&self, id: TokenId) -> Result<bool, StoreError> {
        Ok(self.kept().tokens.remove(&id).is_some())
    }
}
